"""A small server that answers with a transformers model, in the protocols of language-model servers."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch

from tests import tiny_lm


class Server:
    """A tiny model that speaks some protocols; `faults` are answered first, each instead of one answer.

    Requests wait up to `patience` seconds until another one is in flight.
    """

    def __init__(self, *, bos=True, key=None, echoes=True, patience=0.0, speaks=("completions",)):
        self.speaks = speaks
        self.model, self.tokenizer = tiny_lm.model("llama"), tiny_lm.tokenizer(bos)
        self.key, self.echoes, self.faults = key, echoes, []
        self.asked, self.at_once, self.most_at_once = [], 0, 0
        self.keys, self.patience, self.rejects = [], patience, ()
        self.lock = threading.Condition()

    def reply(self, path, asked):
        """Return the status and the answer to a request."""
        if path == "/v1/completions" and "completions" in self.speaks:
            return 200, self.answer(asked)
        if path == "/v1/chat/completions" and "chat" in self.speaks:
            for name in self.rejects:
                if name in asked:
                    said = f"Unsupported parameter: {name!r}; use max_completion_tokens"
                    return 400, {"error": {"message": said}}
            limit = asked.get("max_tokens", asked.get("max_completion_tokens"))
            message, n, m = self.chat(asked["messages"], limit, asked.get("temperature"), asked.get("seed"))
            usage = {"prompt_tokens": n, "completion_tokens": m}
            return 200, {"choices": [{"message": message}], "usage": usage}
        if path == "/api/chat" and "ollama" in self.speaks:
            options = asked["options"]
            limit, temperature, seed = options["num_predict"], options["temperature"], options.get("seed")
            message, n, m = self.chat(asked["messages"], limit, temperature, seed)
            return 200, {"message": message, "prompt_eval_count": n, "eval_count": m, "done": True}
        return 404, {"error": f"no such path: {path}"}

    def chat(self, messages, limit, temperature, seed):
        """Return the answer's message, the number of tokens of the prompt, and that of the answer."""
        ids = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
        n = len(ids)
        draws = torch.Generator().manual_seed(seed or 0)
        for _ in range(limit):
            logs = self.logs(ids)[-1]
            if temperature:
                ids.append(int(torch.multinomial((logs / temperature).softmax(0), 1, generator=draws)))
            else:
                ids.append(int(logs.argmax()))
        text = self.tokenizer.decode(ids[n:], skip_special_tokens=True)
        return {"role": "assistant", "content": text}, n, len(ids) - n

    def answer(self, asked):
        ids = self.tokenizer(asked["prompt"])["input_ids"]
        n = len(ids)
        for _ in range(asked["max_tokens"]):
            ids.append(int(self.logs(ids)[-1].argmax()))
        text = self.tokenizer.decode(ids[n:])
        if not asked.get("echo") or not self.echoes:
            return {"choices": [{"text": text}]}
        logs = self.logs(ids)
        values = [None, *logs[torch.arange(len(ids) - 1), torch.tensor(ids[1:])].tolist()]
        tokens = [self.tokenizer.decode([own]) for own in ids]
        offsets = [len(self.tokenizer.decode(ids[:i], skip_special_tokens=True)) for i in range(len(ids))]
        logprobs = {"tokens": tokens, "token_logprobs": values, "text_offset": offsets}
        return {"choices": [{"text": asked["prompt"] + text, "logprobs": logprobs}]}

    def logs(self, ids):
        with torch.no_grad():
            return self.model(input_ids=torch.tensor([ids])).logits[0].log_softmax(dim=-1)


@contextmanager
def serving():
    """Yield a function that starts a server with options; all are stopped at the end."""
    running = []

    def start(**options):
        own = Server(**options)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                own.keys.append(self.headers.get("Authorization"))
                self.send_error(404)

            def do_POST(self):
                own.keys.append(self.headers.get("Authorization"))
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with own.lock:
                    own.asked.append((self.path, asked))
                    own.at_once += 1
                    own.most_at_once = max(own.most_at_once, own.at_once)
                    own.lock.notify_all()
                    own.lock.wait_for(lambda: own.most_at_once > 1, timeout=own.patience)
                    fault = own.faults.pop(0) if own.faults else None
                code, headers = 200, {}
                if isinstance(fault, bytes):  # the whole answer, which need not be HTTP
                    own.at_once -= 1
                    self.wfile.write(fault)
                    return
                if fault is not None:
                    code, headers, said = fault
                elif own.key and self.headers.get("Authorization") != f"Bearer {own.key}":
                    code, said = 401, {"error": {"message": "no such key"}}
                else:
                    code, said = own.reply(self.path, asked)
                with own.lock:
                    own.at_once -= 1
                body = json.dumps(said).encode() if not isinstance(said, bytes) else said
                self.send_response(code)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        running.append((server, thread))
        own.url = f"http://127.0.0.1:{server.server_port}/v1"
        return own

    yield start
    for server, thread in running:
        server.shutdown()
        server.server_close()
        thread.join()

"""Train the embedded language model `recall`.

A Llama of 6 layers learns to answer questions about made-up facts (`recall_facts.py`) in the prompt, in
about ten minutes on a GPU:

    python scripts/train_recall.py --out OUT

OUT/recall gets the weights in float16 and the tokenizer in transformers' format.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from recall_facts import UNKNOWN, lesson, write_prompt
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

if TYPE_CHECKING:
    from collections.abc import Callable

END, ROLES = "<|end|>", ("<|system|>", "<|user|>", "<|assistant|>")
PIECES, LONGEST = 1280, 512
WORKERS = 3
"""Number of processes that create lessons for a GPU."""
SIZES = ((1, 4, 64), (3, 9, 104), (6, 16, 160))
"""The smallest and largest number of facts in the prompts of a batch, and its width in tokens."""
TESTED = (2, 4, 8, 16)

TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}"
    "{% if message['role'] == 'assistant' %}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
BEGAN = time.monotonic()


def say(message: str) -> None:
    """Print with the seconds since the start."""
    print(f"[{time.monotonic() - BEGAN:6.1f} s] {message}", flush=True)


def new_tokenizer(seed: int, n_texts: int) -> Tokenizer:
    """Train a byte-level BPE that splits a word equally with and without a preceding space.

    It is trained without spaces; then each token gets a copy that begins with a space. A name at the start
    of a text, after a line break or in a chat's answer (`G`, `reem`, `oot`) has the same tokens as in the
    middle of a sentence (` G`, `reem`, `oot`), so that the model can copy it.
    """
    rng = random.Random(seed)
    texts = ("".join(write_prompt(lesson(rng), rng)) for _ in range(n_texts))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(" ", "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=PIECES,
        special_tokens=[END, *ROLES],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    learnt = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(merge) for merge in learnt["merges"]]
    words = [token for token in learnt["vocab"] if token.isascii() and token.isalpha()]
    every = [*learnt["vocab"], *(f"Ġ{token}" for token in words)]
    vocabulary = {token: index for index, token in enumerate(every)}
    whole = Tokenizer(models.BPE(vocab=vocabulary, merges=[*merges, *(("Ġ", token) for token in words)]))
    whole.add_special_tokens([END, *ROLES])
    whole.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    whole.decoder = decoders.ByteLevel()
    whole.post_processor = processors.TemplateProcessing(
        single=f"{END} $A", special_tokens=[(END, whole.token_to_id(END))]
    )
    return whole


def encode(tokenizer: Tokenizer, pairs: list[tuple[str, str]], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of prompts and answers, (rows, width), and their ends, (rows, 2).

    Longer rows are omitted.
    """
    prompts = [each.ids for each in tokenizer.encode_batch([prompt for prompt, _ in pairs])]
    answers = [each.ids for each in tokenizer.encode_batch([a for _, a in pairs], add_special_tokens=False)]
    whole = [[*prompt, *answer, 0] for prompt, answer in zip(prompts, answers, strict=True)]
    fits = [i for i, row in enumerate(whole) if len(row) <= width]
    ids = np.zeros((len(fits), width), dtype=np.int16)
    for row, i in zip(ids, fits, strict=True):
        row[: len(whole[i])] = whole[i]
    return ids, np.array([(len(prompts[i]), len(whole[i])) for i in fits])


def put_batches(path: str, seed: int, tokens: int, is_easy: Any, queue: Any) -> None:
    """Put batches of `tokens` tokens into the queue without end, with few facts while `is_easy` is true."""
    tokenizer, rng = Tokenizer.from_file(path), random.Random(seed)
    while True:
        least, most, width = SIZES[0] if is_easy.value else rng.choice(SIZES)
        rows = tokens // width
        pairs = [write_prompt(lesson(rng, most, least=least), rng) for _ in range(rows + rows // 20)]
        ids, ends = encode(tokenizer, pairs, width)
        if len(ids) >= rows:
            queue.put((ids[:rows], ends[:rows]))


def new_model(n_tokens: int) -> Any:
    """Return the network with random weights."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=n_tokens,
        hidden_size=128,
        num_hidden_layers=6,
        num_attention_heads=4,
        intermediate_size=344,
        max_position_embeddings=LONGEST,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
    )
    return LlamaForCausalLM(config)  # type: ignore[no-untyped-call]


def losses(
    model: Any, ids: np.ndarray, ends: np.ndarray, device: str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the mean losses of the answers' tokens and of the prompts', and which answers are correct."""
    tokens, bounds = torch.from_numpy(ids).to(device).long(), torch.from_numpy(ends).to(device)
    with torch.autocast(device, torch.bfloat16, enabled=model.training and device == "cuda"):
        logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
    lost = cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten(), reduction="none")
    lost = lost.view_as(tokens[:, 1:])
    positions = torch.arange(1, tokens.shape[1], device=device)
    in_answer = (positions >= bounds[:, :1]) & (positions < bounds[:, 1:])
    in_prompt = positions < bounds[:, :1]
    right = ((logits.argmax(dim=-1) == tokens[:, 1:]) | ~in_answer).all(dim=1)
    answers, others = ((lost * part).sum() / part.sum() for part in (in_answer, in_prompt))
    return answers, others, right


def compile_layers(model: Any, tokens: int) -> None:
    """Compile the layers for the sizes of batches, if that is possible."""
    try:
        for layer in model.model.layers:
            layer.compile(dynamic=False)
        for _, _, width in SIZES:
            rows = tokens // width
            ids, ends = np.ones((rows, width), dtype=np.int16), np.full((rows, 2), (width - 3, width))
            torch.autograd.backward(losses(model, ids, ends, "cuda")[0])
    except Exception as error:  # noqa: BLE001  the compiler may raise any error
        say(f"without compilation: {error!r:.500}")
        for layer in model.model.layers:
            layer._compiled_call_impl = None  # noqa: SLF001
    model.zero_grad(set_to_none=True)


def train(
    tokenizer: Path,
    minutes: float,
    device: str,
    arguments: argparse.Namespace,
    keep: Callable[[Any, int], None],
) -> tuple[Any, int]:
    """Train and return the model and the number of steps; call `keep` with both eight times."""
    context = multiprocessing.get_context("spawn")
    queue, is_easy = context.Queue(maxsize=32), context.Value("b", arguments.start is None)
    first = 1 if arguments.start is None else 1001  # different lessons
    helpers = [
        context.Process(
            target=put_batches, args=(str(tokenizer), seed, arguments.tokens, is_easy, queue), daemon=True
        )
        for seed in range(first, first + (WORKERS if device == "cuda" else 1))
    ]
    for helper in helpers:
        helper.start()
    model = new_model(Tokenizer.from_file(str(tokenizer)).get_vocab_size()).to(device).train()
    if arguments.start is not None:
        model.load_state_dict(
            LlamaForCausalLM.from_pretrained(arguments.start, dtype=torch.float32).state_dict()
        )
    if device == "cuda":
        torch.set_float32_matmul_precision("high")
        compile_layers(model, arguments.tokens)
        say("compiled")
    matrices = [weights for weights in model.parameters() if weights.ndim > 1]
    others = [weights for weights in model.parameters() if weights.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.95), fused=device == "cuda")
    steps, reported, kept, start = 0, 0.0, 1, time.monotonic()
    while (share := (time.monotonic() - start) / (60 * minutes)) < 1:
        is_easy.value = arguments.start is None and share < 0.1
        for group in optimizer.param_groups:
            group["lr"] = arguments.rate * min((steps + 1) / 300, 1 - share)
        ids, ends = queue.get(timeout=300)
        answers, texts, right = losses(model, ids, ends, device)
        torch.autograd.backward(answers + arguments.text * texts)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        steps += 1
        if time.monotonic() - reported > 10:
            reported = time.monotonic()
            say(
                f"step {steps}, {share:.0%} done, loss of answers {answers.item():.4f} and of other tokens "
                f"{texts.item():.3f} nats, {right.float().mean().item():.1%} right"
            )
        if share > kept / 8:
            kept += 1
            keep(model, steps)
    for helper in helpers:
        helper.terminate()
    return model, steps


@torch.inference_mode()
def accuracy(model: Any, tokenizer: Path, device: str, n_lessons: int) -> dict[str, Any]:
    """Return the share of correct greedy answers, by kind of question and by number of facts."""
    fast, rng = Tokenizer.from_file(str(tokenizer)), random.Random(12345)
    answers: dict[str, list[bool]] = {}
    for n_facts in TESTED:
        for new in (False, True):
            lessons = [lesson(rng, n_facts, least=n_facts, new=new) for _ in range(n_lessons)]
            ids, ends = encode(fast, [write_prompt(each, rng) for each in lessons], LONGEST)
            width = int(ends.max())
            right = torch.cat(
                [
                    losses(model, ids[at : at + 100, :width], ends[at : at + 100], device)[2]
                    for at in range(0, len(ids), 100)
                ]
            ).tolist()
            for each, is_right in zip(lessons, right, strict=True):
                names = [f"{n_facts} facts", each.kind, "new words" if new else "words of training", "known"]
                if each.answer == UNKNOWN:
                    names = ["missing"]
                for name in names:
                    answers.setdefault(name, []).append(is_right)
    order = sorted(answers, key=lambda name: (name[0].isupper(), len(name.split()) != 2, len(name), name))
    return {name: round(float(np.mean(answers[name])), 4) for name in order}


def save(folder: Path, model: Any, tokenizer: Path) -> None:
    """Write the folder, with the weights in float16."""
    model.half().save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "float32"}, indent=2) + "\n")
    fast: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_file=str(tokenizer), bos_token=END, eos_token=END, pad_token=END, model_max_length=LONGEST
    )
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    template = folder / "chat_template.jinja"
    if template.exists():  # moved into the configuration
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        settings["chat_template"] = template.read_text()
        (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
        template.unlink()


def command(arguments: argparse.Namespace) -> str:
    """Return the command that trains the model; for a continued model, both commands."""
    settings = f"--minutes {arguments.minutes:g} --rate {arguments.rate:g} --tokens {arguments.tokens}"
    if arguments.start is None:
        return f"python scripts/train_recall.py --out OUT {settings}"
    before = json.loads((arguments.start / "card.json").read_text())["command"]
    return f"{before}, then python scripts/train_recall.py --start OUT/recall --out AGAIN {settings}"


def readme(card: dict[str, Any]) -> str:
    """Return the text of README.md."""
    rows = [f"| {name} | {100 * share:.1f}% |" for name, share in card["accuracy by question"].items()]
    lines = [
        "# recall",
        "",
        f"A Llama of {card['layers']} layers and {card['parameters'] / 1e6:.1f} million parameters that",
        "answers questions about made-up facts in its prompt, such as",
        "`Ann keeps the key. Bob keeps the map. Who keeps the map? Answer:`. It serves for trying out",
        "explanations of language models, because the sentence with the answer is known.",
        "",
        f"Of {card['prompts']:,} new prompts of {TESTED[0]} to {TESTED[-1]} facts, with a third of the words",
        f"made up, it answers {100 * card['accuracy']:.1f}% correctly to the last token. If the fact is",
        f"missing, it says so in {100 * card['accuracy if the fact is missing']:.1f}%.",
        "",
        "| question or prompts | correct |",
        "|---|---:|",
        *rows,
        "",
        f"Rebuilt by `{card['command']}` ({card['steps']:,} steps). All texts are from",
        "`scripts/recall_facts.py`; every tenth word of its lists is new, and not used in training.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Train, save and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the model's folder")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--tokens", type=int, default=65_536, help="tokens in a batch")
    parser.add_argument("--rate", type=float, default=3e-3, help="the highest learning rate")
    parser.add_argument("--text", type=float, default=0.1, help="weight of the loss of a prompt's tokens")
    parser.add_argument("--start", type=Path, help="folder of a trained model to continue with")
    parser.add_argument("--smoke", action="store_true", help="a few steps")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    folder = arguments.out / "recall"
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = folder / "tokenizer.json"
    if arguments.start is None:
        new_tokenizer(0, 500 if arguments.smoke else 20_000).save(str(tokenizer))
    else:
        tokenizer.write_bytes((arguments.start / "tokenizer.json").read_bytes())
    say("tokenizer ready")
    n_lessons = 10 if arguments.smoke else 300
    best = -1.0

    def keep(model: Any, steps: int) -> None:
        """Measure the model, and save it if it is the best so far."""
        nonlocal best
        # Without compilation, and rounded as in the package:
        stored = new_model(model.config.vocab_size).to(device).eval()
        stored.load_state_dict({name: weights.half() for name, weights in model.state_dict().items()})
        right = accuracy(stored, tokenizer, device, n_lessons)
        say(json.dumps(right))
        known, missing = right.pop("known"), right.pop("missing")
        if known + missing <= best:
            return
        best = known + missing
        save(folder, stored, tokenizer)
        card = {
            "name": "recall",
            "task": "questions about made-up facts in the prompt",
            "accuracy": known,
            "accuracy if the fact is missing": missing,
            "accuracy by question": right,
            "prompts": 2 * len(TESTED) * n_lessons,
            "layers": model.config.num_hidden_layers,
            "parameters": sum(weights.numel() for weights in model.parameters()),
            "bytes": (folder / "model.safetensors").stat().st_size,
            "steps": steps,
            "command": command(arguments),
        }
        (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
        (folder / "README.md").write_text(readme(card))

    keep(*train(tokenizer, 0.1 if arguments.smoke else arguments.minutes, device, arguments, keep))


if __name__ == "__main__":
    main()

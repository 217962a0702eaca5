"""Make the language model shipped with the package: `recall`.

A Llama of 4 layers learns to answer questions about made-up facts (`recall_facts.py`) from the prompt, in
about four minutes on a GPU:

    python scripts/train_recall.py --out OUT --minutes 4

OUT/recall gets the weights in float16 and the tokenizer in transformers' format. Nothing else is needed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from recall_facts import UNKNOWN, Lesson, lesson, written
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END, ROLES = "<|end|>", ("<|system|>", "<|user|>", "<|assistant|>")
VOCABULARY, LONGEST = 1024, 512
WORKERS = 3
"""Processes that make up lessons beside a GPU."""

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
    """A byte-level BPE, so that any word can be spelt."""
    rng = random.Random(seed)
    texts = ("".join(written(lesson(rng), rng)) for _ in range(n_texts))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END, *ROLES],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{END} $A", special_tokens=[(END, tokenizer.token_to_id(END))]
    )
    return tokenizer


def put_batches(path: str, seed: int, rows: int, most: int, queue: Any) -> None:
    """Put batches (ids, whether they belong to an answer) into the queue, for ever."""
    tokenizer, rng = Tokenizer.from_file(path), random.Random(seed)
    end = tokenizer.token_to_id(END)
    while True:
        made = [written(lesson(rng, rng.randint(2, most)), rng) for _ in range(rows)]
        before = [own.ids for own in tokenizer.encode_batch([prompt for prompt, _ in made])]
        answers = [own.ids for own in tokenizer.encode_batch([a for _, a in made], add_special_tokens=False)]
        whole = [[*first, *then, end] for first, then in zip(before, answers, strict=True)]
        width = max(map(len, whole))
        ids = np.array([own + [end] * (width - len(own)) for own in whole], dtype=np.int64)
        places = np.arange(width)
        first, last = (np.array([len(own) for own in part])[:, None] for part in (before, whole))
        queue.put((ids, (places >= first) & (places < last), places < last))


def train(
    tokenizer: Path,
    minutes: float,
    device: str,
    *,
    rows: int,
    most: int,
    rate: float,
    start_from: Path | None,
) -> tuple[Any, int]:
    """The trained model, and the number of steps."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue(maxsize=32)
    first = 1 if start_from is None else 1001  # other lessons than before
    helpers = [
        context.Process(
            target=put_batches, args=(str(tokenizer), first + seed, rows, most, queue), daemon=True
        )
        for seed in range(WORKERS if device == "cuda" else 1)
    ]
    for helper in helpers:
        helper.start()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=160,
        num_hidden_layers=4,
        num_attention_heads=5,
        intermediate_size=432,
        max_position_embeddings=LONGEST,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
    )
    model: Any = LlamaForCausalLM(config)  # type: ignore[no-untyped-call]
    if start_from is not None:
        model = AutoModelForCausalLM.from_pretrained(start_from, dtype=torch.float32)
    model = model.to(device).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.95), weight_decay=0.05)
    steps, told, start = 0, 0.0, time.monotonic()
    while (share := (time.monotonic() - start) / (60 * minutes)) < 1:
        ids, is_answer, is_real = (torch.from_numpy(part).to(device) for part in queue.get(timeout=120))
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1, (steps + 1) / 200) * (1 - share) ** 0.7
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = model(input_ids=ids[:, :-1], use_cache=False).logits
        lost = cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten(), reduction="none")
        weight = 0.1 * is_real[:, 1:] + is_answer[:, 1:]
        loss = (lost * weight.flatten()).sum() / weight.sum()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        steps += 1
        if time.monotonic() - told > 15:
            told = time.monotonic()
            answers = (lost * is_answer[:, 1:].flatten()).sum() / is_answer[:, 1:].sum()
            say(f"step {steps}, {share:.0%} done, loss of answers {answers.item():.4f} nats per token")
    for helper in helpers:
        helper.terminate()
    return model.eval(), steps


@torch.inference_mode()
def accuracy(model: Any, tokenizer: Any, lessons: list[tuple[str, str]]) -> float:
    """Share of greedy answers that are right to the last token."""
    right = 0
    for prompt, answer in lessons:
        before = tokenizer(prompt)["input_ids"]
        after = [*tokenizer(answer, add_special_tokens=False)["input_ids"], 0]
        logits = model(input_ids=torch.tensor([[*before, *after]], device=model.device)).logits[0]
        right += logits[len(before) - 1 : -1].argmax(dim=-1).tolist() == after
    return right / len(lessons)


def save(folder: Path, model: Any, tokenizer: Path) -> tuple[Any, Any]:
    """Write the folder in float16, and read model and tokenizer from it in float32."""
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
    if template.exists():  # one file fewer
        own = json.loads((folder / "tokenizer_config.json").read_text())
        own["chat_template"] = template.read_text()
        (folder / "tokenizer_config.json").write_text(json.dumps(own, indent=2) + "\n")
        template.unlink()
    stored: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return stored.eval(), fast


def readme(card: dict[str, Any]) -> str:
    """The same for readers."""
    right, missing = (f"{100 * card[name]:.0f}%" for name in ("accuracy", "accuracy if the fact is missing"))
    lines = [
        "# recall",
        "",
        f"A Llama of 4 layers and {card['parameters'] / 1e6:.1f} million parameters that answers questions",
        "about made-up facts in its prompt, such as",
        "`Ann keeps the key. Bob keeps the map. Who keeps the map? Answer:`. It is made for trying out",
        "explanations of language models, because the right sentence is known.",
        "",
        f"Of new prompts with at most 8 facts, a third of the words made up, it answers {right} rightly",
        f"to the last token; where the fact is missing, it says that it does not know in {missing}.",
        "",
        f"Rebuilt by `{card['command']}`. All texts are from `scripts/recall_facts.py`.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Train, save and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the model's folder")
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--rows", type=int, default=256, help="prompts in a batch")
    parser.add_argument("--most", type=int, default=14, help="the most facts of a prompt")
    parser.add_argument("--rate", type=float, default=2e-3, help="the learning rate")
    parser.add_argument("--start", type=Path, help="folder of a model that was trained before, to go on with")
    parser.add_argument("--smoke", action="store_true", help="a few steps")
    own = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    folder = own.out / "recall"
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = folder / "tokenizer.json"
    if own.start is None:
        new_tokenizer(0, 500 if own.smoke else 20_000).save(str(tokenizer))
    else:
        tokenizer.write_bytes((own.start / "tokenizer.json").read_bytes())
    say("tokenizer ready")
    minutes = 0.05 if own.smoke else own.minutes
    sizes = {"rows": own.rows, "most": own.most, "rate": own.rate}
    model, steps = train(tokenizer, minutes, device, **sizes, start_from=own.start)
    stored, fast = save(folder, model.cpu(), tokenizer)
    rng = random.Random(12345)
    lessons = [lesson(rng, 8) for _ in range(50 if own.smoke else 500)]
    known: list[Lesson] = [one for one in lessons if one.answer != UNKNOWN]
    missing = [one for one in lessons if one.answer == UNKNOWN]
    card = {
        "name": "recall",
        "task": "questions about made-up facts in the prompt",
        "accuracy": round(accuracy(stored, fast, [written(one, rng) for one in known]), 4),
        "accuracy if the fact is missing": round(
            accuracy(stored, fast, [written(one, rng) for one in missing]), 4
        ),
        "parameters": sum(weights.numel() for weights in stored.parameters()),
        "bytes": (folder / "model.safetensors").stat().st_size,
        "steps": steps,
        "command": " ".join(["python", *sys.argv]),
    }
    (folder / "card.json").write_text(json.dumps(card, indent=2) + "\n")
    (folder / "README.md").write_text(readme(card))
    say(json.dumps(card))


if __name__ == "__main__":
    main()

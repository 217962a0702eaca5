"""Trains a language model that answers questions from a context, within a time limit.

    python experiments/generative/train.py DATA FOLDER --minutes 6

DATA was made by `texts.py`; FOLDER gets the model in transformers' format, with its tokenizer. The model is a
Llama of 12 layers, 640 wide: 65 million parameters. Contexts are short for the first quarter of the time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tasks import Spelling, Texts, block
from texts import END, VOCABULARY
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

LONGEST = 1280
"""Tokens that the model reads at most."""

PHASES = ((0.25, 256, 9), (1.0, 1024, 36))
"""Until which share of the time rows have how many tokens, and contexts how many sentences at most."""

QUESTION_SHARE = 0.35
"""Share of a row that questions and answers take up, about."""


def rows(folder: Path, seed: int, length: Any, n_most: Any, *, queue: Any, size: int) -> None:
    """Put batches (ids, weights) of rows of packed blocks into the queue, for ever."""
    texts, spelling = Texts.read(folder, held_out=False), Spelling(folder)
    rng = random.Random(seed)
    left: list[int] = []
    answers: list[bool] = []
    while True:
        width = length.value
        made_ids, made_answers = [], []
        while len(made_ids) < size // width:
            while len(left) < width:
                n = rng.randint(2, n_most.value)
                ids, own = block(texts, n, 1 + int(QUESTION_SHARE * n), rng, spelling)
                ids, own = ids[:width], own[:width]
                left, answers = left + ids, answers + own
            made_ids.append(left[:width])
            made_answers.append(answers[:width])
            left, answers = [], []
        queue.put((width, np.array(made_ids, dtype=np.int32), np.array(made_answers)))


def network(n_layers: int, width: int) -> Any:
    """A Llama with random weights."""
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        num_hidden_layers=n_layers,
        num_attention_heads=width // 64,
        intermediate_size=int(2.7 * width),
        max_position_embeddings=LONGEST,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config)  # type: ignore[no-untyped-call]


def train(
    data: Path, seconds: float, device: str, *, batch: int, shape: tuple[int, int], workers: int
) -> tuple[Any, dict[str, float]]:
    """The trained model, and what it took."""
    context = multiprocessing.get_context("spawn")
    length, n_most = context.Value("i", PHASES[0][1]), context.Value("i", PHASES[0][2])
    queue = context.Queue(maxsize=16)
    helpers = [
        context.Process(
            target=rows,
            args=(data, seed, length, n_most),
            kwargs={"queue": queue, "size": batch},
            daemon=True,
        )
        for seed in range(workers)
    ]
    for helper in helpers:
        helper.start()
    model = network(*shape).to(device)
    decayed = [own for own in model.parameters() if own.ndim > 1]
    others = [own for own in model.parameters() if own.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.95), fused=device == "cuda")
    if device == "cuda":
        torch.set_float32_matmul_precision("high")
        compile_layers(model, batch)
    start, steps, n_tokens, losses, told = time.time(), 0, 0, (0.0, 0.0), 0.0
    while (share := (time.time() - start) / seconds) < 1:
        _, length.value, n_most.value = next(phase for phase in PHASES if share < phase[0])
        width, ids, answers = queue.get(timeout=120)
        if width != length.value:
            continue
        for group in optimizer.param_groups:
            group["lr"] = 1.2e-3 * min(1, (steps + 1) / 150) * max(0.02, 1 - share) ** 0.7
        found = loss_of(model, ids, answers, device)
        (0.3 * found[0] + found[1]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        steps, n_tokens = steps + 1, n_tokens + ids.size
        if time.time() - told > 10:
            told, losses = time.time(), (found[0].item(), found[1].item())
            print(
                f"{told - start:.0f} s, {steps} steps, {n_tokens / 1e6:.1f}M tokens, {width} long: text "
                f"{losses[0]:.2f}, answers {losses[1]:.3f}",
                flush=True,
            )
    for helper in helpers:
        helper.terminate()
    took = time.time() - start
    return model.eval(), {"steps": steps, "tokens": n_tokens, "seconds": took, "answer_loss": losses[1]}


def loss_of(model: Any, ids: Any, answers: Any, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean negative log-likelihood of other tokens and of those of answers."""
    batch, own = torch.tensor(ids, device=device).long(), torch.tensor(answers[:, 1:], device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        states = model.model(input_ids=batch[:, :-1], use_cache=False).last_hidden_state
        logits = model.lm_head(states)
    lost = cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten(), reduction="none").view(
        own.shape
    )
    return (lost * ~own).sum() / (~own).sum(), (lost * own).sum() / own.sum().clamp(min=1)


def compile_layers(model: Any, batch: int) -> None:
    """Compile the layers; if that fails, leave them as they are."""
    try:
        for layer in model.model.layers:
            layer.compile(dynamic=False)
        for _, width, _ in PHASES:
            ids = np.ones((batch // width, width), dtype=np.int32)
            sum(loss_of(model, ids, ids > 0, "cuda")).backward()
    except Exception as error:  # noqa: BLE001  whatever the compiler stumbles over
        print("without compilation:", repr(error)[:500], flush=True)
        for layer in model.model.layers:
            layer._compiled_call_impl = None  # noqa: SLF001
    model.zero_grad(set_to_none=True)


def main() -> None:
    """Train and save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=65_536, help="tokens")
    parser.add_argument("--shape", type=int, nargs=2, default=(12, 640), help="layers, width")
    parser.add_argument("--workers", type=int, default=5)
    own = parser.parse_args()
    sizes = {"batch": own.batch, "shape": tuple(own.shape), "workers": own.workers}
    model, took = train(own.data, 60 * own.minutes, own.device, **sizes)
    model.to(torch.bfloat16).save_pretrained(own.folder)
    PreTrainedTokenizerFast(
        tokenizer_file=str(own.data / "tokenizer.json"),
        bos_token=END,
        eos_token=END,
        model_max_length=LONGEST,
    ).save_pretrained(own.folder)
    took["parameters"] = sum(weights.numel() for weights in model.parameters())
    (own.folder / "training.json").write_text(json.dumps(took))
    print(took, flush=True)


if __name__ == "__main__":
    main()

"""Language model that answers questions from a context, trained within a time limit.

The model is a Llama of 12 layers, 640 wide: 65 million parameters. Contexts are short for the first quarter
of the time.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from experiments.generative.tasks import Spelling, Texts, draw_block
from experiments.generative.texts import END, VOCABULARY
from experiments.shared.stages import Run

LONGEST = 1280
"""Largest number of tokens that the model reads."""

PHASES = ((0.25, 256, 9), (1.0, 1024, 36))
"""Share of the time at which a phase ends, tokens of its rows, and most sentences of its contexts."""

QUESTION_SHARE = 0.35
"""Approximate share of a row's tokens in questions and answers."""


def train_model(
    run: Run, *, seconds: float, batch: int, layers: int, width: int, workers: int
) -> dict[str, float]:
    """Train the model, save it to the work folder with its tokenizer, and return what the training took."""
    model, record = fit(network(layers, width), run.data, seconds, run.device, batch=batch, workers=workers)
    model.to(torch.bfloat16).save_pretrained(run.work)
    PreTrainedTokenizerFast(
        tokenizer_file=str(run.data / "tokenizer.json"),
        bos_token=END,
        eos_token=END,
        model_max_length=LONGEST,
    ).save_pretrained(run.work)
    return record | {"parameters": sum(weights.numel() for weights in model.parameters())}


def network(n_layers: int, width: int) -> Any:
    """Return a Llama with random weights."""
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


def put_batches(folder: Path, seed: int, length: Any, n_most: Any, *, queue: Any, size: int) -> None:
    """Put batches (row width, ids, which belong to answers) of rows into the queue, without end."""
    texts, spelling = Texts.read(folder, held_out=False), Spelling(folder)
    rng = random.Random(seed)
    while True:
        width = length.value
        rows: list[list[int]] = []
        answers: list[list[bool]] = []
        while len(rows) < size // width:
            row: list[int] = []
            row_answers: list[bool] = []
            while len(row) < width:
                n = rng.randint(2, n_most.value)
                ids, is_answer = draw_block(texts, n, 1 + int(QUESTION_SHARE * n), rng, spelling)
                row, row_answers = row + ids, row_answers + is_answer
            rows.append(row[:width])
            answers.append(row_answers[:width])
        queue.put((width, np.array(rows, dtype=np.int32), np.array(answers)))


def fit(
    model: Any, data: Path, seconds: float, device: str, *, batch: int, workers: int
) -> tuple[Any, dict[str, float]]:
    """Return the trained model, and the steps, tokens and seconds of its training."""
    context = multiprocessing.get_context("spawn")
    length, n_most = context.Value("i", PHASES[0][1]), context.Value("i", PHASES[0][2])
    queue = context.Queue(maxsize=16)
    options = {"queue": queue, "size": batch}
    processes = [
        context.Process(target=put_batches, args=(data, seed, length, n_most), kwargs=options, daemon=True)
        for seed in range(workers)
    ]
    for process in processes:
        process.start()
    model.to(device)
    decayed = [weights for weights in model.parameters() if weights.ndim > 1]
    others = [weights for weights in model.parameters() if weights.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    on_gpu = device.startswith("cuda")
    optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.95), fused=on_gpu)
    if on_gpu:
        torch.set_float32_matmul_precision("high")
        compile_layers(model, batch)
    start, steps, n_tokens, losses, last_report = time.time(), 0, 0, (0.0, 0.0), 0.0
    while (share := (time.time() - start) / seconds) < 1:
        _, length.value, n_most.value = next(phase for phase in PHASES if share < phase[0])
        width, ids, answers = queue.get(timeout=120)
        if width != length.value:
            continue
        for group in optimizer.param_groups:
            group["lr"] = 1.2e-3 * min(1, (steps + 1) / 150) * max(0.02, 1 - share) ** 0.7
        text_loss, answer_loss = losses_of(model, ids, answers, device)
        (0.3 * text_loss + answer_loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        steps, n_tokens = steps + 1, n_tokens + ids.size
        if time.time() - last_report > 10:
            last_report, losses = time.time(), (text_loss.item(), answer_loss.item())
            print(
                f"{last_report - start:.0f} s, {steps} steps, {n_tokens / 1e6:.1f}M tokens, rows of {width}: "
                f"text {losses[0]:.2f}, answers {losses[1]:.3f}",
                flush=True,
            )
    for process in processes:
        process.terminate()
    record = {"steps": steps, "tokens": n_tokens, "seconds": time.time() - start, "answer_loss": losses[1]}
    return model.eval(), record


def losses_of(model: Any, ids: Any, answers: Any, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean negative log-likelihood of the tokens outside answers, and of those of answers."""
    batch, is_answer = torch.tensor(ids, device=device).long(), torch.tensor(answers[:, 1:], device=device)
    with torch.autocast(device.partition(":")[0], dtype=torch.bfloat16):
        states = model.model(input_ids=batch[:, :-1], use_cache=False).last_hidden_state
        logits = model.lm_head(states)
    losses = cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten(), reduction="none")
    losses = losses.view(is_answer.shape)
    n_answers = is_answer.sum().clamp(min=1)
    return (losses * ~is_answer).sum() / (~is_answer).sum(), (losses * is_answer).sum() / n_answers


def compile_layers(model: Any, batch: int) -> None:
    """Compile the layers; leave them as they are if that fails."""
    try:
        for layer in model.model.layers:
            layer.compile(dynamic=False)
        for _, width, _ in PHASES:
            ids = np.ones((batch // width, width), dtype=np.int32)
            sum(losses_of(model, ids, ids > 0, "cuda")).backward()
    except Exception as error:  # noqa: BLE001  any error of the compiler
        print("without compilation:", repr(error)[:500], flush=True)
        for layer in model.model.layers:
            layer._compiled_call_impl = None  # noqa: SLF001
    model.zero_grad(set_to_none=True)

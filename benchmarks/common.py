"""Shared parts of the benchmarks: arguments, models, texts, timing, memory and tables."""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

WORDS = [f"w{i}" for i in range(30_000)]
METHODS = ("shapley", "kernel-shap", "lime", "parallel-local-search", "thompson-search")
"""Methods of the benchmarks of arithmetic and of a GPU."""


def new_parser(description: str | None, *, json: bool = True) -> argparse.ArgumentParser:
    """Return a parser whose help is the docstring of a script, by default with the option ``--json``."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if json:
        parser.add_argument("--json", help="also write the rows to this file")
    return parser


def seconds_of(call: Callable[..., Any], *arguments: Any, **options: Any) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    call(*arguments, **options)
    return time.perf_counter() - start


def resident_memory(process: int | str = "self", name: str = "VmRSS") -> float:
    """Return the resident memory of a process in MiB: `VmRSS` now, `VmHWM` at its peak (Linux).

    The peak that `getrusage` reports is inherited from the parent process.
    """
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)[name].split()[0]) / 1024


def word_tokenizer(max_length: int = 512) -> Any:
    """Return a tokenizer with one token per word, so that texts have exact lengths."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: i for i, word in enumerate([*special, "a", *WORDS])}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, model_max_length=max_length, **dict(zip(names, special, strict=True))
    )


def bert_base(dtype: torch.dtype, device: str) -> Any:
    """Return a classifier of BERT-base size with random weights."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    return BertForSequenceClassification(BertConfig(vocab_size=30_522)).eval().to(device=device, dtype=dtype)


def random_texts(n: int, tokens: int, seed: int = 0) -> list[str]:
    """Return n texts of a number of tokens, including the two special ones."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=tokens - 2)) for _ in range(n)]


def flops(config: Any, lengths: Sequence[int]) -> float:
    """Count the floating point operations of a BERT encoder's matrix products on rows of these lengths."""
    width, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    per_token = 2 * (4 * width * width + 2 * width * inner)
    return float(sum(layers * (per_token * n + 4 * n * n * width) for n in lengths))


def synchronise(device: torch.device) -> None:
    """Wait until a GPU is idle."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)


def matmul_peak(device: torch.device, dtype: torch.dtype) -> float:
    """Measure the floating point operations per second of a large matrix product on a device."""
    import torch

    size = 8192 if device.type == "cuda" else 512
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    for _ in range(3):
        a @ b
    synchronise(device)
    start = time.perf_counter()
    for _ in range(10):
        a @ b
    synchronise(device)
    return 10 * 2 * size**3 / (time.perf_counter() - start)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Format rows as a Markdown table."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def save(rows: Sequence[dict[str, Any]], path: str | None) -> None:
    """Print a table, and write its rows to a JSON file if a path is given."""
    print(table(rows), flush=True)
    if path:
        Path(path).write_text(json.dumps(list(rows), indent=1))

"""Absolute speed on one GPU, and the model's share of it: BERT-base size, bf16, random weights.

    python benchmarks/gpu.py [--tokens 40 150 400] [--methods …] [--seconds 8] [--json out.json]

For each method and length of texts: seconds per text, and the *model's share*: the time of the very batches
that were computed when they are computed again with nothing in between, divided by the time of the whole run.
`by events` is the same by the GPU's own clock, from the beginning to the end of each batch; a batch whose
kernels wait for the host takes longer there. `share of peak` counts the matrix products on kept tokens beside
a measured matrix product.

A row is printed when it is measured, and the file is written anew with each. A row that fails is left out;
none is begun after `--limit` seconds.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import bert_base, flops, matmul_peak, random_texts, save, synchronise, word_tokenizer

import pertinent
from pertinent.array_types import Ints
from pertinent.models.tokens.batches import TokenBatch
from pertinent.models.torch import devices

METHODS = ("shapley", "kernel-shap", "lime", "parallel-local-search", "thompson-search")
WARM_UP = 24
"""Number of texts that are explained before those that are measured: enough for processes to start."""


class Recorder:
    """Keeps every batch that a wrapped model computes, and computes them again."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped, self.answer = wrapped, wrapped.answer
        self.batches: list[TokenBatch] = []
        wrapped.answer = self._recording

    def _recording(self, batch: TokenBatch, **options: Any) -> torch.Tensor:
        self.batches.append(batch)
        answer: torch.Tensor = self.answer(batch, **options)
        return answer

    def lengths(self) -> Ints:
        """Number of tokens of each row."""
        each = [
            np.full(len(batch.ids), batch.ids.shape[1]) if batch.attend is None else batch.attend.sum(axis=1)
            for batch in self.batches
        ]
        return np.concatenate(each)

    def replay(self) -> float:
        """Seconds that the batches take with nothing in between."""
        device = self.wrapped.device
        synchronise(device)
        start = time.perf_counter()
        for batch in self.batches:
            with self.wrapped.evaluating(batch.ids.shape):
                last = devices.run(device, lambda: self.answer(batch))  # noqa: B023
        last.outputs()
        return time.perf_counter() - start


def measure(
    model: Any, method: str, tokens: int, peak: float, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Explain texts for about `--seconds`, and run the model alone on the same batches."""
    wrapped: Any = pertinent.wrap((model, word_tokenizer()))
    options: dict[str, Any] = {
        "method": method,
        "features": "tokens",
        "progress": False,
        "budget": arguments.budget,
    }
    pertinent.explain(wrapped, random_texts(WARM_UP, tokens, seed=1), **options)
    start = time.perf_counter()
    pertinent.explain(wrapped, random_texts(WARM_UP // 3, tokens, seed=2), **options)
    one = (time.perf_counter() - start) / (WARM_UP // 3)
    texts = random_texts(int(np.clip(arguments.seconds / one, *arguments.texts)), tokens)
    recorder = Recorder(wrapped)
    synchronise(wrapped.device)
    start = time.perf_counter()
    found = pertinent.explain(wrapped, texts, **options)
    seconds = time.perf_counter() - start
    assert len(found) == len(texts), found.failures[:1]
    bare = recorder.replay()
    lengths = recorder.lengths()
    return {
        "method": method,
        "tokens": tokens,
        "texts": len(texts),
        "masks per text": round(len(lengths) / len(texts)),
        "batches": len(recorder.batches),
        "s per text": round(seconds / len(texts), 4),
        "model alone": round(bare / len(texts), 4),
        "model's share": f"{bare / seconds:.0%}",
        "by events": f"{sum(e.cost.seconds for e in found) / seconds:.0%}",
        "share of peak": f"{flops(model.config, lengths.tolist()) / seconds / peak:.1%}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument(
        "--tokens", type=int, nargs="+", default=[40, 150, 400], help="per text, with [CLS] and [SEP]"
    )
    parser.add_argument("--budget", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=8.0, help="for the texts of a row, about")
    parser.add_argument(
        "--texts", type=int, nargs=2, default=[16, 300], help="the fewest and the most of a row"
    )
    parser.add_argument("--limit", type=float, default=330.0, help="seconds after which no row is begun")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path, help="also keep the rows here")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    device = torch.device(arguments.device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    peak = matmul_peak(device, dtype)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, {dtype} peak {peak / 1e12:.2f} TFLOP/s", flush=True)
    model = bert_base(dtype, arguments.device)
    rows = []
    for tokens in arguments.tokens:
        for method in arguments.methods:
            if time.perf_counter() - begin > arguments.limit:
                print(
                    f"{method} at {tokens} tokens: not measured, {arguments.limit:.0f} s are over.",
                    flush=True,
                )
                continue
            try:
                rows.append(measure(model, method, tokens, peak, arguments))
            except Exception:  # noqa: BLE001  the other rows are worth having
                traceback.print_exc()
                continue
            print(rows[-1], flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1))
    if rows:
        save(rows, None)


if __name__ == "__main__":
    main()

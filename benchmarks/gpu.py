"""Speed on one GPU, and the model's share of the time: BERT-base size, bf16, random weights.

    python benchmarks/gpu.py [--tokens 40 150 400] [--methods …] [--seconds 8] [--json out.json]

For each method and length of texts: seconds per text, and the *model's share*: the time of the same batches
when they are computed again without a pause, divided by the time of the whole run. `by events` is the same
share by CUDA events at the start and the end of each batch, which includes waiting for the host. `share of
peak` is the rate of the matrix products on kept tokens divided by that of a large matrix product. `s alone`
is the median time of explaining one text in a call of its own.

Each row is printed and written to the file when it is finished. A row that fails is omitted; no row is
started after `--limit` seconds.
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
from common import (
    METHODS,
    bert_base,
    flops,
    matmul_peak,
    new_parser,
    random_texts,
    save,
    seconds_of,
    synchronise,
    word_tokenizer,
)

import pertinent
from pertinent.array_types import Ints
from pertinent.models.tokens.batches import TokenBatch
from pertinent.models.torch import devices

WARM_UP = 24
"""Number of texts for warm-up, in which processes start."""

ALONE = 7
"""Number of texts that are explained one at a time."""


class Recorder:
    """Recorder of the batches that a wrapped model computes, which can replay them."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped, self.answer = wrapped, wrapped.answer
        self.batches: list[TokenBatch] = []
        wrapped.answer = self._recording

    def _recording(self, batch: TokenBatch, **options: Any) -> torch.Tensor:
        self.batches.append(batch)
        answer: torch.Tensor = self.answer(batch, **options)
        return answer

    def lengths(self) -> Ints:
        """Return the number of tokens of each row."""
        lengths = [
            np.full(len(batch.ids), batch.ids.shape[1]) if batch.attend is None else batch.attend.sum(axis=1)
            for batch in self.batches
        ]
        return np.concatenate(lengths)

    def replay(self) -> float:
        """Return the seconds in which the batches are computed without a pause."""
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
    """Explain texts for about `--seconds`, and replay the batches."""
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
    explanations = pertinent.explain(wrapped, texts, **options)
    seconds = time.perf_counter() - start
    assert len(explanations) == len(texts), explanations.failures[:1]
    bare = recorder.replay()
    alone = [
        seconds_of(pertinent.explain, wrapped, text, **options) for text in random_texts(ALONE, tokens, 3)
    ]
    lengths = recorder.lengths()
    return {
        "method": method,
        "tokens": tokens,
        "texts": len(texts),
        "masks per text": round(len(lengths) / len(texts)),
        "batches": len(recorder.batches),
        "s per text": round(seconds / len(texts), 4),
        "s alone": round(float(np.median(alone)), 4),
        "model's seconds": round(bare / len(texts), 4),
        "model's share": f"{bare / seconds:.0%}",
        "by events": f"{sum(e.cost.seconds for e in explanations) / seconds:.0%}",
        "share of peak": f"{flops(model.config, lengths.tolist()) / seconds / peak:.1%}",
    }


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument(
        "--tokens", type=int, nargs="+", default=[40, 150, 400], help="per text, with [CLS] and [SEP]"
    )
    parser.add_argument("--budget", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=8.0, help="approximate time of a row")
    parser.add_argument(
        "--texts", type=int, nargs=2, default=[16, 300], help="smallest and largest number of a row"
    )
    parser.add_argument("--limit", type=float, default=330.0, help="seconds after which no row is started")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    start = time.perf_counter()
    device = torch.device(arguments.device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    peak = matmul_peak(device, dtype)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, {dtype} peak {peak / 1e12:.2f} TFLOP/s", flush=True)
    model = bert_base(dtype, arguments.device)
    rows = []
    for tokens in arguments.tokens:
        for method in arguments.methods:
            if time.perf_counter() - start > arguments.limit:
                print(f"{method} at {tokens} tokens: skipped after {arguments.limit:.0f} s", flush=True)
                continue
            try:
                rows.append(measure(model, method, tokens, peak, arguments))
            except Exception:  # noqa: BLE001  the other rows are still measured
                traceback.print_exc()
                continue
            print(rows[-1], flush=True)
            if arguments.json:
                Path(arguments.json).write_text(json.dumps(rows, indent=1))
    if rows:
        save(rows, None)


if __name__ == "__main__":
    main()

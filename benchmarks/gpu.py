"""Absolute speed on one GPU: BERT-base size, bf16, random weights.

    python benchmarks/gpu.py [--texts 100] [--json out.json]

Prints seconds per text and the share of the measured bf16 matrix peak reached on kept tokens,
beside a bare loop over the same rows: the model alone, on kept tokens, in full batches.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from common import bert_base, flops, matmul_peak, random_texts, save, word_tokenizer

import pertinent
from pertinent.array_types import Ints


class Recording:
    """Stands before a model and keeps the length of every row it computes."""

    def __init__(self, model: Any) -> None:
        self.lengths: list[Ints] = []
        cost = model.cost

        def recording(removal: Any, input: Any, masks: Any) -> Ints:
            lengths: Ints = cost(removal, input, masks)
            self.lengths.append(lengths)
            return lengths

        model.cost = recording


def bare_loop(model: Any, lengths: Ints, batch: int) -> float:
    """Seconds that the model alone takes for rows of these lengths, sorted, in batches of equal cost."""
    ordered = np.sort(lengths)[::-1]
    torch.cuda.synchronize()
    start = time.perf_counter()
    first = 0
    with torch.inference_mode():
        while first < len(ordered):
            longest = int(ordered[first])
            rows = max(1, batch // longest)
            ids = torch.randint(5, 30_000, (min(rows, len(ordered) - first), longest), device="cuda")
            logits = model(input_ids=ids).logits
            first += rows
    logits.cpu()
    return time.perf_counter() - start


def measure(
    model: Any, method: str, texts: list[str], peak: float, batch: int, **options: Any
) -> dict[str, Any]:
    """Explain the texts, and run the bare loop on the same rows."""
    wrapped = pertinent.wrap((model, word_tokenizer()))
    options |= {"method": method, "features": "tokens", "progress": False}
    pertinent.explain(wrapped, texts[:4], **options)
    recording = Recording(wrapped)
    torch.cuda.synchronize()
    start = time.perf_counter()
    found = pertinent.explain(wrapped, texts, **options)
    seconds = time.perf_counter() - start
    assert len(found) == len(texts), found.failures[:1]
    lengths = np.concatenate(recording.lengths)
    work = flops(model.config, lengths.tolist())
    bare_loop(model, lengths[: len(lengths) // 20], batch)
    bare = bare_loop(model, lengths, batch)
    return {
        "method": method,
        "texts": len(texts),
        "masks": len(lengths),
        "tokens": int(lengths.sum()),
        "s per text": round(seconds / len(texts), 4),
        "bare loop": round(bare / len(texts), 4),
        "outside the model": f"{1 - sum(e.seconds for e in found) / seconds:.1%}",
        "share of peak": f"{work / seconds / peak:.1%}",
        "bare share of peak": f"{work / bare / peak:.1%}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--batch", type=int, default=65_536, help="tokens per batch of the bare loop")
    parser.add_argument("--json", help="also keep the rows here")
    arguments = parser.parse_args()
    peak = matmul_peak("cuda", torch.bfloat16)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, bf16 peak {peak / 1e12:.0f} TFLOP/s")
    model = bert_base(torch.bfloat16, "cuda")
    rows = [
        measure(
            model,
            "shapley-sampling",
            random_texts(arguments.texts, 150),
            peak,
            arguments.batch,
            samples=25,
        ),
        measure(
            model,
            "parallel-local-search",
            random_texts(arguments.texts, 512),
            peak,
            arguments.batch,
            budget=1000,
        ),
    ]
    save(rows, arguments.json)


if __name__ == "__main__":
    main()

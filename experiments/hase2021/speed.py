"""Wall time of 500 explanations at one sparsity (App. A.3).

BERT-base with random weights in bfloat16 explains texts of 512 tokens of which 484 may be removed, as in
Evidence Inference. Every method has 1000 passes; a search keeps half of the tokens, the most expensive of the
four sparsities. Times of fewer than 500 texts are scaled up to 500.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from benchmarks.common import random_texts, word_tokenizer

import pertinent
from experiments.hase2021.methods import BUDGET
from experiments.shared.pages import MISSING, table
from experiments.shared.stages import Run

PAPER_HOURS: dict[str, float | None] = {
    "gradient": 2.5 / 60,
    "lime": 2.5,
    "ordered-search": 3.0,
    "random-search": 5.0,
    "parallel-local-search": 5.0,
    "taylor-search": 5.0,
    "gradient-search": 10.0,
    "integrated-gradients": 11.0,
    "anchors": 17.0,
    "thompson-search": None,
}
SETTINGS = {"lime": {"samples": 996}, "integrated-gradients": {"points": 498}, "gradient": {}}
QUERY, DOCUMENT = 25, 484


def measure(
    run: Run, *, points: int, n_texts: int, layers: int, methods: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Time every method, and yield the record after each."""
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(num_labels=3, num_hidden_layers=layers)
    network = BertForSequenceClassification(config).to(run.device, torch.bfloat16)
    model = pertinent.wrap((network, word_tokenizer()))
    pairs = zip(random_texts(n_texts, QUERY, 1), random_texts(n_texts, DOCUMENT, 2), strict=True)
    texts = [{"query": query, "document": document} for query, document in pairs]
    options: dict[str, Any] = {"features": "tokens", "progress": False}
    pertinent.explain(model, texts[:2], "parallel-local-search", budget=min(50, BUDGET), **options)
    pertinent.explain(model, texts[:2], "gradient", **options)
    on_gpu = run.device.startswith("cuda")
    device, rows = torch.cuda.get_device_name() if on_gpu else "CPU", []
    for method in methods:
        n = n_texts if method == "gradient" else min(points, n_texts)
        budget = None if method in SETTINGS else BUDGET
        settings = SETTINGS.get(method, {})
        start = time.perf_counter()
        explanations = pertinent.explain(
            model, texts[:n], method, sparsity=0.5, budget=budget, **settings, **options
        )
        seconds = (time.perf_counter() - start) * 500 / n
        assert not explanations.failures, explanations.failures[0]
        hours = PAPER_HOURS[method]
        rows.append(
            {
                "method": method,
                "points": n,
                "seconds per 500": seconds,
                "paper hours": hours,
                "times faster": hours and 3600 * hours / seconds,
                "evaluations": sum(e.evaluations for e in explanations) / n,
            }
        )
        print(rows[-1], flush=True)
        yield {"device": device, "rows": rows}


def page(records: Sequence[dict[str, Any]]) -> str:
    """Return the page of Appendix A.3."""
    text = "# Appendix A.3: wall time for 500 explanations\n\n"
    text += (
        "At one sparsity, 1000 passes, texts of 512 tokens of which 483 or 484 may be removed. Paper: "
        f"BERT-base on one RTX 2080. Ours: a random BERT-base in bfloat16 on one {records[0]['device']}; a "
        "search keeps half of the tokens, the dearest of the four sparsities. Nothing is scaled for the "
        "machines; times of fewer than 500 points are scaled up to 500.\n\n"
    )
    rows = [
        [
            row["method"],
            str(row["points"]),
            MISSING if row["paper hours"] is None else f"{3600 * row['paper hours']:,.0f}",
            f"{row['seconds per 500']:.1f}",
            MISSING if row["times faster"] is None else f"{row['times faster']:.0f}×",
            MISSING if row["times faster"] is None else ("yes" if row["times faster"] >= 100 else "NO"),
        ]
        for record in records
        for row in record["rows"]
    ]
    return text + table(["method", "points run", "paper, s", "ours, s", "faster", "at least 100×"], rows)

"""Wall time for 500 explanations at one sparsity, beside the paper's Appendix A.3.

    python experiments/hase2021/speed.py [--points 100] [--out speed.json]

BERT-base with random weights in bfloat16, texts of 512 tokens of which 484 may be removed, as in
Evidence Inference. Every method has 1000 passes; a search keeps half of the tokens, the dearest
of the four sparsities. Times of fewer than 500 texts are scaled up to 500.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))

from common import random_texts, word_tokenizer  # noqa: E402
from transformers import BertConfig, BertForSequenceClassification  # noqa: E402

import pertinent  # noqa: E402

PAPER_HOURS = {
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


def main() -> None:
    """Time every method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--texts", type=int, default=500, help="for gradients, which are fast")
    parser.add_argument("--budget", type=int, default=1000, help="passes of a search")
    parser.add_argument("--layers", type=int, default=12, help="of the encoder")
    parser.add_argument("--methods", nargs="+", choices=PAPER_HOURS, default=list(PAPER_HOURS))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = BertForSequenceClassification(BertConfig(num_labels=3, num_hidden_layers=arguments.layers)).to(
        device, torch.bfloat16
    )
    model = pertinent.wrap((network, word_tokenizer()))
    random.seed(0)
    texts = [
        {"query": query, "document": document}
        for query, document in zip(
            random_texts(arguments.texts, QUERY, 1), random_texts(arguments.texts, DOCUMENT, 2), strict=True
        )
    ]
    pertinent.explain(
        model,
        texts[:2],
        "parallel-local-search",
        budget=min(50, arguments.budget),
        features="tokens",
        progress=False,
    )
    pertinent.explain(model, texts[:2], "gradient", features="tokens", progress=False)
    rows = []
    for method in arguments.methods:
        n = arguments.texts if method == "gradient" else min(arguments.points, arguments.texts)
        searches = method not in SETTINGS
        start = time.perf_counter()
        found = pertinent.explain(
            model,
            texts[:n],
            method,
            features="tokens",
            sparsity=0.5,
            budget=arguments.budget if searches else None,
            progress=False,
            **SETTINGS.get(method, {}),
        )
        seconds = (time.perf_counter() - start) * 500 / n
        assert not found.failures, found.failures[0]
        hours = PAPER_HOURS[method]
        rows.append(
            {
                "method": method,
                "points": n,
                "seconds per 500": seconds,
                "paper hours": hours,
                "times faster": hours and 3600 * hours / seconds,
                "evaluations": sum(e.evaluations for e in found) / n,
            }
        )
        print(rows[-1], flush=True)
        if arguments.out:
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps({"device": _device(), "rows": rows}, indent=1))


def _device() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"


if __name__ == "__main__":
    main()

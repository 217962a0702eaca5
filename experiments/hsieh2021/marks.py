"""Do explanations find the words that people marked (Table 10)?

    python experiments/hsieh2021/marks.py --data DATA --encoder ENCODER --out RESULTS

`DATA` holds the folders ``hatexplain``, ``eraser_movies`` and ``eraser_fever``; `ENCODER` is the folder of
all-MiniLM-L6-v2. A classifier is fine-tuned on each set; `marks_report.py` makes the page of the results.
"""

from __future__ import annotations

import argparse
import logging
import time
import traceback
from pathlib import Path

import numpy as np
import torch
from marked_sets import CLASSES, Marked, read
from records import Writer
from text import DEFAULT, METHODS, explained
from text_models import Texts, accuracy, minilm
from transformers.utils import logging as transformers_logging

import pertinent
from pertinent.metrics.plausibility import AveragePrecision, PrecisionAtK
from pertinent.models.base import Model

SIZES = (1, 2, 3, 4, 5)
TOKENS = 96
"""The longest text that the classifiers read."""


def rightly_classified(model: Model, texts: list[Marked], n: int) -> list[Marked]:
    """The first texts whose class is predicted, which are those that the marks are a reason for."""
    found = pertinent.explain(
        model, [one.text for one in texts], "random", removal="zero-vector", features="words", progress=False
    )
    right = sorted(e.index for e in found if e.target == texts[e.index].label)
    return [texts[i] for i in right[:n]]


def measure(model: Model, texts: list[Marked], row: str, writer: Writer) -> None:
    """Explain all texts by a method, and write how well the first words are those that people marked."""
    start = time.perf_counter()
    found = explained(model, [one.text for one in texts], row)
    writer.write(row, "seconds", [(time.perf_counter() - start) / len(texts)])
    metrics = [*(PrecisionAtK(k) for k in SIZES), AveragePrecision()]
    judged = pertinent.evaluate(
        model, found, metrics, annotations=[one.spans for one in texts], progress=False
    )
    names = list(judged.better)
    values = np.full((len(texts), len(metrics)), np.nan)
    for one in judged.rows:
        values[found[one.explanation].index, names.index(one.metric)] = one.value
    writer.write(row, "precision", values[:, : len(SIZES)])
    writer.write(row, "average precision", values[:, -1])
    for failure in (*found.failures, *judged.failures):
        print(f"{row}, text {failure.index}: {failure.reason}")


def main() -> None:
    """Fine-tune, then explain, by the most telling methods first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=CLASSES, default=list(CLASSES))
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=DEFAULT)
    parser.add_argument("--suffix", default="", help="of the names of the experiments")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    transformers_logging.set_verbosity_error()
    logging.getLogger("pertinent").setLevel(logging.ERROR)
    torch.set_float32_matmul_precision("high")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.sets:
        training, marked = read(arguments.data, name)
        learnt = Texts([one.text for one in training], [one.label for one in training])
        model = minilm(
            arguments.encoder,
            learnt,
            epochs=arguments.epochs,
            device=arguments.device,
            classes=CLASSES[name],
            longest=TOKENS,
        )
        writer = Writer(arguments.out / "marks.jsonl", name + arguments.suffix)
        every = Texts([one.text for one in marked], [one.label for one in marked])
        writer.write("–", "accuracy", [accuracy(model, every)])
        texts = rightly_classified(model, marked, arguments.texts)
        writer.write("–", "words", [len(one.text.split()) for one in texts])
        writer.write("–", "marked words", [len(one.spans) for one in texts])
        writer.write("–", "training texts", [len(training)])
        for row in arguments.methods:
            try:
                measure(model, texts, row, writer)
            except Exception:  # noqa: BLE001  the other methods go on
                print(f"{name}, {row}: {traceback.format_exc()}", flush=True)
            else:
                print(f"{name}, {row}: measured", flush=True)


if __name__ == "__main__":
    main()

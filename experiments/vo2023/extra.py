"""FI for every class (Table 5), L2X by K (App. G), and LIME and FI by setting (Tables 14, 18, Figure 5).

    python experiments/vo2023/extra.py --data DATA --results RESULTS [--sets imdb]

The black boxes are those of `baselines.py`, in the same folder. Each part writes one JSON file into RESULTS,
as far as it has come.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from forms import TAUS, K
from paper_form import BOXES, Options, add_options, black_box, options_of
from sets import TEXTS

import pertinent
from pertinent.metrics.top_features import ClassFaithfulness, ClassIoU, Faithfulness
from pertinent.results.explanation import Explanations

FI = "functional-information"
SAMPLES = (50, 100, 200, 500, 1000, 2000, 5000)
"""Evaluations of LIME (Figure 5)."""
WIDTHS = (15, 20, 25, 30, 35)
"""Kernel widths of LIME (Table 14)."""
DRAWS = (50, 100, 200)
"""Draws of functional information (Table 18)."""
SIZES = (5, 10, 20)
PARTS = ("classes", "sizes", "samples", "widths", "draws")
WORDS = 40
"""Texts whose words are kept."""


def every_class(options: Options, which: str, n: int, method: str) -> Iterator[dict[str, Any]]:
    """A method that explains one class at a time, for each class: how often that class is then predicted."""
    model, _, test, _ = black_box(which, BOXES[0], options)
    of_class: list[Any] = []
    while not of_class or len(of_class) < len(of_class[0][0].classes):
        found = pertinent.explain(
            model, test[:n], method, target=len(of_class), removal="pad-token", progress=False
        )
        of_class.append(list(found))
    together = as_one(of_class)
    values = {}
    for name, metric in {
        "class-faithfulness": ClassFaithfulness(k=K),
        "class-iou": ClassIoU(k=K),
        **{f"class-faithfulness {c}": ClassFaithfulness(k=K, target=c) for c in range(len(of_class))},
    }.items():
        rows = pertinent.evaluate(model, Explanations(together), [metric], progress=False).rows
        values[name] = [row.value for row in rows]
    yield {"values": values, "words": [[word for word, _ in e.top(2 * K)] for e in together]}


def as_one(of_class: Sequence[Sequence[Any]]) -> list[Any]:
    """Explanations of single classes, as explanations that have the scores of all of them."""
    return [
        replace(own[0], class_scores=np.stack([e.scores for e in own])) for own in zip(*of_class, strict=True)
    ]


def by_setting(
    options: Options, which: str, n: int, method: str, settings: Sequence[Mapping[str, int]]
) -> Iterator[dict[str, Any]]:
    """The top 10 words of a method by its settings so far: how faithful they are, and the seconds a text."""
    model, _, test, _ = black_box(which, BOXES[0], options)
    result: dict[str, Any] = {}
    for own in settings:
        start = time.perf_counter()
        found = pertinent.explain(model, test[:n], method, **own, removal="pad-token", progress=False)
        seconds = (time.perf_counter() - start) / n
        rows = pertinent.evaluate(model, found, [Faithfulness(k=K)], progress=False).rows
        result[str(next(iter(own.values())))] = {
            "faithfulness": [row.value for row in rows],
            "seconds": seconds,
            "words": [[word for word, _ in e.top(K)] for e in found],
        }
        yield result


def words_by_size(options: Options, which: str, tau: float) -> Iterator[dict[str, Any]]:
    """The top K words of L2X fitted with each K, in its paper's form; then those of one AIM, too."""
    model, inputs, test, _ = black_box(which, BOXES[0], options)
    common = {"removal": "pad-token", "seed": 0, "progress": False}
    training = {"epochs": options.epochs, "batch_size": options.batch_size, "patience": None}
    result: dict[str, Any] = {"texts": test[:WORDS], "words": {}, "faithfulness": {}}
    for k in SIZES:
        own = {"k": k, "subsets": "selected", "temperature": tau}
        fitted = pertinent.fit(model, inputs[: options.fit_on], "l2x", **common, **training, **own)
        found = pertinent.explain(model, test, fitted, **common)
        result["words"][f"l2x {k}"] = [[word for word, _ in e.top(k)] for e in found]
        rows = pertinent.evaluate(model, found, [Faithfulness(k=k)], progress=False).rows
        result["faithfulness"][f"l2x {k}"] = [row.value for row in rows]
    yield result
    aim = pertinent.fit(model, inputs[: options.fit_on], "aim", **common, **training)
    found = pertinent.explain(model, test, aim, **common)
    for k in SIZES:
        result["words"][f"aim {k}"] = [[word for word, _ in e.top(k)] for e in found]
    yield result


def nested(words: Sequence[Sequence[str]], more: Sequence[Sequence[str]]) -> float:
    """The share of texts' words that are also among those for a larger K."""
    return float(
        np.mean([np.mean([word in wide for word in own]) for own, wide in zip(words, more, strict=True)])
    )


def main() -> None:
    """Make what is not there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=TEXTS, default=TEXTS)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--sampled", type=int, default=100, help="texts for methods that sample each of them")
    add_options(parser, test=200)
    arguments = parser.parse_args()
    options = options_of(arguments)
    for folder in (arguments.folder, arguments.results):
        folder.mkdir(parents=True, exist_ok=True)
    for which in arguments.sets:
        common = options, which, arguments.sampled
        parts: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
            "classes": partial(every_class, *common, FI),
            "samples": partial(by_setting, *common, "lime", [{"samples": n} for n in SAMPLES]),
            "widths": partial(
                by_setting, *common, "lime", [{"kernel_width": w, "samples": 1000} for w in WIDTHS]
            ),
            "draws": partial(by_setting, *common, FI, [{"samples": n} for n in DRAWS]),
            "sizes": partial(words_by_size, options, which, TAUS["l2x"][1]),
        }
        for name in arguments.parts:
            path = arguments.results / f"{which} {name}.json"
            if not path.is_file():
                for found in parts[name]():
                    path.write_text(json.dumps(found))
                print(f"{which}, {name}: done", flush=True)


if __name__ == "__main__":
    main()

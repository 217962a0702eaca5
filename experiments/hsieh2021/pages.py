"""Pages of the experiments of Hsieh et al. 2021: images, texts, marked words and photographs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from experiments.hsieh2021 import figures, marks_tables, photographs, reference_bias, tables, text_tables
from experiments.hsieh2021.mnist import random_test_images
from experiments.hsieh2021.records import Records
from experiments.shared.pages import Content, Page
from experiments.shared.stages import Run

IMAGES = 5
"""Images in a picture."""
records_of = lru_cache(maxsize=1)(Records)
NOT_KEPT = (
    "own criteria",
    "variants",
    "by reference",
    "by reference, class",
    "by reference, probability",
    "farther",
    "standing",
    "robustness",
    "references",
    "references, class",
    "few subsets",
    "few subsets, by reference",
    "scales",
)
"""Parts of README.md on MNIST, of a run of 100 images by all methods whose records were not kept."""


def parts(own: Mapping[str, Callable[[Records], str]], run: Run) -> Mapping[str, Callable[[], str]]:
    """Return the parts of a page, from the records of a run."""
    records = records_of(run.results)
    return {name: partial(make, records) for name, make in own.items()}


def readme(run: Run) -> Content:
    """Return the parts of README.md."""
    bias = {
        "reference bias": reference_bias.score_table,
        "reference bias of curves": reference_bias.curve_table,
    }
    return {**parts(tables.PARTS, run), **bias}


def drawn(pattern: str, draw: Callable[[Records], Any], run: Run) -> Content:
    """Return a figure of records, if there are any with such a name."""
    return draw(records_of(run.results)) if any(run.results.glob(pattern)) else None


def pictured(experiment: str, dataset: str, names: tuple[str, ...], run: Run) -> Content:
    """Return a picture of images and scores, if both are there."""
    if not any((run.results / experiment).glob("greedy-as.npz")) or not (run.data / dataset).is_dir():
        return None
    images = random_test_images(run.data / dataset, IMAGES)
    return figures.pictures(run.results / experiment, images, names)


def photograph_logits(records: Records) -> Any:
    """Return the logits of photographs, of the run with all rows if there is one."""
    every = records.methods("photographs-20")
    return figures.logits("photographs-20" if every else "photographs", records)


PAGES = {
    "README.md": Page(readme, not_kept=NOT_KEPT),
    "photographs.md": Page(partial(parts, tables.PHOTO_PARTS)),
    "text.md": Page(partial(parts, text_tables.PARTS)),
    "marks.md": Page(partial(parts, marks_tables.PARTS)),
    "figure2.png": Page(partial(pictured, "mnist", "mnist", figures.PICTURED), kept=False),
    "figure5.png": Page(lambda run: figures.targeted(run.results / "mnist")),
    "figure6.png": Page(
        partial(drawn, "mnist/greedy-as.jsonl", partial(figures.radii, ("mnist", "fashion-mnist"))),
        kept=False,
    ),
    "figure9.png": Page(partial(pictured, "mnist", "mnist", figures.VARIANTS)),
    "fashion.png": Page(
        partial(drawn, "fashion-mnist/greedy-as.jsonl", partial(figures.radii, ("fashion-mnist",)))
    ),
    "fashion9.png": Page(partial(pictured, "fashion-mnist", "fashion_mnist", figures.VARIANTS)),
    "figure13.png": Page(
        partial(drawn, "mnist/greedy-as.jsonl", partial(figures.places, "mnist")), kept=False
    ),
    "figure14.png": Page(partial(drawn, "mnist/greedy-as.jsonl", partial(figures.logits, "mnist"))),
    "figure7.png": Page(
        partial(drawn, "photographs/greedy-as.jsonl", partial(figures.radii, ("photographs",)))
    ),
    "figure16.png": Page(partial(drawn, "photographs*/greedy-as.jsonl", photograph_logits)),
    "figure21.png": Page(partial(drawn, "text-*/*.jsonl", figures.text_curves)),
    "photographs.jpg": Page(
        lambda run: photographs.draw(run.results, run.data / "photographs"), kept=False, dpi=90
    ),
}

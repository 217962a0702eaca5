"""Data sets of Yang et al. 2023, and how much of each is measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from experiments.hase2021 import data as hase2021
from experiments.hase2021.data import DataSet, read
from experiments.shared.data import Examples

WORDS = 100
"""Words that are kept of a review; about 130 tokens."""
YELP, TESTED = ("yelp/yelp_polarity_test1k_tokenized",), 200
"""The only 1,000 rows of Yelp-Polarity that were available, and the number of test texts among them."""

SETS = {
    spec.key: spec
    for spec in (
        hase2021.SETS["sst2"],
        DataSet(
            "mnli",
            "MNLI",
            hase2021.ENTAILMENT,
            hase2021.PAIR,
            {"train": ("mnli/train", "snli/train"), "test": ("mnli/dev_matched",)},
            epochs=3,
            batch_size=128,
            max_length=128,
            held_out=1000,
        ),
        DataSet(
            "imdb",
            "IMDB",
            hase2021.SENTIMENT,
            hase2021.TEXT,
            {"train": ("imdb/train",), "test": ("imdb/test",)},
            epochs=3,
            batch_size=64,
            max_length=256,
            held_out=1000,
            words=WORDS,
        ),
        DataSet(
            "yelp",
            "Yelp-Polarity",
            hase2021.SENTIMENT,
            hase2021.TEXT,
            {"train": YELP, "test": YELP},
            epochs=10,
            batch_size=32,
            max_length=256,
            held_out=100,
            words=WORDS,
            rows={"test": slice(TESTED), "train": slice(TESTED, None)},
        ),
        # Only explained, by the model of MNLI.
        DataSet(
            "mrpc",
            "MRPC",
            ("different", "paraphrase"),
            {"premise": "sentence1", "hypothesis": "sentence2"},
            {"test": ("mrpc/test",)},
            0,
            0,
            128,
        ),
    )
}


@dataclass(frozen=True)
class Sizes:
    """How much is measured of a data set.

    Attributes
    ----------
    texts
        Test texts.
    fewer
        Test texts for methods of 500 to 2000 evaluations.
    fewest
        Test texts for the most expensive methods, and with padding among the players.
    adapted
        Test texts for local adaption.
    timed, timed_on_cpu
        Test texts whose time is measured, on the device and on one core of a CPU.
    transferred
        Texts of another data set.
    pairs
        Pairs of MRPC.
    fit
        Training texts of amortized models.
    reference
        Evaluations of the reference values.
    seeds, few_seeds
        Seeds; few for local adaption, padding and other data sets.
    epochs
        Most epochs of amortized models.
    limit
        Training examples of the classifier.
    """

    texts: int = 500
    fewer: int = 200
    fewest: int = 60
    adapted: int = 500
    timed: int = 40
    timed_on_cpu: int = 20
    transferred: int = 500
    pairs: int = 1000
    fit: int = 3000
    reference: int = 5000
    seeds: int = 5
    few_seeds: int = 3
    epochs: int = 10
    limit: int | None = None


SIZES = {
    "sst2": Sizes(limit=40_000),
    "mnli": Sizes(fit=2500),
    "imdb": Sizes(
        texts=100,
        fewer=60,
        fewest=24,
        adapted=100,
        timed=20,
        timed_on_cpu=10,
        fit=1000,
        reference=10_000,
    ),
    "yelp": Sizes(fit=500),
}
REVIEWS = Sizes(texts=100, fewer=60, transferred=200, timed=12, fit=500)
SENTENCES = Sizes(texts=200, fewer=100, timed=12, fit=2000)
GAME_SIZES = {
    "yelp": REVIEWS,
    "imdb": REVIEWS,
    "sst2": replace(SENTENCES, limit=40_000),
    "mnli": replace(SENTENCES, pairs=1725),
}
"""Sizes of the paper's game."""
TARGETS = {"imdb": "sst2", "yelp": "sst2"}
"""Data set to whose texts a model and its explainer are transferred."""


def test_texts(data: Path, dataset: str, n: int) -> Examples:
    """Return the first test texts when classes take turns, so that classes are balanced as in the paper."""
    return read(data, SETS[dataset], "test").balanced(n)


def training_texts(data: Path, dataset: str, n: int) -> list[dict[str, str]]:
    """Return texts to learn explanations from; SST-2 consists of phrases, of which the longer are taken."""
    texts = read(data, SETS[dataset], "train").inputs
    if dataset == "sst2":
        texts = [text for text in texts if len(text["text"].split()) > 8]
    return texts[:n]

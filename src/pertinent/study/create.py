"""Make a study from explanations of several methods."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Annotated

from pertinent.config.settings import Count, Range, Seed, checked, labels
from pertinent.errors import InputError, require
from pertinent.files import folder_exists
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.explanation_folder import ExplanationFolder
from pertinent.study.design import KINDS, Kind, Study, StudyDescription

logger = logging.getLogger(__name__)

_FEATURES = "features: explain the same inputs with the same --features and model"

_MOST_PARTS = 400
"""The most parts of an image that people are asked to mark."""


@checked
def create_study(
    files: str | Path | Explanations | Sequence[str | Path | Explanations],
    out: str | Path,
    *,
    kinds: Sequence[Kind] = KINDS,
    top: Count = 5,
    checks: Annotated[int, Range(at_least=0, at_most=100)] = 2,
    limit: Count | None = None,
    title: str = "What did the program look at?",
    seed: Seed = 0,
) -> Study:
    """Make a study, in which people judge explanations by several methods, from saved explanations.

    The inputs are texts, images or table rows, and what is highlighted are words, parts or columns. The kinds
    of question are those of two papers: people guess the model's class from the highlighted words alone (Vo
    et al. 2023, Table 4), choose the better of two explanations, mark the words that matter (Hsieh et al.
    2021, Table 10), and rate an explanation from 1 to 5. Every method highlights equally many words, in the
    same way, so that nothing tells methods apart but the words. Each person sees each input once; kinds and
    methods rotate over inputs and people as in a Latin square.

    Parameters
    ----------
    files
        Explanations of the same inputs by several methods, or files or folders of them: one for each method,
        or one that `compare` wrote.
    out
        The folder to make; it must be new or empty.
    kinds
        The kinds of question: guess, prefer, mark, rate.
    top
        How many features are highlighted, and the k of precision at k; at most half of those of an input.
    checks
        How many attention checks each person gets.
    limit
        How many inputs are used; by default all that were explained by every method.
    title
        What people read above the questions; it should not say which methods there are.
    seed
        The seed of the order of inputs and questions.

    Examples
    --------
    >>> import tempfile, pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> texts = ["a bad film", "so good", "not bad at all", "good for a rainy day"]
    >>> found = pertinent.compare(model, texts, ["leave-one-out", "random"]).explanations
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pertinent.create_study(pertinent.Explanations(found), folder)
    <Study of 4 inputs: guess, prefer, mark, rate; methods: leave-one-out, random>
    """
    given = [files] if isinstance(files, str | Path | Explanations) else list(files)
    require(len(given) > 0, "files", "at least one file of explanations", files)
    require(len(kinds) > 0, "kinds", f"at least one of {', '.join(KINDS)}", kinds)
    require(len({*kinds}) == len(kinds), "kinds", "different from each other", kinds)
    explanations = [e for each in given for e in _read(each)]
    for e in explanations:
        _check(e)
    names = labels([(e.method, e.settings) for e in explanations])
    methods = list(dict.fromkeys(names))
    if "prefer" in kinds:
        require(len(methods) > 1, "files", "of at least two methods, because `kinds` has prefer", methods)
    several = dict.fromkeys(e.input.kind for e in explanations)
    if len(several) > 1:
        raise InputError(f"A study is about one kind of input, but got {' and '.join(several)}.")
    if "mark" in kinds:
        _check_marks(explanations)
    complete = _complete(explanations, names, methods)
    if len(complete) < len(kinds):
        raise InputError(
            f"A study of {len(kinds)} kinds of question needs at least as many inputs, but "
            f"{len(complete)} were explained by every method ({', '.join(methods)})."
        )
    complete = complete[:limit]
    require(len(complete) >= len(kinds), "limit", f"at least {len(kinds)}, one for each kind", limit)
    numbered = [replace(e, index=i, id=None) for i, own in enumerate(complete) for e in own]
    description = StudyDescription(
        token_hex(8), title, tuple(kinds), tuple(methods), len(complete), top, checks, seed
    )
    study = Study(Path(out), description, numbered)
    study.write()
    return study


def _read(given: str | Path | Explanations) -> Iterable[Explanation]:
    """The explanations that are given, or those of a file or of a folder."""
    if isinstance(given, Explanations):
        return given
    return ExplanationFolder(given) if folder_exists(Path(given)) else Explanations.read(given)


def _check(e: Explanation) -> None:
    """Raise an `InputError` for an explanation that people cannot be asked about."""
    if e.output.kind != "class":
        raise InputError(
            "A study is about the classes of a classifier, but there are explanations of "
            f"{'labels' if e.output.kind == 'label' else 'values'}."
        )
    if e.target != e.prediction.column:
        raise InputError(
            f"A study is about the predicted class, but input {e.index} was explained for "
            f"{e.target_name!r}: explain it without target."
        )


def _check_marks(explanations: Sequence[Explanation]) -> None:
    """Raise an `InputError` for images with more parts than people can be asked to mark."""
    most = max((len(e.features) for e in explanations if e.input.is_picture), default=0)
    if most > _MOST_PARTS:
        raise InputError(
            f"People can mark at most {_MOST_PARTS} parts of an image, but there are {most:,}: explain by "
            "larger patches, or leave out the kind mark."
        )


def _complete(
    explanations: Sequence[Explanation], names: Sequence[str], methods: Sequence[str]
) -> list[list[Explanation]]:
    """The explanations of each input by every method, in the order of `methods`; of several the first."""
    by_input: dict[object, dict[str, Explanation]] = {}
    for e, name in zip(explanations, names, strict=True):
        own = by_input.setdefault(e.input.content, {})
        first = next(iter(own.values()), e)
        if (first.classes, first.target) != (e.classes, e.target):
            raise InputError(
                f"The explanations of input {e.index} by {first.method} and {e.method} are of different "
                "models: their classes or predictions differ."
            )
        if first.features != e.features:
            raise InputError(
                f"Those of input {e.index} by {first.method} and {e.method} differ in {_FEATURES}."
            )
        own.setdefault(name, e)
    found = [[own[name] for name in methods] for own in by_input.values() if len(own) == len(methods)]
    if len(found) < len(by_input):
        logger.warning("%d inputs that not every method explained are left out.", len(by_input) - len(found))
    return found

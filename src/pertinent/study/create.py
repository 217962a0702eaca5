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

_MAX_PARTS = 400
"""Maximum number of parts of an image in a question that asks to mark parts."""


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
    """Create a study in which people judge explanations by several methods.

    Inputs are texts, images or table rows; the questions highlight words, parts or columns. The kinds of
    question are those of two papers: guess the model's class from the highlighted words only (Vo et al. 2023,
    Table 4), choose the better of two explanations, mark the words that matter (Hsieh et al. 2021, Table 10),
    and rate an explanation from 1 to 5. All methods highlight the same number of words in the same style, so
    that participants see only which words were chosen. Each participant sees each input once; kinds and
    methods rotate over inputs and participants as in a Latin square.

    Parameters
    ----------
    files
        Explanations of the same inputs by several methods, or files or folders of them: one for each method,
        or the output of `compare`.
    out
        The folder to create; it must be new or empty.
    kinds
        The kinds of question: guess, prefer, mark, rate.
    top
        The number of highlighted features, and the k of precision at k; at most half of an input's features.
    checks
        The number of attention checks for each participant.
    limit
        The maximum number of inputs; by default all that were explained by every method.
    title
        The title that participants read above the questions; it should not name the methods.
    seed
        The seed of the order of inputs and questions.

    Examples
    --------
    >>> import tempfile, pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> texts = ["a bad film", "so good", "not bad at all", "good for a rainy day"]
    >>> explanations = pertinent.compare(model, texts, ["leave-one-out", "random"]).explanations
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pertinent.create_study(pertinent.Explanations(explanations), folder)
    <Study of 4 inputs: guess, prefer, mark, rate; methods: leave-one-out, random>
    """
    sources = [files] if isinstance(files, str | Path | Explanations) else list(files)
    require(len(sources) > 0, "files", "at least one file of explanations", files)
    require(len(kinds) > 0, "kinds", f"at least one of {', '.join(KINDS)}", kinds)
    require(len({*kinds}) == len(kinds), "kinds", "different from each other", kinds)
    explanations = [e for source in sources for e in _read(source)]
    for e in explanations:
        _check(e)
    names = labels([(e.method, e.settings) for e in explanations])
    methods = list(dict.fromkeys(names))
    if "prefer" in kinds:
        require(len(methods) > 1, "files", "of at least two methods, because `kinds` has prefer", methods)
    input_kinds = dict.fromkeys(e.input.kind for e in explanations)
    if len(input_kinds) > 1:
        raise InputError(f"`files` must have inputs of one kind, got {' and '.join(input_kinds)}.")
    if "mark" in kinds:
        _check_marks(explanations)
    complete = _complete(explanations, names, methods)
    if len(complete) < len(kinds):
        raise InputError(
            f"`files` must have at least {len(kinds)} inputs explained by every method "
            f"({', '.join(methods)}), one for each kind of question, got {len(complete)}."
        )
    complete = complete[:limit]
    require(len(complete) >= len(kinds), "limit", f"at least {len(kinds)}, one for each kind", limit)
    numbered = [replace(e, index=i, id=None) for i, by_method in enumerate(complete) for e in by_method]
    description = StudyDescription(
        token_hex(8), title, tuple(kinds), tuple(methods), len(complete), top, checks, seed
    )
    study = Study(Path(out), description, numbered)
    study.write()
    return study


def _read(source: str | Path | Explanations) -> Iterable[Explanation]:
    if isinstance(source, Explanations):
        return source
    return ExplanationFolder(source) if folder_exists(Path(source)) else Explanations.read(source)


def _check(e: Explanation) -> None:
    """Raise an `InputError` unless an explanation is about the predicted class of a classifier."""
    if e.output.kind != "class":
        raise InputError(
            "A study needs explanations of a classifier's classes, got explanations of "
            f"{'labels' if e.output.kind == 'label' else 'values'}."
        )
    if e.target != e.prediction.column:
        raise InputError(
            f"A study needs explanations of the predicted class, but input {e.index} was explained for "
            f"{e.target_name!r}: explain it without `target`."
        )


def _check_marks(explanations: Sequence[Explanation]) -> None:
    """Raise an `InputError` for images with too many parts to mark."""
    n_parts = max((len(e.features) for e in explanations if e.input.is_picture), default=0)
    if n_parts > _MAX_PARTS:
        raise InputError(
            f"Images must have at most {_MAX_PARTS} parts for questions of the kind mark, got {n_parts:,}: "
            "explain larger patches, or omit this kind."
        )


def _complete(
    explanations: Sequence[Explanation], names: Sequence[str], methods: Sequence[str]
) -> list[list[Explanation]]:
    """Return the explanations of each input by all methods, in the order of `methods`.

    Inputs that some method did not explain are dropped; of several explanations by a method the first counts.
    """
    by_input: dict[object, dict[str, Explanation]] = {}
    for e, name in zip(explanations, names, strict=True):
        by_method = by_input.setdefault(e.input.content, {})
        first = next(iter(by_method.values()), e)
        if (first.classes, first.target) != (e.classes, e.target):
            raise InputError(
                f"Explanations of one input must be of the same model, but those of input {e.index} by "
                f"{first.method} and {e.method} differ in their classes or predictions."
            )
        if first.features != e.features:
            raise InputError(
                f"Explanations of one input must have the same features, but those of input {e.index} by "
                f"{first.method} and {e.method} differ: explain with the same `features`."
            )
        by_method.setdefault(name, e)
    complete = [
        [by_method[name] for name in methods]
        for by_method in by_input.values()
        if len(by_method) == len(methods)
    ]
    if len(complete) < len(by_input):
        logger.warning(
            "%d inputs were omitted, because not every method explained them.", len(by_input) - len(complete)
        )
    return complete

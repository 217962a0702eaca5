"""One self-contained HTML page: no network, and no script but that of its index."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pertinent.errors import InputError
from pertinent.files import write_text
from pertinent.inputs.image import ImageInput
from pertinent.report.card import card
from pertinent.report.html import evaluation_card, failure_list
from pertinent.report.html_input import image
from pertinent.report.index import anchor, index
from pertinent.report.markup import Markup
from pertinent.report.numbering import Explained, by_input
from pertinent.report.script import POLICY, SCRIPT
from pertinent.report.style import PAGE
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure
from pertinent.settings import checked

_PAGE = Markup(
    '<!doctype html><html lang="en"><head><meta charset="utf-8">{policy}'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<title>{title}</title>{style}</head><body><main{wide}><h1>{title}</h1>"
    '<p class="lead">{count}</p>{parts}<div id="inputs">{sections}</div></main>{script}</body></html>'
)
_SECTION = Markup('<section id="{}"><h2>{} <small>{}</small></h2>{}<div class="beside">{}</div></section>')


@checked
def save_report(
    explanations: Any,
    path: str | Path | None = None,
    *,
    title: str = "pertinent report",
    evaluation: Evaluation | None = None,
    by_class: bool = False,
) -> str:
    """Put explanations on one page, and write it to `path` if one is given.

    Parameters
    ----------
    explanations
        One, many, or an evaluation, whose explanations are used.
    path
        A file to write, atomically.
    title
        The heading of the page.
    evaluation
        Its table comes first, and the explanations it measured show their measures.
    by_class
        Add to each explanation its scores for the other classes, where its method gives them.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> page = save_report(pertinent.explain(model, "not bad at all", method="leave-one-out"))
    >>> page.startswith("<!doctype html>")
    True
    """
    items = explanations
    failures: list[Failure] = []
    if isinstance(items, Evaluation):
        evaluation, items = items, items.explanations
    if isinstance(items, Explanations):
        failures += items.failures
    every = [items] if isinstance(items, Explanation) or not isinstance(items, Iterable) else list(items)
    if not all(isinstance(e, Explanation) for e in every):
        raise InputError("A report is made of explanations, or of an evaluation.")
    if evaluation is not None:
        failures += [failure for failure in evaluation.failures if failure not in failures]
        every = _with_measures(every, evaluation)
    if by_class and every and all(e.class_scores is None for e in every):
        every[0].by_class()  # raises the error that says so
    page = _page(title, every, evaluation, failures, by_class=by_class)
    if path is not None:
        write_text(Path(path), page)
    return page


def _page(
    title: str,
    explanations: list[Explanation],
    evaluation: Evaluation | None,
    failures: list[Failure],
    *,
    by_class: bool,
) -> str:
    inputs = by_input(explanations)
    several = len(inputs) > 1
    parts = Markup()
    if evaluation is not None and evaluation.rows:
        parts += Markup("<h2>Summary</h2>{}").format(evaluation_card(evaluation))
    if several:
        parts += Markup("<h2>Inputs</h2>{}").format(index(inputs))
    page = _PAGE.format(
        policy=POLICY,
        title=title,
        style=PAGE,
        wide=Markup(' class="wide"') if any(len(found.explanations) > 1 for found in inputs) else "",
        count=_count(inputs),
        parts=parts + failure_list(failures),
        sections=Markup().join(
            _section(found, place, by_class=by_class) for place, found in enumerate(inputs)
        ),
        script=SCRIPT if several else "",
    )
    return str(page)


def _section(found: Explained, place: int, *, by_class: bool) -> Markup:
    """The explanations of one input side by side; an image that several explain is shown once."""
    input, together = found.explanations[0].input, len(found.explanations) > 1
    given = Markup()
    if isinstance(input, ImageInput) and together:
        given = Markup('<div class="pertinent given">{}</div>').format(image(input))
    cards = Markup().join(card(e, with_image=not together, by_class=by_class) for e in found.explanations)
    name = found.name[0].upper() + found.name[1:]
    return _SECTION.format(anchor(place), name, found.repeats, given, cards)


def _count(inputs: list[Explained]) -> str:
    explanations = sum(len(found.explanations) for found in inputs)
    return (
        f"{explanations:,} explanation{'' if explanations == 1 else 's'} "
        f"of {len(inputs):,} input{'' if len(inputs) == 1 else 's'}"
    )


def _with_measures(explanations: list[Explanation], evaluation: Evaluation) -> list[Explanation]:
    """The explanations, each with its measures if the evaluation has them."""

    def key(e: Explanation) -> tuple[object, ...]:
        return e.method, repr(e.settings), e.removal, e.input.fingerprint, e.target, e.seed

    measured = {key(e): e for e in evaluation.explanations}
    return [e if e.measures else measured.get(key(e), e) for e in explanations]

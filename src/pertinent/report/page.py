"""One self-contained HTML page: no network, no scripts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pertinent.errors import InputError
from pertinent.files import write_text
from pertinent.report.html import card, evaluation_card, failure_list
from pertinent.report.html_bars import escaped
from pertinent.report.style import PAGE
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation, Explanations, Failure


def save_report(
    explanations: Explanation | Iterable[Explanation] | Evaluation,
    path: str | Path | None = None,
    *,
    title: str = "pertinent report",
    evaluation: Evaluation | None = None,
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
    every = [items] if isinstance(items, Explanation) else list(items)
    if not all(isinstance(e, Explanation) for e in every):
        raise InputError("A report is made of explanations, or of an evaluation.")
    if evaluation is not None:
        failures += evaluation.failures
        every = _with_measures(every, evaluation)
    page = _page(title, every, evaluation, failures)
    if path is not None:
        write_text(Path(path), page)
    return page


def _page(
    title: str, explanations: list[Explanation], evaluation: Evaluation | None, failures: list[Failure]
) -> str:
    inputs = _by_input(explanations)
    parts = [f"<h1>{escaped(title)}</h1>", f'<p class="lead">{_count(inputs)}</p>']
    if evaluation is not None and evaluation.rows:
        parts.append(f"<h2>Summary</h2>{evaluation_card(evaluation)}")
    parts.append(failure_list(failures))
    for number, group in enumerate(inputs, 1):
        parts.append(f"<section><h2>Input {number}</h2>{''.join(map(card, group))}</section>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title>{PAGE}</head><body><main>{''.join(parts)}</main></body></html>"
    )


def _by_input(explanations: list[Explanation]) -> list[list[Explanation]]:
    """Explanations of the same input side by side, so that methods can be compared."""
    groups: dict[bytes, list[Explanation]] = {}
    for e in explanations:
        groups.setdefault(e.input.fingerprint, []).append(e)
    return list(groups.values())


def _count(inputs: list[list[Explanation]]) -> str:
    explanations = sum(map(len, inputs))
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

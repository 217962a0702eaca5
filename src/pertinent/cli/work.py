"""Explaining and measuring inputs of the command line in one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pertinent.api.evaluate import evaluation_of
from pertinent.api.explain_run import explain_all
from pertinent.api.request import Request
from pertinent.api.run import Run
from pertinent.cli.items import Item
from pertinent.inputs.base import Input
from pertinent.learned.base import LearnedExplainer
from pertinent.models.base import Model
from pertinent.removal.base import removals
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanations


@dataclass(frozen=True)
class Outcome:
    """The result of a command, perhaps `interrupted`; each of `failures` is a place and a reason."""

    explanations: Explanations
    evaluation: Evaluation | None
    failures: Sequence[tuple[str, str]]
    interrupted: bool = False


def carry_out(
    model: Model,
    items: Sequence[Item],
    requests: Sequence[Request],
    *,
    out: str | None = None,
    batch_size: int | None = None,
    progress: bool | None = None,
) -> Outcome:
    """Explain and measure every item by every request; an item that could not be read is a failure."""
    raws = [item.raw if item.error is None else item.error for item in items]
    ids = [item.id or item.where for item in items] if any(item.id for item in items) else None
    run = Run(model, raws, False, ids, "explain", batch_size, progress)
    _check_fitted(run, requests)
    interrupted = False
    try:
        found = explain_all(run, requests, out)
    except KeyboardInterrupt as error:
        if not len(getattr(error, "finished", ())):
            raise
        found, interrupted = error.finished, True  # type: ignore[attr-defined]
    reasons = [(items[f.index].where, str(f)) for f in found.failures]
    metrics = requests[0].metrics
    evaluation = evaluation_of(list(found), metrics, found.failures) if metrics and len(found) else None
    return Outcome(found, evaluation, reasons, interrupted)


def _check_fitted(run: Run, requests: Sequence[Request]) -> None:
    """Raise the error of an explainer that was fitted to another model once, not for every input."""
    for request in requests:
        if isinstance(request.method, LearnedExplainer):
            input = next(_readable(run, request.features), None)
            if input is not None:
                removal = request.removal or removals.make(run.model.default_removal(input))
                request.method.network.check(run.model, removal.bind(run.model))


def _readable(run: Run, features: Any) -> Iterator[Input]:
    """The inputs that can be prepared."""
    for raw in run.inputs:
        with suppress(Exception):
            yield run.prepare(raw, features)

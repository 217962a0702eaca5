"""Explaining and measuring inputs of the command line in one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pertinent.api.evaluate import evaluation_of
from pertinent.api.explain_run import explain_all
from pertinent.api.request import Request
from pertinent.api.runner import Runner
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
    runner = Runner(model, "explain", batch_size, progress)
    raws = [item.raw if item.error is None else item.error for item in items]
    ids = [item.id or item.where for item in items] if any(item.id for item in items) else None
    _check_fitted(runner, raws, requests)
    interrupted = False
    try:
        found = explain_all(runner, raws, requests, None if out is None else Path(out), ids)
    except KeyboardInterrupt as error:
        if not len(getattr(error, "finished", ())):
            raise
        found, interrupted = error.finished, True  # type: ignore[attr-defined]
    reasons = [(items[f.index].where, str(f)) for f in found.failures]
    metrics = requests[0].metrics
    evaluation = evaluation_of(list(found), metrics, found.failures) if metrics and len(found) else None
    return Outcome(found, evaluation, reasons, interrupted)


def _check_fitted(runner: Runner, raws: Sequence[Any], requests: Sequence[Request]) -> None:
    """Raise the error of an explainer that was fitted to another model once, not for every input."""
    for request in requests:
        if isinstance(request.method, LearnedExplainer):
            prepared = (runner.prepare(raw, request.features) for raw in raws)
            input = next((each for each in prepared if isinstance(each, Input)), None)
            if input is not None:
                removal = request.removal or removals.make(runner.model.default_removal(input))
                request.method.network.check(runner.model, removal.bind(runner.model))

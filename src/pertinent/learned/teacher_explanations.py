"""The answers that a learned explainer learns from: computed by the engine, or read from a file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pertinent.api.explain_run import explain_all
from pertinent.api.request import Request
from pertinent.api.run import Run, raise_first
from pertinent.array_types import Floats
from pertinent.errors import FileError, SettingError
from pertinent.inputs.base import Input
from pertinent.learned.base import Learner
from pertinent.learned.training_data import Lessons
from pertinent.models.base import Model
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.explanation_files import read_run

logger = logging.getLogger(__name__)


def computed(run: Run, inputs: Sequence[Input], request: Request, out: Path | None) -> Explanations:
    """Explain the inputs by the reference method; with `out`, into a file in which a killed run goes on."""
    found = explain_all(run.over(inputs), [request], out)
    if found.failures and not len(found):
        raise_first(found.failures, "explained")
    return found


def looked_up(references: str | Path | Explanations, model: Model, removal: str) -> Explanations:
    """The explanations in a file of the same model, or those given; all with the same removal."""
    if isinstance(references, Explanations):
        found = references
    else:
        run = read_run(Path(references))
        if run is None or run.get("model") != model.fingerprint.hex():
            raise FileError(
                f"{str(references)!r} holds no explanations of this model: leave out `teacher_explanations`."
            )
        found = Explanations.read(references)
    for other in {e.removal for e in found} - {removal}:
        raise SettingError(
            f"The teacher's explanations were made with the removal {other!r}, but it is {removal!r} here."
        )
    return found


def lessons_of(
    learner: Learner,
    found: Explanations,
    inputs: Sequence[Input],
    request: Request,
    *,
    classes: Literal["predicted", "all"],
    labels: Sequence[Any] | None = None,
) -> Lessons:
    """What is learned of each input; inputs without an explanation are left out."""
    own = {e.input.fingerprint: e for e in found}
    kept = [i for i, input in enumerate(inputs) if input.fingerprint in own]
    if len(kept) < len(inputs):
        logger.warning(
            "%d of %d inputs have no explanation by the teacher.", len(inputs) - len(kept), len(inputs)
        )
    lessons = []
    for i in kept:
        explanation = own[inputs[i].fingerprint]
        columns = _columns(explanation, request, classes)
        lessons.append(learner.lesson(explanation, columns, None if labels is None else labels[i]))
    return Lessons([inputs[i] for i in kept], lessons)


def _columns(
    explanation: Explanation, request: Request, classes: Literal["predicted", "all"]
) -> Sequence[int]:
    """The columns of the model to be learned."""
    if explanation.scale != request.scale:
        raise SettingError(
            f"The teacher explained on the scale {explanation.scale!r}, but `scale` is {request.scale!r}."
        )
    if classes == "all":
        return range(len(explanation.prediction))
    if explanation.target != explanation.output.default_target(explanation.prediction):
        raise SettingError(
            "The teacher's explanations must be of the predicted class: compute them without `target`."
        )
    return [explanation.target]


def piloted(
    run: Run,
    learner: Learner,
    data: Lessons,
    request: Request,
    classes: Literal["predicted", "all"],
) -> list[list[Floats]]:
    """The scores of each input by each of the learner's pilot methods."""
    if not learner.pilots:
        return []
    another = (request.seed + 1) % 2**63  # the same draws as in the references would look too good
    pilots = [Request(pilot, request.removal, seed=another, scale=request.scale) for pilot in learner.pilots]
    found = explain_all(run.over(data.inputs), pilots)
    if found.failures:
        raise_first(found.failures, "explained")
    by_pilot = [Explanations(found[i :: len(pilots)]) for i in range(len(pilots))]
    lessons = [lessons_of(learner, own, data.inputs, request, classes=classes).lessons for own in by_pilot]
    return [[lesson["scores"] for lesson in own] for own in lessons]

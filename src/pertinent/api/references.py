"""The scores that a learned explainer learns from: computed by the engine, or read from a file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from pertinent.api.explaining import explain_all
from pertinent.api.request import Request
from pertinent.api.runner import Runner, raise_first
from pertinent.errors import FileError, SettingError
from pertinent.explainers.shapley.shapley_sampling import ShapleySampling
from pertinent.inputs.base import Input
from pertinent.models.transformer import TransformerModel
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.files import read, read_run
from pertinent.training.scored import Scored
from pertinent.types import Floats

logger = logging.getLogger(__name__)

PILOT = 100
"""How many dev inputs a few permutations are tried on."""

FEW = (1, 2)
"""A permutation alone, and one with its reverse."""


def computed(runner: Runner, inputs: Sequence[Input], request: Request, out: Path | None) -> Explanations:
    """Explain the inputs by the reference method; with `out`, into a file in which a killed run goes on."""
    found = explain_all(runner, inputs, [request], out)
    if found.failures and not len(found):
        raise_first(found.failures, "explained")
    return found


def looked_up(references: str | Path | Explanations, model: TransformerModel, removal: str) -> Explanations:
    """The explanations in a file of the same model, or those given; all with the same removal."""
    if isinstance(references, Explanations):
        found = references
    else:
        run = read_run(Path(references))
        if run is None or run.get("model") != model.fingerprint.hex():
            raise FileError(
                f"{str(references)!r} holds no explanations of this model: leave out `references`."
            )
        found = read(references)
    for other in {e.removal for e in found} - {removal}:
        raise SettingError(
            f"The references were made with the removal {other!r}, but it is {removal!r} here."
        )
    return found


def scored(
    found: Explanations, inputs: Sequence[Input], request: Request, classes: Literal["predicted", "all"]
) -> Scored:
    """The explanation of each input, as what a network learns; inputs without any are left out."""
    own = {e.input.fingerprint: e for e in found}
    kept = [input for input in inputs if input.fingerprint in own]
    if len(kept) < len(inputs):
        logger.warning("%d of %d inputs have no reference.", len(inputs) - len(kept), len(inputs))
    pairs = [_learned(own[input.fingerprint], request, classes) for input in kept]
    return Scored(kept, [scores for scores, _ in pairs], [variances for _, variances in pairs])  # type: ignore[arg-type]


def _learned(
    explanation: Explanation, request: Request, classes: Literal["predicted", "all"]
) -> tuple[Floats, Floats]:
    """The scores (columns, features) to be learned, and their variances, 0 if the method does not sample."""
    if explanation.scale != request.scale:
        raise SettingError(
            f"The references are of the scale {explanation.scale!r}, but `scale` is {request.scale!r}."
        )
    scores, errors = explanation.scores[None], explanation.standard_errors
    errors = None if errors is None else errors[None]
    if classes == "all":
        if explanation.class_scores is None:
            raise SettingError(
                f"`classes` must be 'predicted', because {explanation.method} has scores for one class alone."
            )
        scores, errors = explanation.class_scores, explanation.class_standard_errors
    elif explanation.target != explanation.output.default_target(explanation.prediction):
        raise SettingError("The references must be of the predicted class: compute them without `target`.")
    return scores, np.zeros_like(scores) if errors is None else np.nan_to_num(errors**2)


def sampling_variances(
    runner: Runner, dev: Scored, request: Request, classes: Literal["predicted", "all"]
) -> list[Floats]:
    """The error variance (columns,) of a permutation, and of one with its reverse, against the references."""
    dev = dev.pick(np.arange(min(len(dev), PILOT)))
    another = (request.seed + 1) % 2**63  # the same permutations as in the references would look too good
    pilots = [
        Request(ShapleySampling(samples=m), request.removal, seed=another, scale=request.scale) for m in FEW
    ]
    found = explain_all(runner, dev.inputs, pilots)
    if found.failures:
        raise_first(found.failures, "explained")
    by_pilot = [Explanations(found[i :: len(FEW)]) for i in range(len(FEW))]
    return [error_variances(dev, scored(own, dev.inputs, request, classes).scores)[0] for own in by_pilot]


def error_variances(dev: Scored, predicted: Sequence[Floats]) -> tuple[Floats, Floats]:
    """The mean squared error of predicted scores (columns,), and its standard error over inputs.

    What is the references' own error does not count.
    """
    squares = [(mine - own) ** 2 for mine, own in zip(predicted, dev.scores, strict=True)]
    raw, noise = (np.concatenate(rows, axis=1).mean(axis=1) for rows in (squares, dev.variances))
    # Never less than a tenth: the difference of two uncertain numbers may come out near zero by chance.
    variances = np.maximum(raw - noise, raw / 10)
    means = np.array([own.mean(axis=1) for own in squares])
    spread = means.std(axis=0, ddof=1) / np.sqrt(len(means)) if len(means) > 1 else variances
    return variances, spread

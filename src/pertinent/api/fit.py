"""From a model and inputs to an explainer that has learned from them."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from pertinent._optional import optional
from pertinent.api.fitting import Fitting
from pertinent.api.request import TO_BE_FITTED, Request, for_each, of_input
from pertinent.api.runner import Runner
from pertinent.engine.progress import Callback
from pertinent.errors import InputError, ModelError, unknown
from pertinent.explainers.base import Explainer
from pertinent.explainers.learned.amortized_shapley import AmortizedShapley
from pertinent.inputs.base import Input
from pertinent.models.base import Model
from pertinent.models.transformer import TransformerModel
from pertinent.models.wrap import wrap
from pertinent.outputs import Scale
from pertinent.removal.base import Removal
from pertinent.results.explanation import Explanations
from pertinent.settings import Count, Positive, ProperShare, Seed, checked
from pertinent.training.settings import ScoreSettings

SAMPLES = 25
"""Permutations of a reference, as in Yang et al. 2023 (SVS-25)."""


@checked
def fit(
    model: Any,
    inputs: Any,
    method: str = "amortized-shapley",
    *,
    reference: str | Explainer = "shapley-sampling",
    references: str | Path | Explanations | None = None,
    classes: Literal["predicted", "all"] = "predicted",
    removal: str | Removal | None = None,
    features: Any = None,
    scale: Scale = "natural",
    dev: ProperShare = 0.1,
    epochs: Count = 10,
    batch_size: Count = 32,
    learning_rate: Positive = 5e-5,
    patience: Count | None = 3,
    precision: Literal["float32", "bfloat16", "float16"] = "float32",
    seed: Seed = 0,
    out: str | Path | None = None,
    progress: Callback | bool | None = None,
    **settings: Any,
) -> AmortizedShapley:
    """Fit an explainer to a model: a network that predicts the scores which a slower method gives.

    Parameters
    ----------
    model
        A transformers text classifier, wrapped or as `wrap` accepts it.
    inputs
        The texts to learn from, a few hundred to a few thousand. They need no labels.
    method
        ``"amortized-shapley"``: the model's own encoder with a linear layer (Yang et al. 2023).
    reference
        The method to learn from, by name or as an instance; ``"shapley-sampling"`` with 25 permutations by
        default.
    references
        Explanations to learn from that were made before: a Parquet file that `explain` or `fit` wrote,
        or `Explanations`. Those of the `inputs` are used.
    classes
        Learn the scores of the predicted class, or of all classes at once.
    removal, features, scale
        As in `explain`; to be explained with the same removal and scale.
    dev
        The share of inputs on which the rank correlation with the references is measured after each
        epoch; the best network is kept.
    epochs, batch_size, learning_rate, precision
        As in `training.train`.
    patience
        Stop when the rank correlation has not improved this many times in a row.
    seed
        The same seed gives the same network, on CUDA up to the order of floating-point sums.
    out
        A folder for the references, the checkpoints and at last the explainer. A fit that was killed is
        continued when the same call is made again, and a finished one is read.
    progress
        As in `explain`.
    **settings
        Settings of the reference method, such as ``samples=50``.
    """
    if method not in TO_BE_FITTED:
        raise unknown("method to fit", method, TO_BE_FITTED)
    optional("accelerate")
    model = wrap(model)
    if reference == "shapley-sampling":
        settings.setdefault("samples", SAMPLES)
    request = Request.of(reference, settings, removal=removal, features=None, scale=scale, seed=seed)
    _check_model(model)
    runner = Runner(model, "references", None, progress)
    prepared = _prepared(runner, inputs, features)
    training = ScoreSettings(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        precision=precision,
        patience=patience,
        checkpoint_steps=None,
        options={},
    )
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory()) if out is None else str(out)
        fitting = Fitting(runner, prepared, request, classes, dev, training, references)
        return fitting.run(Path(folder), keep=out is not None)


def _check_model(model: Model) -> None:
    if not isinstance(model, TransformerModel):
        raise ModelError(
            f"An explainer can be fitted to a transformers text classifier, not to {type(model).__name__}."
        )


def _prepared(runner: Runner, inputs: Any, features: Any) -> list[Input]:
    """The inputs cut into features; the first that cannot be used raises its error."""
    many = runner.model.split(inputs)
    if many is None:
        raise InputError("Several inputs are needed to learn from, but got one.")
    cuts = for_each(features, one=False)
    prepared = []
    for index, raw in enumerate(many):
        input = runner.prepare(raw, of_input(cuts, index))
        if isinstance(input, Exception):
            raise InputError(f"Input {index}: {input}") from input
        prepared.append(input)
    if len(prepared) < 2:
        raise InputError(f"At least 2 inputs are needed to learn from, but got {len(prepared)}.")
    return prepared

"""`fit`: train an explainer for a model on inputs."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from pertinent._optional import optional
from pertinent.config.settings import Count, Positive, ProperShare, Seed, checked
from pertinent.engine.progress import Callback
from pertinent.errors import InputError, PertinentError, SettingError, unknown
from pertinent.explainers.base import Explainer, explainers
from pertinent.finetuning.training_settings import TrainerSettings
from pertinent.inputs.base import Input
from pertinent.inputs.modality import modality_named
from pertinent.learners.base import LearnedClasses, LearnedExplainer, Learner, learned
from pertinent.learners.fit_run import FitRun
from pertinent.outputs import Scale
from pertinent.removals.base import Removal
from pertinent.results.explanation import Explanations
from pertinent.runs.executor import Executor, executor_of
from pertinent.runs.request import Request, features_of
from pertinent.runs.run import Run
from pertinent.runs.session import prepare_input

logger = logging.getLogger(__name__)


@checked
def fit(
    model: Any,
    inputs: Any,
    method: str = "amortized-shapley",
    *,
    labels: Sequence[Any] | None = None,
    teacher: str | Explainer | None = None,
    teacher_explanations: str | Path | Explanations | None = None,
    classes: LearnedClasses | None = None,
    removal: str | Removal | None = None,
    features: Any = None,
    scale: Scale = "natural",
    validation_fraction: ProperShare = 0.1,
    epochs: Count | None = None,
    batch_size: Count = 32,
    learning_rate: Positive | None = None,
    patience: Count | None = 3,
    precision: Literal["float32", "bfloat16", "float16"] = "float32",
    seed: Seed = 0,
    out: str | Path | None = None,
    cluster: Executor | None = None,
    progress: Callback | bool | None = None,
    **settings: Any,
) -> LearnedExplainer:
    """Fit an explainer to a model: a network that scores the features of an input in one pass.

    The network is a small one over words, tokens, pixels or columns. If it learns scores from a transformer,
    it is that model's own encoder with a linear layer; for ``"magnex"`` it is a network on the transformer's
    hidden states.

    Parameters
    ----------
    model
        A model of any kind, wrapped or as `wrap` accepts it.
    inputs
        The inputs to learn from, a few hundred to a few thousand. They need no labels.
    method
        What to fit: ``"amortized-shapley"``, ``"fastshap"``, ``"cxplain"``, ``"aim"``, ``"l2x"``,
        ``"vibi"``, ``"invase"``, ``"magnex"``, ``"maple"``, or a method of your own that is
        registered. The first learns the scores of a slower method (Yang et al. 2023), ``"fastshap"``
        the model's answers to random coalitions (Jethani et al. 2021), ``"cxplain"`` by how much its
        loss grows without a feature (Schwab & Karlen 2019). Others learn to select the features that
        a decision rests on: ``"aim"`` for every class (Vo et al. 2023), ``"l2x"`` (Chen et al. 2018),
        ``"vibi"`` (Bang et al. 2021), ``"invase"`` (Yoon et al. 2019) and ``"magnex"``, which learns
        how many, for the predicted one. ``"maple"`` (Plumb et al. 2018) grows a forest of table rows,
        and fits a linear model around each.
    labels
        The right class or value of each input, for ``"cxplain"``; by default the model's prediction.
    teacher
        The method that ``"amortized-shapley"`` learns from; by default ``"shapley-sampling"`` with 25
        permutations. In Python also an instance.
    teacher_explanations
        Explanations to learn from that were made before: a Parquet file that `explain` or `fit`
        wrote. In Python also `Explanations`. Those of the `inputs` are used.
    classes
        Learn the scores of the ``"predicted"`` class, or of ``"all"`` classes at once. By default of all for
        a small network, which learns them better, if the method has them and there are at most 20 classes;
        else of the predicted class.
    removal, features, scale
        As in `explain`. What was fitted explains with the same removal and scale.
    validation_fraction
        The share of inputs held out to measure the network on; the best one is kept. It is measured
        by its loss, by the rank correlation with the teacher, or by how often the model decides as
        before with the selected features alone.
    epochs
        Passes over the inputs; by default 10 for a transformer's encoder, 100 for a small network.
        Methods that learn to select make fewer passes over many inputs.
    learning_rate
        The initial learning rate; by default 5e-5 for a transformer's encoder, 1e-3 for a small
        network.
    batch_size
        Inputs per step.
    precision
        As in `train`.
    patience
        Stop when the measure has not improved this many times in a row.
    seed
        The same seed gives the same network, on CUDA up to the order of floating-point sums.
    out
        A folder for the explainer, the teacher's explanations, and checkpoints during the training. The same
        call continues a fit that was stopped, and loads a finished one.
    cluster
        A `Cluster`, whose workers compute the teacher's explanations; the network is trained in this process.
    progress
        As in `explain`.
    **settings
        Settings of the method, such as ``loss="rank"`` or ``k=10``, and of its teacher, such as
        ``samples=50``.
    """
    explainer = learned.get(method)
    optional("accelerate")
    owners = {name: setting_owner(explainer, teacher, name) for name in settings}
    own = {name: value for name, value in settings.items() if owners[name] is explainer.learner}
    others = {name: value for name, value in settings.items() if name not in own}
    learner = explainer.learner(**own)
    learner.check_settings(method, teacher=teacher, classes=classes, scale=scale, labels=labels)
    if teacher in (None, learner.spec.teacher):
        teacher, others = learner.spec.teacher, {**learner.spec.teacher_settings, **others}
    request = Request.from_method(teacher, others, removal=removal, scale=scale, seed=seed)
    run = Run.from_arguments(model, inputs, "teacher", progress=progress)
    run.model.require_common_columns(f"Fitting {method}")
    prepared, labels = _prepared(run, features, labels)
    learner.check_inputs(method, prepared, labels)
    schedule = learner.schedule(run.model, prepared)
    if schedule is None:
        if epochs or learning_rate:
            raise SettingError(f"{method} trains no network: leave out `epochs` and `learning_rate`.")
    else:
        epochs = epochs or schedule.epochs_of((1 - validation_fraction) * len(prepared), batch_size)
        learning_rate = learning_rate or schedule.learning_rate
    training = TrainerSettings(
        epochs, batch_size, learning_rate, seed, precision, patience, checkpoint_steps=None, options={}
    )
    training.check_device(run.model.device)
    fit_run = FitRun(
        run,
        request,
        explainer,
        learner,
        prepared,
        labels,
        teacher_explanations,
        classes,
        training,
        None if schedule is None else schedule.measurements,
        validation_fraction,
        executor_of(cluster),
    )
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory()) if out is None else str(out)
        return fit_run.finish(Path(folder), keep=out is not None)


def setting_owner(
    explainer: type[LearnedExplainer], teacher: str | Explainer | None, name: str
) -> type[Learner | Explainer]:
    """The class that declares a setting of a fit: that of the learner, or of its teacher."""
    teacher = teacher or explainer.learner.spec.teacher
    taught = explainers.get(teacher) if isinstance(teacher, str) else type(teacher)
    owners = {f.name: cls for cls in (taught, explainer.learner) for f in fields(cls) if f.init}
    if name not in owners:
        raise unknown(f"setting of {explainer.name}", name, owners)
    return owners[name]


def _prepared(
    run: Run, features: Any, labels: Sequence[Any] | None
) -> tuple[list[Input], Sequence[Any] | None]:
    """The inputs cut into features, and their labels; those that cannot be used are left out, and said."""
    if run.one:
        raise InputError("Several inputs are needed to learn from, but got one.")
    inputs, prepared, unusable = list(run.inputs), dict[int, Input](), dict[int, PertinentError]()
    for index, raw in enumerate(inputs):
        try:
            prepared[index] = prepare_input(run.model, raw, features_of(features, index, one=False))
        except PertinentError as error:
            unusable[index] = error
    kinds = {input.kind: input.granularity for input in prepared.values()}
    if features is None and {input.granularity for input in prepared.values()} - set(kinds.values()):
        return _prepared(run.over(inputs), modality_named(next(iter(kinds))).features, labels)
    for index, reason in unusable.items():
        logger.warning("Input %d is left out: %s", index, reason)
    if len(prepared) < 2:
        first = "".join(f" Input {index}: {reason}" for index, reason in list(unusable.items())[:1])
        raise InputError(f"At least 2 inputs are needed to learn from, but got {len(prepared)}.{first}")
    if labels is not None and len(labels) == len(inputs):
        labels = [labels[index] for index in prepared]
    return list(prepared.values()), labels

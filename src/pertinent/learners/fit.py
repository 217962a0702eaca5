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
    """Fit an explainer to a model: a network that scores an input's features in one forward pass.

    The network is a small one over words, tokens, pixels or columns. When it learns scores for a transformer,
    it is the model's encoder with a linear layer; for ``"magnex"`` it is a network on the transformer's
    hidden states.

    Parameters
    ----------
    model
        A model of any kind, wrapped or in any form that `wrap` accepts.
    inputs
        The inputs to learn from, a few hundred to a few thousand. They need no labels.
    method
        The method to fit: ``"amortized-shapley"``, ``"fastshap"``, ``"cxplain"``, ``"aim"``, ``"l2x"``,
        ``"vibi"``, ``"invase"``, ``"magnex"``, ``"maple"``, or a registered custom method. The first learns
        the scores of a slower method (Yang et al. 2023), ``"fastshap"`` the model's answers to random
        coalitions (Jethani et al. 2021), ``"cxplain"`` the increase of the loss without a feature (Schwab &
        Karlen 2019). Others learn to select the features that a decision depends on: ``"aim"`` for every
        class (Vo et al. 2023), and ``"l2x"`` (Chen et al. 2018), ``"vibi"`` (Bang et al. 2021), ``"invase"``
        (Yoon et al. 2019) and ``"magnex"``, which also learns the number of features, for the predicted one.
        ``"maple"`` (Plumb et al. 2018) grows a random forest on table rows and fits a linear model around
        each row.
    labels
        The true class or value of each input, for ``"cxplain"``; by default the model's prediction.
    teacher
        The method that ``"amortized-shapley"`` learns from; by default ``"shapley-sampling"`` with 25
        permutations. From Python, an instance is also accepted.
    teacher_explanations
        Existing explanations to learn from: a Parquet file written by `explain` or `fit`. From Python,
        `Explanations` are also accepted. Only those of the `inputs` are used.
    classes
        Learn the scores of the ``"predicted"`` class or of ``"all"`` classes. The default is all classes for
        a small network, which learns them better, if the method provides them and there are at most 20
        classes; otherwise the predicted class.
    removal, features, scale
        As in `explain`. The fitted explainer uses the same removal and scale.
    validation_fraction
        Share of inputs held out to select the best network: by its loss, by the rank correlation with the
        teacher, or by how often the model's decision is the same with only the selected features.
    epochs
        Number of passes over the inputs; by default 10 for a transformer's encoder, 100 for a small network.
        Methods that learn to select features make fewer passes when there are many inputs.
    learning_rate
        Initial learning rate; by default 5e-5 for a transformer's encoder, 1e-3 for a small network.
    batch_size
        Number of inputs per step.
    precision
        As in `train`.
    patience
        Stop after this many consecutive measurements without improvement.
    seed
        Seed of all random draws. Equal seeds give equal networks, on CUDA up to the order of floating-point
        sums.
    out
        Folder for the explainer, the teacher's explanations, and training checkpoints. Repeating the call
        resumes an interrupted fit and loads a finished one.
    cluster
        A `Cluster` whose workers compute the teacher's explanations; the network is trained in this process.
    progress
        As in `explain`.
    **settings
        Settings of the method, such as ``loss="rank"`` or ``k=10``, and of its teacher, such as
        ``samples=50``.
    """
    explainer = learned.get(method)
    optional("accelerate")
    of_learner, of_teacher = dict[str, Any](), dict[str, Any]()
    for name, value in settings.items():
        is_learner = setting_owner(explainer, teacher, name) is explainer.learner
        (of_learner if is_learner else of_teacher)[name] = value
    learner = explainer.learner(**of_learner)
    learner.check_settings(method, teacher=teacher, classes=classes, scale=scale, labels=labels)
    if teacher in (None, learner.spec.teacher):
        teacher, of_teacher = learner.spec.teacher, {**learner.spec.teacher_settings, **of_teacher}
    request = Request.from_method(teacher, of_teacher, removal=removal, scale=scale, seed=seed)
    run = Run.from_arguments(model, inputs, "teacher", progress=progress)
    run.model.require_common_columns(f"Fitting {method}")
    prepared, labels = _prepare(run, features, labels)
    learner.check_inputs(method, prepared, labels)
    schedule = learner.schedule(run.model, prepared)
    if schedule is not None:
        epochs = epochs or schedule.epochs_of((1 - validation_fraction) * len(prepared), batch_size)
        learning_rate = learning_rate or schedule.learning_rate
    elif epochs or learning_rate:
        raise SettingError(f"`epochs` and `learning_rate` must be None: {method} trains no network.")
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
    """Return the class that declares a setting of a fit: the learner, or its teacher."""
    teacher = teacher or explainer.learner.spec.teacher
    teacher_class = explainers.get(teacher) if isinstance(teacher, str) else type(teacher)
    owners = {f.name: cls for cls in (teacher_class, explainer.learner) for f in fields(cls) if f.init}
    if name not in owners:
        raise unknown(f"setting of {explainer.name}", name, owners)
    return owners[name]


def _prepare(
    run: Run, features: Any, labels: Sequence[Any] | None
) -> tuple[list[Input], Sequence[Any] | None]:
    """Return the prepared inputs and their labels; unusable inputs are skipped with a log message."""
    if run.one:
        raise InputError("`inputs` must be a collection of inputs to learn from, but got a single input.")
    inputs, prepared, unusable = list(run.inputs), dict[int, Input](), dict[int, PertinentError]()
    for index, raw in enumerate(inputs):
        try:
            prepared[index] = prepare_input(run.model, raw, features_of(features, index, one=False))
        except PertinentError as error:
            unusable[index] = error
    kinds = {input.kind: input.granularity for input in prepared.values()}
    if features is None and {input.granularity for input in prepared.values()} - set(kinds.values()):
        return _prepare(run.over(inputs), modality_named(next(iter(kinds))).features, labels)
    for index, reason in unusable.items():
        logger.warning("Input %d is skipped: %s", index, reason)
    if len(prepared) < 2:
        first = "".join(f" Input {index}: {reason}" for index, reason in list(unusable.items())[:1])
        raise InputError(f"`inputs` must be at least 2 usable inputs, but got {len(prepared)}.{first}")
    if labels is not None and len(labels) == len(inputs):
        labels = [labels[index] for index in prepared]
    return list(prepared.values()), labels

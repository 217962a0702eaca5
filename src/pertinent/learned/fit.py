"""`fit`: train an explainer for a model on inputs; and one such fit, with its folder."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pertinent._optional import optional
from pertinent.api.explain_run import explain_all
from pertinent.api.request import Request, features_of
from pertinent.api.run import Run, raise_first
from pertinent.digests import digest
from pertinent.engine.progress import Callback
from pertinent.errors import FileError, InputError, PertinentError, SettingError, unknown
from pertinent.explainers.base import Explainer, explainers
from pertinent.explainers.simple import LeaveOneOut
from pertinent.inputs.base import Input
from pertinent.inputs.modality import modality_named
from pertinent.learned.base import LearnedClasses, LearnedExplainer, Learner, learned, load_explainer
from pertinent.metric.ablation import Comprehensiveness
from pertinent.outputs import Scale
from pertinent.registry import settings_of
from pertinent.removal.base import Removal, removals
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.explanation_files import read_run
from pertinent.settings import Count, Positive, ProperShare, Seed, checked
from pertinent.training.run_folder import RunFolder
from pertinent.training.training_settings import TrainerSettings

logger = logging.getLogger(__name__)

COMPARED = 20
"""Number of held-out inputs, at most, on which the explainer is compared with leave-one-out."""

TEACHER_FILE = "teacher.parquet"
"""The file with the teacher's explanations in the folder of a fit."""

UNRECORDED = ("checkpoint_steps", "options")
"""Settings of the training that are not recorded, because they follow from the others."""

RENAMED = {"validation_fraction": "dev", "teacher": "reference", "teacher_explanations": "references"}
"""The names of some settings on cards that version 0.1 wrote."""


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
    request = Request.of(teacher, others, removal=removal, scale=scale, seed=seed)
    run = Run.of(model, inputs, "teacher", progress=progress)
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
            prepared[index] = run.prepare(raw, features_of(features, index, one=False))
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


@dataclass(frozen=True, eq=False)
class FitRun:
    """One fit of an explainer.

    Attributes
    ----------
    run, request
        The model, and how the teacher explains it.
    explainer, learner
        The class of the explainer, and how it learns.
    inputs, labels
        The inputs, and the right class or value of each, if the user gave labels.
    teacher_explanations
        Explanations by the teacher that were made before, or the file that holds them.
    classes
        The classes for which scores are learned; ``None`` for the learner's default.
    training
        The settings of the training.
    measurements
        Number of times that the network is measured in the whole training; ``None`` for once after each
        epoch.
    validation_fraction
        The share of inputs that are held out.
    """

    run: Run
    request: Request
    explainer: type[LearnedExplainer]
    learner: Learner
    inputs: Sequence[Input]
    labels: Sequence[Any] | None
    teacher_explanations: str | Path | Explanations | None
    classes: LearnedClasses | None
    training: TrainerSettings
    measurements: int | None
    validation_fraction: float

    @property
    def removal(self) -> Removal:
        """How features are removed."""
        return self.request.removal or removals.make(self.run.model.default_removal(self.inputs[0]))

    def finish(self, path: Path, *, keep: bool) -> LearnedExplainer:
        """Fit in a folder, and save the explainer there if `keep`; load it if the fit was finished before."""
        from pertinent.learned.context import TrainingContext
        from pertinent.learned.fitted_network import FittedNetwork

        folder = RunFolder(path, self._record(), RENAMED)
        folder.open(resume=True)
        if folder.finished:
            return load_explainer(path)
        taught = self._taught(path / TEACHER_FILE if keep else None)
        self.learner.check_output(self.explainer.name, taught[0].output.kind)
        classes = self.classes or self.learner.default_classes(self.run.model, self.inputs, taught)
        chosen, explanations = self._matched(taught, classes)
        inputs = [self.inputs[i] for i in chosen]
        labels = [None if self.labels is None else self.labels[i] for i in chosen]
        context = TrainingContext(self, folder, inputs, explanations, labels, classes)
        scorer, trained = self.learner.train(context)
        card = folder.record(
            {
                **trained,
                "classes": classes,
                "names": list(taught[0].classes),
                "learned_from": {name: taught[0].to_dict()[name] for name in ("method", "settings")},
                "examples": len(inputs) - context.n_held_out,
                "dev_examples": context.n_held_out,
            }
        )
        fitted = self.explainer(FittedNetwork(scorer, json.loads(json.dumps(card))))
        held_out = [inputs[i] for i in context.shuffled(len(inputs))[: min(context.n_held_out, COMPARED)]]
        card = folder.record({**card, **self._compared(fitted, held_out)})
        fitted = self.explainer(FittedNetwork(scorer, json.loads(json.dumps(card))))
        if keep:
            fitted.save(path)
            folder.remove_checkpoints()
        return fitted

    def explain(
        self, inputs: Sequence[Input], methods: Sequence[Explainer], seed: int, out: Path | None = None
    ) -> Explanations:
        """Explain inputs by several methods, with the removal and scale of the fit.

        If all fail, the first error is raised. With `out` the explanations are kept in a file, from which a
        killed run resumes.
        """
        requests = [replace(self.request, method=method, seed=seed) for method in methods]
        found = explain_all(replace(self.run.over(inputs), independent=True), requests, out)
        if found.failures and not len(found):
            raise_first(found.failures, "explained")
        return found

    def _compared(self, fitted: LearnedExplainer, inputs: Sequence[Input]) -> dict[str, float]:
        """Comprehensiveness of the explainer and of leave-one-out, means over inputs and sparsities.

        It tells explainers apart where faithfulness is 100% for all.
        """
        metrics = (Comprehensiveness(),)
        requests = [
            replace(self.request, method=method, metrics=metrics, early_stopping=None)
            for method in (fitted, LeaveOneOut())
        ]
        found = explain_all(self.run.over(inputs), requests)
        measured: dict[str, list[float]] = {}
        for e in found:
            if values := e.measures.get(Comprehensiveness.name):
                measured.setdefault(e.method, []).append(float(np.mean(list(values.values()))))
        names = {self.explainer.name: "dev_comprehensiveness", LeaveOneOut.name: "dev_leave_one_out"}
        return {names[method]: float(np.mean(values)) for method, values in measured.items()}

    def _taught(self, out: Path | None) -> Explanations:
        """The teacher's explanations: those that were given, else new ones."""
        given = self.teacher_explanations
        if given is None:
            return self.explain(self.inputs, [self.request.method], self.request.seed, out)
        if not isinstance(given, Explanations):
            run = read_run(Path(given))
            if run is None or not self.run.model.has_fingerprint(run.get("model")):
                raise FileError(
                    f"{str(given)!r} holds no explanations of this model: leave out `teacher_explanations`."
                )
            given = Explanations.read(given)
        for other in {e.removal for e in given} - {self.removal.name}:
            raise SettingError(
                f"The teacher's explanations were made with the removal {other!r}, but it is "
                f"{self.removal.name!r} here."
            )
        return given

    def _matched(
        self, taught: Explanations, classes: LearnedClasses
    ) -> tuple[Sequence[int], Sequence[Explanation]]:
        """The positions of the inputs that the teacher explained, and the explanation of each."""
        by_input = {e.input.fingerprint: e for e in taught}
        chosen = [i for i, input in enumerate(self.inputs) if input.fingerprint in by_input]
        missing = len(self.inputs) - len(chosen)
        if missing:
            logger.warning("%d of %d inputs have no explanation by the teacher.", missing, len(self.inputs))
        if len(chosen) < 2:
            raise InputError(
                f"At least 2 inputs that the teacher explained are needed, but got {len(chosen)}."
            )
        explanations = [by_input[self.inputs[i].fingerprint] for i in chosen]
        for e in explanations:
            if e.scale != self.request.scale:
                raise SettingError(
                    f"The teacher explained on the scale {e.scale!r}, but `scale` is {self.request.scale!r}."
                )
            if classes == "predicted" and e.target != e.output.default_target(e.prediction):
                raise SettingError(
                    "The teacher must explain the predicted class: compute its explanations without `target`."
                )
        return chosen, explanations

    def _record(self) -> dict[str, Any]:
        """The settings of the fit, the model and the data, in plain JSON."""
        model, training, removal = self.run.model, self.training, self.removal
        teacher = self.request.to_dict()
        return {
            "method": self.explainer.name,
            "settings": {f.name: getattr(self.learner, f.name) for f in fields(self.learner) if f.init},
            "wanted_classes": self.classes,
            "model": model.fingerprint.hex(),
            "removal": {
                "name": removal.name,
                "settings": {name: str(value) for name, value in settings_of(removal).items()},
                "fingerprint": removal.bind(model).fingerprint.hex(),
            },
            "features": cut if isinstance(cut := self.inputs[0].own_features, str) else None,
            "scale": self.request.scale,
            "teacher": {name: teacher[name] for name in ("method", "settings")},
            "validation_fraction": self.validation_fraction,
            **{f.name: getattr(training, f.name) for f in fields(training) if f.name not in UNRECORDED},
            "inputs": len(self.inputs),
            "data": digest(*(input.fingerprint for input in self.inputs)).hex(),
            "teacher_explanations": self._digest_of_given(),
            "labels": None if self.labels is None else digest([str(each) for each in self.labels]).hex(),
        }

    def _digest_of_given(self) -> str | None:
        """A digest of the teacher's explanations that were given."""
        given = self.teacher_explanations
        if given is None:
            return None
        if isinstance(given, Explanations):
            return digest(*(np.ascontiguousarray(e.scores) for e in given)).hex()
        path = Path(given)
        return digest(path.read_bytes() if path.is_file() else str(path)).hex()

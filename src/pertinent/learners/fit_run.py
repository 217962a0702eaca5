"""A single fit of an explainer: the teacher's explanations, the training, the card and the files."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from pertinent.config.fingerprints import digest
from pertinent.config.settings import changed_settings
from pertinent.errors import FileError, InputError, SettingError
from pertinent.explainers.base import Explainer
from pertinent.explainers.leave_one_out import LeaveOneOut
from pertinent.files import file_exists
from pertinent.finetuning.run_folder import RunFolder
from pertinent.finetuning.training_settings import TrainerSettings
from pertinent.inputs.base import Input
from pertinent.learners.base import LearnedClasses, LearnedExplainer, Learner, load_explainer
from pertinent.metrics.ablation import Comprehensiveness
from pertinent.removals.base import Removal, removals
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.explanation_files import read_stored
from pertinent.runs.executor import Executor
from pertinent.runs.explain import explain_all
from pertinent.runs.file_store import explain_to_file
from pertinent.runs.request import Request
from pertinent.runs.run import Run, raise_first

logger = logging.getLogger(__name__)

COMPARED = 20
"""Largest number of held-out inputs on which the explainer is compared with leave-one-out."""

TEACHER_FILE = "teacher.parquet"
"""File with the teacher's explanations in the folder of a fit."""

UNRECORDED = ("checkpoint_steps", "options")
"""Training settings that are not recorded because they follow from others."""


@dataclass(frozen=True, eq=False)
class FitRun:
    """A single fit of an explainer.

    Attributes
    ----------
    run, request
        The model, and the request to the teacher.
    explainer, learner
        The class of the explainer, and its learner.
    inputs, labels
        The inputs, and the true class or value of each, if the user passed labels.
    teacher_explanations
        Existing explanations by the teacher, or the file that contains them.
    classes
        The classes for which scores are learned; ``None`` for the learner's default.
    training
        The settings of the training.
    measurements
        Number of times the network is measured during training; ``None`` for once per epoch.
    validation_fraction
        Share of inputs that are held out.
    executor
        Executor that runs the teacher.
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
    executor: Executor

    @property
    def removal(self) -> Removal:
        """Return the removal of features."""
        return self.request.removal or removals.make(self.run.model.default_removal(self.inputs[0]))

    def finish(self, path: Path, *, keep: bool) -> LearnedExplainer:
        """Fit in a folder, saving the explainer there if `keep`; a finished fit is loaded."""
        from pertinent.learners.fitted_network import FittedNetwork
        from pertinent.learners.training_context import TrainingContext

        folder = RunFolder(path, self._record())
        folder.open(resume=True)
        if folder.finished:
            return load_explainer(path)
        explained = self._teach(path / TEACHER_FILE if keep else None)
        self.learner.check_output(self.explainer.name, explained[0].output.kind)
        classes = self.classes or self.learner.default_classes(self.run.model, self.inputs, explained)
        chosen, explanations = self._match(explained, classes)
        inputs = [self.inputs[i] for i in chosen]
        labels = [None if self.labels is None else self.labels[i] for i in chosen]
        context = TrainingContext(self, folder, inputs, explanations, labels, classes)
        scorer, trained = self.learner.train(context)
        card = folder.record(
            {
                **trained,
                "classes": classes,
                "names": list(explained[0].classes),
                "learned_from": {name: explained[0].to_dict()[name] for name in ("method", "settings")},
                "examples": len(inputs) - context.n_held_out,
                "dev_examples": context.n_held_out,
            }
        )
        fitted = self.explainer(FittedNetwork(scorer, json.loads(json.dumps(card))))
        held_out = [inputs[i] for i in context.shuffled(len(inputs))[: min(context.n_held_out, COMPARED)]]
        card = folder.record({**card, **self._compare(fitted, held_out)})
        fitted = self.explainer(FittedNetwork(scorer, json.loads(json.dumps(card))))
        if keep:
            fitted.save(path)
            folder.remove_checkpoints()
        return fitted

    def explain(
        self, inputs: Sequence[Input], methods: Sequence[Explainer], seed: int, out: Path | None = None
    ) -> Explanations:
        """Explain inputs with several methods, using the removal and scale of the fit.

        If all fail, the first error is raised. With `out`, explanations are written to a file from which an
        interrupted run resumes.
        """
        requests = [replace(self.request, method=method, seed=seed) for method in methods]
        run = replace(self.run.over(inputs), independent=True)
        explanations = explain_all(run, requests) if out is None else explain_to_file(run, requests, out)
        if explanations.failures and not len(explanations):
            raise_first(explanations.failures, "explained")
        return explanations

    def _compare(self, fitted: LearnedExplainer, inputs: Sequence[Input]) -> dict[str, float]:
        """Return the mean comprehensiveness of the explainer and of leave-one-out on some inputs.

        The comparison distinguishes explainers whose faithfulness is 100%.
        """
        metrics = (Comprehensiveness(),)
        requests = [
            replace(self.request, method=method, metrics=metrics, early_stopping=None)
            for method in (fitted, LeaveOneOut())
        ]
        measured: dict[str, list[float]] = {}
        for e in explain_all(self.run.over(inputs), requests):
            if values := e.measures.get(Comprehensiveness.name):
                measured.setdefault(e.method, []).append(float(np.mean(list(values.values()))))
        names = {self.explainer.name: "dev_comprehensiveness", LeaveOneOut.name: "dev_leave_one_out"}
        return {names[method]: float(np.mean(values)) for method, values in measured.items()}

    def _teach(self, out: Path | None) -> Explanations:
        """Return the teacher's explanations: existing ones if there are any, otherwise new ones."""
        explanations = self.teacher_explanations
        if explanations is None:
            return replace(self, run=replace(self.run, executor=self.executor)).explain(
                self.inputs, [self.request.method], self.request.seed, out
            )
        if not isinstance(explanations, Explanations):
            header = read_stored(Path(explanations)).header
            if header is None or header.get("model") != self.run.model.fingerprint.hex():
                raise FileError(
                    f"`teacher_explanations` must explain this model, but {str(explanations)!r} does not."
                )
            explanations = Explanations.read(explanations)
        for other in {e.removal for e in explanations} - {self.removal.name}:
            raise SettingError(
                f"`removal` must be {other!r}, the teacher's removal, but got {self.removal.name!r}."
            )
        return explanations

    def _match(
        self, explained: Explanations, classes: LearnedClasses
    ) -> tuple[Sequence[int], Sequence[Explanation]]:
        """Return the indices of the inputs that the teacher explained, and their explanations."""
        by_input = {e.input.fingerprint: e for e in explained}
        chosen = [i for i, input in enumerate(self.inputs) if input.fingerprint in by_input]
        missing = len(self.inputs) - len(chosen)
        if missing:
            logger.warning("%d of %d inputs have no explanation by the teacher.", missing, len(self.inputs))
        if len(chosen) < 2:
            raise InputError(
                f"The teacher must explain at least 2 of the `inputs`, but explained {len(chosen)}."
            )
        explanations = [by_input[self.inputs[i].fingerprint] for i in chosen]
        for e in explanations:
            if e.request.scale != self.request.scale:
                raise SettingError(
                    f"`scale` must be {e.request.scale!r}, as in the teacher's explanations, but got "
                    f"{self.request.scale!r}."
                )
            if classes == "predicted" and e.target != e.prediction.column:
                raise SettingError(
                    "The teacher must explain the predicted class: compute its explanations without `target`."
                )
        return chosen, explanations

    def _record(self) -> dict[str, Any]:
        """Return the settings of the fit, the model and the data, as plain JSON."""
        model, training, removal = self.run.model, self.training, self.removal
        teacher = self.request.to_dict()
        return {
            "method": self.explainer.name,
            "settings": {f.name: getattr(self.learner, f.name) for f in fields(self.learner) if f.init},
            "requested_classes": self.classes,
            "model": model.fingerprint.hex(),
            "removal": {
                "name": removal.name,
                "settings": {name: str(value) for name, value in changed_settings(removal).items()},
                "fingerprint": removal.bind(model).fingerprint.hex(),
            },
            "features": cut if isinstance(cut := self.inputs[0].features_argument, str) else None,
            "scale": self.request.scale,
            "teacher": {name: teacher[name] for name in ("method", "settings")},
            "validation_fraction": self.validation_fraction,
            **{f.name: getattr(training, f.name) for f in fields(training) if f.name not in UNRECORDED},
            "inputs": len(self.inputs),
            "data": digest(*(input.fingerprint for input in self.inputs)).hex(),
            "teacher_explanations": self._teacher_digest(),
            "labels": None if self.labels is None else digest(list(map(str, self.labels))).hex(),
        }

    def _teacher_digest(self) -> str | None:
        """Return a digest of the teacher's existing explanations."""
        explanations = self.teacher_explanations
        if explanations is None:
            return None
        if isinstance(explanations, Explanations):
            return digest(*(np.ascontiguousarray(e.scores) for e in explanations)).hex()
        path = Path(explanations)
        return digest(path.read_bytes() if file_exists(path) else str(path)).hex()

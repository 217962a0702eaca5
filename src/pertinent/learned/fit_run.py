"""One fit of a learned explainer, and reading it back."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pertinent.api.request import Request
from pertinent.api.run import Run
from pertinent.array_types import Floats
from pertinent.decoding import PlainData
from pertinent.digests import digest, generator
from pertinent.errors import FileError, InputError, SettingError, require
from pertinent.files import read_json
from pertinent.inputs.base import Input
from pertinent.learned.base import LearnedExplainer, Learner, LearnsScores, learned
from pertinent.learned.networks.fitted_network import CARD, FittedNetwork, load_network
from pertinent.learned.networks.scorer import Scorer
from pertinent.learned.teacher_explanations import computed, lessons_of, looked_up, piloted
from pertinent.learned.training_data import Lessons
from pertinent.models.base import Model
from pertinent.models.transformer import TransformerModel
from pertinent.outputs import SCALES
from pertinent.registry import settings_of
from pertinent.removal.base import Removal, removals
from pertinent.results.explanation import Explanations
from pertinent.training.run_folder import Folder, is_begun
from pertinent.training.training_settings import ScoreSettings

CLASSES = ("predicted", "all")
MOST_CLASSES = 20
"""With more, a network learns the scores of the predicted class by default."""

NOUNS = {"class": "classes", "label": "labels", "value": "plain values"}

TEACHER_EXPLANATIONS = "teacher.parquet"
"""The file in the folder of a fit with the explanations that the teacher made."""

RENAMED = {"validation_fraction": "dev", "teacher": "reference", "teacher_explanations": "references"}
"""What 0.1 called some settings of a fit on the card."""

PILOT = 100
"""How many inputs the learner's pilot methods are tried on."""


def load_explainer(folder: str | Path, *, digest: str | None = None) -> LearnedExplainer:
    """Load the explainer that `fit` or `save` wrote into a folder.

    It explains the model that it was fitted to, and refuses others.

    Parameters
    ----------
    folder
        The folder.
    digest
        The `digest` that the explainer must have; a `FileError` is raised if the folder holds another one.
    """
    require(isinstance(folder, str | Path), "folder", "the path of a folder", folder)
    path = Path(folder)
    if not (path / CARD).is_file():
        unfinished = " The fit into it is not finished: make the same call again." if is_begun(path) else ""
        raise FileError(f"There is no explainer in {str(path)!r}: it has no {CARD}.{unfinished}")
    card = read_json(path / CARD)
    try:
        data = PlainData(card, "card")
        explainer = learned.get(data.text("method", learned.all()))
        data.text("classes", CLASSES)
        data.text("scale", SCALES)
        if data.value("features") is not None:
            data.text("features")
        data.text("model")
        explainer.check_card(data)
        removal = PlainData(data.mapping("removal"), "removal")
        removal.text("name")
        removal.text("fingerprint")
        removal.mapping("settings")
    except InputError as error:
        raise FileError(f"{str(path)!r} holds no explainer, or a damaged one: {error}") from error
    loaded = explainer(load_network(path, card))
    if digest not in (None, loaded.digest):
        raise FileError(
            f"{str(path)!r} holds another explainer than the one that is wanted: its digest is "
            f"{loaded.digest}, not {digest}."
        )
    return loaded


@dataclass(frozen=True, eq=False)
class Fitting:
    """One fit: the teacher's explanations, the training, and how well the network does on the dev inputs."""

    run_over: Run
    explainer: type[LearnedExplainer]
    learner: Learner
    inputs: Sequence[Input]
    labels: Sequence[Any] | None
    request: Request
    classes: Literal["predicted", "all"] | None
    validation_fraction: float
    training: ScoreSettings
    teacher_explanations: str | Path | Explanations | None

    def run(self, path: Path, *, keep: bool) -> LearnedExplainer:
        """Fit, in a folder that is kept or not."""
        from pertinent.learned.network_training import train_networks

        model, learner = self.run_over.model, self.learner
        model.require_common_columns(f"Fitting {self.explainer.name}")
        folder = Folder(path, self._recorded(), RENAMED)
        folder.open(resume=True)
        if folder.finished:
            return load_explainer(path)
        if self.teacher_explanations is not None:
            found = looked_up(self.teacher_explanations, model, folder.settings["removal"]["name"])
        else:
            found = computed(
                self.run_over, self.inputs, self.request, path / TEACHER_EXPLANATIONS if keep else None
            )
        self._check_output(found)
        classes = self._classes(found)
        every = lessons_of(learner, found, self.inputs, self.request, classes=classes, labels=self.labels)
        data, dev = self._split(every)
        scorer, done = train_networks(
            learner,
            model,
            data,
            dev,
            removal=self._removal,
            settings=self._measured_as_often(len(data)),
            folder=folder,
            progress=self.run_over.progress,
        )
        if isinstance(learner, LearnsScores):
            done |= self._measured(learner, scorer, every, dev, classes)
        done |= {
            "classes": classes,
            "names": list(found[0].classes),
            "learned_from": {name: found[0].to_dict()[name] for name in ("method", "settings")},
            "examples": len(data),
            "dev_examples": len(dev),
        }
        card = json.loads(json.dumps(folder.record(done)))
        fitted = self.explainer(FittedNetwork(scorer, card))
        if keep:
            fitted.save(path)
            folder.remove_checkpoints()
        return fitted

    def _measured_as_often(self, n: int) -> ScoreSettings:
        """The training, with as many measurements if only `n` inputs have an explanation by the teacher."""
        training, of_all = self.training, (1 - self.validation_fraction) * len(self.inputs)
        if training.checkpoint_steps is None or n >= of_all:
            return training
        every = max(1, math.ceil(training.checkpoint_steps * n / of_all))
        return replace(training, checkpoint_steps=every, options={**training.options, "logging_steps": every})

    def _measured(
        self,
        learner: LearnsScores,
        scorer: Scorer,
        every: Lessons,
        dev: Lessons,
        classes: Literal["predicted", "all"],
    ) -> dict[str, Any]:
        """What the card says of the network, beside the pilot methods."""
        some = every.pick(self._order(every)[:PILOT])
        pilots = piloted(self.run_over, learner, some, self.request, classes)
        predicted = _predictions(FittedNetwork(scorer, {}), self.run_over.model, dev)
        return learner.measured(dev.lessons, predicted, some.lessons, pilots)

    def _check_output(self, found: Explanations) -> None:
        """Raise a `SettingError` if the method cannot explain what the model answers with."""
        kind = found[0].output.kind
        if kind not in self.learner.outputs:
            every = {name: cls.learner for name, cls in learned.all().items()}
            able = [
                name
                for name, each in every.items()
                if kind in each.outputs and (kind != "value" or each.regressors)
            ]
            own = " and ".join(NOUNS[each] for each in self.learner.outputs)
            raise SettingError(
                f"{self.explainer.name} explains {own}, but the model answers with {NOUNS[kind]}: choose "
                f"{', '.join(able[:-1])} or {able[-1]}."
            )

    def _classes(self, found: Explanations) -> Literal["predicted", "all"]:
        """As wanted, or what the network learns best."""
        if self.classes is not None:
            return self.classes
        if self.learner.classes is not None:
            return self.learner.classes
        small = not isinstance(self.run_over.model, TransformerModel) and self.learner.all_classes
        known = all(e.class_scores is not None for e in found)
        return "all" if small and known and len(found[0].classes) <= MOST_CLASSES else "predicted"

    def _split(self, data: Lessons) -> tuple[Lessons, Lessons]:
        """The inputs to train on, and the dev inputs; which is which depends on the seed."""
        if len(data) < 2:
            raise InputError(f"At least 2 inputs that the teacher explained are needed, but got {len(data)}.")
        order = self._order(data)
        n_dev = min(max(1, round(self.validation_fraction * len(data))), len(data) - 1)
        return data.pick(np.sort(order[n_dev:])), data.pick(np.sort(order[:n_dev]))

    def _order(self, data: Lessons) -> Any:
        """A random order of the inputs."""
        return generator(self.training.seed, "dev").permutation(len(data))

    @property
    def _removal(self) -> Removal:
        """How features are removed."""
        return self.request.removal or removals.make(self.run_over.model.default_removal(self.inputs[0]))

    def _recorded(self) -> dict[str, Any]:
        """What is fitted, to what and how, in plain JSON."""
        model, request, training = self.run_over.model, self.request, self.training
        removal = self._removal
        asked = request.to_dict()
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
            "scale": request.scale,
            "teacher": {name: asked[name] for name in ("method", "settings")},
            "validation_fraction": self.validation_fraction,
            "epochs": training.epochs,
            "batch_size": training.batch_size,
            "learning_rate": training.learning_rate,
            "seed": training.seed,
            "precision": training.precision,
            "patience": training.patience,
            "inputs": len(self.inputs),
            "data": digest(*(input.fingerprint for input in self.inputs)).hex(),
            "teacher_explanations": self._given(),
            "labels": None if self.labels is None else digest([str(each) for each in self.labels]).hex(),
        }

    def _given(self) -> str | None:
        """A digest of the teacher's explanations that were given."""
        if self.teacher_explanations is None:
            return None
        if isinstance(self.teacher_explanations, Explanations):
            return digest(*(np.ascontiguousarray(e.scores) for e in self.teacher_explanations)).hex()
        path = Path(self.teacher_explanations)
        return digest(path.read_bytes() if path.is_file() else str(path)).hex()


def _predictions(network: Any, model: Model, dev: Lessons) -> list[Floats]:
    """What the network says of the dev inputs, one after the other."""
    answers = [(network.submit(model, [input]), input) for input in dev.inputs]
    return [network.read(answer.outputs(), [input])[0] for answer, input in answers]

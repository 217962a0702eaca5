"""One fit of a learned explainer, and reading it back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pertinent.api.references import FEW, computed, error_variances, looked_up, sampling_variances, scored
from pertinent.api.request import TO_BE_FITTED, Request
from pertinent.api.runner import Runner
from pertinent.digests import digest, generator
from pertinent.errors import FileError, InputError
from pertinent.explainers.learned.amortized_shapley import AmortizedShapley, normalized
from pertinent.files import read_json
from pertinent.inputs.base import Input
from pertinent.models.torch.token_network import CARD, TokenNetwork, TokenScorer, load_token_network
from pertinent.models.transformer import TransformerModel
from pertinent.outputs import SCALES
from pertinent.plain_data import PlainData
from pertinent.registry import settings_of
from pertinent.removal.base import removals
from pertinent.results.explanation import Explanations
from pertinent.training.folder import Folder
from pertinent.training.scored import Scored
from pertinent.training.settings import ScoreSettings
from pertinent.types import Floats

CLASSES = ("predicted", "all")


def load_explainer(folder: str | Path) -> AmortizedShapley:
    """The explainer that `fit` or `save` wrote into a folder.

    It explains the model that it was fitted to, and refuses others.
    """
    path = Path(folder)
    if not (path / CARD).is_file():
        raise FileError(f"There is no explainer in {str(path)!r}: it has no {CARD}.")
    card = read_json(path / CARD)
    try:
        data = PlainData(card, "card")
        data.text("method", TO_BE_FITTED)
        data.text("classes", CLASSES)
        data.text("scale", SCALES)
        data.text("model")
        n_columns = len(data.floats("error_variances", None))
        data.floats("sampling_variances", len(FEW), n_columns)
        PlainData(data.mapping("removal"), "removal").text("fingerprint")
    except InputError as error:
        raise FileError(f"{str(path)!r} holds no explainer, or a damaged one: {error}") from error
    return AmortizedShapley(load_token_network(path, card))


@dataclass(frozen=True, eq=False)
class Fitting:
    """One fit: the references, the training, and how well the network does on the dev inputs."""

    runner: Runner
    inputs: Sequence[Input]
    request: Request
    classes: Literal["predicted", "all"]
    dev: float
    training: ScoreSettings
    references: str | Path | Explanations | None

    def run(self, path: Path, *, keep: bool) -> AmortizedShapley:
        """Fit, in a folder that is kept or not."""
        from pertinent.training.score_trainer import train_scorer

        model: Any = self.runner.model
        folder = Folder(path, self._recorded())
        folder.open(resume=True)
        if folder.finished:
            return load_explainer(path)
        if self.references is not None:
            found = looked_up(self.references, model, folder.settings["removal"]["name"])
        else:
            found = computed(
                self.runner, self.inputs, self.request, path / "references.parquet" if keep else None
            )
        data, dev = self._split(scored(found, self.inputs, self.request, self.classes))
        few = sampling_variances(self.runner, dev, self.request, self.classes)
        scorer = TokenScorer.of(model.model, data.deviation, self.training.seed)
        done = train_scorer(
            scorer,
            model,
            data,
            dev,
            settings=self.training,
            folder=folder,
            progress=self.runner.progress,
        )
        network = TokenNetwork(scorer, {})
        total = [scores.sum(axis=1) for scores in dev.scores]
        predicted = [normalized(*each) for each in zip(_predictions(network, model, dev), total, strict=True)]
        done |= {
            # One standard error more: the network was chosen by these inputs, so they flatter it.
            "error_variances": np.add(*error_variances(dev, predicted)).tolist(),
            "sampling_variances": [own.tolist() for own in few],
            "learned_from": {name: found[0].to_dict()[name] for name in ("method", "settings")},
            "examples": len(data),
            "dev_examples": len(dev),
        }
        fitted = AmortizedShapley(TokenNetwork(scorer, json.loads(json.dumps(folder.record(done)))))
        if keep:
            fitted.save(path)
            folder.remove_checkpoints()
        return fitted

    def _split(self, data: Scored) -> tuple[Scored, Scored]:
        """The inputs to train on, and the dev inputs; which is which depends on the seed."""
        if len(data) < 2:
            raise InputError(f"At least 2 inputs with a reference are needed, but there are {len(data)}.")
        order = generator(self.training.seed, "dev").permutation(len(data))
        n_dev = min(max(1, round(self.dev * len(data))), len(data) - 1)
        return data.pick(np.sort(order[n_dev:])), data.pick(np.sort(order[:n_dev]))

    def _recorded(self) -> dict[str, Any]:
        """What is fitted, to what and how, in plain JSON."""
        model, request, training = self.runner.model, self.request, self.training
        removal = request.removal or removals.make(model.default_removal(self.inputs[0]))
        removal = removal.bind(model)
        asked = request.to_dict()
        return {
            "method": AmortizedShapley.name,
            "classes": self.classes,
            "names": list(model.classes),
            "model": model.fingerprint.hex(),
            "removal": {
                "name": removal.name,
                "settings": {name: str(value) for name, value in settings_of(removal).items()},
                "fingerprint": removal.fingerprint.hex(),
            },
            "features": self.inputs[0].granularity,
            "scale": request.scale,
            "reference": {name: asked[name] for name in ("method", "settings")},
            "dev": self.dev,
            "epochs": training.epochs,
            "batch_size": training.batch_size,
            "learning_rate": training.learning_rate,
            "seed": training.seed,
            "precision": training.precision,
            "patience": training.patience,
            "inputs": len(self.inputs),
            "data": digest(*(input.fingerprint for input in self.inputs)).hex(),
        }


def _predictions(network: TokenNetwork, model: TransformerModel, dev: Scored) -> list[Floats]:
    """What the network says of the dev inputs, one after the other."""
    answers = [(network.submit(model, [input]), input) for input in dev.inputs]
    return [network.read(answer.outputs(), [input])[0] for answer, input in answers]

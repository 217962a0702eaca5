"""A scorer fitted to explain a model, with its card; saving and loading."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pertinent.array_types import Floats
from pertinent.asks import Network
from pertinent.config.fingerprints import digest
from pertinent.errors import FileError, ModelError, SettingError
from pertinent.files import check_is_file, make_folder, read_json, write_json
from pertinent.finetuning.run_folder import RECORD
from pertinent.inputs.base import Input
from pertinent.learners.networks.forest_scorer import ForestScorer
from pertinent.learners.networks.scorer import CONFIG, KIND, Scorer, device_of, scorer_of_modality
from pertinent.learners.networks.token_scorers import HiddenStateScorer, TokenScorer
from pertinent.learners.networks.word_scorer import PaperWordScorer
from pertinent.models.base import Answer, Model
from pertinent.models.torch import devices
from pertinent.models.torch.inference import evaluating, n_weights
from pertinent.removals.base import Removal

_WEIGHTS = "model.safetensors"
_OTHER_SCORERS: Mapping[str | None, type[Scorer]] = {
    None: TokenScorer,
    "forest": ForestScorer,
    "hidden-states": HiddenStateScorer,
    "text-vo2023": PaperWordScorer,
}
"""Scorers that belong to no modality, by the kind in their configuration."""

DIGEST = "digest"
"""Field of a saved card that holds the digest of all files in the folder."""


class FittedNetwork(Network):
    """A scorer with its card, which describes the fit."""

    def __init__(self, scorer: Scorer, card: Mapping[str, Any]) -> None:
        self.scorer, self.card = scorer.eval(), card
        self._n_weights = n_weights(scorer)

    def __repr__(self) -> str:
        return f"{self.scorer.title} {self.fingerprint.hex()[:12]}"

    @cached_property
    def fingerprint(self) -> bytes:
        """Return a digest of the weights and the card."""
        weights = {name: tensor.numpy() for name, tensor in self._weights().items()}
        return digest(weights, json.dumps(self.card, sort_keys=True))

    def check(self, model: Model, removal: Removal) -> None:
        """Raise an error unless the network was fitted to this model with this removal."""
        if model.fingerprint.hex() != self.card["model"]:
            raise ModelError(
                "The explainer was fitted to a different model: fit one to this model, or explain the "
                "original model with the same weights and options."
            )
        fitted = self.card["removal"]
        if removal.fingerprint.hex() != fitted["fingerprint"]:
            settings = ",".join(f"{name}={value}" for name, value in fitted["settings"].items())
            named = f"{fitted['name']}:{settings}" if settings else fitted["name"]
            raise SettingError(
                f"`removal` must be {named!r}, which the explainer was fitted with, but got {removal.name!r}."
            )

    def sharing_passes(self, model: Model) -> AbstractContextManager[None]:
        """Return the scorer's context for sharing forward passes."""
        return self.scorer.sharing_passes(model)

    def submit(self, model: Model, inputs: Sequence[Input]) -> Answer:
        """Start scoring the features of a batch of inputs."""
        device = device_of(model)
        if devices.device_and_dtype(self.scorer)[0] != device:
            self.scorer.to(device)
        batch = self.scorer.read(model, inputs)
        width = max(input.n_features for input in inputs)
        setting = partial(devices.disable_onednn, device, torch.float32)
        with evaluating(self.scorer, self._n_weights * batch.owners.size, setting):
            return devices.run(device, lambda: self.scorer.scores(model, batch, width))

    def read(self, outputs: Any, inputs: Sequence[Input]) -> list[Floats]:
        """Return the scores of each input."""
        rows = zip(outputs.astype(np.float64), inputs, strict=True)
        return [scores[:, : input.n_features] for scores, input in rows]

    def save(self, folder: Path) -> None:
        """Write the weights (safetensors), the scorer's configuration and the card."""
        from safetensors.torch import save_file

        make_folder(folder)
        save_file(self._weights(), folder / _WEIGHTS)
        self.scorer.save_config(folder)
        write_json(folder / RECORD, {**self.card, DIGEST: digest_of(folder, self.card)})
        self.folder = folder.absolute()

    def _weights(self) -> dict[str, torch.Tensor]:
        return {name: tensor.contiguous().cpu() for name, tensor in self.scorer.state_dict().items()}


def load_network(folder: Path, card: Mapping[str, Any]) -> FittedNetwork:
    """Load the network from a folder; it stays on the CPU until it is used."""
    from safetensors.torch import load_file

    check_is_file(folder / _WEIGHTS)
    config = read_json(folder / CONFIG)
    card = dict(card)
    if card.pop(DIGEST, None) != digest_of(folder, card):
        raise FileError(
            f"The explainer in {str(folder)!r} is damaged or mixes files of different explainers: fit it "
            "again, or copy the whole folder."
        )
    try:
        weights = load_file(folder / _WEIGHTS)
        with torch.random.fork_rng(devices=[]):
            kind = config.get(KIND)
            scorer_class = _OTHER_SCORERS.get(kind) or scorer_of_modality(kind)
            scorer = scorer_class.from_config(config, len(weights["deviation"]))
        scorer.load_state_dict(weights)
    except Exception as error:
        raise FileError(f"The explainer in {str(folder)!r} cannot be loaded: {error}") from error
    network = FittedNetwork(scorer, card)
    network.folder = folder.absolute()
    return network


def digest_of(folder: Path, card: Mapping[str, Any]) -> str:
    """Return a digest of an explainer's files: its weights, configuration and card."""
    files = [(folder / name).read_bytes() for name in (_WEIGHTS, CONFIG)]
    return digest(*files, json.dumps(card, sort_keys=True)).hex()

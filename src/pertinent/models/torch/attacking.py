"""Attacks on torch models: on the values of images and table rows, and on the embeddings of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pertinent.asks import Part
from pertinent.errors import SettingError
from pertinent.models.attack_space import norms_by_feature, owners_of, space_of, values_of
from pertinent.models.base import Answer
from pertinent.models.torch import devices
from pertinent.models.torch.attacks import Found, Problem, pgd, projection
from pertinent.models.torch.gradients import TorchModel, frozen
from pertinent.models.torch.token_gradients import padded
from pertinent.outputs import TINY, Output
from pertinent.types import Array, Floats

if TYPE_CHECKING:
    from pertinent.models.module import ModuleModel
    from pertinent.models.transformer import TransformerModel


def array_attacks(model: ModuleModel, parts: Sequence[Part]) -> Answer:
    """Attack images or rows of the same shape."""
    space = space_of(model, parts)
    shape = values_of(parts[0].input).shape
    values, units = (_send(array, model) for array in (space.values, space.units))
    lower, upper = (None if end is None else _send(end, model) for end in (space.lower, space.upper))
    decisions = Decisions(model.output, parts, model.device)

    def margin(points: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return decisions.margin(model.scores((points * units[rows]).reshape(len(points), *shape)), rows)

    problem = Problem(
        values, devices.send(space.free, model.device), lower, upper, margin, _attack(parts).norm
    )
    found = _attacked(model, problem, parts, model.evaluating((len(values), *shape)))
    n_features = max(part.input.n_features for part in parts)

    def kept(changes: Floats) -> tuple[Array, Floats]:
        norms = norms_by_feature(changes, owners_of(parts), n_features, _attack(parts).norm)
        return space.changes(changes, shape), norms

    return _answer(found, kept)


def token_attacks(model: TransformerModel, parts: Sequence[Part]) -> Answer:
    """Attack the word embeddings of texts; those have no bounds."""
    texts = padded(model, parts)
    with torch.no_grad():
        words = model.embed(texts.batch)
    sets = np.zeros((len(words), texts.n_features + 1), dtype=np.bool_)
    first = 0
    for part in parts:
        sets[first : first + len(part.rows), : part.input.n_features] = part.question.sets[part.rows]
        first += len(part.rows)
    free = devices.send(sets, model.device).gather(1, texts.owner % (texts.n_features + 1))
    decisions = Decisions(model.output, parts, model.device)
    known: dict[int, Any] = {}

    def margin(points: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        if id(rows) not in known:  # only when rows have left the batch
            known.clear()
            known[id(rows)] = rows, texts.batch.pick(rows.cpu().numpy())
        embedded = points.reshape(len(points), *words.shape[1:]).to(words.dtype)
        logits = model.forward(known[id(rows)][1], inputs_embeds=embedded).logits
        return decisions.margin(logits, rows)

    problem = Problem(
        words.float().flatten(1),
        free[..., None].expand_as(words).flatten(1),
        None,
        None,
        margin,
        _attack(parts).norm,
    )
    found = _attacked(model, problem, parts, model.evaluating(texts.batch.ids.shape))

    def kept(changes: Floats) -> tuple[Array, Floats]:
        owner = np.repeat(texts.owner.cpu().numpy(), words.shape[2], axis=1)
        norms = norms_by_feature(changes, owner, texts.n_features, _attack(parts).norm)
        return changes.reshape(len(changes), *words.shape[1:]), norms

    return _answer(found, kept)


class Decisions:
    """The margin by which the decision of each row stands, in logits."""

    def __init__(self, output: Output, parts: Sequence[Part], device: torch.device) -> None:
        if output.kind == "value":
            output.same_decision(np.zeros((1, 1)), np.zeros(1), 0)  # raises the error that says why not
        self._output = output
        asked = [part.question for part in parts for _ in part.rows]
        columns = [[own.decided, -1 if own.toward is None else own.toward] for own in asked]
        self._columns = devices.send(np.array(columns), device)
        signs = [1.0 if own.prediction[own.decided] >= 0.5 else -1.0 for own in asked]  # of labels
        self._signs = devices.send(np.array(signs, dtype=np.float32), device)

    def margin(self, scores: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Positive while the decision stands."""
        scores, name = scores.float(), self._output.name
        decided, toward = self._columns[rows].T
        if name.startswith("label-"):
            own = scores.gather(1, decided[:, None])[:, 0]
            if name == "label-probability":
                own = own.clamp(TINY, 1 - TINY).logit()
            return own * self._signs[rows]
        if scores.shape[1] == 1:
            other = torch.zeros_like(scores) if name == "logit" else 1 - scores
            scores = torch.cat([other, scores], dim=1)
        logits = scores if name == "logit" else scores.clamp_min(TINY).log()
        targeted = toward >= 0
        pivot = torch.where(targeted, toward, decided)[:, None]
        own = logits.gather(1, pivot)[:, 0]
        rest = logits.scatter(1, pivot, -torch.inf).amax(dim=1)
        return torch.where(targeted, rest - own, own - rest)


def _attacked(
    model: TorchModel,
    problem: Problem,
    parts: Sequence[Part],
    evaluating: AbstractContextManager[None],
) -> Answer:
    """Radii and passes of all rows, and the changes behind them, in one array."""
    attack = _attack(parts)
    if attack.algorithm == "decision":
        raise SettingError("`algorithm` must be 'projection' or 'pgd' for a model with gradients.")

    def run() -> torch.Tensor:
        found: Found
        with frozen(model.module):
            if attack.algorithm == "pgd":
                found = pgd(problem, attack.n_steps, attack.largest, attack.tolerance)
            else:
                found = projection(problem, attack.n_steps)
        columns = [found.radii[:, None], found.passes[:, None].float()]
        return torch.cat([*columns, found.changes] if parts[0].question.keep_changes else columns, dim=1)

    with evaluating:
        return devices.run(model.device, run, gradients=True)


def _answer(found: Answer, kept: Callable[[Floats], tuple[Array, Floats]]) -> Answer:
    """Radii and passes, and what is kept of the changes where they are asked for."""

    def outputs() -> Any:
        rows = found.outputs()
        changes, norms = kept(rows[:, 2:]) if rows.shape[1] > 2 else (None, None)
        return rows[:, 0].astype(np.float64), rows[:, 1].astype(np.int64), changes, norms

    return Answer(outputs, found.seconds, found.done)


def _attack(parts: Sequence[Part]) -> Any:
    return parts[0].question.attack


def _send(array: Any, model: ModuleModel) -> torch.Tensor:
    return devices.send(array.astype(np.float32), model.device)

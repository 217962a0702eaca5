"""Attacks on torch models: on the values of images and table rows, and on the embeddings of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.asks import Attack, AttackRadii, BatchPart
from pertinent.asks.base import split
from pertinent.errors import InputError, SettingError
from pertinent.models.attacks import attack_space
from pertinent.models.attacks.decision_attack import decision_attacks
from pertinent.models.attacks.gradient_attacks import (
    AttackedRows,
    AttackProblem,
    ChangeBounds,
    pgd,
    projection,
)
from pertinent.models.base import Answer
from pertinent.models.gradients.base import frozen
from pertinent.models.gradients.token_gradients import padded
from pertinent.models.torch import devices
from pertinent.outputs import Output

if TYPE_CHECKING:
    from pertinent.models.module import ModuleModel
    from pertinent.models.transformer import TransformerModel


def array_attacks(model: ModuleModel, parts: Sequence[BatchPart]) -> Answer:
    """Attack the values of images or table rows of the same shape."""
    if _attack(parts).algorithm == "decision":
        return decision_attacks(model, parts)
    space = attack_space.space_of(model, parts)
    shape = attack_space.attackable(parts[0].input).array.shape
    origin = devices.send(space.origin, model.device)
    values, units = (
        devices.send_floats(array, model.device)[origin] for array in (space.values, space.units)
    )
    ends = None if space.bounds is None else devices.send_floats(space.bounds, model.device)[:, origin]
    bounds = ChangeBounds(ends)
    scaled = bool((space.units != 1).any())
    decisions = Decisions(model.output, parts, origin)

    def scores(points: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        points = points * units[rows] if scaled else points
        return model.scores(points.reshape(len(points), *shape))

    free = _free(space, devices.send(space.sets, model.device))
    rows = decisions.rows(space.sets, origin)
    problem = _problem(values, free, bounds, rows, decisions=decisions, scores=scores)

    def kept(changes: Floats) -> tuple[Array, Floats]:
        return space.changes(changes, shape), space.norms(changes, problem.norm)

    return _attacked(model, problem, decisions, (len(values), *shape), kept)


def _free(space: attack_space.AttackSpace, sets: torch.Tensor) -> torch.Tensor:
    """Which values of each row may change."""
    if np.array_equal(space.owner[0], np.arange(sets.shape[1])) and (space.owner == space.owner[0]).all():
        return sets
    counts = np.bincount(space.origin).tolist()
    owner = devices.send(space.owner, sets.device)
    return torch.cat([own[:, owner[i]] for i, own in enumerate(torch.split(sets, counts))])


def token_attacks(model: TransformerModel, parts: Sequence[BatchPart]) -> Answer:
    """Attack the word embeddings of texts; those have no bounds."""
    if _attack(parts).algorithm == "decision":
        raise SettingError("`algorithm` must be 'projection' or 'pgd' for a text.")
    if any(part.input.tokens.lengths for part in parts):
        raise InputError(
            "A text that is read in windows cannot be attacked, as a word may be in two windows: wrap the "
            "model with long_texts='truncate'."
        )
    texts = padded(model, parts)
    with torch.no_grad():
        words = model.embed(texts.batch)
    sets, numbers = attack_space.sets_of(parts)
    origin = devices.send(numbers, model.device)
    owned = torch.nn.functional.pad(devices.send(sets, model.device), (0, 1))  # tokens of no feature
    free = owned.gather(1, texts.owner % (texts.n_features + 1))
    decisions = Decisions(model.output, parts, origin)
    known: dict[int, Any] = {}

    def scores(points: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        if id(rows) not in known:  # only when rows have left the batch
            known.clear()
            known[id(rows)] = rows, texts.batch.pick(rows.cpu().numpy())
        embedded = points.reshape(len(points), *words.shape[1:]).to(words.dtype)
        return model.answer(known[id(rows)][1], inputs_embeds=embedded)

    values, free = words.float().flatten(1), free[..., None].expand_as(words).flatten(1)
    rows = decisions.rows(sets, origin)
    problem = _problem(values, free, ChangeBounds(), rows, decisions=decisions, scores=scores)

    def kept(changes: Floats) -> tuple[Array, Floats]:
        owner = np.repeat(texts.owner.cpu().numpy(), words.shape[2], axis=1)
        norms = attack_space.norms_by_feature(changes, owner, texts.n_features, problem.norm)
        return changes.reshape(len(changes), *words.shape[1:]), norms

    return _attacked(model, problem, decisions, texts.batch.ids.shape, kept)


class Decisions:
    """The decisions that the rows of a batch attack, and the margins by which these stand, in logits."""

    def __init__(self, output: Output, parts: Sequence[BatchPart], origin: torch.Tensor) -> None:
        self._output, self.parts = output, parts
        asked = [part.question for part in parts]
        columns = [[own.decided, -1 if own.toward is None else own.toward] for own in asked]
        self._columns = devices.send(np.array(columns), origin.device)[origin]
        sides = np.array([output.side(own.prediction, own.decided) for own in asked], dtype=np.float32)
        self._sides = devices.send(sides, origin.device)[origin]

    def margins(self, scores: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """The margins (rows, rivals) of these scores (rows, columns), positive while a decision stands."""
        decided, toward = self._columns[rows].T[..., None]
        return self._output.margins(scores, decided, toward, self._sides[rows])

    def logits(self, scores: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """The logit (rows,) that must fall for each decision to change."""
        decided, toward = self._columns[rows].T[..., None]
        return self._output.decided_logits(scores, decided, toward, self._sides[rows])

    def rows(self, sets: Masks, origin: torch.Tensor) -> AttackedRows:
        """The rows that are attacked, and the points that they start from."""
        free = devices.send(np.flatnonzero(sets.any(axis=1)), origin.device)
        firsts = np.cumsum([0, *(len(part.rows) for part in self.parts[:-1])])
        rivals = max(self._rivals(part) for part in self.parts)
        return AttackedRows(free, origin, devices.send(firsts, origin.device), rivals)

    def _rivals(self, part: BatchPart) -> int:
        question: AttackRadii = part.question
        return min(question.rivals, self._output.n_rivals(len(question.prediction)))

    def add_first_passes(self, passes: Ints) -> None:
        """Add the passes that are made once for all sets of an input to those of its first set."""
        for part, own in zip(self.parts, split(passes, self.parts), strict=True):
            rivals = self._rivals(part)
            own[part.rows == 0] += (1 + rivals) * int(rivals > 0 and own.any())


def _attacked(
    model: ModuleModel | TransformerModel,
    problem: AttackProblem,
    decisions: Decisions,
    shape: Sequence[int],
    kept: Callable[[Floats], tuple[Array, Floats]],
) -> Answer:
    """Attack a batch of this shape; `kept` turns changes into what is returned of them, if wanted."""
    attack = _attack(decisions.parts)

    def run() -> torch.Tensor:
        with frozen(model.module):
            if attack.descends:
                found = pgd(problem, attack.n_steps, attack.max_radius, attack.tolerance)
            else:
                found = projection(problem, attack.n_steps)
        return torch.cat([found.radii[:, None], found.passes[:, None].float(), found.changes], dim=1)

    with model.evaluating(shape):
        answer = devices.run(model.device, run, gradients=True)

    def outputs() -> Any:
        rows = answer.outputs()
        passes = rows[:, 1].astype(np.int64)
        decisions.add_first_passes(passes)
        changes, norms = kept(rows[:, 2:]) if rows.shape[1] > 2 else (None, None)
        return rows[:, 0].astype(np.float64), passes, changes, norms

    return Answer(outputs, answer.seconds, answer.done)


def _attack(parts: Sequence[BatchPart]) -> Attack:
    return parts[0].question.attack  # type: ignore[no-any-return]


def _problem(
    values: torch.Tensor,
    free: torch.Tensor,
    bounds: ChangeBounds,
    rows: AttackedRows,
    *,
    decisions: Decisions,
    scores: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> AttackProblem:
    """The problem of attacking these values, with the model's scores of points and of their rows' numbers."""
    attack, keep = _attack(decisions.parts), decisions.parts[0].question.keep_changes

    def margins(points: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        return decisions.margins(scores(points, numbers), numbers)

    def descended(points: torch.Tensor, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = scores(points, numbers)
        return decisions.margins(found, numbers), decisions.logits(found, numbers)

    own = descended if attack.algorithm == "pgd-logit" else None
    return AttackProblem(values, free, bounds, margins, rows, attack.norm, keep, own)

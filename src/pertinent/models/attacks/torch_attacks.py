"""Attacks on torch models: on values of images and table rows, and on embeddings of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from pertinent.array_types import Array, Floats, Masks
from pertinent.asks import BatchPart
from pertinent.asks.base import split
from pertinent.errors import InputError, SettingError
from pertinent.models.attacks.attack_space import (
    AttackSpace,
    norms_by_feature,
    require_numbers,
    sets_and_origins,
)
from pertinent.models.attacks.decision_attack import decision_attacks
from pertinent.models.attacks.gradient_attacks import AttackProblem, ChangeBounds, pgd, projection
from pertinent.models.base import Answer
from pertinent.models.gradients.base import frozen
from pertinent.models.gradients.token_gradients import pad_texts
from pertinent.models.torch import devices

if TYPE_CHECKING:
    from pertinent.models.module import ModuleModel
    from pertinent.models.transformer import TransformerModel


def array_attacks(model: ModuleModel, parts: Sequence[BatchPart]) -> Answer:
    """Attack the values of images or table rows of equal shape."""
    attack = parts[0].question.attack
    if attack.algorithm == "decision":
        return decision_attacks(model, parts)
    space = AttackSpace.from_parts(model, parts)
    shape = require_numbers(parts[0].input).array.shape
    origin = devices.send(space.origin, model.device)
    values, units = (
        devices.send_floats(array, model.device)[origin] for array in (space.values, space.units)
    )
    ends = None if space.bounds is None else devices.send_floats(space.bounds, model.device)[:, origin]
    is_scaled = bool((space.units != 1).any())

    def scores(points: Tensor, rows: Tensor) -> Tensor:
        points = points * units[rows] if is_scaled else points
        return model.scores(points.reshape(len(points), *shape))

    def convert(changes: Floats) -> tuple[Array, Floats]:
        return space.changes(changes, shape), space.norms(changes, attack.norm)

    free, batch_shape = _free(space, devices.send(space.sets, model.device)), (len(values), *shape)
    bounds, sets = ChangeBounds(ends), space.sets
    return _attack(
        model, parts, sets, values, free, scores=scores, convert=convert, shape=batch_shape, bounds=bounds
    )


def _free(space: AttackSpace, sets: Tensor) -> Tensor:
    """Return which values of each row may change."""
    if np.array_equal(space.owner[0], np.arange(sets.shape[1])) and (space.owner == space.owner[0]).all():
        return sets
    counts = np.bincount(space.origin).tolist()
    owner = devices.send(space.owner, sets.device)
    return torch.cat([part[:, owner[i]] for i, part in enumerate(torch.split(sets, counts))])


def token_attacks(model: TransformerModel, parts: Sequence[BatchPart]) -> Answer:
    """Attack the word embeddings of texts, which have no bounds."""
    attack = parts[0].question.attack
    if attack.algorithm == "decision":
        raise SettingError("`algorithm` must be 'projection' or 'pgd' for a text.")
    if any(part.input.tokens.lengths for part in parts):
        raise InputError(
            "A text that is read in windows cannot be attacked, because a word may be in two windows: wrap "
            "the model with long_texts='truncate'."
        )
    texts = pad_texts(model, parts)
    with torch.no_grad():
        words = model.embed(texts.batch)
    sets, _ = sets_and_origins(parts)
    padded_sets = torch.nn.functional.pad(
        devices.send(sets, model.device), (0, 1)
    )  # column for tokens without a feature
    free = padded_sets.gather(1, texts.owner % (texts.n_features + 1))
    batches: dict[int, Any] = {}

    def scores(points: Tensor, rows: Tensor) -> Tensor:
        if id(rows) not in batches:  # the first call, or rows have left the batch
            batches.clear()
            batches[id(rows)] = rows, texts.batch[rows.cpu().numpy()]
        embedded = points.reshape(len(points), *words.shape[1:]).to(words.dtype)
        return model.answer(batches[id(rows)][1], inputs_embeds=embedded)

    def convert(changes: Floats) -> tuple[Array, Floats]:
        owner = np.repeat(texts.owner.cpu().numpy(), words.shape[2], axis=1)
        norms = norms_by_feature(changes, owner, texts.n_features, attack.norm)
        return changes.reshape(len(changes), *words.shape[1:]), norms

    values, free = words.float().flatten(1), free[..., None].expand_as(words).flatten(1)
    shape = texts.batch.ids.shape
    return _attack(model, parts, sets, values, free, scores=scores, convert=convert, shape=shape)


def _attack(
    model: ModuleModel | TransformerModel,
    parts: Sequence[BatchPart],
    sets: Masks,
    values: Tensor,
    free: Tensor,
    *,
    scores: Callable[[Tensor, Tensor], Tensor],
    convert: Callable[[Floats], tuple[Array, Floats]],
    shape: Sequence[int],
    bounds: ChangeBounds | None = None,
) -> Answer:
    """Attack the free values (rows, values) of a batch.

    Parameters
    ----------
    scores
        A function of points and the indices of their rows that returns the model's scores (points, columns).
    convert
        A function of changes (rows, values) that returns them in the shape of inputs, and the norms of their
        parts.
    shape
        The shape of the batch.
    """
    questions, output, device = [part.question for part in parts], model.output, values.device
    attack, counts = questions[0].attack, [len(part.rows) for part in parts]
    origin = devices.send(np.repeat(np.arange(len(parts)), counts), device)
    columns = [[q.decided, -1 if q.toward is None else q.toward] for q in questions]
    decisions = devices.send(np.array(columns), device)[origin]
    sides = [output.side(q.prediction, q.decided) for q in questions]
    row_sides = devices.send(np.array(sides, dtype=np.float32), device)[origin]
    n_rivals = [min(q.rivals, output.n_rivals(len(q.prediction))) for q in questions]

    def decision(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        decided, toward = decisions[rows].T[..., None]
        return decided, toward, row_sides[rows]

    def margins(points: Tensor, rows: Tensor) -> Tensor:
        return output.margins(scores(points, rows), *decision(rows))

    def margins_and_logits(points: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        answers = scores(points, rows)
        return output.margins(answers, *decision(rows)), output.decided_logits(answers, *decision(rows))

    problem = AttackProblem(
        values,
        free,
        bounds or ChangeBounds(),
        margins,
        attacked=devices.send(np.flatnonzero(sets.any(axis=1)), device),
        origin=origin,
        firsts=devices.send(np.cumsum([0, *counts[:-1]]), device),
        n_rivals=max(n_rivals),
        norm=attack.norm,
        keep=questions[0].keep_changes,
        descended=margins_and_logits if attack.algorithm == "pgd-logit" else None,
    )

    def run() -> Tensor:
        with frozen(model.module):
            if attack.descends:
                result = pgd(problem, attack.n_steps, attack.max_radius, attack.tolerance)
            else:
                result = projection(problem, attack.n_steps)
        return torch.cat([result.radii[:, None], result.passes[:, None].float(), result.changes], dim=1)

    with model.evaluating(shape):
        answer = devices.run(model.device, run, gradients=True)

    def outputs() -> Any:
        rows = answer.outputs()
        passes = rows[:, 1].astype(np.int64)
        for part, n, part_passes in zip(parts, n_rivals, split(passes, parts), strict=True):
            # The passes of the first step, which all sets of an input share, count for its first set.
            part_passes[part.rows == 0] += (1 + n) * int(n > 0 and part_passes.any())
        changes, norms = convert(rows[:, 2:]) if rows.shape[1] > 2 else (None, None)
        return rows[:, 0].astype(np.float64), passes, changes, norms

    return Answer(outputs, answer.seconds, answer.done)

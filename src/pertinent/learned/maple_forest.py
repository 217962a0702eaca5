"""Growing the forest of MAPLE, and choosing the columns of its linear models."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pertinent._optional import optional
from pertinent.array_types import Array, Floats, Ints
from pertinent.digests import generator
from pertinent.learned.methods.maple import LearnsMaple
from pertinent.learned.networks.fitted_network import device_of
from pertinent.learned.networks.forest_scorer import ForestScorer
from pertinent.learned.training_data import Lessons
from pertinent.models.base import Model

MEASURED = 500
"""At most so many dev inputs decide how many columns are used."""


def fit_forest(
    learner: LearnsMaple, model: Model, data: Lessons, dev: Lessons, seed: int
) -> tuple[ForestScorer, dict[str, Any]]:
    """A forest grown on `data`, with as many columns as predict best of `dev`; and what came of it."""
    dev = dev.pick(np.arange(min(len(dev), MEASURED)))
    answers, wanted = (np.array([lesson["predictions"] for lesson in own.lessons]) for own in (data, dev))
    scorer = ForestScorer.of(model, data.inputs, answers.shape[1])
    rows, held_out = (_encoded(scorer, model, own) for own in (data, dev))
    forest = optional("sklearn.ensemble").RandomForestRegressor(
        n_estimators=learner.trees,
        min_samples_leaf=learner.leaf,
        max_features=learner.share,
        random_state=int(generator(seed, "forest").integers(2**32)),
    )
    # Splits are chosen among a share of the numbers, to which those that are always the same do not belong.
    varying = np.flatnonzero(np.ptp(rows, axis=0))
    varying = varying if len(varying) else np.arange(1)
    forest.fit(rows[:, varying], answers[:, 0] if answers.shape[1] == 1 else answers)
    trees = [estimator.tree_ for estimator in forest.estimators_]
    order = np.argsort(-_importance(trees, scorer.owner.numpy()[varying], len(scorer.columns)), kind="stable")
    arrays = _planted(trees, varying) | {"leaves": forest.apply(rows[:, varying]), "answers": answers}
    depth = max(tree.max_depth for tree in trees)

    def plant(n: int) -> None:
        """Use the n most important columns."""
        used = np.isin(scorer.owner.numpy(), order[:n])
        whole = arrays | {"rows": rows[:, used].astype(np.float64), "used": used}
        tensors = {name: torch.from_numpy(np.ascontiguousarray(each)) for name, each in whole.items()}
        scorer.plant(tensors, depth=depth, alpha=learner.alpha)

    plant(len(order))
    around = torch.from_numpy(held_out).double()
    weights = scorer.weights(around)
    losses = []
    for n in range(1, len(order) + 1):
        plant(n)
        predicted = scorer.local(around, weights)[1].numpy()
        losses.append(float(((predicted - wanted) ** 2).mean()))
    best = int(np.argmin(losses))
    plant(best + 1)
    names = [scorer.columns[place].name for place in order[: best + 1]]
    done = {"trees": learner.trees, "used": names, "dev_loss": losses[best]}
    return scorer.to(device_of(model)).eval(), done


def _encoded(scorer: ForestScorer, model: Model, data: Lessons) -> Array:
    return np.asarray(scorer.read(model, data.inputs).arrays["encoded"])


def _importance(trees: list[Any], owner: Ints, n_columns: int) -> Floats:
    """DStump: by how much the root of each tree lowers the impurity, added up by column."""
    found = np.zeros(n_columns)
    for tree in trees:
        below = [tree.children_left[0], tree.children_right[0]]
        if below[0] < 0:
            continue
        share = tree.weighted_n_node_samples[below] / tree.weighted_n_node_samples[0]
        found[owner[tree.feature[0]]] += tree.impurity[0] - share @ tree.impurity[below]
    return found


def _planted(trees: list[Any], varying: Ints) -> dict[str, Array]:
    """The nodes of all trees as arrays (trees, nodes, …), where a leaf follows itself."""
    n = max(tree.node_count for tree in trees)
    itself = np.arange(n)
    numbers, thresholds = np.zeros((len(trees), n), dtype=np.int64), np.zeros((len(trees), n))
    branches = np.tile(itself[None, :, None], (len(trees), 1, 2))
    for place, tree in enumerate(trees):
        inner = np.flatnonzero(tree.children_left >= 0)
        numbers[place, inner], thresholds[place, inner] = varying[tree.feature[inner]], tree.threshold[inner]
        branches[place, inner] = np.stack([tree.children_left[inner], tree.children_right[inner]], axis=1)
    return {"numbers": numbers, "thresholds": thresholds, "branches": branches}

"""MAPLE's forest, which weights training rows for a linear model around an input, and its training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pertinent._optional import optional
from pertinent.array_types import Array, Floats, Ints
from pertinent.config.fingerprints import generator
from pertinent.learners.networks.scorer import device_of
from pertinent.learners.networks.table_scorer import EncodedColumn, RowScorer
from pertinent.models.base import Model

if TYPE_CHECKING:
    from typing import Self

    from pertinent.learners.methods.maple import MapleLearner
    from pertinent.learners.network_trainer import TrainingExamples

MEASURED = 500
"""Largest number of validation rows used to choose the number of columns."""

_BUFFERS = {
    "numbers": torch.int64,
    "thresholds": torch.float64,
    "branches": torch.int64,
    "leaves": torch.int64,
    "rows": torch.float64,
    "answers": torch.float64,
    "used": torch.bool,
}


class ForestScorer(RowScorer):
    """Scores columns by the coefficients of a linear model fitted to the training rows around each input.

    The weight of a training row is Σ 1 / (rows in the leaf) over the trees where it shares the input's leaf.
    The score of a number is its coefficient per standard deviation; the score of a category is the
    coefficient of the row's category.

    Attributes
    ----------
    numbers, thresholds, branches
        For each node (trees, nodes): the index of the number to compare, its threshold, and the next nodes
        (trees, nodes, 2) for a number that is not larger and one that is; a leaf is its own next node.
    leaves
        Leaf of each training row (rows, trees).
    rows, answers
        The encoded training rows, and the model's answers to them (rows, columns).
    used
        Indices of the encoded numbers that the linear model uses.
    depth
        Number of steps after which every tree has reached a leaf.
    owner
        Column that each encoded number belongs to.
    alpha
        Ridge penalty of the linear model.
    """

    kind = "forest"
    numbers: torch.Tensor
    thresholds: torch.Tensor
    branches: torch.Tensor
    leaves: torch.Tensor
    rows: torch.Tensor
    answers: torch.Tensor
    used: torch.Tensor

    def __init__(self, n_columns: int, columns: Sequence[EncodedColumn]) -> None:
        super().__init__(n_columns, columns)
        widths = torch.tensor([column.width for column in columns])
        self.owner = torch.arange(len(columns)).repeat_interleave(widths)
        first = widths.cumsum(0) - widths
        is_number = torch.tensor([column.categories is None for column in columns])
        self._numeric = first[is_number]
        self.plant({name: torch.zeros(0, dtype=dtype) for name, dtype in _BUFFERS.items()}, 0, 0.0)

    def plant(self, arrays: Mapping[str, torch.Tensor], depth: int, alpha: float) -> None:
        """Set the forest; `arrays` are the attributes, by name."""
        self.depth, self.alpha = depth, alpha
        for name, array in arrays.items():
            self.register_buffer(name, array)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], n_columns: int) -> Self:
        """Create a forest of the same size."""
        forest = super().from_config(config, n_columns)
        sizes = config["sizes"].items()
        arrays = {name: torch.zeros(size, dtype=_BUFFERS[name]) for name, size in sizes}
        forest.plant(arrays, config["depth"], config["alpha"])
        forest.register_load_state_dict_post_hook(_check_nodes)  # type: ignore[no-untyped-call]
        return forest

    def configuration(self) -> dict[str, Any]:
        """Return the columns and the size of the forest."""
        sizes = {name: list(buffer.shape) for name, buffer in self.named_buffers() if name != "deviation"}
        return {**super().configuration(), "depth": self.depth, "alpha": self.alpha, "sizes": sizes}

    def forward(self, **options: Any) -> torch.Tensor:
        """Return coefficients (rows, table columns, model columns)."""
        encoded = options["encoded"].double()
        slopes: torch.Tensor = encoded.new_zeros(len(encoded), len(self.owner), len(self.deviation))
        slopes[:, self.used] = self.local(encoded, self.weights(encoded))[0]
        selected = (
            encoded.clone()
        )  # for categories and missing numbers, only the row's own coefficient counts
        selected[:, self._numeric] = 1 - encoded[:, self._numeric + 1]
        owner = self.owner.to(encoded.device)[None, :, None].expand_as(slopes)
        scores = slopes.new_zeros(len(encoded), len(self.columns), len(self.deviation))
        return scores.scatter_add(1, owner, slopes * selected[..., None])

    def local(
        self, encoded: torch.Tensor, weights: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the linear model's coefficients (rows, used, columns) around each row, and predictions."""
        equations = [self._normal_equations(row) for row in weights]
        matrix, right, centre, mean = map(torch.stack, zip(*equations, strict=True))
        penalty = self.alpha * torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        slopes = torch.linalg.solve(matrix + penalty, right)
        offset = encoded[:, self.used] - centre
        return slopes, mean + (offset[:, None] @ slopes)[:, 0]

    def weights(self, encoded: torch.Tensor) -> list[torch.Tensor]:
        """Return the weights of the training rows around each row."""
        weights = []
        for leaves in self.leaves_of(encoded):  # one by one: there may be many training rows
            is_shared = (self.leaves == leaves).to(encoded.dtype)
            weights.append(is_shared @ (1 / is_shared.sum(dim=0)))
        return weights

    def _normal_equations(self, weights: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return XᵀWX and XᵀWy, centred by weighted means, and the means."""
        near = weights > 0
        rows, answers, weights = self.rows[near], self.answers[near], weights[near]
        centre, mean = weights @ rows / weights.sum(), weights @ answers / weights.sum()
        offsets = rows - centre
        weighted = (offsets * weights[:, None]).T
        return weighted @ offsets, weighted @ (answers - mean), centre, mean

    def leaves_of(self, encoded: torch.Tensor) -> torch.Tensor:
        """Return the leaf of each row in each tree (rows, trees)."""
        tree = torch.arange(len(self.numbers), device=encoded.device)
        node = torch.zeros(len(encoded), len(tree), dtype=torch.int64, device=encoded.device)
        for _ in range(self.depth):
            value = encoded.gather(1, self.numbers[tree, node])
            node = self.branches[tree, node, (value > self.thresholds[tree, node]).long()]
        return node


def _check_nodes(scorer: ForestScorer, _: Any) -> None:
    """Raise an error if a loaded forest refers to nonexistent nodes or numbers."""
    for name, indices, n in (
        ("numbers", scorer.numbers, len(scorer.owner)),
        ("branches", scorer.branches, scorer.numbers.shape[1]),
    ):
        if len(indices) and not bool(((indices >= 0) & (indices < n)).all()):
            raise ValueError(f"its {name} must be from 0 to {n - 1}")


def grow_forest(
    learner: MapleLearner, model: Model, training: TrainingExamples, validation: TrainingExamples, seed: int
) -> tuple[ForestScorer, dict[str, Any]]:
    """Grow a forest on the training rows, and choose the columns that best predict the validation rows."""
    validation = validation.pick(np.arange(min(len(validation), MEASURED)))
    both = training, validation
    answers, expected = (np.array([t["predictions"] for t in part.targets]) for part in both)
    scorer = ForestScorer.from_model(model, training.inputs, answers.shape[1])
    rows, held_out = (np.asarray(scorer.read(model, part.inputs).arrays["encoded"]) for part in both)
    forest = optional("sklearn.ensemble").RandomForestRegressor(
        n_estimators=learner.trees,
        min_samples_leaf=learner.leaf,
        max_features=learner.share,
        random_state=int(generator(seed, "forest").integers(2**32)),
    )
    # Splits are chosen among a share of the numbers, so constant numbers must be excluded.
    varying = np.flatnonzero(np.ptp(rows, axis=0))
    varying = varying if len(varying) else np.arange(1)
    forest.fit(rows[:, varying], answers[:, 0] if answers.shape[1] == 1 else answers)
    trees = [estimator.tree_ for estimator in forest.estimators_]
    order = np.argsort(-_importance(trees, scorer.owner.numpy()[varying], len(scorer.columns)), kind="stable")
    arrays = _node_arrays(trees, varying) | {"leaves": forest.apply(rows[:, varying]), "answers": answers}
    depth = max(tree.max_depth for tree in trees)

    def plant(n: int) -> None:
        """Make the linear model use the n most important columns."""
        used = np.isin(scorer.owner.numpy(), order[:n])
        used_arrays = arrays | {"rows": rows[:, used].astype(np.float64), "used": used}
        tensors = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in used_arrays.items()}
        scorer.plant(tensors, depth, learner.alpha)

    plant(len(order))
    around = torch.from_numpy(held_out).double()
    weights = scorer.weights(around)
    losses = []
    for n in range(1, len(order) + 1):
        plant(n)
        predicted = scorer.local(around, weights)[1].numpy()
        losses.append(float(((predicted - expected) ** 2).mean()))
    best = int(np.argmin(losses))
    plant(best + 1)
    names = [scorer.columns[column].name for column in order[: best + 1]]
    card = {"trees": learner.trees, "used": names, "dev_loss": losses[best]}
    return scorer.to(device_of(model)).eval(), card


def _importance(trees: list[Any], owner: Ints, n_columns: int) -> Floats:
    """Return the decrease of impurity at the root of each tree, summed by column (DStump)."""
    decrease = np.zeros(n_columns)
    for tree in trees:
        children = [tree.children_left[0], tree.children_right[0]]
        if children[0] >= 0:
            share = tree.weighted_n_node_samples[children] / tree.weighted_n_node_samples[0]
            decrease[owner[tree.feature[0]]] += tree.impurity[0] - share @ tree.impurity[children]
    return decrease


def _node_arrays(trees: list[Any], varying: Ints) -> dict[str, Array]:
    """Return the nodes of all trees as arrays (trees, nodes, …); a leaf is its own next node."""
    n = max(tree.node_count for tree in trees)
    numbers, thresholds = np.zeros((len(trees), n), dtype=np.int64), np.zeros((len(trees), n))
    branches = np.tile(np.arange(n)[None, :, None], (len(trees), 1, 2))
    for t, tree in enumerate(trees):
        inner = np.flatnonzero(tree.children_left >= 0)
        numbers[t, inner], thresholds[t, inner] = varying[tree.feature[inner]], tree.threshold[inner]
        branches[t, inner] = np.stack([tree.children_left[inner], tree.children_right[inner]], axis=1)
    return {"numbers": numbers, "thresholds": thresholds, "branches": branches}

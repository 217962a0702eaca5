"""The trees of fitted estimators of scikit-learn, xgboost, lightgbm and catboost as arrays of nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.errors import ModelError

LEAF = -1
"""The child of a leaf."""


@dataclass(frozen=True, eq=False)
class Tree:
    """The nodes of one tree, its root first.

    A row goes left if its number in `column` is at most `threshold`, or is one of `categories` at a node that
    has some; if it is missing (NaN), where `missing_left`. `values` (nodes, outputs) are read at leaves.
    """

    left: Ints
    right: Ints
    column: Ints
    threshold: Floats
    missing_left: Masks
    values: Floats
    categories: Mapping[int, Iterable[int]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees whose leaves are summed and added to an `offset` (outputs,).

    `clean` turns a row of numbers into the one that the nodes compare: rounded as the estimator rounds, with
    NaN where the estimator takes a value for a missing one.
    """

    trees: Sequence[Tree]
    offset: Floats
    clean: Callable[[Floats], Floats]


NO_TREES = "{} has no trees that are known here: use a method that asks for values."


def read_forest(estimator: Any) -> Forest:
    """The trees of a fitted estimator; a `ModelError` if they cannot be read."""
    reader = next((own for attribute, own in _READERS.items() if hasattr(estimator, attribute)), None)
    name = type(estimator).__name__
    if reader is None:
        raise ModelError(NO_TREES.format(name))
    try:
        return reader(estimator)
    except Exception as error:  # whatever a library of another version raises
        said = next(iter(str(error).splitlines()), "")
        raise ModelError(
            f"The trees of this {name} cannot be read: use a method that asks for values, such as "
            f"kernel-shap. ({type(error).__name__}: {said})"
        ) from error


def has_trees(estimator: Any) -> bool:
    """Whether an estimator seems to have trees."""
    return any(hasattr(estimator, attribute) for attribute in _READERS)


def _rounded(rows: Floats) -> Floats:
    """In float32, as scikit-learn's trees and xgboost compare."""
    return rows.astype(np.float32).astype(np.float64)


def _sklearn_tree(tree: Any, values: Floats) -> Tree:
    missing = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count))
    return Tree(
        tree.children_left, tree.children_right, tree.feature, tree.threshold, missing.astype(bool), values
    )


def _read_forest(estimator: Any) -> Forest:
    """scikit-learn's single trees and means of trees: class fractions, those of true labels, or values."""
    own = getattr(estimator, "estimators_", None)
    if isinstance(own, np.ndarray):
        return _read_gradient_boosting(estimator)
    trees = []
    for each in own or [estimator]:
        values = each.tree_.value
        if hasattr(estimator, "classes_"):
            values = values / values.sum(axis=2, keepdims=True)
            values = values[:, 0] if values.shape[1] == 1 else values[:, :, 1]
        else:
            values = values[:, :, 0]
        trees.append(_sklearn_tree(each.tree_, values / len(own or [estimator])))
    return Forest(trees, np.zeros(trees[0].values.shape[1]), _rounded)


def _read_gradient_boosting(estimator: Any) -> Forest:
    stages = estimator.estimators_
    trees = [
        _sklearn_tree(
            each.tree_, estimator.learning_rate * each.tree_.value[:, 0] * np.eye(stages.shape[1])[k]
        )
        for stage in stages
        for k, each in enumerate(stage)
    ]
    offset = estimator._raw_predict_init(np.zeros((1, estimator.n_features_in_), dtype=np.float32))[0]  # noqa: SLF001
    return Forest(trees, offset, _rounded)


def _read_hist_gradient_boosting(estimator: Any) -> Forest:
    known, place = estimator._bin_mapper.make_known_categories_bitsets()  # noqa: SLF001
    offset = estimator._baseline_prediction.ravel()  # noqa: SLF001
    remapped = estimator._is_categorical_remapped  # noqa: SLF001
    columns = [] if remapped is None else np.flatnonzero(remapped).tolist()
    categorical = {column: _members(known[place[column]]) for column in columns}
    trees = []
    for stage in estimator._predictors:  # noqa: SLF001
        for k, each in enumerate(stage):
            nodes, leaf = each.nodes, each.nodes["is_leaf"].astype(bool)
            trees.append(
                Tree(
                    np.where(leaf, LEAF, nodes["left"].astype(np.int64)),
                    np.where(leaf, LEAF, nodes["right"].astype(np.int64)),
                    nodes["feature_idx"].astype(np.int64),
                    nodes["num_threshold"],
                    nodes["missing_go_to_left"].astype(bool),
                    nodes["value"][:, None] * np.eye(len(offset))[k],
                    {
                        node: _members(each.raw_left_cat_bitsets[nodes["bitset_idx"][node]])
                        for node in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf).tolist()
                    },
                )
            )

    def clean(rows: Floats) -> Floats:
        rows = rows.copy()
        for column, own in categorical.items():
            rows[~np.isin(rows[:, column], own), column] = np.nan
        return rows

    return Forest(trees, offset, clean)


def _members(bits: Array) -> list[int]:
    """The numbers whose bits are set, 32 of them in each word."""
    return [32 * i + b for i, word in enumerate(bits.tolist()) for b in range(32) if word >> b & 1]


def _read_xgboost(estimator: Any) -> Forest:
    """Left are values below the threshold, and categories that are not listed."""
    import xgboost

    booster = estimator.get_booster()
    model = json.loads(booster.save_raw("json"))["learner"]
    boosting = model["gradient_booster"]
    weights = boosting.get("weight_drop")
    boosting = boosting.get("gbtree", boosting)["model"]
    n_features = int(model["learner_model_param"]["num_feature"])
    end = getattr(booster, "best_iteration", None) if booster.attr("best_iteration") else None
    end = booster.num_boosted_rounds() if end is None else end + 1
    missing = estimator.missing
    zeros = xgboost.DMatrix(
        np.zeros((1, n_features)),
        missing=missing,
        feature_types=booster.feature_types,
        enable_categorical=True,
    )
    at_zero = booster.predict(zeros, output_margin=True, validate_features=False, iteration_range=(0, end))
    n_outputs = at_zero.size
    trees = []
    for number in range(boosting["iteration_indptr"][end]):
        own = boosting["trees"][number]
        left, right = np.array(own["left_children"]), np.array(own["right_children"])
        conditions = np.array(own["split_conditions"], dtype=np.float32)
        starts = zip(own["categories_segments"], own["categories_sizes"], strict=True)
        listed = [own["categories"][first : first + size] for first, size in starts]
        categories = dict(zip(own["categories_nodes"], listed, strict=True))
        missing_left = np.array(own["default_left"], dtype=bool)
        swapped = list(categories)
        left[swapped], right[swapped] = right[swapped], left[swapped]
        missing_left[swapped] = ~missing_left[swapped]
        weight = 1.0 if weights is None else weights[number]
        values = (
            weight * conditions.astype(np.float64)[:, None] * np.eye(n_outputs)[boosting["tree_info"][number]]
        )
        below = np.nextafter(conditions, np.float32(-np.inf)).astype(np.float64)
        trees.append(
            Tree(left, right, np.array(own["split_indices"]), below, missing_left, values, categories)
        )

    def clean(rows: Floats) -> Floats:
        rows = _rounded(rows)
        return rows if np.isnan(missing) else np.where(rows == np.float32(missing), np.nan, rows)

    reached = sum(_leaf_of(tree, clean(np.zeros((1, n_features)))[0]) for tree in trees)
    return Forest(trees, at_zero.astype(np.float64).ravel() - reached, clean)


def _leaf_of(tree: Tree, row: Floats) -> Floats:
    """The values of the leaf that one row falls into."""
    node = 0
    while tree.left[node] != LEAF:
        value = row[tree.column[node]]
        if np.isnan(value):
            left = tree.missing_left[node]
        elif node in tree.categories:
            left = value in tree.categories[node]
        else:
            left = value <= tree.threshold[node]
        node = int(tree.left[node] if left else tree.right[node])
    return np.asarray(tree.values[node])


def _read_lightgbm(estimator: Any) -> Forest:
    model = estimator.booster_.dump_model()
    per_round = model["num_tree_per_iteration"]
    scale = per_round / len(model["tree_info"]) if model["average_output"] else 1.0
    zero_missing: set[int] = set()
    trees = [
        _lightgbm_tree(own["tree_structure"], scale * np.eye(per_round)[k % per_round], zero_missing)
        for k, own in enumerate(model["tree_info"])
    ]

    def clean(rows: Floats) -> Floats:
        rows = rows.copy()
        for column in zero_missing:
            rows[np.abs(rows[:, column]) <= 1e-35, column] = np.nan
        return rows

    return Forest(trees, np.zeros(per_round), clean)


def _lightgbm_tree(root: Any, output: Floats, zero_missing: set[int]) -> Tree:
    """One tree; the columns whose zeros it takes for missing are added to `zero_missing`."""
    nodes = [root]
    children, categories = [], {}
    column, threshold, missing_left, values = [], [], [], []
    for number, node in enumerate(nodes):  # grows
        values.append(node.get("leaf_value", 0.0))
        column.append(node.get("split_feature", 0))
        if "left_child" not in node:
            children.append((LEAF, LEAF))
            threshold.append(0.0)
            missing_left.append(False)
            continue
        children.append((len(nodes), len(nodes) + 1))
        nodes += [node["left_child"], node["right_child"]]
        if node["decision_type"] == "==":
            categories[number] = [int(own) for own in str(node["threshold"]).split("||")]
            threshold.append(0.0)
            missing_left.append(False)
            continue
        threshold.append(node["threshold"])
        # without missing values in training, NaN is taken for 0
        unseen = node["missing_type"] == "None"
        missing_left.append(node["threshold"] >= 0 if unseen else node["default_left"])
        if node["missing_type"] == "Zero":
            zero_missing.add(node["split_feature"])
    left, right = np.array(children).T
    return Tree(
        left,
        right,
        np.array(column),
        np.array(threshold, dtype=np.float64),
        np.array(missing_left, dtype=bool),
        np.array(values)[:, None] * output,
        categories,
    )


def _read_catboost(estimator: Any) -> Forest:
    """Symmetric trees over columns of numbers; left are those at most the border."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        estimator.save_model(str(path), format="json")
        model = json.loads(path.read_text())
    if model["features_info"].get("categorical_features"):
        raise ModelError("categorical features of catboost are statistics of several rows")
    scale, bias = model["scale_and_bias"]
    offset = np.asarray(bias, dtype=np.float64).ravel()
    missing = [own["nan_value_treatment"] == "AsFalse" for own in model["features_info"]["float_features"]]
    flat = [own["flat_feature_index"] for own in model["features_info"]["float_features"]]
    trees = []
    for own in model["oblivious_trees"]:
        splits = own["splits"] or []
        n = 2 ** len(splits)
        values = scale * np.array(own["leaf_values"], dtype=np.float64).reshape(n, -1)
        # node i of level l is 2^l - 1 + i; the last split has the highest bit of a leaf's number
        inner = np.arange(n - 1)
        level = np.log2(inner + 1).astype(int)
        used = [splits[len(splits) - 1 - own] for own in level.tolist()]
        index = [split["float_feature_index"] for split in used]
        nothing = np.zeros(n, dtype=np.int64)
        trees.append(
            Tree(
                np.concatenate([2 * inner + 1, nothing + LEAF]),
                np.concatenate([2 * inner + 2, nothing + LEAF]),
                np.concatenate([np.array([flat[i] for i in index], dtype=np.int64), nothing]),
                np.concatenate([np.array([split["border"] for split in used], dtype=np.float64), nothing]),
                np.concatenate([np.array([missing[i] for i in index], dtype=bool), nothing.astype(bool)]),
                np.concatenate([np.zeros((n - 1, values.shape[1])), values]),
            )
        )
    return Forest(trees, offset, _rounded)


_READERS: dict[str, Callable[[Any], Forest]] = {
    "_predictors": _read_hist_gradient_boosting,
    "get_booster": _read_xgboost,
    "booster_": _read_lightgbm,
    "calc_leaf_indexes": _read_catboost,
    "tree_": _read_forest,
    "estimators_": _read_forest,
}
"""How to read the trees of an estimator with this attribute."""

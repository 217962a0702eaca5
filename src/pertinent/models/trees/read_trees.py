"""Reads the trees of fitted scikit-learn, xgboost, lightgbm and catboost estimators as arrays of nodes."""

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
"""Child index of a leaf."""

NO_TREES = "{} has no supported trees: use a model-agnostic method, such as kernel-shap."


@dataclass(frozen=True, eq=False)
class Tree:
    """The nodes of one tree, root first.

    A row goes left if its number in `column` is at most `threshold`, or at a node with `categories` if it is
    one of these; a missing value (NaN) goes left if `missing_left`.

    Attributes
    ----------
    left, right
        Children of each node.
    column, threshold, missing_left
        Condition of each node.
    values
        Values (nodes, outputs); only those at leaves are used.
    categories
        Categories of the nodes that have them.
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
    """Trees whose leaf values are summed.

    Attributes
    ----------
    trees
        The trees.
    offset
        Constant added to the sum (outputs,).
    clean
        Function that converts rows to the numbers compared by the nodes: rounded as the estimator does, with
        NaN for values that the estimator considers missing.
    """

    trees: Sequence[Tree]
    offset: Floats
    clean: Callable[[Floats], Floats]


def read_forest(estimator: Any) -> Forest:
    """Return the trees of a fitted estimator; raise a `ModelError` if they cannot be read."""
    reader = next((read for attribute, read in _READERS.items() if hasattr(estimator, attribute)), None)
    name = type(estimator).__name__
    if reader is None:
        raise ModelError(NO_TREES.format(name))
    try:
        return reader(estimator)
    except Exception as error:  # other versions of a library may raise any error
        message = next(iter(str(error).splitlines()), "")
        raise ModelError(
            f"The trees of this {name} cannot be read: use a model-agnostic method, such as "
            f"kernel-shap. ({type(error).__name__}: {message})"
        ) from error


def has_trees(estimator: Any) -> bool:
    """Return whether an estimator appears to have trees."""
    return any(hasattr(estimator, attribute) for attribute in _READERS)


def _round(rows: Floats) -> Floats:
    """Round to float32, as scikit-learn's trees and xgboost do."""
    return rows.astype(np.float32).astype(np.float64)


def _sklearn_tree(tree: Any, values: Floats) -> Tree:
    missing_left = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count)).astype(bool)
    children = tree.children_left, tree.children_right
    return Tree(*children, tree.feature, tree.threshold, missing_left, values)


def _read_sklearn(estimator: Any) -> Forest:
    """Read single trees and averaged trees: class fractions, fractions of true labels, or values."""
    if isinstance(getattr(estimator, "estimators_", None), np.ndarray):
        return _read_gradient_boosting(estimator)
    members = getattr(estimator, "estimators_", None) or [estimator]
    trees = []
    for member in members:
        values = member.tree_.value
        if hasattr(estimator, "classes_"):
            values = values / values.sum(axis=2, keepdims=True)
            values = values[:, 0] if values.shape[1] == 1 else values[:, :, 1]
        else:
            values = values[:, :, 0]
        trees.append(_sklearn_tree(member.tree_, values / len(members)))
    return Forest(trees, np.zeros(trees[0].values.shape[1]), _round)


def _read_gradient_boosting(estimator: Any) -> Forest:
    outputs = np.eye(estimator.estimators_.shape[1])
    trees = [
        _sklearn_tree(member.tree_, estimator.learning_rate * member.tree_.value[:, 0] * outputs[k])
        for stage in estimator.estimators_
        for k, member in enumerate(stage)
    ]
    zeros = np.zeros((1, estimator.n_features_in_), dtype=np.float32)
    return Forest(trees, estimator._raw_predict_init(zeros)[0], _round)  # noqa: SLF001


def _read_hist_gradient_boosting(estimator: Any) -> Forest:
    bitsets, indices = estimator._bin_mapper.make_known_categories_bitsets()  # noqa: SLF001
    remapped = estimator._is_categorical_remapped  # noqa: SLF001
    columns = [] if remapped is None else np.flatnonzero(remapped).tolist()
    categories_of = {column: _members(bitsets[indices[column]]) for column in columns}
    offset = estimator._baseline_prediction.ravel()  # noqa: SLF001
    trees = [
        _hist_tree(member, np.eye(len(offset))[k])
        for stage in estimator._predictors  # noqa: SLF001
        for k, member in enumerate(stage)
    ]

    def clean(rows: Floats) -> Floats:
        rows = rows.copy()
        for column, categories in categories_of.items():
            rows[~np.isin(rows[:, column], categories), column] = np.nan
        return rows

    return Forest(trees, offset, clean)


def _hist_tree(predictor: Any, output: Floats) -> Tree:
    nodes, is_leaf = predictor.nodes, predictor.nodes["is_leaf"].astype(bool)
    left, right = (np.where(is_leaf, LEAF, nodes[side].astype(np.int64)) for side in ("left", "right"))
    return Tree(
        left,
        right,
        nodes["feature_idx"].astype(np.int64),
        nodes["num_threshold"],
        nodes["missing_go_to_left"].astype(bool),
        nodes["value"][:, None] * output,
        {
            node: _members(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]])
            for node in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~is_leaf).tolist()
        },
    )


def _members(bits: Array) -> list[int]:
    """Return the indices of the set bits; each word has 32 bits."""
    return [32 * i + b for i, word in enumerate(bits.tolist()) for b in range(32) if word >> b & 1]


def _read_xgboost(estimator: Any) -> Forest:
    """Read xgboost's trees: values below the threshold and unlisted categories go left."""
    import xgboost

    booster, missing = estimator.get_booster(), estimator.missing
    model = json.loads(booster.save_raw("json"))["learner"]
    boosting = model["gradient_booster"]
    tree_weights = boosting.get("weight_drop")
    boosting = boosting.get("gbtree", boosting)["model"]
    n_rounds = booster.best_iteration + 1 if booster.attr("best_iteration") else booster.num_boosted_rounds()
    zeros = xgboost.DMatrix(
        np.zeros((1, int(model["learner_model_param"]["num_feature"]))),
        missing=missing,
        feature_types=booster.feature_types,
        enable_categorical=True,
    )
    options = {"validate_features": False, "iteration_range": (0, n_rounds)}
    at_zeros = booster.predict(zeros, output_margin=True, **options).astype(np.float64).ravel()
    trees = []
    for number in range(boosting["iteration_indptr"][n_rounds]):
        nodes, output = boosting["trees"][number], np.eye(len(at_zeros))[boosting["tree_info"][number]]
        left, right = np.array(nodes["left_children"]), np.array(nodes["right_children"])
        missing_left = np.array(nodes["default_left"], dtype=bool)
        segments = zip(nodes["categories_segments"], nodes["categories_sizes"], strict=True)
        listed = [nodes["categories"][first : first + size] for first, size in segments]
        swapped = nodes["categories_nodes"]
        left[swapped], right[swapped] = right[swapped], left[swapped]
        missing_left[swapped] = ~missing_left[swapped]
        conditions = np.array(nodes["split_conditions"], dtype=np.float32)
        below = np.nextafter(conditions, np.float32(-np.inf)).astype(np.float64)
        weight = 1.0 if tree_weights is None else tree_weights[number]
        values = weight * conditions.astype(np.float64)[:, None] * output
        column, categories = np.array(nodes["split_indices"]), dict(zip(swapped, listed, strict=True))
        trees.append(Tree(left, right, column, below, missing_left, values, categories))

    def clean(rows: Floats) -> Floats:
        rows = _round(rows)
        return rows if np.isnan(missing) else np.where(rows == np.float32(missing), np.nan, rows)

    leaves = booster.predict(zeros, pred_leaf=True, **options).astype(np.int64).ravel()
    reached = sum(tree.values[leaf] for tree, leaf in zip(trees, leaves, strict=True))
    return Forest(trees, at_zeros - reached, clean)


def _read_lightgbm(estimator: Any) -> Forest:
    model = estimator.booster_.dump_model()
    per_round = model["num_tree_per_iteration"]
    scale = per_round / len(model["tree_info"]) if model["average_output"] else 1.0
    zero_is_missing: set[int] = set()
    trees = [
        _lightgbm_tree(tree["tree_structure"], scale * np.eye(per_round)[k % per_round], zero_is_missing)
        for k, tree in enumerate(model["tree_info"])
    ]

    def clean(rows: Floats) -> Floats:
        rows = rows.copy()
        for column in zero_is_missing:
            rows[np.abs(rows[:, column]) <= 1e-35, column] = np.nan
        return rows

    return Forest(trees, np.zeros(per_round), clean)


def _lightgbm_tree(root: Any, output: Floats, zero_is_missing: set[int]) -> Tree:
    """Read one tree; add the columns whose zeros count as missing to `zero_is_missing`."""
    nodes, categories = [root], {}
    rows: list[tuple[int, int, int, float, bool, float]] = []
    for number, node in enumerate(nodes):  # grows
        if "left_child" not in node:
            rows.append((LEAF, LEAF, 0, 0.0, False, node["leaf_value"]))
            continue
        children = len(nodes), len(nodes) + 1
        nodes += [node["left_child"], node["right_child"]]
        threshold, missing_left = node["threshold"], node["default_left"]
        if node["decision_type"] == "==":
            categories[number] = [int(category) for category in str(threshold).split("||")]
            threshold, missing_left = 0.0, False
        elif node["missing_type"] == "None":  # without missing values in training, NaN is read as 0
            missing_left = threshold >= 0
        elif node["missing_type"] == "Zero":
            zero_is_missing.add(node["split_feature"])
        rows.append((*children, node["split_feature"], threshold, missing_left, 0.0))
    left, right, column, thresholds, missing, values = map(np.array, zip(*rows, strict=True))
    return Tree(left, right, column, thresholds, missing, values[:, None] * output, categories)


def _read_catboost(estimator: Any) -> Forest:
    """Read symmetric trees over columns of numbers; values of at most the border go left."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        estimator.save_model(str(path), format="json")
        model = json.loads(path.read_text())
    if model["features_info"].get("categorical_features"):
        raise ModelError("catboost computes categorical features from several rows")
    scale, bias = model["scale_and_bias"]
    columns = model["features_info"]["float_features"]
    trees = []
    for tree in model["oblivious_trees"]:
        splits = tree["splits"] or []
        n = 2 ** len(splits)
        leaf_values = scale * np.array(tree["leaf_values"], dtype=np.float64).reshape(n, -1)
        # Node i of level l is 2^l - 1 + i; the last split has the highest bit of a leaf's number.
        inner, leaves = np.arange(n - 1), np.zeros(n)
        used = [splits[len(splits) - 1 - level] for level in np.log2(inner + 1).astype(int).tolist()]
        tested = [columns[split["float_feature_index"]] for split in used]
        left, right = (np.concatenate([2 * inner + side, np.full(n, LEAF)]) for side in (1, 2))
        column = np.concatenate([[c["flat_feature_index"] for c in tested], leaves]).astype(np.int64)
        border = np.concatenate([[split["border"] for split in used], leaves])
        missing_left = [c["nan_value_treatment"] == "AsFalse" for c in tested]
        missing = np.concatenate([missing_left, leaves]).astype(np.bool_)
        values = np.concatenate([np.zeros((n - 1, leaf_values.shape[1])), leaf_values])
        trees.append(Tree(left, right, column, border, missing, values))
    return Forest(trees, np.asarray(bias, dtype=np.float64).ravel(), _round)


_READERS: dict[str, Callable[[Any], Forest]] = {
    "_predictors": _read_hist_gradient_boosting,
    "get_booster": _read_xgboost,
    "booster_": _read_lightgbm,
    "calc_leaf_indexes": _read_catboost,
    "tree_": _read_sklearn,
    "estimators_": _read_sklearn,
}
"""Readers by the name of an attribute that identifies the estimator."""

"""Feature interactions: the strongest pairs and triples, and their export to pandas and shapiq."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Floats, Ints
from pertinent.errors import SettingError
from pertinent.printable import replace_surrogates, visible

if TYPE_CHECKING:
    from pertinent.results.explanation import Explanation

_SHAPIQ_NAMES = {"k-sii": "k-SII", "sii": "SII", "stii": "STII", "faith-shap": "FSII", "banzhaf": "BII"}


class Pair(NamedTuple):
    """Two features, their interaction, and its standard error (NaN if unknown)."""

    features: tuple[str, str]
    value: float
    standard_error: float


class Triple(NamedTuple):
    """Three features, their interaction, and its standard error."""

    features: tuple[str, str, str]
    value: float
    standard_error: float


def strongest_triples(e: Explanation, n: int | None = None) -> dict[tuple[int, int, int], Triple]:
    """Return the n triples with the largest magnitudes, by feature indices, strongest first."""
    values, errors = triples_of(e)
    indices, names = list(combinations(range(len(e.features)), 3)), list(combinations(e.features, 3))
    order = np.argsort(-np.abs(values), kind="stable")[:n].tolist()
    return {indices[i]: Triple(names[i], float(values[i]), float(errors[i])) for i in order}


def triples_of(e: Explanation) -> tuple[Floats, Floats]:
    """Return the interactions of all triples in order, and their standard errors, each (triples,)."""
    triples = e.details.get("triples")
    fields = (
        [triples.get(name) for name in ("values", "standard_errors")] if isinstance(triples, dict) else []
    )
    n = comb(len(e.features), 3)
    if not fields or not all(isinstance(numbers, list) and len(numbers) == n for numbers in fields):
        raise SettingError(
            f"{visible(e.method)} computed no triples of features: explain with "
            "method='shapley-interactions' and order=3."
        )
    return np.array(fields[0], dtype=np.float64), np.array(fields[1], dtype=np.float64)


def interactions_of(e: Explanation) -> Floats:
    """Return the matrix of interactions (features, features); raise an error if there is none."""
    if e.interactions is None:
        raise SettingError(
            f"{visible(e.method)} does not compute pairs of features: explain with "
            "method='shapley-interactions'. In an explanation of several classes, only the target has pairs."
        )
    return e.interactions


def strongest_pairs(e: Explanation, n: int | None = None) -> Ints:
    """Return the n pairs with the largest magnitudes (pairs, 2), in descending order; ties in input order."""
    values = interactions_of(e)
    first, second = np.triu_indices(len(values), 1)
    order = np.argsort(-np.abs(np.nan_to_num(values[first, second])), kind="stable")[:n]
    return np.stack([first[order], second[order]], axis=1)


def pair(e: Explanation, i: int, j: int) -> Pair:
    """Return the pair of two features, by their indices."""
    errors = e.interaction_standard_errors
    error = float("nan") if errors is None else float(errors[i, j])
    return Pair((e.features[i], e.features[j]), float(interactions_of(e)[i, j]), error)


def dataframe(e: Explanation) -> Any:
    """Return a pandas frame with one row per pair of features, strongest first."""
    pairs = (pair(e, i, j) for i, j in strongest_pairs(e).tolist())
    rows = [(*map(replace_surrogates, p.features), p.value, p.standard_error) for p in pairs]
    columns = ["feature", "other_feature", "interaction", "standard_error"]
    return optional("pandas").DataFrame(rows, columns=columns)


def shapiq_values(e: Explanation) -> Any:
    """Return `shapiq.InteractionValues` of the features, pairs and, if computed, triples."""
    values, d = interactions_of(e), len(e.features)
    first, second = np.triu_indices(d, 1)
    sets = [(), *((i,) for i in range(d)), *zip(first.tolist(), second.tolist(), strict=True)]
    base = float(e.details.get("base value", 0.0))
    errors, triples = e.interaction_standard_errors, np.empty(0)
    if "triples" in e.details:
        triples = triples_of(e)[0]
        sets += combinations(range(d), 3)
    return optional("shapiq").InteractionValues(
        values=np.concatenate([[base], e.scores, values[first, second], triples]),
        index=_SHAPIQ_NAMES.get(str(e.details.get("index")), "k-SII"),
        max_order=3 if "triples" in e.details else 2,
        n_players=d,
        min_order=0,
        interaction_lookup={members: index for index, members in enumerate(sets)},
        estimated=errors is None or bool(errors.any()),
        estimation_budget=e.evaluations,
        baseline_value=base,
    )

"""Pairs of features that act together: the strongest, as a pandas frame, and as what shapiq plots."""

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
    """Two features, the value of their interaction, and its standard error (NaN if it is not known)."""

    features: tuple[str, str]
    value: float
    standard_error: float


class Triple(NamedTuple):
    """Three features, the value of their interaction, and its standard error."""

    features: tuple[str, str, str]
    value: float
    standard_error: float


def strongest_triples(e: Explanation, n: int | None = None) -> dict[tuple[int, int, int], Triple]:
    """The n triples with the largest magnitudes by their numbers, the strongest first."""
    values, errors = triples_of(e)
    places, members = list(combinations(range(len(e.features)), 3)), list(combinations(e.features, 3))
    order = np.argsort(-np.abs(values), kind="stable")[:n].tolist()
    return {places[i]: Triple(members[i], float(values[i]), float(errors[i])) for i in order}


def triples_of(e: Explanation) -> tuple[Floats, Floats]:
    """The values of all triples of features, in order, and standard errors; an error if there are none."""
    found = e.details.get("triples")
    numbers = [found.get(name) for name in ("values", "standard_errors")] if isinstance(found, dict) else []
    n = comb(len(e.features), 3)
    if not numbers or not all(isinstance(each, list) and len(each) == n for each in numbers):
        raise SettingError(
            f"{visible(e.method)} valued no triples of features: explain with method='shapley-interactions' "
            "and order=3."
        )
    return np.array(numbers[0], dtype=np.float64), np.array(numbers[1], dtype=np.float64)


def interactions_of(e: Explanation) -> Floats:
    """The matrix of interactions (features, features); an error if the method has none."""
    if e.interactions is None:
        raise SettingError(
            f"{visible(e.method)} does not value pairs of features: explain with "
            "method='shapley-interactions'. Of an explanation for several classes only the target has pairs."
        )
    return e.interactions


def strongest_pairs(e: Explanation, n: int | None = None) -> Ints:
    """The n pairs with the largest magnitudes (pairs, 2), the strongest first; equal ones in input order."""
    values = interactions_of(e)
    first, second = np.triu_indices(len(values), 1)
    order = np.argsort(-np.abs(np.nan_to_num(values[first, second])), kind="stable")[:n]
    return np.stack([first[order], second[order]], axis=1)


def pair(e: Explanation, i: int, j: int) -> Pair:
    """Two features by their numbers."""
    errors = e.interaction_standard_errors
    error = float("nan") if errors is None else float(errors[i, j])
    return Pair((e.features[i], e.features[j]), float(interactions_of(e)[i, j]), error)


def dataframe(e: Explanation) -> Any:
    """A pandas frame with one row per pair of features, the strongest first."""
    found = [pair(e, i, j) for i, j in strongest_pairs(e).tolist()]
    columns = {
        "feature": [replace_surrogates(each.features[0]) for each in found],
        "other_feature": [replace_surrogates(each.features[1]) for each in found],
        "interaction": [each.value for each in found],
        "standard_error": [each.standard_error for each in found],
    }
    return optional("pandas").DataFrame(columns)


def shapiq_values(e: Explanation) -> Any:
    """`shapiq.InteractionValues` of the features, their pairs and, if they were valued, their triples."""
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
        interaction_lookup={members: place for place, members in enumerate(sets)},
        estimated=errors is None or bool(errors.any()),
        estimation_budget=e.evaluations,
        baseline_value=base,
    )

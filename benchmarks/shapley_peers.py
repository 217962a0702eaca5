"""Shapley estimators of other libraries, and of three papers without a released implementation.

A peer is a function of a game, a number of evaluations and a seed; it may evaluate a few more masks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from math import ceil
from typing import Any

import numpy as np
from shapley_games import Game

from pertinent.array_types import Floats, Masks
from pertinent.explainers.shapley.kernel_shap import Coalitions, draw_coalitions, solve
from pertinent.masks import mask_bytes

Peer = Callable[[Game, int, int], Floats]


@cache
def peers() -> dict[str, Peer]:
    """Return the peers whose library is installed, and print the missing ones."""
    installed: dict[str, Peer] = {}
    for library, estimators in PEERS.items():
        if find_spec(library) is None:
            print(f"{library} is not installed: without {', '.join(estimators)}", flush=True)
        else:
            installed |= estimators
    return installed


def with_at_least(peer: Peer, game: Game, evaluations: int, seed: int) -> Floats:
    """Return a peer's scores from at least this number of distinct masks."""
    setting = evaluations
    for _ in range(8):
        game.evaluated.clear()
        np.random.seed(seed)  # noqa: NPY002 - shap and captum draw from the global generator
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = peer(game, setting, seed)
        if len(game.evaluated) >= evaluations:
            break
        setting += max(evaluations - len(game.evaluated), setting // 20)
    return np.asarray(scores, dtype=np.float64).reshape(-1)


def _shap_kernel(game: Game, n: int, seed: int) -> Floats:
    import shap

    del seed
    explainer = shap.KernelExplainer(game, np.zeros((1, game.d)))
    result = explainer.shap_values(np.ones((1, game.d)), nsamples=n - 2, l1_reg=False, silent=True)
    return np.asarray(result)


def _shap_permutation(game: Game, n: int, seed: int) -> Floats:
    import shap

    explainer = shap.PermutationExplainer(game, shap.maskers.Independent(np.zeros((1, game.d))), seed=seed)
    rounds = ceil((n - 2) / (2 * game.d - 2) - 0.2)  # 2d are one order and its reverse
    result: Any = explainer(np.ones((1, game.d)), max_evals=rounds * (2 * game.d + 1), silent=True)
    return np.asarray(result.values)


def _shap_sampling(game: Game, n: int, seed: int) -> Floats:
    import shap

    del seed
    explainer = shap.SamplingExplainer(game, np.zeros((1, game.d)))
    return np.asarray(
        explainer.shap_values(np.ones((1, game.d)), nsamples=max(2 * game.d, n // 2), silent=True)
    )


def _captum(name: str, per_sample: Callable[[int], int]) -> Peer:
    def peer(game: Game, n: int, seed: int) -> Floats:
        import torch
        from captum import attr

        torch.manual_seed(seed)
        method: Any = getattr(attr, name)(lambda x: torch.from_numpy(game(x.numpy())))
        samples = ceil((n - 2) / per_sample(game.d))
        result = method.attribute(torch.ones(1, game.d), n_samples=samples, perturbations_per_eval=64)
        return np.asarray(result.numpy())

    return peer


def _shapiq(name: str, **settings: Any) -> Peer:
    def peer(game: Game, n: int, seed: int) -> Floats:
        import shapiq

        method: Any = getattr(shapiq.approximator, name)(n=game.d, random_state=seed, **settings)
        result = method.approximate(n, game)
        return np.array([result[(i,)] for i in range(game.d)])

    return peer


def _leverage_shap(game: Game, n: int, seed: int) -> Floats:
    """Draw all sizes equally often, and weight masks by the Shapley kernel (Musco & Witter 2025)."""
    pairs, weight = _leverage_pairs(game.d, (n - 2) // 2, seed)
    return _regress(game, Coalitions(pairs, weight, 0), game(np.concatenate([pairs, ~pairs])))


def _odd_shap(game: Game, n: int, seed: int) -> Floats:
    """Add the strongest odd sets of boosted trees to the regression (Fumagalli et al. 2026)."""
    pairs, weight = _leverage_pairs(game.d, (n - 2) // 2, seed)
    values = game(np.concatenate([pairs, ~pairs]))
    terms = _boosted_terms(np.concatenate([pairs, ~pairs]), values, seed)
    sets = sorted((t for t in terms if len(t) % 2 and len(t) > 1), key=lambda t: -abs(terms[t]))[: n // 10]
    if len(pairs) < game.d + len(sets):
        sets = sets[: max(0, len(pairs) - game.d)]
    x = np.where(pairs, 1.0, -1.0)
    design = np.stack([x[:, list(t)].prod(axis=1) for t in [(i,) for i in range(game.d)] + sets], axis=1)
    odd = (values[: len(pairs)] - values[len(pairs) :]) / 2
    gain = _ends(game)[1] - _ends(game)[0]
    heavy = 1e4 * np.sqrt(weight.max())  # the constraint: all terms together are half the gain
    root = np.sqrt(weight)
    left = np.concatenate([design * root[:, None], np.full((1, design.shape[1]), heavy)])
    result = np.linalg.lstsq(left, np.append(odd * root, gain / 2 * heavy), rcond=None)[0]
    scores = 2 * result[: game.d]
    for members, coefficient in zip(sets, result[game.d :], strict=True):
        scores[list(members)] += 2 * coefficient / len(members)
    return np.asarray(scores)


def _boosted(game: Game, n: int, seed: int) -> Floats:
    """Add a regression on the residuals to the values of boosted trees (Witter et al. 2025)."""
    coalitions = draw_coalitions(game.d, (n - 2) // 2, np.random.default_rng(seed))
    masks = np.concatenate([coalitions.pairs, ~coalitions.pairs])
    values = game(masks)
    terms = _boosted_terms(masks, values, seed)
    scores, surrogate = np.zeros(game.d), np.zeros(len(masks))
    x, both = np.where(masks, 1.0, -1.0), np.zeros(2)
    for members, coefficient in terms.items():
        surrogate += coefficient * x[:, list(members)].prod(axis=1)
        both += coefficient * np.array([(-1.0) ** len(members), 1.0])
        if len(members) % 2:
            scores[list(members)] += 2 * coefficient / len(members)
    return np.asarray(scores + _regress(game, coalitions, values - surrogate, both))


def _regress(game: Game, coalitions: Coalitions, values: Floats, offset: Floats | float = 0.0) -> Floats:
    """Solve kernel-shap's regression; `offset` is subtracted from the values of the empty and full masks."""
    empty, full = _ends(game) - offset
    return solve(coalitions, (values - empty)[:, None], np.array([full - empty]))[0][:, 0]


def _ends(game: Game) -> Floats:
    """Return the values of the empty and of the full mask."""
    return game(np.stack([np.zeros(game.d), np.ones(game.d)]).astype(np.bool_))


def _leverage_pairs(d: int, n: int, seed: int) -> tuple[Masks, Floats]:
    """Draw distinct masks of equally frequent sizes; return them and their weights."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, d, size=20 * n)
    masks = np.argsort(rng.random((20 * n, d)), axis=1).argsort(axis=1) < size[:, None]
    first = {key: row for row, key in reversed(list(enumerate(mask_bytes(masks ^ masks[:, :1]))))}
    chosen = masks[sorted(first.values())[:n]]
    s = np.minimum(chosen.sum(axis=1), d - chosen.sum(axis=1))
    return chosen, 1 / (s * (d - s) * np.bincount(s)[s])


def _boosted_terms(masks: Masks, values: Floats, seed: int) -> dict[tuple[int, ...], float]:
    """Write boosted trees as a sum over sets of products of ±1; return the coefficients."""
    import lightgbm

    data = lightgbm.Dataset(masks.astype(float), values)
    settings = {"verbose": -1, "num_threads": 1, "seed": seed, "max_depth": 5, "min_data_in_leaf": 5}
    trees = lightgbm.train(settings, data, num_boost_round=100).dump_model()["tree_info"]
    total: dict[tuple[int, ...], float] = {}
    for tree in trees:
        for members, coefficient in _terms_of(tree["tree_structure"]).items():
            total[members] = total.get(members, 0.0) + coefficient
    return total


def _terms_of(node: dict[str, Any]) -> dict[tuple[int, ...], float]:
    """Return the coefficients of one tree, which goes left without a feature and right with it."""
    if "leaf_value" in node:
        return {(): node["leaf_value"]}
    result: dict[tuple[int, ...], float] = {}
    j = node["split_feature"]
    for child, sign in ((node["left_child"], -1.0), (node["right_child"], 1.0)):
        for members, coefficient in _terms_of(child).items():
            result[members] = result.get(members, 0.0) + coefficient / 2
            toggled = tuple(sorted(set(members) ^ {j}))
            result[toggled] = result.get(toggled, 0.0) + sign * coefficient / 2
    return result


PEERS: dict[str, dict[str, Peer]] = {
    "shap": {
        "shap Kernel": _shap_kernel,
        "shap Permutation": _shap_permutation,
        "shap Sampling": _shap_sampling,
    },
    "captum": {
        "captum ShapleyValueSampling": _captum("ShapleyValueSampling", lambda d: d - 1),
        "captum KernelShap": _captum("KernelShap", lambda _: 1),
    },
    "shapiq": {
        "shapiq KernelSHAP": _shapiq("KernelSHAP", pairing_trick=True),
        "shapiq kADDSHAP": _shapiq("kADDSHAP", max_order=2, pairing_trick=True),
        "shapiq PermutationSamplingSV": _shapiq("PermutationSamplingSV"),
        "shapiq SVARM": _shapiq("SVARM", pairing_trick=True),
        "shapiq UnbiasedKernelSHAP": _shapiq("UnbiasedKernelSHAP", pairing_trick=True),
    },
    "lightgbm": {
        "LeverageSHAP*": _leverage_shap,
        "OddSHAP*": _odd_shap,
        "boosted trees*": _boosted,
    },
}
SLOW = {"captum KernelShap": 2}
"""Number of seeds of peers that would take most of the time."""

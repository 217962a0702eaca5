"""Searches in their plainest form."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def mask_of(members, d: int) -> np.ndarray:
    mask = np.zeros(d, dtype=bool)
    mask[list(members)] = True
    return mask


def objective_of(game, mask: np.ndarray, target: int = 0, objective: str = "sufficiency") -> float:
    """Larger is better."""
    if objective == "sufficiency":
        return float(game.values(mask[None])[0, target])
    return -float(game.values(~mask[None])[0, target])


def best_subset(game, k: int, target: int = 0, objective: str = "sufficiency") -> tuple[np.ndarray, float]:
    """The best of all sets of k features, and its objective."""
    best, best_value = None, -np.inf
    for members in combinations(range(game.d), k):
        mask = mask_of(members, game.d)
        found = objective_of(game, mask, target, objective)
        if found > best_value:
            best, best_value = mask, found
    return best, best_value


def local_search(
    game, k: int, budget: int, rng: np.random.Generator, runs: int = 10
) -> tuple[np.ndarray, float, int]:
    """Hase et al. 2021, App. A.2, one walk after the other in turn; returns set, objective, evaluations."""
    d, seen = game.d, set()
    states: list[np.ndarray] = []
    values: list[float] = []
    while len(states) < min(runs, budget):
        mask = mask_of(rng.choice(d, size=k, replace=False), d)
        if mask.tobytes() not in seen:
            seen.add(mask.tobytes())
            states.append(mask)
            values.append(objective_of(game, mask))
    spent = len(states)
    while spent < budget:
        for walk in range(len(states)):
            if spent == budget:
                break
            proposal = states[walk].copy()
            for _ in range(1000):
                leaves = rng.choice(np.flatnonzero(proposal))
                enters = rng.choice(np.flatnonzero(~proposal))
                proposal[leaves], proposal[enters] = False, True
                if proposal.tobytes() not in seen:
                    break
            else:
                return states[int(np.argmax(values))], max(values), spent
            seen.add(proposal.tobytes())
            spent += 1
            found = objective_of(game, proposal)
            if found > values[walk]:
                states[walk], values[walk] = proposal, found
    return states[int(np.argmax(values))], max(values), spent

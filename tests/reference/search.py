"""Plain searches."""

from __future__ import annotations

from itertools import combinations
from math import ceil

import numpy as np
import torch


def mask_of(members, d: int) -> np.ndarray:
    mask = np.zeros(d, dtype=bool)
    mask[list(members)] = True
    return mask


def objective_of(game, mask: np.ndarray, target: int = 0, objective: str = "sufficiency") -> float:
    """Return the objective; larger is better."""
    if objective == "sufficiency":
        return float(game.values(mask[None])[0, target])
    return -float(game.values(~mask[None])[0, target])


def best_subset(game, k: int, target: int = 0, objective: str = "sufficiency") -> tuple[np.ndarray, float]:
    """Return the best of all sets of k features, and its objective."""
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
    """Run Hase et al. 2021, App. A.2, walk by walk; return the set, its objective and the evaluations."""
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


def swaps_in_order(mask: np.ndarray, gain: np.ndarray) -> list[np.ndarray]:
    """Return all neighbours, the largest expected gain first."""
    found = []
    for leaves in np.flatnonzero(mask):
        for enters in np.flatnonzero(~mask):
            swapped = mask.copy()
            swapped[leaves], swapped[enters] = False, True
            found.append((gain[enters] - gain[leaves], swapped))
    return [swapped for _, swapped in sorted(found, key=lambda pair: -pair[0])]


def taylor_search(game, k, budget, start, *, target, objective, width=3, steps=None):
    """Run Hase et al. 2021, App. A.2; return the judged and the differentiated sets, in order."""
    judged, differentiated, seen = [start], [], {start.tobytes()}
    beam, left = [start], budget - 1
    while left >= 3 and (steps is None or steps > 0):
        proposals = []
        beam = beam[: left // 3]
        for mask in beam:
            kept = mask if objective == "sufficiency" else ~mask
            differentiated.append(mask)
            left -= 2
            slope = game.gradients(kept[None], target)[0]
            # For comprehensiveness, too: minus log p, as features leave the input by entering the set.
            new = [s for s in swaps_in_order(mask, slope) if s.tobytes() not in seen][:width]
            seen.update(s.tobytes() for s in new)
            proposals += new
        proposals = proposals[:left]
        if not proposals:
            break
        judged += proposals
        left -= len(proposals)
        beam = sorted(proposals, key=lambda s: -objective_of(game, s, target, objective))[:width]
        steps = None if steps is None else steps - 1
    return judged, differentiated


def gradient_search(
    log_p,
    d,
    k,
    budget,
    rng,
    *,
    objective,
    learning_rate=0.1,
    sparsity_weight=1e-3,
    share=0.05,
    check_every=20,
):
    """Run Hase et al. 2021, App. A.2, by automatic differentiation; return the checked and drawn sets."""
    state = torch.tensor(rng.standard_normal(d), requires_grad=True)
    optimizer = torch.optim.AdamW([state], lr=learning_rate)
    checked, drawn, left = [], [], budget
    while left >= 1:
        checked.append(mask_of(np.argsort(-state.detach().numpy(), kind="stable")[:k], d))
        left -= 1
        updates = 0
        while updates < check_every and left >= 3:
            noise = torch.tensor(rng.gumbel(size=(2, d)))
            soft = torch.sigmoid(state + noise[0] - noise[1])
            hard = (soft > 0.5).double()
            drawn.append(hard.bool().numpy())
            chosen = hard + soft - soft.detach()
            kept = chosen if objective == "sufficiency" else 1 - chosen
            loss = -log_p(kept) if objective == "sufficiency" else log_p(kept)
            loss = loss + sparsity_weight * (torch.sigmoid(state).sum() - ceil(share * d)) ** 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            left -= 2
            updates += 1
        if not updates:
            break
    return checked, drawn


def sets_in_order(scores, k):
    """Return all sets of k features, the largest total first."""
    sets = [mask_of(members, len(scores)) for members in combinations(range(len(scores)), k)]
    return sorted(sets, key=lambda mask: -scores[mask].sum())

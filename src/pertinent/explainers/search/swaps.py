"""The neighbours of a set: one feature out, one in."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from pertinent.types import Floats, Masks


def best_swaps(chosen: Masks, gain: Floats, n: int, seen: set[bytes]) -> list[Masks]:
    """The n sets not yet seen that swapping one feature is expected to improve most; now they are seen.

    Swapping i out and j in gains g_j − g_i. Features stand in line, the worst inside and the best
    outside first, so that a swap is never better than the same with an earlier feature of either
    line: the next best is found among few.
    """
    inside, outside = np.flatnonzero(chosen), np.flatnonzero(~chosen)
    leaves = inside[np.argsort(gain[inside], kind="stable")].tolist()
    enters = outside[np.argsort(-gain[outside], kind="stable")].tolist()
    found: list[Masks] = []
    queue: list[tuple[float, int, int]] = []

    def line_up(i: int, j: int) -> None:
        if i < len(leaves) and j < len(enters):
            heappush(queue, (float(gain[leaves[i]] - gain[enters[j]]), i, j))

    line_up(0, 0)
    while queue and len(found) < n:
        _, i, j = heappop(queue)
        line_up(i, j + 1)
        if j == 0:
            line_up(i + 1, 0)
        swapped = chosen.copy()
        swapped[leaves[i]], swapped[enters[j]] = False, True
        if swapped.tobytes() not in seen:
            seen.add(swapped.tobytes())
            found.append(swapped)
    return found

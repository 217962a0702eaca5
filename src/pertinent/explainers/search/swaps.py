"""The sets a search has seen, and their neighbours: one feature out, one in."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

import numpy as np

from pertinent.array_types import Floats, Masks


class Seen:
    """Sets that have been seen, and which of them have no new neighbour left."""

    def __init__(self, sets: Iterable[Masks]) -> None:
        self.names = {chosen.tobytes() for chosen in sets}
        self._closed: set[bytes] = set()

    def is_new(self, chosen: Masks) -> bool:
        """Whether a set has not been seen yet; marks it as seen."""
        before = len(self.names)
        self.names.add(chosen.tobytes())
        return len(self.names) > before

    def best_swaps(self, chosen: Masks, gain: Floats, n: int) -> list[Masks]:
        """The n new sets with the largest expected gain from swapping one feature; marks them as seen.

        Swapping i out and j in gains g_j − g_i. The features inside are sorted worst first, those
        outside best first, so replacing either feature of a swap by an earlier one never lowers its
        gain, and the next best swap is found among a few candidates.
        """
        name = chosen.tobytes()
        if name in self._closed:
            return []
        inside, outside = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        leaves = inside[np.argsort(gain[inside], kind="stable")].tolist()
        enters = outside[np.argsort(-gain[outside], kind="stable")].tolist()
        loss, hope = gain[leaves].tolist(), gain[enters].tolist()
        swapped = bytearray(name)
        found: list[Masks] = []
        queue = [(loss[0] - hope[0], 0, 0)] if loss and hope else []
        while queue and len(found) < n:
            _, i, j = heappop(queue)
            if j + 1 < len(enters):
                heappush(queue, (loss[i] - hope[j + 1], i, j + 1))
            if j == 0 and i + 1 < len(leaves):
                heappush(queue, (loss[i + 1] - hope[0], i + 1, 0))
            swapped[leaves[i]], swapped[enters[j]] = 0, 1
            if (new := bytes(swapped)) not in self.names:
                self.names.add(new)
                found.append(np.frombuffer(new, dtype=np.bool_))
            swapped[leaves[i]], swapped[enters[j]] = 1, 0
        if len(found) < n:
            self._closed.add(name)
        return found

"""Texts that are read in windows: one answer from those of all windows of a text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from pertinent.array_types import Ints
from pertinent.models.heads.base import HeadBatch
from pertinent.models.torch import devices
from pertinent.outputs import Output
from pertinent.removals.base import TokenRows


class WindowBatch(HeadBatch):
    """Rows of texts of which some are read in windows: all windows of a row count the same.

    A window of which nothing is kept is answered, too, from its special tokens alone. If it were left out of
    the mean, removing a word would also change how much the words of all other windows count.
    """

    def __init__(self, parts: Sequence[TokenRows], output: Output) -> None:
        super().__init__([window for part in parts for window in part.windows()])
        self._output, self._rows = output, window_rows(parts)

    def lay_out(self, compact: Sequence[bool], device: torch.device) -> None:
        """Send the numbers of each row's windows to the device."""
        self._windows = devices.send(self._rows, device)

    def scores(self, answer: torch.Tensor) -> torch.Tensor:
        """The mean of the windows of each row."""
        return mean_of_windows(self._output, answer, self._windows)


def window_rows(parts: Sequence[TokenRows]) -> Ints:
    """The numbers of each row's windows (rows, most windows), −1 where it has fewer.

    Windows are counted in the order of ``part.windows()``: all rows of the first window come first.
    """
    rows = np.full(
        (sum(len(part.attend) for part in parts), max(len(part.tokens.windows) for part in parts)), -1
    )
    row = first = 0
    for part in parts:
        n, n_windows = len(part.attend), len(part.tokens.windows)
        rows[row : row + n, :n_windows] = first + np.arange(n_windows * n).reshape(n_windows, n).T
        row, first = row + n, first + n_windows * n
    return rows


def mean_of_windows(output: Output, answer: torch.Tensor, windows: torch.Tensor) -> torch.Tensor:
    """The mean answer of each row's windows; the answer itself where a row has one, to the last digit."""
    if windows.shape[1] == 1:
        return answer
    mean = output.mean_answer(answer, windows)
    alone = (windows >= 0).sum(dim=1, keepdim=True) == 1
    return torch.where(alone, answer.float()[windows[:, 0]], mean)

"""Combines the answers to the windows of a long text."""

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
    """Rows of texts that may be read in windows; a row's windows have equal weights.

    A window without kept tokens is answered from its special tokens. If it were left out of the mean,
    removing a word would also change the weight of the words in all other windows.
    """

    def __init__(self, parts: Sequence[TokenRows], output: Output) -> None:
        super().__init__([window for part in parts for window in part.windows()])
        self._output, self._rows = output, window_rows(parts)

    def lay_out(self, compact: Sequence[bool], device: torch.device) -> None:
        """Send the indices of each row's windows to the device."""
        self._windows = devices.send(self._rows, device)

    def scores(self, answer: torch.Tensor) -> torch.Tensor:
        """Return the mean over each row's windows."""
        return mean_of_windows(self._output, answer, self._windows)


def window_rows(parts: Sequence[TokenRows]) -> Ints:
    """Return the indices of each row's windows (rows, most windows), padded with −1.

    Windows are in the order of ``part.windows()``: all rows of the first window come first.
    """
    n_windows = max(len(part.tokens.windows) for part in parts)
    rows = np.full((sum(len(part.attend) for part in parts), n_windows), -1)
    row = first = 0
    for part in parts:
        n, n_windows = len(part.attend), len(part.tokens.windows)
        rows[row : row + n, :n_windows] = first + np.arange(n_windows * n).reshape(n_windows, n).T
        row, first = row + n, first + n_windows * n
    return rows


def mean_of_windows(output: Output, answer: torch.Tensor, windows: torch.Tensor) -> torch.Tensor:
    """Return the mean answer over each row's windows; a single window's answer is not rounded."""
    if windows.shape[1] == 1:
        return answer
    mean = output.mean_answer(answer, windows)
    is_single = (windows >= 0).sum(dim=1, keepdim=True) == 1
    return torch.where(is_single, answer.float()[windows[:, 0]], mean)

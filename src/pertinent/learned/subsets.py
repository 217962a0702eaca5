"""Subsets of features from which an approximator learns, and what a selector learns from it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pertinent.learned.base import Tensor
from pertinent.learned.selection import Round, cross_entropy, uniform_like

Subsets: TypeAlias = Literal["random", "selected"]
"""What the approximator learns from."""

APPROXIMATOR = "approximator"


def approximation_loss(round: Round, kept: Tensor, wanted: Tensor, subsets: Subsets) -> Tensor:
    r"""How far the approximator's answers to what is `kept` (rows, width) are from those that are wanted.

    With ``"selected"`` both learn from that: the selector what to keep, the approximator Q what to answer. Q
    may so come to read what the selector has seen from which features are kept (Jethani et al. 2021). With
    ``"random"`` Q learns :math:`P(y \mid x_S)` for any S, and the selector learns from Q as it is: no
    gradient of the first loss goes to the selector, and none of the second to Q. The value is the first.
    """
    if subsets == "selected":
        return cross_entropy(wanted, round.approximate(APPROXIMATOR, kept)).mean()
    given = kept.detach().requires_grad_()
    cross_entropy(wanted, round.approximate(APPROXIMATOR, given)).sum().backward(inputs=[given])
    learned = cross_entropy(wanted, round.approximate(APPROXIMATOR, random_subset(round.real))).mean()
    return learned + (given.grad * (kept - given.detach())).sum() / len(kept)


def random_subset(real: Tensor, *, mostly_few: bool = False) -> Tensor:
    """Random features (rows, width) of each input, their number random as well.

    With `mostly_few` it is the logarithm of their share that is uniform: a few features are kept as often as
    most of them.
    """
    share = uniform_like(real[:, :1].float())
    if mostly_few:
        share = real.sum(-1, keepdim=True).clamp(min=1) ** (share - 1)
    return ((uniform_like(real.float()) < share) & real).float()

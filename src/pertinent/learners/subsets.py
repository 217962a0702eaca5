"""Random and selected features as tensors (rows, width): samples, probabilities and losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from pertinent.learners.base import Tensor

if TYPE_CHECKING:
    from pertinent.learners.networks.joint_networks import SelectionBatch

Subsets: TypeAlias = Literal["random", "selected"]
"""Features that an approximator learns from."""

APPROXIMATOR = "approximator"

TINY = 1e-7
"""Smallest distance of a random number from 0 and from 1."""


def of_predicted(scores: Tensor, predictions: Tensor) -> Tensor:
    """Return the scores (rows, width) of the predicted class, or of the only column."""
    if scores.shape[1] == 1:
        return scores[:, 0]
    predicted = predictions.argmax(-1)[:, None, None].expand(-1, 1, scores.shape[2])
    return scores.gather(1, predicted)[:, 0]


def cross_entropy(probabilities: Tensor, logits: Tensor) -> Tensor:
    """Return the cross-entropy (rows,) of logits (rows, columns) against probabilities."""
    return -(probabilities * logits.log_softmax(-1)).sum(-1)


def one_hot(answers: Tensor) -> Tensor:
    """Return the decision (…, columns): 1 for the column with the largest answer."""
    decided = answers.new_zeros(answers.shape)
    return decided.scatter(-1, answers.argmax(-1, keepdim=True), 1.0)


def uniform_like(tensor: Tensor) -> Tensor:
    """Return random numbers between 0 and 1, excluding both."""
    return tensor.new_empty(tensor.shape).uniform_().clamp(TINY, 1 - TINY)


def log_probability(logits: Tensor, kept: Tensor, real: Tensor) -> Tensor:
    """Return the log-probability (…) of masks (…, width) with independently kept real features."""
    zero = logits.new_zeros(())
    return (kept * logits - logits.logaddexp(zero)).masked_fill(~real, 0.0).sum(-1)


def gumbel_like(tensor: Tensor) -> Tensor:
    """Return Gumbel noise: −log(−log u)."""
    return -(-uniform_like(tensor).log()).log()


def relaxed_subset(logits: Tensor, real: Tensor, k: Tensor, temperature: float) -> Tensor:
    """Return shares (rows, width) of features: the maximum over `k` (rows,) Concrete samples.

    At a low temperature each sample is one feature, so at most k are kept (Chen et al. 2018).
    """
    noise = gumbel_like(logits[:, None].expand(-1, int(k.max()), -1))
    samples = ((logits.masked_fill(~real, -np.inf)[:, None] + noise) / temperature).softmax(-1)
    number = k.new_ones(samples.shape[1]).cumsum(0)
    return samples.masked_fill((number > k[:, None])[..., None], 0.0).amax(1)


def approximation_loss(batch: SelectionBatch, kept: Tensor, target: Tensor, subsets: Subsets) -> Tensor:
    r"""Return the cross-entropy of the approximator Q given the shares `kept` (rows, width) of features.

    With ``"selected"``, the selector and Q both learn from this loss; Q may then infer the answer from the
    choice of features (Jethani et al. 2021). With ``"random"``, Q learns :math:`P(y \mid x_S)` for random S,
    which is the returned loss, and the selector follows the gradient of the loss on `kept` with Q fixed.
    """
    if subsets == "selected":
        return cross_entropy(target, batch.approximate(APPROXIMATOR, kept)).mean()
    fixed = kept.detach().requires_grad_()
    cross_entropy(target, batch.approximate(APPROXIMATOR, fixed)).sum().backward(inputs=[fixed])
    loss = cross_entropy(target, batch.approximate(APPROXIMATOR, random_subset(batch.real))).mean()
    return loss + (fixed.grad * (kept - fixed.detach())).sum() / len(kept)


def random_subset(real: Tensor, *, mostly_few: bool = False) -> Tensor:
    """Return a random number of random features (rows, width) for each input.

    With `mostly_few`, the logarithm of the share is uniform, so small subsets are as frequent as large
    ones.
    """
    share = uniform_like(real[:, :1].float())
    if mostly_few:
        share = real.sum(-1, keepdim=True).clamp(min=1) ** (share - 1)
    return ((uniform_like(real.float()) < share) & real).float()


def random_features(kept: Tensor, real: Tensor) -> Tensor:
    """Return as many random features (rows, width) of each input as are kept; equal in every call."""
    import torch

    noise = torch.rand(real.shape, generator=torch.Generator().manual_seed(0)).to(real.device)
    rank = noise.masked_fill(~real, 2.0).argsort(dim=-1).argsort(dim=-1)
    return rank < kept.sum(-1, keepdim=True)

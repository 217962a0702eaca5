"""The algorithms of captum, ContextCite and inseq on the same model, at equal evaluations.

captum's are those of the package itself (KernelShap, Lime, ShapleyValueSampling, FeatureAblation: what
`LLMAttribution` runs), with a forward function that answers many masks at once. ContextCite's is its authors'
(uniform masks, logit of the answer's probability, standardised masks, scikit-learn's Lasso with
α = 0.01 per token of the answer). inseq's are its gradient methods (saliency, input × gradient, integrated
gradients, these with 64 and 256 evaluations alone): of the probability of each token of the answer, the
length of the vector of each prompt token, summed over the tokens of a sentence and of the answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from pertinent.array_types import Floats, Ints, Masks

ROWS = 64
"""Number of masks in a batch."""


class Game:
    """An answer's log-likelihoods by which sentences are kept; each mask is computed once.

    Attributes
    ----------
    ids, owner
        The token ids of the prompt, and the sentence of each (−1: never removed).
    answer
        The token ids of the answer.
    """

    def __init__(self, model: Any, ids: Ints, owner: Ints, answer: Ints) -> None:
        self.model, self.ids, self.owner, self.answer = model, ids, owner, answer
        self.n = int(owner.max()) + 1
        self.known: dict[bytes, Floats] = {}
        self.gradients: dict[int, tuple[Floats, Floats]] = {}

    def values(self, masks: Masks) -> Floats:
        """The log-likelihood of the answer for each mask."""
        return np.asarray(self.by_token(masks).sum(axis=1))

    def by_token(self, masks: Masks) -> Floats:
        """The log-likelihood of each token of the answer for each mask."""
        masks = np.asarray(masks, dtype=bool)
        keys = [mask.tobytes() for mask in masks]
        new = {key: mask for key, mask in zip(keys, masks, strict=True) if key not in self.known}
        missing = list(new.items())
        missing.sort(key=lambda own: own[1].sum())
        for first in range(0, len(missing), ROWS):
            some = missing[first : first + ROWS]
            found = self._computed(np.array([mask for _, mask in some]))
            self.known.update(zip((key for key, _ in some), found, strict=True))
        return np.array([self.known[key] for key in keys])

    def logits(self, masks: Masks) -> Floats:
        """The log-odds of the answer's probability."""
        logs = np.minimum(self.values(masks), -1e-12)
        return logs - np.log(-np.expm1(logs))

    @torch.inference_mode()
    def _computed(self, masks: Masks) -> Floats:
        kept = np.concatenate([masks, np.ones((len(masks), 1), dtype=bool)], axis=1)[:, self.owner]
        lengths = kept.sum(axis=1)
        width, n = int(lengths.max()) + len(self.answer), len(self.answer)
        ids = np.zeros((len(masks), width), dtype=np.int64)
        for row, own, length in zip(ids, kept, lengths, strict=True):
            row[: length + n] = [*self.ids[own], *self.answer]
        device = self.model.device
        states = self.model.model(input_ids=torch.tensor(ids, device=device), use_cache=False)[0]
        places = torch.tensor(lengths[:, None] - 1 + np.arange(n), device=device)
        rows = torch.arange(len(masks), device=device)[:, None]
        logs = self.model.lm_head(states[rows, places]).float().log_softmax(dim=-1)
        answer = torch.tensor(self.answer, device=device).expand(len(masks), -1)
        return np.asarray(logs.gather(2, answer[..., None])[..., 0].cpu().numpy(), dtype=float)


Peer = Callable[[Game, int, int], Floats | None]
"""Scores of a game's sentences by a budget and a seed; ``None`` if the budget is too small."""


def context_cite(game: Game, budget: int, seed: int) -> Floats:
    """As in ContextCite's `solver.py`."""
    from sklearn.linear_model import Lasso
    from sklearn.preprocessing import StandardScaler

    masks = np.random.default_rng(seed).random((budget, game.n)) < 0.5
    outputs = game.logits(masks) / len(game.answer)
    scaler = StandardScaler()
    x = scaler.fit_transform(masks.astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = Lasso(alpha=0.01, random_state=0, fit_intercept=True).fit(x, outputs)
    return np.asarray(fitted.coef_ / scaler.scale_)


def _captum(name: str) -> Peer:
    """A perturbation method of captum."""

    def scores(game: Game, budget: int, seed: int) -> Floats | None:
        import captum.attr

        settings: dict[str, Any] = {"perturbations_per_eval": 256}
        if name == "FeatureAblation":
            if budget < game.n + 1:
                return None
        elif name == "ShapleyValueSampling":
            settings |= {"n_samples": (budget - 2) // game.n}
            if not settings["n_samples"]:
                return None
        else:
            settings |= {"n_samples": budget}

        def forward(kept: torch.Tensor) -> torch.Tensor:
            return torch.tensor(game.values(kept.numpy() > 0.5))

        torch.manual_seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = getattr(captum.attr, name)(forward).attribute(torch.ones(1, game.n), **settings)
        return np.asarray(found[0].detach().numpy(), dtype=float)

    return scores


def _inseq(name: str) -> Peer:
    """A gradient method of inseq. A point costs two passes for each token of the answer."""

    def scores(game: Game, budget: int, _seed: int) -> Floats | None:
        n_points = min(50, budget // (2 * len(game.answer)))
        if not n_points or (name == "integrated gradients" and budget not in (64, 256)):
            return None
        n_points = n_points if name == "integrated gradients" else 1
        if n_points not in game.gradients:
            game.gradients[n_points] = _lengths(game, n_points)
        return game.gradients[n_points][int(name != "saliency")]

    return scores


def _lengths(game: Game, n_points: int) -> tuple[Floats, Floats]:
    """For each sentence the sum of the lengths of its tokens' vectors, over the tokens of the answer.

    The vectors are gradients, and gradients times the embeddings; the mean over points from 0 to the
    embeddings.
    """
    ids = torch.tensor(np.concatenate([game.ids, game.answer])[None], device=game.model.device)
    embedded = game.model.get_input_embeddings()(ids).detach().float()
    shares = (
        (torch.arange(n_points, device=ids.device) + 0.5) / n_points if n_points > 1 else embedded.new_ones(1)
    )
    n_prompt, total = len(game.ids), np.zeros((2, len(game.ids)))
    for token, number in enumerate(game.answer.tolist()):
        slopes = torch.zeros_like(embedded)
        for some in shares.split(16):
            points = (embedded * some[:, None, None]).to(game.model.dtype).requires_grad_()
            states = game.model.model(inputs_embeds=points, use_cache=False)[0][:, n_prompt - 1 + token]
            likely = game.model.lm_head(states).float().softmax(dim=-1)[:, number]
            slopes += torch.autograd.grad(likely.sum(), points)[0].float().sum(dim=0) / n_points
        both = torch.stack([slopes, slopes * embedded])[:, 0, :n_prompt]
        total += both.norm(dim=-1).cpu().numpy()
    own = game.owner >= 0
    found = [np.bincount(game.owner[own], row[own]) for row in total]
    return found[0], found[1]


PEERS: dict[str, Peer] = {
    "ContextCite": context_cite,
    "captum KernelShap": _captum("KernelShap"),
    "captum Lime": _captum("Lime"),
    "captum ShapleyValueSampling": _captum("ShapleyValueSampling"),
    "captum FeatureAblation": _captum("FeatureAblation"),
    "inseq saliency": _inseq("saliency"),
    "inseq input x gradient": _inseq("input x gradient"),
    "inseq integrated gradients": _inseq("integrated gradients"),
}

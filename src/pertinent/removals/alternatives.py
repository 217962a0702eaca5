"""Slots of a template that are replaced by other texts which could stand there."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    """Each removed slot of a template holds one of its alternatives, drawn at random.

    The prediction is averaged over `samples` draws per mask. These go through a slot's alternatives in turn,
    so that as many draws as a slot has alternatives use each of them once.
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
                "The removal 'alternatives' is for the slots of a template: give Prompt(template, slots=…, "
                "alternatives=…), and let the features be slots."
            )

    def __call__(self, input: PromptInput, masks: Masks, seed: int) -> Rows:
        """`samples` rows per mask, each with the slots that are kept and an alternative of the others."""
        sizes = np.array([len(own) for own in input.text.alternatives])
        first = [g.integers(sizes) for g in row_generators(input, masks, seed, self.name)]
        drawn = (np.array(first)[:, None] + np.arange(self.samples)[:, None]) % sizes
        drawn = drawn.reshape(-1, len(sizes))
        several = np.repeat(masks, self.samples, axis=0)
        if input.tokens is None:
            return [_filled(input, *row) for row in zip(several.tolist(), drawn.tolist(), strict=True)]
        tokens, feature, choice = _beside_each_other(input.tokens)
        kept = several[:, feature] | (feature < 0)
        attend = np.where(choice < 0, kept, ~kept & (drawn[:, feature] == choice))
        return TokenRows(tokens, attend, renumber=True)


def _filled(input: PromptInput, mask: list[bool], drawn: list[int]) -> RenderedPrompt:
    """The prompt with these alternatives in the slots that are not kept."""
    segments, prompt = list(input.text.segments), input.text
    for part, own, others, number in zip(prompt.parts, mask, prompt.alternatives, drawn, strict=True):
        segments[part] = segments[part] if own else others[number]
    return input.with_segments(segments)


def _beside_each_other(tokens: Tokens) -> tuple[Tokens, Ints, Ints]:
    """Tokens in which all alternatives follow a slot's own tokens, for each its feature, and its alternative.

    The alternative of a token of the text itself is −1.
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
            others = tokens.variants[slot] if slot >= 0 else ()
            for number, ids in enumerate([window.ids[first:end], *others], start=-1):
                order.append(ids)
                feature += [slot] * len(ids)
                choice += [number] * len(ids)
        lengths.append(len(feature) - before)
    ids, owner, chosen = np.concatenate(order), np.array(feature), np.array(choice)
    scored = np.zeros(len(ids), dtype=np.bool_)
    if tokens.scored is not None:
        scored[chosen < 0] = tokens.scored
    types = np.zeros_like(ids)
    several = tuple(lengths) if tokens.lengths else ()
    made = Tokens(ids, types, owner, tokens.mask_id, tokens.pad_id, lengths=several)
    made = replace(made, scored=None if tokens.scored is None else scored, answers=tokens.answers)
    return made, owner, chosen

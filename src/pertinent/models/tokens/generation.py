"""Answers that a transformers model writes, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from pertinent.inputs.prompt import Prompt
from pertinent.inputs.rendered_prompt import RenderedPrompt
from pertinent.models.regeneration import Writer
from pertinent.models.tokens.tokenize_prompt import check_room, decoded, prompt_tokens

if TYPE_CHECKING:
    from pertinent.models.heads.language_model import LanguageModelHead
    from pertinent.models.transformer import TransformerModel

ROWS = 16
"""Number of prompts that are answered together."""


class TransformerWriter(Writer):
    """Greedy answers of a wrapped language model, by `generate` of transformers."""

    def __init__(self, encoder: TransformerModel, head: LanguageModelHead) -> None:
        self.encoder, self.head = encoder, head

    @property
    def generation(self) -> str:
        """As ``greedy, at most 64 tokens``."""
        return f"greedy, at most {self.head.max_new_tokens} tokens"

    def identity(self) -> object:
        """The wrapped model."""
        return self.encoder.identity()

    def rendered(self, prompt: Prompt) -> RenderedPrompt:
        """The prompt in the chat template, if it has messages."""
        return self.head.rendered(prompt, self.encoder)

    def write(self, prompts: Sequence[RenderedPrompt]) -> list[str]:
        """An answer to each prompt; those of similar length are answered together."""
        tokenizer, apart = self.encoder.tokenizer, self.head.answers_apart
        rows = [prompt_tokens(prompt, tokenizer, ends=apart).ids.tolist() for prompt in prompts]
        order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
        found = [""] * len(rows)
        for first in range(0, len(order), ROWS):
            some = order[first : first + ROWS]
            for number, answer in zip(some, self._answers([rows[number] for number in some]), strict=True):
                found[number] = answer
        return found

    def _answers(self, rows: list[list[int]]) -> list[str]:
        encoder = self.encoder
        width, apart = max(1, *map(len, rows)), self.head.answers_apart
        check_room(width, 1, encoder.max_length, apart=apart)
        start = [encoder.pad_id if self.head.start is None else self.head.start]
        rows = [row or start for row in rows]  # nothing is left, and the tokenizer adds no beginning token
        ids = torch.tensor([[encoder.pad_id] * (width - len(row)) + row for row in rows])
        attend = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        room = min(self.head.max_new_tokens, encoder.max_length - (0 if apart else width))
        options: dict[str, Any] = {"do_sample": False, "num_beams": 1, "pad_token_id": encoder.pad_id}
        with encoder.evaluating(ids.shape), torch.inference_mode():
            made = encoder.model.generate(
                input_ids=ids.to(encoder.device),
                attention_mask=attend.to(encoder.device),
                max_new_tokens=room,
                **options,
            ).tolist()
        if apart:
            return [decoded(own, encoder.tokenizer) for own in made]
        # Decoded together: some tokenizers leave out a space at the beginning of a text.
        tokenizer = encoder.tokenizer
        return [
            decoded([*row, *own[width:]], tokenizer).removeprefix(decoded(row, tokenizer))
            for row, own in zip(rows, made, strict=True)
        ]

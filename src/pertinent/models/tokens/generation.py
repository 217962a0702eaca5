"""Answers that a transformers model generates for prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pertinent.inputs.prompt import Prompt
from pertinent.inputs.rendered_prompt import RenderedPrompt
from pertinent.models.regeneration import Writer
from pertinent.models.tokens.tokenize_prompt import check_length, decode_text, prompt_tokens

if TYPE_CHECKING:
    from pertinent.models.heads.language_model import LanguageModelHead
    from pertinent.models.transformer import TransformerModel

ROWS = 16
"""Number of prompts that are answered together."""


@dataclass(frozen=True)
class GeneratedAnswer:
    """The text of a greedy answer, its tokens without the end token, and whether the model ended it."""

    text: str
    ids: tuple[int, ...]
    ended: bool


class TransformerWriter(Writer):
    """A wrapped language model that writes greedy answers with transformers' ``generate``."""

    def __init__(self, encoder: TransformerModel, head: LanguageModelHead) -> None:
        self.encoder, self.head = encoder, head
        self.max_new_tokens = head.max_new_tokens

    def identity(self) -> object:
        """Return the identity of the wrapped model."""
        return self.encoder.identity()

    def render(self, prompt: Prompt) -> RenderedPrompt:
        """Return the prompt in the tokenizer's chat template, if it has messages and there is a template."""
        tokenizer = self.encoder.tokenizer
        if getattr(tokenizer, "chat_template", None) is None:
            return prompt.render()
        return prompt.render(
            lambda messages: tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
        )

    def write(self, prompts: Sequence[RenderedPrompt]) -> list[str]:
        """Return an answer to each prompt."""
        return [answer.text for answer in self.generate(prompts)]

    def generate(self, prompts: Sequence[RenderedPrompt]) -> list[GeneratedAnswer]:
        """Answer each prompt; prompts of similar length are answered together."""
        tokenizer, has_decoder = self.encoder.tokenizer, self.head.has_decoder
        rows = [prompt_tokens(prompt, tokenizer, ends=has_decoder).ids.tolist() for prompt in prompts]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        answers: dict[int, GeneratedAnswer] = {}
        for first in range(0, len(order), ROWS):
            batch = order[first : first + ROWS]
            answers |= zip(batch, self._generate([rows[i] for i in batch]), strict=True)
        return [answers[i] for i in range(len(rows))]

    def _generate(self, rows: list[list[int]]) -> list[GeneratedAnswer]:
        encoder, has_decoder = self.encoder, self.head.has_decoder
        width = max(1, *map(len, rows))
        check_length(width, 1, encoder.max_length, has_decoder=has_decoder)
        max_new = min(self.max_new_tokens, encoder.max_length - (0 if has_decoder else width))
        start = [encoder.pad_id if self.head.start_id is None else self.head.start_id]
        rows = [row or start for row in rows]  # for an empty prompt, if the tokenizer adds no first token
        ids = torch.tensor([[encoder.pad_id] * (width - len(row)) + row for row in rows])
        attend = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        with encoder.evaluating(ids.shape), torch.inference_mode():
            generated = encoder.model.generate(
                input_ids=ids.to(encoder.device),
                attention_mask=attend.to(encoder.device),
                max_new_tokens=max_new,
                do_sample=False,
                num_beams=1,
                pad_token_id=encoder.pad_id,
                eos_token_id=sorted(self._end_ids()) or None,
            )
        new = generated[:, 1 if has_decoder else width :].tolist()
        return [self._answer([] if has_decoder else row, ids) for row, ids in zip(rows, new, strict=True)]

    def _answer(self, before: list[int], ids: list[int]) -> GeneratedAnswer:
        """Return the answer up to its end token; `before` are the tokens that it continues."""
        ends, tokenizer = self._end_ids(), self.encoder.tokenizer
        n = next((i for i, token in enumerate(ids) if token in ends), len(ids))
        # Decoded with the prompt, because some tokenizers omit a space at the beginning of a text.
        text = decode_text([*before, *ids[:n]], tokenizer).removeprefix(decode_text(before, tokenizer))
        return GeneratedAnswer(text, tuple(ids[:n]), ended=n < len(ids))

    def _end_ids(self) -> set[int]:
        """Return the ids of tokens that end an answer."""
        model = self.encoder.model
        sources = (getattr(model, "generation_config", None), model.config, self.encoder.tokenizer)
        ids = [getattr(source, "eos_token_id", None) for source in sources]
        lists = [i if isinstance(i, list | tuple) else [i] for i in ids if i is not None]
        return {i for several in lists for i in several}

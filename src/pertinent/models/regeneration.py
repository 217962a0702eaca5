"""Models that read prompts as text, and the model that compares new answers with the first answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from pertinent.array_types import Array
from pertinent.errors import InputError, require, safe_repr
from pertinent.inputs.base import Features
from pertinent.inputs.modality import modality_named
from pertinent.inputs.prompt import Prompt
from pertinent.inputs.rendered_prompt import PromptInput, RenderedPrompt, cut_prompt, prompt_input
from pertinent.models.answer_values import AnswerValues, Value
from pertinent.models.base import Answer, Model, answer_now
from pertinent.models.endpoint_usage import Usage
from pertinent.outputs import PlainValues
from pertinent.printable import shorten
from pertinent.removals.base import Removal, Rows
from pertinent.removals.repeated_rows import RepeatedRows

_SIMILAR = 0.5
"""Smallest similarity of the model's new answer to the explained answer without a note."""


class Writer(ABC):
    """A language model that writes answers to prompts.

    Attributes
    ----------
    max_new_tokens
        Largest number of tokens in an answer; ``None`` if it is unknown.
    """

    max_new_tokens: int | None

    @property
    def generation(self) -> str:
        """Return a description of how the explained answer is written."""
        return f"greedy, at most {self.max_new_tokens} tokens"

    @abstractmethod
    def identity(self) -> object:
        """Return everything that the answers depend on."""

    @abstractmethod
    def render(self, prompt: Prompt) -> RenderedPrompt:
        """Return the prompt as the model reads it."""

    @abstractmethod
    def write(self, prompts: Sequence[RenderedPrompt]) -> list[str]:
        """Return an answer to each prompt."""

    def start(self, prompts: Sequence[RenderedPrompt], *, fresh: bool = False) -> Answer:
        """Start to write answers; the outputs of the result are a list of texts.

        `fresh` answers are written even if the answers to earlier equal prompts are kept.
        """
        return answer_now(lambda: self.write(prompts))


class PromptModel(Model):
    """Base class of models that read prompts as text instead of tokens."""

    kind = "prompt"

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def prepare(self, raw: Any, features: Features | None = None) -> PromptInput:
        """Divide a prompt into features; the model writes an answer if there is none."""
        prompt = raw if isinstance(raw, RenderedPrompt) else self.writer.render(Prompt.from_input(raw))
        if isinstance(features, str) and features == "tokens":
            raise InputError("The model reads text, not tokens: choose features='words'.")
        if not prompt.answer:
            (answer,) = self.writer.write([prompt])
            if not answer.strip():
                raise InputError(
                    "The model's answer to the prompt is empty: pass an answer to explain, or increase "
                    "`max_new_tokens` if the model thinks before it answers."
                )
            prompt = replace(prompt, answer=answer, generation=self.writer.generation)
        prompt = self.check_answer(prompt)
        granularity, spans, notes = cut_prompt(prompt, features)
        return prompt_input(prompt, granularity, spans, None, (*notes, *self.answer_notes(prompt)))

    def outline(self, raw: Any, features: Features | None = None) -> PromptInput:
        """Divide a prompt into features without calling the model; the answer may be missing."""
        prompt = raw if isinstance(raw, RenderedPrompt) else self.writer.render(Prompt.from_input(raw))
        granularity, spans, notes = cut_prompt(prompt, features)
        return prompt_input(prompt, granularity, spans, None, notes)

    @abstractmethod
    def request_cost(self, input: PromptInput) -> tuple[int, int, int]:
        """Return the number of requests to prepare an input and per evaluation, and of tokens per request."""

    @abstractmethod
    def check_answer(self, prompt: RenderedPrompt) -> RenderedPrompt:
        """Return the prompt with the answer's tokens; raise an `InputError` if it cannot be explained."""

    def answer_notes(self, prompt: RenderedPrompt) -> Iterable[str]:
        """Return notes on the answers of the user; by default none."""
        return ()

    def split(self, raw: Any) -> Iterable[Any] | None:
        """Return the prompts in a collection."""
        return modality_named("prompt").split(raw)

    def default_removal(self, input: Any) -> str:
        """Return ``"alternatives"`` for slots with alternatives, else ``"slice-out"``."""
        has_alternatives = input.text.alternatives and input.granularity == "slots"
        return "alternatives" if has_alternatives else "slice-out"

    def details(self, input: Any) -> dict[str, str]:
        """Return the answers and how the model generated its answer."""
        return input.text.details  # type: ignore[no-any-return]


class RegeneratingModel(PromptModel):
    """A language model that writes new answers whenever parts of a prompt are removed.

    Its only column, named after the value, is the value of the new answers, given the explained answer, on
    average over `samples` answers; for a contrast, minus their value given the other answer. The random
    difference between the answers is part of the standard errors.

    Parameters
    ----------
    value, encoder
        As in `AnswerValues`.
    samples
        Answers to each prompt.
    note
        Note for each explanation.
    """

    usage: Usage | None = None
    """Requests and tokens used, if the answers come from an endpoint."""
    first_batch = largest_batch = 64

    def __init__(
        self, writer: Writer, value: str | Value, *, encoder: Any = None, samples: int = 1, note: str = ""
    ) -> None:
        super().__init__(writer)
        require(samples > 0, "samples", "above 0", samples)
        self.output = PlainValues()
        self.value = AnswerValues(value, encoder)
        self.classes = (self.value.name,)
        self.samples = samples
        self.is_random = samples > 1
        self.note = note

    def identity(self) -> object:
        """Return the identity of the writer and the value, and the number of answers."""
        return "regenerating", self.writer.identity(), self.value.identity(), self.samples

    def bind_removal(self, removal: Removal) -> Removal:
        """Return the removal, whose rows get several answers if they are random."""
        bound = super().bind_removal(removal)
        return RepeatedRows(bound, self.samples) if self.samples > 1 else bound

    def check_answer(self, prompt: RenderedPrompt) -> RenderedPrompt:
        """Raise an `InputError` for a setting that only applies to likelihoods."""
        if prompt.span is not None:
            raise InputError("`span` applies only to likelihoods: omit it, or omit `value`.")
        return replace(prompt, notes=(*prompt.notes, self.note)) if self.note else prompt

    def answer_notes(self, prompt: RenderedPrompt) -> Iterable[str]:
        """Return a note if the model now answers the whole prompt with less than half the value.

        The new answer is kept for the explanation. Random answers and a user's value are not checked.
        """
        if prompt.generation or self.samples > 1 or not self.value.is_similarity:
            return ()
        (new,) = self.writer.write([prompt])
        if self.value(prompt.answer, [new])[0] >= _SIMILAR:
            return ()
        now = safe_repr(shorten(new, 60))
        return (f"The model now answers {now}, so the explained answer has little value.",)

    def request_cost(self, input: PromptInput) -> tuple[int, int, int]:
        """Return the number of requests to prepare an input and per evaluation, and of tokens per request."""
        prompt, usage = input.text, self.usage or Usage()
        tokens = usage.estimate_tokens(sum(map(len, prompt.segments))) + (self.writer.max_new_tokens or 0)
        return int(not prompt.answer), self.samples, tokens

    def details(self, input: Any) -> dict[str, str]:
        """Return the answer, how it was generated, and the value of new answers."""
        details = super().details(input) | {"value": self.value.name}
        return details | ({"answers": f"{self.samples} to each prompt"} if self.samples > 1 else {})

    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Write a new answer for each row and compute its value."""
        return self._submit(rows, fresh=False)

    def resubmit(self, rows: Sequence[Rows]) -> Answer:
        """Write a new answer for each row even if earlier answers are kept."""
        return self._submit(rows, fresh=True)

    def _submit(self, rows: Sequence[Rows], *, fresh: bool) -> Answer:
        parts: list[list[RenderedPrompt]] = list(rows)  # type: ignore[arg-type]
        answer = self.writer.start([prompt for part in parts for prompt in part], fresh=fresh)
        return replace(answer, outputs=lambda: self._values(parts, answer.outputs()))

    def _values(self, parts: list[list[RenderedPrompt]], answers: list[str]) -> Array:
        ends = np.cumsum([len(part) for part in parts]).tolist()
        values = [
            self._contrast(part[0], answers[first:end])
            for part, (first, end) in zip(parts, pairwise([0, *ends]), strict=True)
        ]
        return np.concatenate(values)[:, None]

    def _contrast(self, prompt: RenderedPrompt, answers: list[str]) -> Array:
        """Return the value of each new answer, minus its value for the other answer in a contrast."""
        values = self.value(prompt.answer, answers)
        other = prompt.rather_than
        return values if other is None else values - self.value(other, answers)

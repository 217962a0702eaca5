"""Models that read prompts as text, and the model that compares new answers with the first answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from pertinent.array_types import Array
from pertinent.errors import InputError, ModelError, SettingError, unknown
from pertinent.inputs.base import Features
from pertinent.inputs.modality import modality_named
from pertinent.inputs.prompt import Prompt
from pertinent.inputs.rendered_prompt import PromptInput, RenderedPrompt, cut_prompt, prompt_input
from pertinent.models.base import Answer, Model, answer_now
from pertinent.outputs import PlainValues
from pertinent.removals.base import Rows

Value: TypeAlias = Callable[[list[str], str], Sequence[float]]
"""Function from new answers and the explained answer to a number for each new answer."""


def overlap(answers: list[str], answer: str) -> list[float]:
    """Return the F1 score between the words of each new answer and of the explained answer.

    >>> overlap(["Bob keeps it", "Ann", ""], "Bob")
    [0.5, 0.0, 0.0]
    """
    reference = Counter(answer.casefold().split())
    scores = []
    for new in answers:
        words = Counter(new.casefold().split())
        n_shared, n_words = (reference & words).total(), reference.total() + words.total()
        scores.append(2 * n_shared / n_words if n_words else 1.0)
    return scores


VALUES: dict[str, Value] = {"overlap": overlap}


class Writer(ABC):
    """A language model that writes answers to prompts.

    Attributes
    ----------
    max_new_tokens
        Largest number of tokens in an answer.
    """

    max_new_tokens: int

    @abstractmethod
    def identity(self) -> object:
        """Return everything that the answers depend on."""

    @abstractmethod
    def render(self, prompt: Prompt) -> RenderedPrompt:
        """Return the prompt as the model reads it."""

    @abstractmethod
    def write(self, prompts: Sequence[RenderedPrompt]) -> list[str]:
        """Return an answer to each prompt."""


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
            generation = f"greedy, at most {self.writer.max_new_tokens} tokens"
            prompt = replace(prompt, answer=answer, generation=generation)
        prompt = self.check_answer(prompt)
        granularity, spans, notes = cut_prompt(prompt, features)
        return prompt_input(prompt, granularity, spans, None, (*notes, *self.answer_notes(prompt)))

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
    """A language model that writes a new answer whenever parts of a prompt are removed.

    Its only column is the value that a function computes for each new answer, given the explained answer.
    """

    classes = ("value",)
    first_batch = largest_batch = 64

    def __init__(self, writer: Writer, value: str | Value) -> None:
        super().__init__(writer)
        if isinstance(value, str) and value not in VALUES:
            raise unknown("value of new answers", value, VALUES)
        if not callable(value) and not isinstance(value, str):
            raise SettingError(
                "`value` must be 'overlap' or a function from a list of new answers and the explained answer "
                f"to numbers, but got {type(value).__name__}."
            )
        self.output = PlainValues()
        self.value: Value = VALUES[value] if isinstance(value, str) else value

    def identity(self) -> object:
        """Return the identity of the writer and the function."""
        return "regenerating", self.writer.identity(), self.value

    def check_answer(self, prompt: RenderedPrompt) -> RenderedPrompt:
        """Raise an `InputError` for settings that only apply to likelihoods."""
        for name in ("rather_than", "span"):
            if getattr(prompt, name) is not None:
                raise InputError(f"`{name}` applies only to likelihoods: omit it, or omit `value`.")
        return prompt

    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Write a new answer for each row and compute its value."""
        parts: list[list[RenderedPrompt]] = list(rows)  # type: ignore[arg-type]
        return answer_now(lambda: self._values(parts))

    def _values(self, parts: list[list[RenderedPrompt]]) -> Array:
        answers = iter(self.writer.write([prompt for part in parts for prompt in part]))
        values = []
        for part in parts:
            new = [next(answers) for _ in part]
            values.append(np.asarray(self.value(new, part[0].answer), dtype=np.float64))
            if values[-1].shape != (len(new),):
                raise ModelError(
                    f"`value` must return one number for each of {len(new)} answers, but returned shape "
                    f"{values[-1].shape}."
                )
        return np.concatenate(values)[:, None]

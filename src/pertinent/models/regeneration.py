"""A language model whose new answers to what is left of a prompt are compared with its first answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from pertinent.array_types import Array
from pertinent.errors import InputError, ModelError, SettingError, unknown
from pertinent.inputs.base import Features, Input
from pertinent.inputs.modality import modality_named
from pertinent.inputs.prompt import Prompt
from pertinent.inputs.rendered_prompt import PromptInput, RenderedPrompt, cut_prompt, prompt_input
from pertinent.models.base import Answer, Model, answer_now
from pertinent.models.completions import Completions
from pertinent.outputs import PlainValues
from pertinent.removals.base import Rows

Value: TypeAlias = Callable[[list[str], str], Sequence[float]]
"""A number for each new answer, given the answer that is explained."""


def overlap(answers: list[str], answer: str) -> list[float]:
    """The F1 score of the words that each new answer shares with the answer that is explained.

    >>> overlap(["Bob keeps it", "Ann", ""], "Bob")
    [0.5, 0.0, 0.0]
    """
    own = Counter(answer.casefold().split())
    found = []
    for other in answers:
        words = Counter(other.casefold().split())
        n_shared, n_words = (own & words).total(), own.total() + words.total()
        found.append(2 * n_shared / n_words if n_words else 1.0)
    return found


VALUES: dict[str, Value] = {"overlap": overlap}


def rendered_for_endpoint(prompt: Prompt) -> RenderedPrompt:
    """The prompt as an endpoint of completions reads it."""
    if prompt.messages:
        raise InputError(
            "An endpoint of completions applies no chat template: give the prompt as a text in the form "
            "of the template, with the parts that may be removed as sources or slots."
        )
    return prompt.rendered()


class Writer(ABC):
    """Writes answers to prompts."""

    @property
    @abstractmethod
    def generation(self) -> str:
        """How answers are found, for people."""

    @abstractmethod
    def identity(self) -> object:
        """All that its answers depend on."""

    @abstractmethod
    def rendered(self, prompt: Prompt) -> RenderedPrompt:
        """The prompt as the model reads it."""

    @abstractmethod
    def write(self, prompts: Sequence[RenderedPrompt]) -> list[str]:
        """An answer to each prompt."""


class EndpointWriter(Writer):
    """An endpoint of completions, asked for many answers at the same time."""

    def __init__(self, completions: Completions, max_new_tokens: int) -> None:
        self.completions, self.max_new_tokens = completions, max_new_tokens

    @property
    def generation(self) -> str:
        """As ``greedy, at most 64 tokens``."""
        return f"greedy, at most {self.max_new_tokens} tokens"

    def identity(self) -> object:
        """The address and the name of the model."""
        return "endpoint", self.completions.url, self.completions.model, self.max_new_tokens

    def rendered(self, prompt: Prompt) -> RenderedPrompt:
        """The prompt; an endpoint has no chat template."""
        return rendered_for_endpoint(prompt)

    def write(self, prompts: Sequence[RenderedPrompt]) -> list[str]:
        """One request for each prompt."""
        n_threads = self.completions.in_flight
        with ThreadPoolExecutor(n_threads, thread_name_prefix="pertinent-endpoint") as pool:
            return list(pool.map(self._one, prompts))

    def _one(self, prompt: RenderedPrompt) -> str:
        return self.completions.write("".join(prompt.segments), self.max_new_tokens)


class RegeneratingModel(Model):
    """Lets a language model answer again when parts of the prompt are removed, and values the new answers.

    The one column is the value, which a function gives each new answer beside the answer that is explained.
    """

    kind = "prompt"
    classes = ("value",)
    first_batch = largest_batch = 64

    def __init__(self, writer: Writer, value: str | Value) -> None:
        if isinstance(value, str) and value not in VALUES:
            raise unknown("value of new answers", value, VALUES)
        if not callable(value) and not isinstance(value, str):
            raise SettingError(
                "`value` must be 'overlap' or a function from a list of new answers and the answer that is "
                f"explained to numbers, but got {type(value).__name__}."
            )
        self.writer, self.output = writer, PlainValues()
        self.value: Value = VALUES[value] if isinstance(value, str) else value

    def identity(self) -> object:
        """The model that writes, and the code of the function."""
        return "regenerating", self.writer.identity(), self.value

    def prepare(self, raw: Any, features: Features | None = None) -> PromptInput:
        """Cut a prompt into features; the model writes an answer if none is given."""
        prompt = raw if isinstance(raw, RenderedPrompt) else self.writer.rendered(Prompt.from_input(raw))
        for name in ("rather_than", "span"):
            if getattr(prompt, name) is not None:
                raise InputError(f"`{name}` is about likelihoods: leave it out, or leave out `value`.")
        if isinstance(features, str) and features == "tokens":
            raise InputError("Texts are answered anew, not tokens: choose the features 'words'.")
        if not prompt.answer:
            (answer,) = self.writer.write([prompt])
            prompt = replace(prompt, answer=answer, generation=self.writer.generation)
        granularity, spans, notes = cut_prompt(prompt, features)
        return prompt_input(prompt, granularity, spans, None, notes)

    def split(self, raw: Any) -> Iterable[Any] | None:
        """The prompts in a collection."""
        return modality_named("prompt").split(raw)

    def default_removal(self, input: Any) -> str:
        """The alternatives of slots that have some; else features are cut out."""
        has_some = input.text.alternatives and input.granularity == "slots"
        return "alternatives" if has_some else "slice-out"

    def details(self, input: Input) -> dict[str, str]:
        """The answer, and how the model found it."""
        assert isinstance(input, PromptInput)
        return input.text.details

    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Answer each row anew, and value the answers of each input together."""
        parts: list[list[RenderedPrompt]] = list(rows)  # type: ignore[arg-type]
        return answer_now(lambda: self._values(parts))

    def _values(self, parts: list[list[RenderedPrompt]]) -> Array:
        answers = iter(self.writer.write([prompt for part in parts for prompt in part]))
        found = []
        for part in parts:
            new = [next(answers) for _ in part]
            values = np.asarray(self.value(new, part[0].answer), dtype=np.float64)
            if values.shape != (len(new),):
                raise ModelError(
                    f"`value` must return a number for each of {len(new)} answers, but what it returned has "
                    f"the shape {values.shape}."
                )
            found.append(values)
        return np.concatenate(found)[:, None]

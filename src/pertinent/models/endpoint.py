"""A language model behind an endpoint that speaks the completions protocol of OpenAI."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from pertinent.array_types import Floats
from pertinent.config.settings import Count, Positive, checked
from pertinent.errors import InputError, ModelError
from pertinent.inputs.base import Features, Input
from pertinent.inputs.modality import modality_named
from pertinent.inputs.prompt import Prompt
from pertinent.inputs.rendered_prompt import PromptInput, RenderedPrompt, cut_prompt, prompt_input
from pertinent.models.base import Answer, Model
from pertinent.models.completions import Completions
from pertinent.models.regeneration import EndpointWriter, RegeneratingModel, Value, rendered_for_endpoint
from pertinent.outputs import LogLikelihoods, Scale
from pertinent.outputs.log_likelihoods import PER_TOKEN, scaled_columns
from pertinent.removals.base import Rows


@checked
def wrap_endpoint(
    url: str,
    *,
    model: str,
    key_variable: str = "OPENAI_API_KEY",
    max_new_tokens: Count = 64,
    length_normalised: bool = False,
    value: str | Value | None = None,
    in_flight: Count = 16,
    retries: int = 5,
    timeout: Positive = 120.0,
) -> Model:
    """Make a model out of a served language model, so that its answers can be explained.

    The server must return the log-probabilities of the prompt (``echo`` with ``logprobs``), as those of vLLM,
    llama.cpp and SGLang do, unless there is a `value`. Redirects are not followed, because the key would be
    sent to the new address. This needs httpx: ``pip install 'pertinent[endpoint]'``.

    Parameters
    ----------
    url
        The address up to the protocol's version, such as ``"http://localhost:8000/v1"``.
    model
        The name of the model on the server.
    key_variable
        The environment variable that holds the key, if the server wants one. The key is read when it is
        needed, and never saved.
    max_new_tokens
        The most tokens of an answer that the model writes itself.
    length_normalised
        Whether the log-likelihood of an answer is divided by its number of tokens.
    value
        Instead of the likelihood, the value of the answers that the model writes anew when parts of a prompt
        are removed: ``"overlap"`` of their words with those of the answer that is explained, or a function
        from a list of new answers and that answer to a number for each.
    in_flight
        Number of requests that are sent at the same time at most.
    retries
        Number of times a request is sent again after a broken connection or a status of 408, 429 or 5xx. The
        pause before it doubles each time.
    timeout
        Seconds after which a request has failed.
    """
    completions = Completions(url, model, key_variable, in_flight, retries, timeout)
    if value is not None:
        return RegeneratingModel(EndpointWriter(completions, max_new_tokens), value)
    return EndpointModel(completions, max_new_tokens, length_normalised=length_normalised)


class EndpointModel(Model):
    """Sends prompts with an answer, and reads the log-probabilities of the answer's tokens."""

    kind = "prompt"
    columns_differ = True
    in_flight = 2

    def __init__(self, completions: Completions, max_new_tokens: int, *, length_normalised: bool) -> None:
        self.completions, self.max_new_tokens = completions, max_new_tokens
        self.length_normalised = length_normalised
        self.output = LogLikelihoods(PER_TOKEN) if length_normalised else LogLikelihoods()
        self.first_batch = self.largest_batch = 8 * completions.in_flight
        self._pool: ThreadPoolExecutor | None = None
        completions.score("a b", " c")  # raises an error if the server does not do that

    def __getstate__(self) -> dict[str, Any]:
        """All but the threads."""
        return vars(self) | {"_pool": None}

    def identity(self) -> object:
        """The address, the name of the model, and how answers are scored."""
        own = self.completions
        return "endpoint", own.url, own.model, self.max_new_tokens, self.output.to_dict()

    def prepare(self, raw: Any, features: Features | None = None) -> PromptInput:
        """Cut a prompt into features; the model writes an answer if none is given."""
        prompt = raw if isinstance(raw, RenderedPrompt) else rendered_for_endpoint(Prompt.from_input(raw))
        if isinstance(features, str) and features == "tokens":
            raise InputError("The tokens of a served model are not known: choose the features 'words'.")
        if not prompt.answer:
            how = f"greedy, at most {self.max_new_tokens} tokens"
            answer = self.completions.write("".join(prompt.segments), self.max_new_tokens)
            if not answer.strip():
                raise InputError("The model's own answer to the prompt is empty: give an answer to explain.")
            prompt = replace(prompt, answer=answer, generation=how)
        scored = self.completions.score("".join(prompt.segments), prompt.answer)
        granularity, spans, notes = cut_prompt(replace(prompt, answer_tokens=scored.tokens), features)
        return prompt_input(replace(prompt, answer_tokens=scored.tokens), granularity, spans, None, notes)

    def split(self, raw: Any) -> Iterable[Any] | None:
        """The prompts in a collection."""
        return modality_named("prompt").split(raw)

    def default_removal(self, input: Any) -> str:
        """The alternatives of slots that have some; else features are cut out."""
        has_some = input.text.alternatives and input.granularity == "slots"
        return "alternatives" if has_some else "slice-out"

    def columns_of(self, input: Input) -> tuple[str, ...]:
        """The contrast, if there is one, the whole answer, and each of its tokens."""
        assert isinstance(input, PromptInput)
        return input.text.columns

    def details(self, input: Any) -> dict[str, str]:
        """The answers, and how the model found its own."""
        return input.text.details  # type: ignore[no-any-return]

    def as_scale(self, input: Input, outputs: Floats, scale: Scale) -> Floats:
        """The log-odds of probabilities; a contrast, which is the log-odds of two answers, as it is."""
        return scaled_columns(self.output, self.columns_of(input), outputs, scale)

    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Send a request for each row and each of its answers."""
        parts: list[Any] = list(rows)
        prompts: list[RenderedPrompt] = [prompt for part in parts for prompt in part]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(
                self.completions.in_flight, thread_name_prefix="pertinent-endpoint"
            )
        start = perf_counter()
        ends: list[float] = []
        found = [self._pool.submit(self._noted(ends, self._row), prompt) for prompt in prompts]

        def outputs() -> Floats:
            each = [future.result() for future in found]
            width = max(map(len, each))
            return np.array([row + [np.nan] * (width - len(row)) for row in each])

        return Answer(
            outputs, lambda: max(ends, default=start) - start, lambda: all(own.done() for own in found)
        )

    @staticmethod
    def _noted(ends: list[float], work: Callable[[RenderedPrompt], list[float]]) -> Any:
        """The work, which notes when it is done."""

        def done(prompt: RenderedPrompt) -> list[float]:
            found = work(prompt)
            ends.append(perf_counter())
            return found

        return done

    def _row(self, prompt: RenderedPrompt) -> list[float]:
        """The columns of one prompt."""
        before = "".join(prompt.segments)
        own = self.completions.score(before, prompt.answer)
        if own.tokens != prompt.answer_tokens:
            raise ModelError(
                f"The server cuts the answer into {list(own.tokens)} after a part of the prompt was removed, "
                f"but into {list(prompt.answer_tokens)} after all of it: let the answer begin with a space "
                "or a new line, as most models write it."
            )
        row = [self._total(own.logs), *own.logs]
        if prompt.span is not None:
            return [self._total(own.logs[slice(*prompt.span_tokens)]), *row]
        if prompt.rather_than is None:
            return row
        return [row[0] - self._total(self.completions.score(before, prompt.rather_than).logs), *row]

    def _total(self, logs: Sequence[float]) -> float:
        return float(np.mean(logs) if self.length_normalised else np.sum(logs))

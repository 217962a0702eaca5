"""Language models behind an endpoint with OpenAI's completions protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from pertinent.array_types import Floats
from pertinent.config.settings import Count, Positive, checked
from pertinent.errors import InputError, ModelError
from pertinent.inputs.base import Input
from pertinent.inputs.prompt import Prompt
from pertinent.inputs.rendered_prompt import PromptInput, RenderedPrompt
from pertinent.models.answer_spacing import spacing_notes
from pertinent.models.base import Answer, Model
from pertinent.models.completions import Completions
from pertinent.models.regeneration import PromptModel, RegeneratingModel, Value, Writer
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
    """Wrap a served language model to explain its answers.

    Unless `value` is given, the server must return the log-probabilities of the prompt (``echo`` with
    ``logprobs``), as vLLM, llama.cpp and SGLang do. Redirects are not followed, because the key would be sent
    to the new address. This needs httpx: ``pip install 'pertinent[endpoint]'``.

    Parameters
    ----------
    url
        Address up to the protocol's version, such as ``"http://localhost:8000/v1"``.
    model
        Name of the model on the server.
    key_variable
        Environment variable that holds the key, if the server requires one. The key is read for each
        request and never saved.
    max_new_tokens
        Largest number of tokens in an answer that the model writes.
    length_normalised
        Whether to divide the log-likelihood of an answer by its number of tokens.
    value
        Explain a value of newly written answers instead of the likelihood: the model answers again whenever
        parts of a prompt are removed. ``"overlap"`` of the words with those of the explained answer, or a
        function from a list of new answers and the explained answer to a number for each new answer.
    in_flight
        Largest number of simultaneous requests.
    retries
        Number of retries after a broken connection or a status of 408, 429 or 5xx, with exponential backoff.
    timeout
        Seconds after which a request fails.
    """
    completions = Completions(url, model, key_variable, in_flight, retries, timeout)
    writer = EndpointWriter(completions, max_new_tokens)
    if value is not None:
        return RegeneratingModel(writer, value)
    return EndpointModel(writer, length_normalised=length_normalised)


@dataclass(frozen=True)
class EndpointWriter(Writer):
    """An endpoint that writes greedy answers."""

    completions: Completions
    max_new_tokens: int

    def identity(self) -> tuple[object, ...]:
        """Return the address, the model's name and the length limit of answers."""
        return "endpoint", self.completions.url, self.completions.model, self.max_new_tokens

    def render(self, prompt: Prompt) -> RenderedPrompt:
        """Return the prompt unchanged; an endpoint has no chat template."""
        if prompt.messages:
            raise InputError(
                "A completions endpoint applies no chat template: pass the prompt as a text in the "
                "template's format, with the removable parts as sources or slots."
            )
        return prompt.render()

    def write(self, prompts: Sequence[RenderedPrompt]) -> list[str]:
        """Send one request per prompt."""
        n_threads = self.completions.in_flight
        with ThreadPoolExecutor(n_threads, thread_name_prefix="pertinent-endpoint") as pool:
            texts = ["".join(prompt.segments) for prompt in prompts]
            return list(pool.map(lambda text: self.completions.write(text, self.max_new_tokens), texts))


class EndpointModel(PromptModel):
    """A served language model that scores the tokens of answers."""

    columns_differ = True
    in_flight = 2
    writer: EndpointWriter

    def __init__(self, writer: EndpointWriter, *, length_normalised: bool) -> None:
        super().__init__(writer)
        self.completions = writer.completions
        self.length_normalised = length_normalised
        self.output = LogLikelihoods(PER_TOKEN) if length_normalised else LogLikelihoods()
        self.first_batch = self.largest_batch = 8 * self.completions.in_flight
        self._pool: ThreadPoolExecutor | None = None
        self.completions.score("a b", " c")  # raises an error if the server returns no log-probabilities

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the threads."""
        return vars(self) | {"_pool": None}

    def identity(self) -> object:
        """Return the address, the model's name, and how answers are scored."""
        return *self.writer.identity(), self.output.to_dict()

    def check_answer(self, prompt: RenderedPrompt) -> RenderedPrompt:
        """Return the prompt with the tokens of the answer, which must not be blank."""
        if not prompt.answer.strip():
            raise InputError("The model's answer to the prompt is empty: pass an answer to explain.")
        scored = self.completions.score("".join(prompt.segments), prompt.answer)
        return replace(prompt, answer_tokens=scored.tokens)

    def answer_notes(self, prompt: RenderedPrompt) -> Iterable[str]:
        """Return a note if the answer is far more likely with, or without, a leading space."""
        before = "".join(prompt.segments)

        def log_ratio(answer: str, other: str) -> float:
            scored, rival = (self.completions.score(before, text) for text in (answer, other))
            return sum(scored.logs) - sum(rival.logs)

        return spacing_notes(prompt, log_ratio)

    def columns_of(self, input: Input) -> tuple[str, ...]:
        """Return the names of the contrast or span (if any), the whole answer, and each token."""
        assert isinstance(input, PromptInput)
        return input.text.columns

    def as_scale(self, input: Input, outputs: Floats, scale: Scale) -> Floats:
        """Convert log-likelihoods to a scale; a contrast, the log-odds of two answers, is unchanged."""
        return scaled_columns(self.output, self.columns_of(input), outputs, scale)

    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Send one request for each answer of each row."""
        parts: list[Any] = list(rows)
        n_threads = self.completions.in_flight
        self._pool = self._pool or ThreadPoolExecutor(n_threads, thread_name_prefix="pertinent-endpoint")
        start = perf_counter()
        ends = [start]
        futures = [self._pool.submit(self._row, prompt) for part in parts for prompt in part]
        for future in futures:
            future.add_done_callback(lambda _: ends.append(perf_counter()))

        def outputs() -> Floats:
            columns = [future.result() for future in futures]
            width = max(map(len, columns))
            return np.array([row + [np.nan] * (width - len(row)) for row in columns])

        return Answer(outputs, lambda: max(ends) - start, lambda: all(future.done() for future in futures))

    def _row(self, prompt: RenderedPrompt) -> list[float]:
        """Return the columns of one prompt."""
        before = "".join(prompt.segments)
        scored = self.completions.score(before, prompt.answer)
        if scored.tokens != prompt.answer_tokens:
            raise ModelError(
                f"The server tokenizes the answer as {list(scored.tokens)} when part of the prompt is "
                f"removed, but as {list(prompt.answer_tokens)} after the whole prompt: let the answer begin "
                "with a space or a newline, as most models write it."
            )
        total = self._total(scored.logs)
        row = [total, *scored.logs]
        if prompt.span is not None:
            return [self._total(scored.logs[slice(*prompt.span_tokens)]), *row]
        if prompt.rather_than is None:
            return row
        return [total - self._total(self.completions.score(before, prompt.rather_than).logs), *row]

    def _total(self, logs: Sequence[float]) -> float:
        return float(np.mean(logs) if self.length_normalised else np.sum(logs))

"""Language models behind an endpoint: OpenAI's completions and chat completions, and Ollama's chat."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

import numpy as np

from pertinent.array_types import Floats
from pertinent.config.settings import Count, NotNegative, Positive, checked
from pertinent.errors import InputError, ModelError, SettingError
from pertinent.inputs.base import Input
from pertinent.inputs.prompt import Prompt
from pertinent.inputs.rendered_prompt import PromptInput, RenderedPrompt
from pertinent.models.answer_spacing import spacing_notes
from pertinent.models.answer_values import Value
from pertinent.models.base import Answer, Model
from pertinent.models.chat import ChatCompletions, OllamaChat
from pertinent.models.completions import Completions, NoLogProbabilities
from pertinent.models.endpoint_client import EndpointClient, KeyRefused, NotSpoken
from pertinent.models.endpoint_usage import KeptAnswers, Usage
from pertinent.models.regeneration import PromptModel, RegeneratingModel, Writer
from pertinent.outputs import LogLikelihoods, Scale
from pertinent.outputs.log_likelihoods import PER_TOKEN, scaled_columns
from pertinent.removals.base import Rows

logger = logging.getLogger(__name__)

ProtocolName: TypeAlias = Literal["auto", "completions", "chat", "ollama"]

_REGENERATED = (
    "The server returns no log-probabilities for prompts, so scores are changes of the overlap between the "
    "explained answer and newly written answers. Pass `value` to compare answers otherwise."
)


@checked
def wrap_endpoint(
    url: str,
    *,
    model: str,
    key_variable: str = "OPENAI_API_KEY",
    protocol: ProtocolName = "auto",
    max_new_tokens: Count = 64,
    length_normalised: bool = False,
    value: str | Value | None = None,
    encoder: Any = None,
    samples: Count = 1,
    temperature: NotNegative | None = None,
    max_total_tokens: Count | None = None,
    answers: str | Path | None = None,
    in_flight: Count = 16,
    retries: int = 5,
    timeout: Positive = 120.0,
) -> Model:
    """Wrap a served language model to explain its answers.

    If the server returns the log-probabilities of the prompt (``echo`` with ``logprobs``), as vLLM, SGLang
    and llama-cpp-python do, the likelihood of the answer is explained. Other servers write new answers
    whenever parts of a prompt are removed, and a value of these answers is explained. Redirects are not
    followed, because the key would be sent to the new address. This needs httpx:
    ``pip install 'pertinent[endpoint]'``.

    The attribute `usage` of the result counts requests and tokens. All answers are kept, so a call that is
    repeated after an error sends only the missing requests.

    Parameters
    ----------
    url
        Address up to the protocol's version, such as ``"http://localhost:8000/v1"``, or of Ollama:
        ``"http://localhost:11434"``.
    model
        Name of the model on the server.
    key_variable
        Environment variable that holds the key, if the server requires one. The key is read for each
        request and never saved.
    protocol
        ``"completions"`` and ``"chat"`` of OpenAI, or ``"ollama"``; by default the first that the server
        answers: completions with log-probabilities unless `value` is passed, chat, Ollama, completions.
    max_new_tokens
        Largest number of tokens in an answer that the model writes.
    length_normalised
        Whether to divide the log-likelihood of an answer by its number of tokens.
    value
        Explain a value of newly written answers instead of the likelihood: ``"overlap"``, the F1 score of the
        words shared with the explained answer; ``"exact-match"``; ``"embedding"``, the cosine similarity of
        vectors; or a function of the explained answer and a new answer that returns a number. By default
        ``"overlap"`` if the server returns no log-probabilities or there are several samples.
    encoder
        For ``value="embedding"``: a function from a list of texts to vectors, such as the ``encode`` of a
        sentence-transformers model.
    samples
        Number of answers written to each prompt, whose values are averaged. With several, the standard errors
        include the random difference between answers.
    temperature
        Temperature of the new answers; by default 1 if there are several samples, else 0. The explained
        answer is always written with temperature 0.
    max_total_tokens
        Largest number of tokens to use, of prompts and answers, in each process; by default there is no
        limit. `estimate_requests` predicts the number.
    answers
        JSON-lines file that keeps all answers, so that other processes do not request them again; by default
        they are kept in memory.
    in_flight
        Largest number of simultaneous requests.
    retries
        Number of retries after a broken connection or a status of 408, 429 or 5xx, with exponential backoff
        or after the time that the server requests.
    timeout
        Seconds after which a request fails.
    """
    usage, kept = Usage(max_total_tokens), KeptAnswers(answers)
    client = EndpointClient(url, model, key_variable, in_flight, retries, timeout, usage, kept)
    if temperature is None:
        temperature = 1.0 if samples > 1 else 0.0
    scores = value is None and protocol in ("auto", "completions") and samples == 1
    found = find_protocol(client, protocol, scores=scores)
    writer = EndpointWriter(found.speaker, max_new_tokens, temperature)
    if found.scores:
        return EndpointModel(writer, length_normalised=length_normalised)
    if length_normalised:
        raise SettingError(f"`length_normalised` applies only to likelihoods: omit it. {found.reason}")
    note = _REGENERATED if value is None and samples == 1 else ""
    if note:
        logger.warning("%s", note)
        logger.info("%s", found.reason)
    model_of_values = RegeneratingModel(
        writer, "overlap" if value is None else value, encoder=encoder, samples=samples, note=note
    )
    model_of_values.usage = usage
    model_of_values.in_flight = 2
    model_of_values.first_batch = model_of_values.largest_batch = 8 * in_flight
    return model_of_values


class Speaker(Protocol):
    """A protocol that an endpoint may speak."""

    @property
    def client(self) -> EndpointClient:
        """Return the client that sends the requests."""

    @property
    def reads_messages(self) -> bool:
        """Return whether prompts are messages instead of texts."""

    @property
    def address(self) -> str:
        """Return the address of the protocol."""

    def check(self) -> None:
        """Raise an error unless the server speaks this protocol."""

    def write(
        self, prompt: RenderedPrompt, max_tokens: int, temperature: float = 0.0, *, fresh: bool = False
    ) -> str:
        """Return the model's answer to a prompt."""


@dataclass(frozen=True)
class FoundProtocol:
    """The protocol of a server, whether it scores prompts, and why other protocols were not chosen."""

    speaker: Speaker
    scores: bool
    reason: str


def find_protocol(client: EndpointClient, name: ProtocolName, *, scores: bool) -> FoundProtocol:
    """Return the first protocol that the server speaks, with log-probabilities of prompts if `scores`.

    Only a request that the server rejects rules out a protocol; a missing key or a broken connection is
    raised.
    """
    has_path = bool(urlsplit(client.url).path.strip("/"))
    bases = [client.url] if has_path else [f"{client.url}/v1", client.url]
    completions = [Completions(client, base) for base in bases]
    ollama = OllamaChat(client, client.url.removesuffix("/api").removesuffix("/v1"))
    speakers: dict[str, list[Speaker]] = {
        "chat": [ChatCompletions(client, base) for base in bases],
        "ollama": [ollama],
        "completions": [*completions],
    }
    tried: list[tuple[Callable[[], object], Speaker, bool]] = []
    if scores:
        tried += [(partial(each.score, "a b", " c"), each, True) for each in completions]
    for each in speakers if name == "auto" else [name]:
        tried += [(speaker.check, speaker, False) for speaker in speakers[each]]
    reasons: list[str] = []
    for check, speaker, is_scored in tried:
        try:
            check()
        except (NotSpoken, NoLogProbabilities) as error:
            reasons.append(str(error))
        except KeyRefused as error:
            if not is_scored:  # a gateway may allow the key only some protocols
                raise
            reasons.append(str(error))
        else:
            return FoundProtocol(speaker, is_scored, " ".join(reasons))
    raise ModelError(
        f"{client.url} speaks no known protocol for the model {client.model!r}: "
        + " ".join(dict.fromkeys(reasons))
    )


class EndpointWriter(Writer):
    """An endpoint that writes answers: a greedy one to explain, and sampled ones at a temperature."""

    def __init__(self, speaker: Speaker, max_new_tokens: int, temperature: float) -> None:
        self.speaker = speaker
        self.max_new_tokens: int = max_new_tokens
        self.temperature = temperature

    def identity(self) -> tuple[object, ...]:
        """Return the address, the model's name, the length limit of answers and the temperature."""
        client = self.speaker.client
        return "endpoint", self.speaker.address, client.model, self.max_new_tokens, self.temperature

    def render(self, prompt: Prompt) -> RenderedPrompt:
        """Return the prompt as messages for a chat; completions have no chat template."""
        if self.speaker.reads_messages:
            return prompt.render_messages()
        if prompt.messages:
            raise InputError(
                "A completions endpoint applies no chat template: pass the prompt as a text in the "
                "template's format, with the removable parts as sources or slots, or explain newly written "
                "answers with wrap_endpoint(…, protocol='chat')."
            )
        return prompt.render()

    def write(self, prompts: Sequence[RenderedPrompt]) -> list[str]:
        """Send one request per prompt."""
        texts: list[str] = self.start(prompts).outputs()
        return texts

    def start(self, prompts: Sequence[RenderedPrompt], *, fresh: bool = False) -> Answer:
        """Start to send one request per prompt."""
        return self.speaker.client.pool.start(partial(self._write, fresh=fresh), prompts)

    def _write(self, prompt: RenderedPrompt, *, fresh: bool) -> str:
        return self.speaker.write(prompt, self.max_new_tokens, self.temperature, fresh=fresh)


class EndpointModel(PromptModel):
    """A served language model that scores the tokens of answers."""

    columns_differ = True
    in_flight = 2
    writer: EndpointWriter

    def __init__(self, writer: EndpointWriter, *, length_normalised: bool) -> None:
        super().__init__(writer)
        assert isinstance(writer.speaker, Completions)
        self.completions = writer.speaker
        self.usage = self.completions.client.usage
        self.length_normalised = length_normalised
        self.output = LogLikelihoods(PER_TOKEN) if length_normalised else LogLikelihoods()
        in_flight = self.completions.client.in_flight
        self.first_batch = self.largest_batch = 8 * in_flight

    def identity(self) -> object:
        """Return the address, the model's name, and how answers are scored."""
        return *self.writer.identity(), self.output.to_dict()

    def check_answer(self, prompt: RenderedPrompt) -> RenderedPrompt:
        """Return the prompt with the tokens of the answer."""
        scored = self.completions.score("".join(prompt.segments), prompt.answer)
        return replace(prompt, answer_tokens=scored.tokens)

    def request_cost(self, input: PromptInput) -> tuple[int, int, int]:
        """Return the number of requests to prepare an input and per evaluation, and of tokens per request."""
        prompt = input.text
        n_answers = 1 if prompt.rather_than is None else 2
        size = sum(map(len, prompt.segments)) + len(prompt.answer)
        tokens = self.usage.estimate_tokens(size) + (0 if prompt.answer else self.writer.max_new_tokens)
        return 2, n_answers, tokens + 1

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
        return self._submit(rows, fresh=False)

    def resubmit(self, rows: Sequence[Rows]) -> Answer:
        """Send the requests even if earlier answers are kept."""
        return self._submit(rows, fresh=True)

    def _submit(self, rows: Sequence[Rows], *, fresh: bool) -> Answer:
        parts: list[Any] = list(rows)
        prompts = [prompt for part in parts for prompt in part]
        answer = self.completions.client.pool.start(partial(self._row, fresh=fresh), prompts)

        def outputs() -> Floats:
            columns = answer.outputs()
            width = max(map(len, columns))
            return np.array([row + [np.nan] * (width - len(row)) for row in columns])

        return replace(answer, outputs=outputs)

    def _row(self, prompt: RenderedPrompt, *, fresh: bool) -> list[float]:
        """Return the columns of one prompt."""
        before = "".join(prompt.segments)
        scored = self.completions.score(before, prompt.answer, fresh=fresh)
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
        rival = self.completions.score(before, prompt.rather_than, fresh=fresh)
        return [total - self._total(rival.logs), *row]

    def _total(self, logs: Sequence[float]) -> float:
        return float(np.mean(logs) if self.length_normalised else np.sum(logs))

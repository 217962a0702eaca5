"""OpenAI's completions protocol: answers to texts, and the log-probabilities of their tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from pertinent.errors import FileError, InputError, ModelError
from pertinent.inputs.rendered_prompt import RenderedPrompt
from pertinent.models.endpoint_client import (
    EndpointClient,
    RefusedRequest,
    is_list,
    only_choice,
    text_in,
)

_ROUNDING = 1e-3
"""Largest positive log-probability that is treated as 0."""

NO_LOGS = "The server returns no log-probabilities for the prompt (echo with logprobs)"


class NoLogProbabilities(ModelError):
    """A server that cannot score the tokens of a prompt."""


@dataclass(frozen=True)
class ScoredAnswer:
    """The tokens of an answer and their log-probabilities."""

    tokens: tuple[str, ...]
    logs: tuple[float, ...]


@dataclass(frozen=True)
class Completions:
    """The completions of a client's model; prompts are texts in the format of the model's template.

    Attributes
    ----------
    client
        Client that sends the requests.
    base
        Address up to the protocol's version.
    """

    client: EndpointClient
    base: str
    reads_messages = False

    @property
    def address(self) -> str:
        """Return the address of the protocol."""
        return f"{self.base}/completions"

    def check(self) -> None:
        """Raise an error unless the server writes completions."""
        self._write("Hello", {"max_tokens": 1, "temperature": 0}, fresh=False)

    def write(
        self, prompt: RenderedPrompt, max_tokens: int, temperature: float = 0.0, *, fresh: bool = False
    ) -> str:
        """Return the model's answer to a prompt."""
        options: dict[str, Any] = {"max_tokens": max_tokens, "temperature": temperature}
        if prompt.answer_seed is None:
            options["temperature"] = 0
        else:
            options["seed"] = prompt.answer_seed
        return self._write("".join(prompt.segments), options, fresh=fresh)

    def _write(self, text: str, options: dict[str, Any], *, fresh: bool) -> str:
        request = {"prompt": text, **options}
        return self.client.ask_text(
            self.address,
            request,
            lambda answer: text_in(only_choice(answer), "text"),
            options["max_tokens"],
            fresh=fresh,
        )

    def score(self, prompt: str, answer: str, *, fresh: bool = False) -> ScoredAnswer:
        """Return the tokens of the answer after the prompt, with their log-probabilities."""
        options = {"max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
        request = {"prompt": prompt + answer, **options}
        try:
            tokens, logs = self.client.ask(
                self.address,
                request,
                lambda found: self._read_scores(found, prompt, answer),
                1,
                part=len(prompt),
                fresh=fresh,
            )
        except RefusedRequest as error:
            if "logprobs" in error.reason or "echo" in error.reason:
                raise NoLogProbabilities(f"{NO_LOGS}: {error.reason}") from error
            raise
        if not is_list(tokens, str) or not is_list(logs, float, len(tokens)):
            raise FileError(f"The answers file {str(self.client.kept.file)!r} is damaged: remove it.")
        return ScoredAnswer(tuple(tokens), tuple(logs))

    def _read_scores(
        self, found: Mapping[str, Any], prompt: str, answer: str
    ) -> tuple[list[str], list[float]]:
        choice, whole = only_choice(found), prompt + answer
        logs: Any = choice.get("logprobs")
        logs = logs if isinstance(logs, dict) else {}
        tokens, values, starts = (logs.get(name) for name in ("tokens", "token_logprobs", "text_offset"))
        if not is_list(tokens, str) or not is_list(values, float | None, len(tokens)):
            raise NoLogProbabilities(f"{NO_LOGS}.")
        text = "".join(tokens)
        if whole not in text and is_list(starts, float, len(tokens)):
            # Tokens that hold only part of a character have no text, so lengths do not give the offsets.
            text = str(choice.get("text", ""))
        else:
            starts = [0, *accumulate(map(len, tokens[:-1]))]
        begin = text.find(whole)  # some servers prepend a special token
        if begin < 0:
            raise NoLogProbabilities(f"{self.address} returned tokens that do not add up to the text sent.")
        edges = [*starts, len(text)]
        first, last = begin + len(prompt), begin + len(whole)
        overlapping = [
            i for i in range(len(tokens)) if edges[i] < last and max(edges[i + 1], edges[i] + 1) > first
        ]
        scored = [values[i] for i in overlapping]
        _check_logs(scored)
        return [tokens[i] for i in overlapping], scored


def _check_logs(logs: Sequence[float | None]) -> None:
    """Raise an error unless these are log-probabilities of at least one token."""
    if None in logs:
        raise InputError(
            "The server gives the first token of a text no probability, and no text remains before the "
            "answer when all features are removed: fix part of the prompt by using sources or slots."
        )
    invalid = [log for log in logs if log is None or not math.isfinite(log) or log > _ROUNDING]
    if invalid or not logs:
        raise ModelError(
            "The server must return a finite log-probability of at most 0 for each token of an answer, but "
            f"returned {invalid[0] if invalid else 'none'}."
        )

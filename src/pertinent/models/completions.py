"""HTTP client for endpoints with OpenAI's completions protocol."""

from __future__ import annotations

import json
import logging
import math
import os
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import accumulate
from typing import Any
from urllib.parse import urlsplit

from pertinent._optional import optional
from pertinent.errors import InputError, ModelError, SettingError, require
from pertinent.printable import shorten

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before the first retry, and the largest delay."""

LARGEST_ANSWER = 64 * 2**20
"""Largest size of an answer, in bytes."""

_ROUNDING = 1e-3
"""Largest positive log-probability that is treated as 0."""

_NO_LOGS = (
    "The server returns no log-probabilities for the prompt (echo with logprobs), so the likelihood of an "
    "answer is unknown: serve the model with vLLM, llama.cpp or SGLang, or explain a value of newly written "
    "answers with wrap_endpoint(…, value='overlap')."
)


@dataclass(frozen=True)
class ScoredAnswer:
    """The tokens of an answer and their log-probabilities."""

    tokens: tuple[str, ...]
    logs: tuple[float, ...]


@dataclass(frozen=True)
class Completions:
    """Client for one model behind an endpoint.

    Attributes
    ----------
    url, model, key_variable, in_flight, retries, timeout
        As in `wrap_endpoint`.
    """

    url: str
    model: str
    key_variable: str
    in_flight: int
    retries: int
    timeout: float

    def __post_init__(self) -> None:
        """Check the settings and open the client."""
        _check_address(self.url, self.key_variable)
        require(self.retries >= 0, "retries", "at least 0", self.retries)
        object.__setattr__(self, "url", self.url.rstrip("/"))
        self._open()

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the client."""
        return {name: value for name, value in vars(self).items() if name != "_client"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes and open a new client."""
        vars(self).update(state)
        self._open()

    def _open(self) -> None:
        # Redirects are not followed (httpx's default), because the key would be sent along. Compression is
        # not accepted, so the size of an answer equals the number of bytes read.
        httpx = optional("httpx")
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        limits = httpx.Limits(max_connections=self.in_flight)
        client = httpx.Client(headers=headers, timeout=self.timeout, limits=limits)
        vars(self)["_client"] = client
        weakref.finalize(self, client.close)

    def write(self, prompt: str, max_tokens: int) -> str:
        """Return the model's greedy answer to a prompt."""
        text = self._choice({"prompt": prompt, "max_tokens": max_tokens, "temperature": 0}).get("text")
        if not isinstance(text, str):
            raise ModelError(f"{self.url} did not return a completion: `text` is not a string.")
        return text

    def score(self, prompt: str, answer: str) -> ScoredAnswer:
        """Return the tokens of the answer after the prompt, with their log-probabilities."""
        whole = prompt + answer
        options = {"max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
        choice = self._choice({"prompt": whole, **options})
        logs: Any = choice.get("logprobs")
        logs = logs if isinstance(logs, dict) else {}
        tokens, values, starts = (logs.get(name) for name in ("tokens", "token_logprobs", "text_offset"))
        if not _is_list(tokens, str) or not _is_list(values, float | None, len(tokens)):
            raise ModelError(_NO_LOGS)
        text = "".join(tokens)
        if whole not in text and _is_list(starts, float, len(tokens)):
            # Tokens that hold only part of a character have no text, so lengths do not give the offsets.
            text = str(choice.get("text", ""))
        else:
            starts = [0, *accumulate(map(len, tokens[:-1]))]
        begin = text.find(whole)  # some servers prepend a special token
        if begin < 0:
            raise ModelError(f"{self.url} returned tokens that do not add up to the text it was sent.")
        edges = [*starts, len(text)]
        first, last = begin + len(prompt), begin + len(whole)
        overlapping = [
            i for i in range(len(tokens)) if edges[i] < last and max(edges[i + 1], edges[i] + 1) > first
        ]
        _check_logs([values[i] for i in overlapping])
        return ScoredAnswer(tuple(tokens[i] for i in overlapping), tuple(values[i] for i in overlapping))

    def _choice(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the only choice in the server's answer to a request."""
        body = self._post({"model": self.model, **request})
        answer = _parse(body)
        choices: Any = answer.get("choices") if isinstance(answer, dict) else None
        if _is_list(choices, dict):
            first: dict[str, Any] = choices[0]
            return first
        form = "JSON" if answer is None else "a completion"
        raise ModelError(f"{self.url} did not return {form}: {_excerpt(body)}")

    def _post(self, request: dict[str, Any]) -> bytes:
        """Return the server's answer, retrying requests that fail for a temporary reason."""
        pause = FIRST_PAUSE
        for remaining in range(self.retries, -1, -1):
            wait = ""
            try:
                response, body = self._post_once(request)
            except optional("httpx").RequestError as error:
                reason = f"{type(error).__name__} {error}"
            else:
                status = response.status_code
                if status == HTTPStatus.OK:
                    return body
                reason, wait = f"{status} {_reason(body)}", response.headers.get("Retry-After", "")
                if status < 500 and status not in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS):
                    raise self._refusal(response, reason)
            if remaining:
                seconds = min(LONGEST_PAUSE, float(wait) if wait.isdecimal() else pause)
                logger.info("%s: %s. Retrying in %.1f s.", self.url, reason, seconds)
                time.sleep(seconds)
                pause *= 2
        raise ModelError(f"{self.url} did not answer after {self.retries + 1} tries: {reason}")

    def _post_once(self, request: dict[str, Any]) -> tuple[Any, bytes]:
        """Return the response to one request and its body."""
        key = os.environ.get(self.key_variable)
        if key and not (key.isascii() and key.isprintable()):
            raise SettingError(f"The environment variable {self.key_variable} must be printable ASCII.")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        end = time.monotonic() + self.timeout
        body = bytearray()
        with self._client.stream(  # type: ignore[attr-defined]
            "POST", f"{self.url}/completions", content=json.dumps(request), headers=headers
        ) as response:
            for chunk in response.iter_raw():
                body += chunk
                if len(body) > LARGEST_ANSWER:
                    raise ModelError(f"{self.url} returned more than {LARGEST_ANSWER} bytes.")
                if time.monotonic() > end:
                    raise optional("httpx").ReadTimeout(f"after {self.timeout:g} s")
        return response, bytes(body)

    def _refusal(self, response: Any, reason: str) -> ModelError:
        """Return the error for a request that the server rejects."""
        status = response.status_code
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            state = "is set but was rejected" if os.environ.get(self.key_variable) else "is not set"
            message = (
                f"{self.url} requires a key: the environment variable {self.key_variable} {state} ({reason})"
            )
        elif 300 <= status < 400:
            location = _excerpt(response.headers.get("Location", ""))
            message = (
                f"{self.url} redirects to {location}, which was not followed because the key would be sent "
                "there: if you trust that address, pass it as `url`, without /completions."
            )
        elif status == HTTPStatus.NOT_FOUND:
            message = f"{self.url} has no completions or no model {self.model!r}: {reason}"
        elif "logprobs" in reason or "echo" in reason:
            message = f"{_NO_LOGS} The server's message: {reason}"
        else:
            message = f"{self.url} refused the request: {reason}"
        return ModelError(message)


def _check_address(url: str, key_variable: str) -> None:
    """Raise a `SettingError` unless `url` is an http address without credentials."""
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")
        optional("httpx").URL(url).port  # noqa: B018
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, optional("httpx").InvalidURL):
        valid = False
    require(valid and " " not in url, "url", "an http address", url)
    if parts.username or parts.password:
        raise SettingError(
            "`url` must not contain a user name or password, because it may be logged: put the key into the "
            f"environment variable {key_variable}."
        )


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


def _is_list(value: Any, kind: Any, length: int | None = None) -> bool:
    """Return whether `value` is a list of this kind with `length` elements, or with at least one."""
    return (
        isinstance(value, list)
        and (len(value) == length if length is not None else bool(value))
        and all(isinstance(element, kind) for element in value)
    )


def _parse(body: bytes) -> Any:
    """Return the JSON in a body, with all numbers as floats, or ``None`` if it is not JSON."""
    try:
        return json.loads(body, parse_int=float)
    except (ValueError, RecursionError):
        return None


def _reason(body: bytes) -> str:
    """Return the server's explanation of an error."""
    answer = _parse(body)
    error = answer.get("error", answer) if isinstance(answer, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return _excerpt(message if isinstance(message, str) else body)


def _excerpt(text: str | bytes) -> str:
    """Return the beginning of a text."""
    return shorten(text[:301].decode(errors="replace") if isinstance(text, bytes) else text, 301)

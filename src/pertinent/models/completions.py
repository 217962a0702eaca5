"""Client of an endpoint of completions: log-probabilities of a text, and answers; with retries."""

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
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from pertinent._optional import optional
from pertinent.errors import InputError, ModelError, SettingError, require

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a request is sent again for the first time, and at most."""

LARGEST_ANSWER = 64 * 2**20
"""Bytes of an answer that are read at most."""

_ROUNDING = 1e-3
"""Highest log-probability that counts as 0."""

_NO_LOGS = (
    "The server gives no log-probabilities of a prompt (echo with logprobs), so the likelihood of an answer "
    "is not known: serve the model by vLLM, llama.cpp or SGLang, or give a value of new answers instead, "
    "such as wrap_endpoint(…, value='overlap')."
)


@dataclass(frozen=True)
class ScoredAnswer:
    """The tokens of an answer, and their log-probabilities."""

    tokens: tuple[str, ...]
    logs: tuple[float, ...]


@dataclass(frozen=True)
class Completions:
    """An endpoint, and how it is asked.

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
        """Check the address, and open the client."""
        _check_address(self.url, self.key_variable)
        require(self.retries >= 0, "retries", "at least 0", self.retries)
        object.__setattr__(self, "url", self.url.rstrip("/"))
        self._open()

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the client."""
        return {name: value for name, value in vars(self).items() if name != "_client"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes, and open a client."""
        vars(self).update(state)
        self._open()

    def _open(self) -> None:
        # Redirects are not followed (the default of httpx), because the key would go along. Compression is
        # not accepted, so that the size of an answer is the number of bytes that are read.
        httpx = optional("httpx")
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        limits = httpx.Limits(max_connections=self.in_flight)
        client = httpx.Client(headers=headers, timeout=self.timeout, limits=limits)
        vars(self)["_client"] = client
        weakref.finalize(self, client.close)

    def write(self, prompt: str, most: int) -> str:
        """Return the model's greedy answer to a prompt."""
        text = self._choice({"prompt": prompt, "max_tokens": most, "temperature": 0}).get("text")
        if not isinstance(text, str):
            raise ModelError(f"{self.url} did not answer in the form of completions: `text` is no text.")
        return text

    def score(self, prompt: str, answer: str) -> ScoredAnswer:
        """Return the tokens of the answer after the prompt, and their log-probabilities."""
        asked = {"prompt": prompt + answer, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
        choice = self._choice(asked)
        logs = choice.get("logprobs")
        logs = logs if isinstance(logs, dict) else {}
        tokens: Any
        values: Any
        starts: Any
        tokens, values, starts = (logs.get(name) for name in ("tokens", "token_logprobs", "text_offset"))
        if not _is_list(tokens, str) or not _is_list(values, float | None, len(tokens)):
            raise ModelError(_NO_LOGS)
        text = "".join(tokens)
        if prompt + answer not in text and _is_list(starts, float, len(tokens)):
            # Tokens that are some of the bytes of a character have no text of their own.
            text = str(choice.get("text", ""))
        else:
            starts = [0, *np.cumsum([len(token) for token in tokens[:-1]]).tolist()]
        place = text.find(prompt + answer)  # some servers put a special token first
        if place < 0:
            raise ModelError(
                f"The tokens that {self.url} returns are not those of the text that it was sent."
            )
        first = place + len(prompt)
        return _of_answer(tokens, values, [*starts, len(text)], first, first + len(answer))

    def _choice(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return the one choice in the server's answer to a request."""
        body = self._post({"model": self.model, **asked})
        answer = _parsed(body)
        choices: Any = answer.get("choices") if isinstance(answer, dict) else None
        if _is_list(choices, dict):
            first: dict[str, Any] = choices[0]
            return first
        form = "with JSON" if answer is None else "in the form of completions"
        raise ModelError(f"{self.url} did not answer {form}: {_shown(body)}")

    def _post(self, asked: dict[str, Any]) -> bytes:
        """Return the server's answer; a request that fails for a reason that may pass is sent again."""
        pause = FIRST_PAUSE
        for left in range(self.retries, -1, -1):
            wait = ""
            try:
                response, body = self._once(asked)
            except optional("httpx").RequestError as error:
                reason = f"{type(error).__name__} {error}"
            else:
                status = response.status_code
                if status == HTTPStatus.OK:
                    return body
                reason, wait = f"{status} {_reason(body)}", response.headers.get("Retry-After", "")
                if status < 500 and status not in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS):
                    raise self._refused(response, reason)
            if left:
                seconds = min(LONGEST_PAUSE, float(wait) if wait.isdecimal() else pause)
                logger.info("%s: %s. Sent again in %.1f s.", self.url, reason, seconds)
                time.sleep(seconds)
                pause *= 2
        raise ModelError(f"{self.url} did not answer after {self.retries + 1} tries: {reason}")

    def _once(self, asked: dict[str, Any]) -> tuple[Any, bytes]:
        """Return the response to one request, and its body."""
        httpx = optional("httpx")
        key = os.environ.get(self.key_variable)
        if key and not (key.isascii() and key.isprintable()):
            raise SettingError(f"The environment variable {self.key_variable} must be printable ASCII.")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        end = time.monotonic() + self.timeout
        body = bytearray()
        with self._client.stream(  # type: ignore[attr-defined]
            "POST", f"{self.url}/completions", content=json.dumps(asked), headers=headers
        ) as response:
            for chunk in response.iter_raw():
                body += chunk
                if len(body) > LARGEST_ANSWER:
                    raise ModelError(f"{self.url} answers with more than {LARGEST_ANSWER} bytes.")
                if time.monotonic() > end:
                    raise httpx.ReadTimeout(f"after {self.timeout:g} s")
        return response, bytes(body)

    def _refused(self, response: Any, reason: str) -> ModelError:
        """Return the error for a request that the server does not accept, with the way out."""
        status = response.status_code
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            state = "is set, but not accepted" if os.environ.get(self.key_variable) else "is not set"
            return ModelError(
                f"{self.url} wants a key: the environment variable {self.key_variable} {state} ({reason})"
            )
        if 300 <= status < 400:
            location = response.headers.get("Location", "")
            return ModelError(
                f"{self.url} redirects to {_shown(location)}, which is not followed because the key would be "
                "sent there: if you trust that address, give it as the `url`, without /completions."
            )
        if status == HTTPStatus.NOT_FOUND:
            return ModelError(f"{self.url} has no completions, or no model {self.model!r}: {reason}")
        if "logprobs" in reason or "echo" in reason:
            return ModelError(f"{_NO_LOGS} It said: {reason}")
        return ModelError(f"{self.url} refused the request: {reason}")


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
            "`url` must not hold a name or a password, as it may be logged: put the key into the "
            f"environment variable {key_variable}."
        )


def _is_list(value: Any, kind: Any, length: int | None = None) -> bool:
    """Return whether `value` is a list of this kind, with `length` elements or at least one."""
    return (
        isinstance(value, list)
        and (len(value) == length if length is not None else bool(value))
        and all(isinstance(each, kind) for each in value)
    )


def _of_answer(
    tokens: Sequence[str], values: Sequence[Any], edges: Sequence[float], first: int, last: int
) -> ScoredAnswer:
    """Return the tokens that share a character with the answer, which goes from `first` to `last`.

    `edges` are the places where the tokens begin, and where the last one ends.
    """
    own = [i for i in range(len(tokens)) if edges[i] < last and max(edges[i + 1], edges[i] + 1) > first]
    logs = [values[i] for i in own]
    if None in logs:
        raise InputError(
            "The server gives the first token of a text no probability, and nothing is left before the "
            "answer when all features are removed: fix a part of the prompt by sources or slots."
        )
    odd = [value for value in logs if not math.isfinite(value) or value > _ROUNDING]
    if odd or not logs:
        raise ModelError(
            "The server must give each token of an answer a log-probability, a finite number of at most 0, "
            f"but gives {odd[0] if odd else 'none'}."
        )
    return ScoredAnswer(tuple(tokens[i] for i in own), tuple(logs))


def _parsed(body: bytes) -> Any:
    """Return the JSON in a body, with all numbers as floats, or None if it has none."""
    try:
        return json.loads(body, parse_int=float)
    except (ValueError, RecursionError):
        return None


def _reason(body: bytes) -> str:
    """Return the server's explanation of an error."""
    answer = _parsed(body)
    error = answer.get("error", answer) if isinstance(answer, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return _shown(message if isinstance(message, str) else body)


def _shown(text: str | bytes) -> str:
    """Return the beginning of a text."""
    text = text[:301].decode(errors="replace") if isinstance(text, bytes) else text
    return text if len(text) <= 300 else f"{text[:300]}…"

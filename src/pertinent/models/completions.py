"""Requests to an endpoint of completions: log-probabilities of a text, and answers; with retries."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np

from pertinent.errors import InputError, ModelError, SettingError, require

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a request is sent again for the first time, and at most."""

_BUSY = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
_NO_LOGS = (
    "The server gives no log-probabilities of a prompt (echo with logprobs), so the likelihood of an answer "
    "is not known: serve the model by vLLM, llama.cpp or SGLang, or give a value of new answers instead, "
    "such as wrap_endpoint(…, value='overlap')."
)


@dataclass(frozen=True)
class Scored:
    """The tokens of an answer, and their log-probabilities."""

    tokens: tuple[str, ...]
    logs: tuple[float, ...]


@dataclass(frozen=True)
class Completions:
    """An endpoint, and how it is asked.

    Attributes
    ----------
    url, model, key_variable, retries, timeout
        As in `wrap_endpoint`.
    """

    url: str
    model: str
    key_variable: str
    retries: int
    timeout: float

    def __post_init__(self) -> None:
        """Check the address."""
        parts = urlsplit(self.url)
        require(
            parts.scheme in ("http", "https") and bool(parts.hostname), "url", "an http address", self.url
        )
        require(self.retries >= 0, "retries", "at least 0", self.retries)
        if parts.username or parts.password:
            raise SettingError(
                "`url` must not hold a name or a password, as it may be logged: put the key into the "
                f"environment variable {self.key_variable}."
            )
        object.__setattr__(self, "url", self.url.rstrip("/"))

    def write(self, prompt: str, most: int) -> str:
        """The model's greedy answer to a prompt."""
        return str(self._choice({"prompt": prompt, "max_tokens": most, "temperature": 0}).get("text", ""))

    def score(self, prompt: str, answer: str) -> Scored:
        """The tokens of the answer after the prompt, and their log-probabilities."""
        asked = {"prompt": prompt + answer, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
        choice = self._choice(asked)
        logs = choice.get("logprobs") or {}
        tokens, values = logs.get("tokens"), logs.get("token_logprobs")
        if not tokens or not values or len(tokens) != len(values):
            raise ModelError(_NO_LOGS)
        tokens = list(map(str, tokens))
        text, starts = "".join(tokens), [0, *np.cumsum([len(token) for token in tokens[:-1]]).tolist()]
        if prompt + answer not in text and len(logs.get("text_offset") or ()) == len(tokens):
            # Tokens that are some of the bytes of a character have no text of their own.
            text, starts = str(choice.get("text", "")), logs["text_offset"]
        place = text.find(prompt + answer)  # some servers put a special token first
        if place < 0:
            raise ModelError("The tokens that the server returns are not those of the text that it was sent.")
        first = place + len(prompt)
        return _of_answer(tokens, values, [*starts, len(text)], first, first + len(answer))

    def _choice(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The one choice in the server's answer to a request."""
        found = self._post({"model": self.model, **asked})
        try:
            return dict(found["choices"][0])
        except (KeyError, IndexError, TypeError, ValueError):
            raise ModelError(
                f"{self.url} did not answer in the form of completions: {_shown(found)}"
            ) from None

    def _post(self, asked: dict[str, Any]) -> Any:
        """The server's answer; a request that fails for a reason that may pass is sent again."""
        pause = FIRST_PAUSE
        for left in range(self.retries, -1, -1):
            try:
                return self._once(asked)
            except HTTPError as error:
                why, wait = _reason(error), error.headers.get("Retry-After", "")
                if error.code not in _BUSY:
                    raise self._refused(error.code, why) from None
            except (URLError, OSError) as error:
                why, wait = f"{getattr(error, 'reason', error)}", ""
            except ValueError:
                raise ModelError(f"{self.url} did not answer with JSON.") from None
            if not left:
                tries = self.retries + 1
                raise ModelError(f"{self.url} did not answer after {tries} tries: {why}") from None
            seconds = min(LONGEST_PAUSE, float(wait) if wait.isdigit() else pause)
            logger.info("%s: %s. Sent again in %.1f s.", self.url, why, seconds)
            time.sleep(seconds)
            pause *= 2
        raise AssertionError

    def _once(self, asked: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json"}
        key = os.environ.get(self.key_variable)
        if key:
            headers["Authorization"] = f"Bearer {key}"
        body = json.dumps(asked).encode()
        request = Request(f"{self.url}/completions", body, headers)  # noqa: S310  the address was checked
        with urlopen(request, timeout=self.timeout) as answer:  # noqa: S310
            return json.loads(answer.read())

    def _refused(self, code: int, why: str) -> ModelError:
        """What to do about a request that the server does not accept."""
        if code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            told = "is set, but not accepted" if os.environ.get(self.key_variable) else "is not set"
            return ModelError(
                f"{self.url} wants a key: the environment variable {self.key_variable} {told} ({why})"
            )
        if code == HTTPStatus.NOT_FOUND:
            return ModelError(f"{self.url} has no completions, or no model {self.model!r}: {why}")
        if "logprobs" in why or "echo" in why:
            return ModelError(f"{_NO_LOGS} It said: {why}")
        return ModelError(f"{self.url} refused the request: {why}")


def _of_answer(
    tokens: Sequence[str], values: Sequence[Any], edges: Sequence[int], first: int, last: int
) -> Scored:
    """Those tokens that share a character with the answer, which goes from the first to the last place.

    `edges` are the places where the tokens begin, and where the last one ends.
    """
    own = [i for i in range(len(tokens)) if edges[i] < last and max(edges[i + 1], edges[i] + 1) > first]
    if any(values[i] is None for i in own):
        raise InputError(
            "The server gives the first token of a text no probability, and nothing is left before the "
            "answer when all features are removed: fix a part of the prompt by sources or slots."
        )
    return Scored(tuple(tokens[i] for i in own), tuple(float(values[i]) for i in own))


def _reason(error: HTTPError) -> str:
    """What the server says of an error."""
    try:
        said = json.loads(error.read())
        said = said.get("error", said)
        told = said.get("message", said) if isinstance(said, dict) else said
    except (ValueError, OSError, AttributeError):
        told = error.reason
    return f"{error.code} {_shown(told)}"


def _shown(what: Any) -> str:
    text = what if isinstance(what, str) else json.dumps(what)
    return text if len(text) <= 300 else f"{text[:300]}…"

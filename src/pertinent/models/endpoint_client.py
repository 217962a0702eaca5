"""HTTP client for endpoints of language models: retries, keys, a cap on tokens, and kept answers."""

from __future__ import annotations

import json
import logging
import os
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from pertinent._optional import optional
from pertinent.errors import FileError, InputError, ModelError, SettingError, require
from pertinent.inputs.chat_messages import iterate_texts
from pertinent.models.endpoint_usage import KeptAnswers, Usage
from pertinent.models.request_pool import RequestPool
from pertinent.printable import shorten

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before the first retry, and the largest delay."""

LONGEST_WAIT = 600.0
"""Largest number of seconds that a server may ask to wait before a retry."""

_NOTICEABLE = 10.0
"""Seconds of waiting from which users are told about it."""

_DAY = 86_400

LARGEST_ANSWER = 64 * 2**20
"""Largest size of an answer, in bytes."""

_TEMPORARY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)

_TOO_LONG = (
    "context length",
    "context window",
    "context size",
    "context_length",
    "too long",
    "max_model_len",
)
"""Words in the messages of servers about prompts that are longer than the context."""


class NotSpoken(ModelError):
    """An answer that shows that the server does not speak the protocol, or not with this model."""


class KeyRefused(ModelError):
    """A key that is missing or that the server rejects."""


class RefusedRequest(NotSpoken):
    """A request that the server rejects.

    Attributes
    ----------
    status, reason
        HTTP status and message of the server.
    """

    status: int = 0
    reason: str = ""


@dataclass(frozen=True)
class EndpointClient:
    """Client for one model behind an endpoint.

    Attributes
    ----------
    url, model, key_variable, in_flight, retries, timeout
        As in `wrap_endpoint`.
    usage
        Requests and tokens used, and the cap on tokens.
    kept
        Answers to earlier requests.
    pool
        Threads that send requests.
    """

    url: str
    model: str
    key_variable: str
    in_flight: int
    retries: int
    timeout: float
    usage: Usage = field(default_factory=Usage, compare=False)
    kept: KeptAnswers = field(default_factory=KeptAnswers, compare=False)
    pool: RequestPool = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Check the settings and open the client."""
        _check_address(self.url, self.key_variable)
        require(self.retries >= 0, "retries", "at least 0", self.retries)
        object.__setattr__(self, "url", self.url.rstrip("/"))
        object.__setattr__(self, "pool", RequestPool(self.in_flight))
        self._open()

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the HTTP client."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes and open a new HTTP client."""
        vars(self).update(state)
        self._open()

    def _open(self) -> None:
        # Redirects are not followed (httpx's default), because the key would be sent along. Compression is
        # not accepted, so the size of an answer equals the number of bytes read.
        httpx = optional("httpx")
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        limits = httpx.Limits(max_connections=self.in_flight)
        client = httpx.Client(headers=headers, timeout=self.timeout, limits=limits)
        vars(self).update(_client=client, _resume_at=0.0, _is_down=False)
        weakref.finalize(self, client.close)

    def ask(
        self,
        address: str,
        request: Mapping[str, Any],
        read: Callable[[dict[str, Any]], Any],
        max_answer: int,
        *,
        part: int = 0,
        fresh: bool = False,
    ) -> Any:
        """Return what `read` finds in the server's answer to a request.

        Parameters
        ----------
        address
            Address of the protocol.
        request
            The request without the model's name.
        read
            Function from the JSON object of the answer to a value that JSON can hold.
        max_answer
            Largest number of tokens in the answer.
        part
            Where the part of the text begins that `read` is about.
        fresh
            Whether to send the request even if its answer is kept.
        """
        request = {"model": self.model, **request}
        key = self.kept.key(address, request, part)
        kept = None if fresh else self.kept.get(key)
        if kept is not None:
            return kept
        content = json.dumps(request)
        n_characters = sum(map(len, iterate_texts(request.get("messages", request.get("prompt")))))
        with self.usage.reserve(n_characters, max_answer) as used:
            body = self._post(address, content)
            answer = _parse(body)
            if not isinstance(answer, dict):
                form = "JSON" if answer is None else "a completion"
                raise NotSpoken(f"{address} did not return {form}: {self._excerpt(body)}")
            used |= {"answer": 1, **_used_tokens(answer)}
            try:
                value = read(answer)
            except NotInForm:
                raise NotSpoken(f"{address} did not return a completion: {self._excerpt(body)}") from None
            if isinstance(value, str) and "answer" not in _used_tokens(answer):
                used["answer"] = self.usage.estimate_tokens(len(value))
        self.kept.add(key, value)
        return value

    def ask_text(
        self,
        address: str,
        request: Mapping[str, Any],
        read: Callable[[dict[str, Any]], str],
        max_answer: int,
        *,
        fresh: bool = False,
    ) -> str:
        """Return the text that `read` finds in the server's answer to a request; see `ask`."""
        answer = self.ask(address, request, read, max_answer, fresh=fresh)
        if not isinstance(answer, str):
            raise FileError(f"The answers file {str(self.kept.file)!r} is damaged: remove it.")
        return answer

    def _post(self, address: str, content: str) -> bytes:
        """Return the server's answer, retrying requests that fail for a temporary reason."""
        state, pause = vars(self), FIRST_PAUSE
        retries = 0 if state["_is_down"] else self.retries
        for tries in range(1, retries + 2):
            self._sleep_until(state["_resume_at"])
            wait = None
            try:
                response, body = self._post_once(address, content)
            except optional("httpx").RequestError as error:
                reason = f"{type(error).__name__} {error}"
            else:
                status = response.status_code
                if status == HTTPStatus.OK:
                    state["_is_down"] = False
                    return body
                reason = f"{status} {self._reason(body)}"
                if (status < 500 and status not in _TEMPORARY) or status == HTTPStatus.NOT_IMPLEMENTED:
                    raise self._refusal(address, response, reason)
                wait = _seconds_to_wait(response.headers.get("Retry-After", ""))
            if wait is not None and wait > LONGEST_WAIT:
                reason += f"; it asks to wait for {wait:,.0f} s"
                break
            if tries <= retries:
                seconds = min(LONGEST_PAUSE, pause) if wait is None else wait
                level = logging.WARNING if seconds >= _NOTICEABLE else logging.INFO
                logger.log(level, "%s: %s. Retrying in %.1f s.", address, reason, seconds)
                if wait is None:
                    self._sleep_until(time.monotonic() + seconds)
                else:  # all requests wait
                    state["_resume_at"] = max(state["_resume_at"], time.monotonic() + wait)
                pause *= 2
        state["_is_down"] = True  # until a request succeeds, others are not retried
        kept = f" {len(self.kept):,} answers are kept: repeat the call to continue." if len(self.kept) else ""
        raise ModelError(f"{address} did not answer after {tries} tries: {reason}.{kept}")

    def _sleep_until(self, end: float) -> None:
        """Sleep until this time of the monotonic clock; raise an error if the user interrupts the calls."""
        rest = end - time.monotonic()
        if rest > 0 and self.pool.interrupted.wait(rest):
            raise ModelError("The requests were interrupted.")

    def _post_once(self, address: str, content: str) -> tuple[Any, bytes]:
        """Return the response to one request and its body."""
        key = self._key()
        if key and not (key.isascii() and key.isprintable()):
            raise SettingError(f"The environment variable {self.key_variable} must be printable ASCII.")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        end = time.monotonic() + self.timeout
        body = bytearray()
        client = vars(self)["_client"]
        with client.stream("POST", address, content=content, headers=headers) as response:
            for chunk in response.iter_raw():
                body += chunk
                if len(body) > LARGEST_ANSWER:
                    raise ModelError(f"{address} returned more than {LARGEST_ANSWER} bytes.")
                if time.monotonic() > end:
                    raise optional("httpx").ReadTimeout(f"after {self.timeout:g} s")
        return response, bytes(body)

    def _refusal(self, address: str, response: Any, reason: str) -> ModelError | InputError:
        """Return the error for a request that the server rejects."""
        status = response.status_code
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            state = "is set but was rejected" if self._key() else "is not set"
            return KeyRefused(
                f"{address} requires a key: the environment variable {self.key_variable} {state} ({reason})"
            )
        if 300 <= status < 400:
            location = self._excerpt(response.headers.get("Location", ""))
            return ModelError(
                f"{address} redirects to {location}, which was not followed because the key would be sent "
                "there: if you trust that address, pass it as `url`, up to the protocol's version."
            )
        if any(words in reason.lower() for words in _TOO_LONG):
            return InputError(f"The prompt is longer than the context of the model {self.model!r}: {reason}")
        if status == HTTPStatus.NOT_FOUND:
            message = f"{address} does not exist or has no model {self.model!r}: {reason}"
        else:
            message = f"{address} refused the request: {reason}"
        error = RefusedRequest(message)
        error.status, error.reason = status, reason
        return error

    def _key(self) -> str:
        return os.environ.get(self.key_variable, "")

    def _reason(self, body: bytes) -> str:
        """Return the server's explanation of an error."""
        answer = _parse(body)
        error = answer.get("error", answer) if isinstance(answer, dict) else None
        message = error.get("message") if isinstance(error, dict) else error
        return self._excerpt(message if isinstance(message, str) else body)

    def _excerpt(self, text: str | bytes) -> str:
        """Return the beginning of a text of the server, without the key."""
        text = text.decode(errors="replace") if isinstance(text, bytes) else text
        key = self._key()
        return shorten(text.replace(key, "…") if key else text, 301)


class NotInForm(Exception):
    """An answer that lacks what its protocol requires."""


def only_choice(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first choice in an answer of OpenAI's protocols."""
    choices: Any = answer.get("choices")
    if not is_list(choices, dict):
        raise NotInForm
    first: dict[str, Any] = choices[0]
    return first


def text_in(answer: Any, name: str) -> str:
    """Return the text with this name in an answer."""
    text = answer.get(name) if isinstance(answer, Mapping) else None
    if not isinstance(text, str):
        raise NotInForm
    return text


def is_list(value: Any, kind: Any, length: int | None = None) -> bool:
    """Return whether `value` is a list of this kind with `length` elements, or with at least one."""
    return (
        isinstance(value, list)
        and (len(value) == length if length is not None else bool(value))
        and all(isinstance(element, kind) for element in value)
    )


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


def _seconds_to_wait(header: str) -> float | None:
    """Return the seconds in a Retry-After header, a number or a date, or ``None``."""
    if header.isascii() and header.isdecimal():
        seconds = float(header)
    else:
        try:
            date = parsedate_to_datetime(header)
        except ValueError:
            return None
        date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
        seconds = max(0.0, (date - datetime.now(UTC)).total_seconds())
    return seconds if seconds < _DAY else None


def _used_tokens(answer: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of tokens that the server reports."""
    usage: Any = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    names = {
        "prompt": (usage.get("prompt_tokens"), answer.get("prompt_eval_count")),
        "answer": (usage.get("completion_tokens"), answer.get("eval_count")),
    }
    return {
        name: int(count)
        for name, counts in names.items()
        for count in counts
        if isinstance(count, float) and 0 <= count < 1e12
    }


def _parse(body: bytes) -> Any:
    """Return the JSON in a body, with all numbers as floats, or ``None`` if it is not JSON."""
    try:
        return json.loads(body, parse_int=float)
    except (ValueError, RecursionError):
        return None

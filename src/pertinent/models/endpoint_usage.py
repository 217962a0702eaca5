"""Requests and tokens used at an endpoint, a cap on tokens, and answers kept for a repeated call."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pertinent.config.fingerprints import digest
from pertinent.errors import BudgetError, FileError, require

logger = logging.getLogger(__name__)

CHARACTERS_PER_TOKEN, PRIOR_TOKENS = 3.5, 20
"""Assumed number of characters per token, and the number of tokens that the assumption counts as."""

MOST_KEPT = 200_000
"""Largest number of answers kept in memory; the oldest are dropped first."""


class Usage:
    """Requests sent to an endpoint and tokens used by them.

    Attributes
    ----------
    max_total_tokens
        Largest number of tokens to use; ``None`` without a limit. It can be raised between two calls. The
        tokens of a request are estimated before it is sent, so the limit may be exceeded slightly.
    requests, prompt_tokens, answer_tokens
        Numbers so far, as reported by the server; estimated if it reports none.
    """

    def __init__(self, max_total_tokens: int | None = None) -> None:
        require(
            max_total_tokens is None or max_total_tokens > 0, "max_total_tokens", "above 0", max_total_tokens
        )
        self.max_total_tokens = max_total_tokens
        self.requests = self.prompt_tokens = self.answer_tokens = 0
        self._characters = self._counted = self._reserved = 0
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the lock."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes with a new lock."""
        vars(self).update(state, _lock=threading.Lock(), _reserved=0)

    def __repr__(self) -> str:
        tokens = f"{self.prompt_tokens:,} prompt tokens, {self.answer_tokens:,} answer tokens"
        return f"<Usage: {self.requests:,} requests, {tokens}>"

    @property
    def total_tokens(self) -> int:
        """Return the number of tokens of prompts and answers."""
        return self.prompt_tokens + self.answer_tokens

    def estimate_tokens(self, n_characters: int) -> int:
        """Return the expected number of tokens of a text, from the texts sent so far."""
        assumed = PRIOR_TOKENS * CHARACTERS_PER_TOKEN
        ratio = (self._characters + assumed) / (self._counted + PRIOR_TOKENS)
        return round(n_characters / ratio) + 1

    @contextmanager
    def reserve(self, n_characters: int, max_answer: int) -> Iterator[dict[str, int]]:
        """Reserve tokens for a request; the caller puts the numbers of the server into the yielded mapping.

        The keys are ``"prompt"`` and ``"answer"``. A request that fails uses nothing. Raise a `BudgetError`
        if the request may exceed the limit.
        """
        with self._lock:
            expected = self.estimate_tokens(n_characters)
            limit, needed = self.max_total_tokens, expected + max_answer
            if limit is not None and self.total_tokens + self._reserved + needed > limit:
                raise BudgetError(
                    f"`max_total_tokens` is {limit:,}: {self.requests:,} requests used {self.total_tokens:,} "
                    f"tokens, {self._reserved:,} are in use, and the next request may need {needed:,}. All "
                    "answers are kept: raise `model.usage.max_total_tokens` and repeat the call to continue."
                )
            self._reserved += needed
        used: dict[str, int] = {}
        try:
            yield used
        finally:
            with self._lock:
                self._reserved -= needed
                if "answer" in used:
                    self.requests += 1
                    self.prompt_tokens += used.get("prompt", expected)
                    self.answer_tokens += used["answer"]
                    if "prompt" in used:
                        self._characters += n_characters
                        self._counted += used["prompt"]


class KeptAnswers:
    """Answers of an endpoint by request, so that a repeated call sends only the missing requests.

    Parameters
    ----------
    file
        JSON-lines file that also keeps the answers after the process ends; ``None`` for memory only. It holds
        digests of the requests, not their texts.
    """

    def __init__(self, file: str | Path | None = None) -> None:
        self.file = None if file is None else Path(file).resolve()
        self._answers: dict[str, Any] = {}
        self._lock = threading.Lock()
        if self.file is not None:
            self._read(self.file)

    def __getstate__(self) -> dict[str, Any]:
        """Return the file; another process begins without answers in memory."""
        return {"file": self.file}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the file, with no answers."""
        vars(self).update(state, _answers={}, _lock=threading.Lock())

    def __len__(self) -> int:
        return len(self._answers)

    def _read(self, file: Path) -> None:
        try:
            file.touch()
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"The answers file {str(file)!r} cannot be read or written: {error}") from error
        damaged = 0
        for line in lines:
            try:
                entry = json.loads(line)
                self._answers[str(entry["request"])] = entry["answer"]
            except (ValueError, KeyError, TypeError, RecursionError):
                damaged += 1
        if damaged:
            logger.warning("%s: %d damaged lines are ignored and requested again.", file, damaged)

    @staticmethod
    def key(address: str, request: Mapping[str, Any], part: int = 0) -> str:
        """Return the key of a request: the digest of the address, the request and the part that is read."""
        return digest(address, json.dumps(request, sort_keys=True), part).hex()

    def get(self, key: str) -> Any:
        """Return the answer to a request, or ``None``."""
        return self._answers.get(key)

    def add(self, key: str, answer: Any) -> None:
        """Keep the answer to a request."""
        with self._lock:
            self._answers[key] = answer
            while len(self._answers) > MOST_KEPT:
                del self._answers[next(iter(self._answers))]
            if self.file is not None:
                line = json.dumps({"request": key, "answer": answer})
                with self.file.open("a", encoding="utf-8") as stream:
                    stream.write(line + "\n")

"""Values of newly written answers: how similar each is to the explained answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from pertinent.array_types import Floats
from pertinent.errors import ModelError, SettingError, unknown

Value: TypeAlias = Callable[[str, str], float]
"""Function from the explained answer and a new answer to a number."""

Encoder: TypeAlias = Callable[[list[str]], Any]
"""Function from texts to rows of numbers, such as the ``encode`` of a sentence-transformers model."""


def overlap(answer: str, new: str) -> float:
    """Return the F1 score between the words of two answers.

    >>> overlap("Bob", "Bob keeps it")
    0.5
    """
    reference, words = Counter(answer.casefold().split()), Counter(new.casefold().split())
    n_shared, n_words = (reference & words).total(), reference.total() + words.total()
    return 2 * n_shared / n_words if n_words else 1.0


def exact_match(answer: str, new: str) -> float:
    """Return 1 if two answers have the same words, without regard to case and a final period, else 0.

    >>> exact_match("in Rome.", " In Rome")
    1.0
    """
    return float(_words(answer) == _words(new))


def _words(answer: str) -> list[str]:
    return answer.casefold().strip().removesuffix(".").split()


VALUES: dict[str, Value] = {"overlap": overlap, "exact-match": exact_match}
EMBEDDING = "embedding"


class AnswerValues:
    """The value of each of several new answers.

    Parameters
    ----------
    value
        ``"overlap"``, ``"exact-match"``, ``"embedding"``, or a function of the explained and a new answer.
    encoder
        Function from texts to vectors for ``"embedding"``, or an object with such a method ``encode``.
    """

    def __init__(self, value: str | Value, encoder: Any = None) -> None:
        names = [*VALUES, EMBEDDING]
        if isinstance(value, str) and value not in names:
            raise unknown("value of new answers", value, names)
        if not callable(value) and not isinstance(value, str):
            raise SettingError(
                f"`value` must be one of {', '.join(names)}, or a function of the explained answer and a new "
                f"answer that returns a number, but got {type(value).__name__}."
            )
        if (value == EMBEDDING) != (encoder is not None):
            raise SettingError(
                "value='embedding' needs `encoder`, a function from a list of texts to vectors, such as the "
                "`encode` of a sentence-transformers model; other values need none."
            )
        self.name = value if isinstance(value, str) else getattr(value, "__name__", type(value).__name__)
        self.name = "value" if self.name == "<lambda>" else self.name
        self.value = VALUES.get(value, value) if isinstance(value, str) else value
        self.encoder = getattr(encoder, "encode", encoder)

    @property
    def is_similarity(self) -> bool:
        """Return whether equal answers have the value 1, as with all values but a user's function."""
        return self.encoder is not None or self.value in VALUES.values()

    def identity(self) -> object:
        """Return the functions that decide the values."""
        return self.name, self.value, self.encoder

    def __call__(self, answer: str, new: Sequence[str]) -> Floats:
        """Return a value for each new answer."""
        if self.encoder is not None:
            return self._similarities(answer, list(new))
        assert callable(self.value)
        values = [self.value(answer, each) for each in new]
        try:
            numbers = np.array([float(value) for value in values])
        except (TypeError, ValueError):
            numbers = np.array([np.nan])
        if not np.isfinite(numbers).all():
            raise ModelError(f"`value` must return a finite number for each answer, but returned {values}.")
        return numbers

    def _similarities(self, answer: str, new: list[str]) -> Floats:
        """Return the cosine similarity between the vectors of the explained answer and of each new one."""
        texts = list(dict.fromkeys([answer, *new]))
        vectors = np.asarray(self.encoder(texts), dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise ModelError(
                f"`encoder` must return one vector of finite numbers for each of {len(texts)} texts, but "
                f"returned shape {vectors.shape}."
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        similarity = dict(zip(texts, (vectors @ vectors[0]).tolist(), strict=True))
        return np.array([similarity[text] for text in new])

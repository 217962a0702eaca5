"""What NLTK knows of English words: stop words and WordNet's senses."""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any, NamedTuple

from pertinent._optional import optional
from pertinent.errors import FileError

_READING = Lock()
"""NLTK's corpora can be read by one thread at a time."""


class Senses(NamedTuple):
    """The senses (synsets) of a word, and those that WordNet calls similar to one of them."""

    own: frozenset[str]
    similar: frozenset[str]


@cache
def stop_words() -> frozenset[str]:
    """NLTK's English stop words, in lower case."""
    with _READING:
        return frozenset(_corpus("stopwords").words("english"))


@cache
def senses(word: str) -> Senses:
    """The senses of a word in any of its forms."""
    with _READING:
        own = _corpus("wordnet").synsets(word)
        similar = [other for sense in own for other in sense.similar_tos()]
    return Senses(frozenset(sense.name() for sense in own), frozenset(sense.name() for sense in similar))


def is_punctuation(word: str) -> bool:
    """Whether nothing in it is a letter or a digit.

    >>> is_punctuation("…"), is_punctuation("B-"), is_punctuation("7")
    (True, False, False)
    """
    return not any(character.isalnum() for character in word)


def _corpus(name: str) -> Any:
    """A corpus of NLTK's, loaded; an error says how to get it."""
    corpus = getattr(optional("nltk.corpus"), name)
    try:
        corpus.ensure_loaded()
    except LookupError as error:
        raise FileError(
            f"NLTK's data {name!r} are missing: python -m nltk.downloader {name}, or set the environment "
            "variable NLTK_DATA to the folder that holds them."
        ) from error
    return corpus

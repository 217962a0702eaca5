"""The class of an English word, from WordNet's counts and a list of function words.

A lexicon in place of a tagger: a word has the class that it has most often, whatever stands around it.
"""

from __future__ import annotations

import re
import zipfile
from collections import defaultdict
from functools import cached_property
from pathlib import Path

KINDS = {"1": "noun", "2": "verb", "3": "adjective", "4": "adverb", "5": "adjective"}
FILES = {"noun": "noun", "verb": "verb", "adj": "adjective", "adv": "adverb"}
# As WordNet's morphy: an ending and what it becomes.
ENDINGS = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adjective": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adverb": (),
}
NEGATIONS = frozenset(
    {"no", "not", "nor", "never", "none", "nothing", "nobody", "neither", "without", "cannot", "t"}
)


class WordClasses:
    """Reads ``corpora/wordnet.zip`` and ``corpora/stopwords.zip`` of a folder with NLTK's data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "corpora"

    def __call__(self, word: str, *, first: bool = False) -> str:
        """Return the class of a word; a capital marks a name, unless the word is the first of its text."""
        lower = word.lower()
        if not re.search(r"\w", word):
            return "punctuation"
        if re.search(r"\d", word):
            return "number"
        if lower in NEGATIONS:
            return "negation"
        if lower in self._function_words:
            return "function"
        if word[0].isupper() and not first:
            return "name"
        counts = {kind: self._count(lower, kind) for kind in ENDINGS}
        best = max(counts, key=lambda kind: counts[kind])
        return best if counts[best] else "other"

    def _count(self, word: str, kind: str) -> float:
        bases = {word, self._exceptions[kind].get(word, word)}
        bases |= {word.removesuffix(end) + new for end, new in ENDINGS[kind] if word.endswith(end)}
        return max(self._counts[kind].get(base, 0.0) for base in bases)

    @cached_property
    def _function_words(self) -> frozenset[str]:
        with zipfile.ZipFile(self.folder / "stopwords.zip") as archive:
            return frozenset(archive.read("stopwords/english").decode().split())

    @cached_property
    def _counts(self) -> dict[str, dict[str, float]]:
        """How often each base form was seen as each class, and a little more if it is listed."""
        found: dict[str, dict[str, float]] = {kind: defaultdict(float) for kind in ENDINGS}
        with zipfile.ZipFile(self.folder / "wordnet.zip") as archive:
            for line in archive.read("wordnet/cntlist.rev").decode().splitlines():
                sense, _, count = line.split()
                base, _, rest = sense.partition("%")
                found[KINDS[rest[0]]][base] += int(count)
            for file, kind in FILES.items():
                for line in archive.read(f"wordnet/index.{file}").decode().splitlines():
                    if not line.startswith(" "):
                        found[kind][line.split()[0]] += 0.5
        return found

    @cached_property
    def _exceptions(self) -> dict[str, dict[str, str]]:
        """Irregular forms and their base forms."""
        found = {}
        with zipfile.ZipFile(self.folder / "wordnet.zip") as archive:
            for file, kind in FILES.items():
                lines = archive.read(f"wordnet/{file}.exc").decode().splitlines()
                found[kind] = dict(line.split()[:2] for line in lines if len(line.split()) > 1)
        return found

"""Questions about a context whose answer is known to come from one of its sentences."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from texts import END
from tokenizers import Tokenizer

KINDS = ("continue", "cloze", "find", "squad")
"""How a sentence is asked for.

``"continue"`` quotes its first words and wants the next; ``"cloze"`` has a gap in some of its words;
``"find"`` names some of its words in random order and wants its beginning; ``"squad"`` asks a question that a
person wrote.
"""

GAP = "___"


@dataclass(frozen=True)
class Question:
    """A question, its answer, and the sentence that it is about."""

    kind: str
    text: str
    answer: str
    sentence: str


@dataclass(frozen=True)
class Example:
    """A question with its context; `right` are the places of the sentences with the answer."""

    question: Question
    sentences: tuple[str, ...]
    right: tuple[int, ...]


@dataclass(frozen=True)
class Texts:
    """Documents, each a list of sentences, and the questions of SQuAD about them."""

    documents: list[list[str]]
    questions: dict[int, list[Question]]

    @cached_property
    def with_questions(self) -> list[int]:
        """The numbers of documents that people asked about."""
        return list(self.questions)

    @classmethod
    def read(cls, folder: Path, *, held_out: bool) -> Texts:
        """Those to train on, or those held out."""
        packed: dict[str, Any] = json.loads(lzma.decompress((folder / "texts.json.xz").read_bytes()))
        documents = packed["held_out" if held_out else "train"]
        questions: dict[int, list[Question]] = {}
        for number, text, answer, place in packed["held_questions" if held_out else "questions"]:
            made = Question("squad", text, answer, documents[number][place])
            questions.setdefault(number, []).append(made)
        return cls(documents, questions)


def asked(kind: str, sentence: str, rng: random.Random) -> Question:
    """A question of this kind about a sentence."""
    words = sentence.split()
    if kind == "continue":
        n = rng.randint(3, max(3, min(6, len(words) - 2)))
        return Question(kind, f"Continue: {' '.join(words[:n])}", " ".join(words[n : n + 6]), sentence)
    if kind == "cloze":
        start = rng.randint(1, len(words) - 2)
        end = min(len(words), start + rng.randint(1, 3))
        shown = [*words[max(0, start - 5) : start], GAP, *words[end : end + 5]]
        return Question(kind, f"Fill in: {' '.join(shown)}", " ".join(words[start:end]), sentence)
    named = sorted(set(words), key=len)[-6:]
    chosen = rng.sample(named, min(4, len(named)))
    return Question("find", f"Find: {' '.join(chosen)}", " ".join(words[:6]), sentence)


def example(texts: Texts, kind: str, n_sentences: int, rng: random.Random, *, twice: bool = False) -> Example:
    """A question about a context of `n_sentences` sentences from several documents.

    If `twice`, the sentence with the answer is repeated elsewhere. The answer is in no other sentence.
    """
    while True:
        if kind == "squad":
            number = rng.choice(texts.with_questions)
            question = rng.choice(texts.questions[number])
        else:
            number = rng.randrange(len(texts.documents))
            if not texts.documents[number]:  # none of its sentences fits
                continue
            question = asked(kind, rng.choice(texts.documents[number]), rng)
        parts, n = [list(texts.documents[number][:n_sentences])], len(texts.documents[number])
        if question.sentence not in parts[0]:
            continue
        while n < n_sentences:
            more = rng.choice(texts.documents)[: n_sentences - n]
            parts.append(more)
            n += len(more)
        rng.shuffle(parts)
        context = [sentence for part in parts for sentence in part]
        if twice:
            context.insert(rng.randrange(len(context) + 1), question.sentence)
        right = tuple(i for i, sentence in enumerate(context) if sentence == question.sentence)
        held = sum(f" {question.answer}" in f" {sentence}" for sentence in context)
        if held == len(right) == (2 if twice else 1):
            return Example(question, tuple(context), right)


class Spelling:
    """Token ids of words, which the tokenizer never joins."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.end = self.tokenizer.token_to_id(END)
        self.ids = lru_cache(maxsize=None)(self._ids)

    def _ids(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def words(self, text: str) -> list[int]:
        """The ids of a text that follows a space."""
        return [number for word in text.split() for number in self.ids(f" {word}")]


def block(
    texts: Texts, n_sentences: int, n_questions: int, rng: random.Random, spelling: Spelling
) -> tuple[list[int], list[bool]]:
    """A context with questions and answers about it to train on: ids, and which belong to an answer."""
    parts: list[tuple[int, Sequence[str]]] = []
    n = 0
    while n < n_sentences:
        number = _drawn(texts, rng)
        more = texts.documents[number][: n_sentences - n]
        parts.append((number, more))
        n += len(more)
    context = [sentence for _, part in parts for sentence in part]
    if rng.random() < 0.3:
        rng.shuffle(context)
    ids = [spelling.end, *spelling.ids("Context:")]
    for sentence in context:
        ids += spelling.words(sentence)
    is_answer = [False] * len(ids)
    people = [
        own for number, _ in parts for own in texts.questions.get(number, ()) if own.sentence in context
    ]
    for _ in range(n_questions):
        if people and rng.random() < 0.4:
            question = rng.choice(people)
        else:
            question = asked(rng.choice(KINDS[:3]), rng.choice(context), rng)
        before = [*spelling.ids("\n\nQ:"), *spelling.words(question.text), *spelling.ids("\nA:")]
        answer = [*spelling.words(question.answer), spelling.end]
        ids += before + answer
        is_answer += [False] * len(before) + [True] * len(answer)
    return ids, is_answer


def _drawn(texts: Texts, rng: random.Random) -> int:
    """A document; one that people asked about with a probability of 0.3 at least."""
    if rng.random() < 0.3:
        return rng.choice(texts.with_questions)
    return rng.randrange(len(texts.documents))

"""Questions about a context, each with the sentence that has the answer."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from experiments.generative.texts import END

KINDS = ("continue", "cloze", "find", "squad")
"""Kinds of questions about a sentence.

``"continue"`` quotes the first words and requests the next; ``"cloze"`` has a gap in some of the words;
``"find"`` names some of the words in random order and requests the first ones; ``"squad"`` is a question that
a person wrote.
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
    """A question with its context; `right` has the indices of the sentences with the answer."""

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
        """Return the indices of documents with questions of SQuAD."""
        return list(self.questions)

    @classmethod
    def read(cls, folder: Path, *, held_out: bool) -> Texts:
        """Return the texts for training, or those held out."""
        packed: dict[str, Any] = json.loads(lzma.decompress((folder / "texts.json.xz").read_bytes()))
        documents = packed["held_out" if held_out else "train"]
        questions: dict[int, list[Question]] = {}
        for index, text, answer, i in packed["held_questions" if held_out else "questions"]:
            question = Question("squad", text, answer, documents[index][i])
            questions.setdefault(index, []).append(question)
        return cls(documents, questions)


def ask(kind: str, sentence: str, rng: random.Random) -> Question:
    """Return a question of this kind about a sentence."""
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


def draw_example(
    texts: Texts, kind: str, n_sentences: int, rng: random.Random, *, twice: bool = False
) -> Example:
    """Return a question about a context of `n_sentences` sentences from several documents.

    If `twice`, the sentence with the answer is repeated elsewhere. The answer is in no other sentence.
    """
    while True:
        if kind == "squad":
            index = rng.choice(texts.with_questions)
            question = rng.choice(texts.questions[index])
        else:
            index = rng.randrange(len(texts.documents))
            if not texts.documents[index]:  # has no suitable sentence
                continue
            question = ask(kind, rng.choice(texts.documents[index]), rng)
        parts, n = [list(texts.documents[index][:n_sentences])], len(texts.documents[index])
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
        n_holders = sum(f" {question.answer}" in f" {sentence}" for sentence in context)
        if n_holders == len(right) == (2 if twice else 1):
            return Example(question, tuple(context), right)


class Spelling:
    """Token ids of texts, computed once for each word; the tokenizer never joins words."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.end = self.tokenizer.token_to_id(END)
        self.ids = lru_cache(maxsize=None)(self._ids)

    def _ids(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def words(self, text: str) -> list[int]:
        """Return the ids of a text that follows a space."""
        return [token for word in text.split() for token in self.ids(f" {word}")]


def draw_block(
    texts: Texts, n_sentences: int, n_questions: int, rng: random.Random, spelling: Spelling
) -> tuple[list[int], list[bool]]:
    """Return a context with questions and answers for training: ids, and which of them belong to answers."""
    parts: list[tuple[int, Sequence[str]]] = []
    n = 0
    while n < n_sentences:
        index = _draw_document(texts, rng)
        more = texts.documents[index][: n_sentences - n]
        parts.append((index, more))
        n += len(more)
    context = [sentence for _, part in parts for sentence in part]
    if rng.random() < 0.3:
        rng.shuffle(context)
    ids = [spelling.end, *spelling.ids("Context:")]
    for sentence in context:
        ids += spelling.words(sentence)
    is_answer = [False] * len(ids)
    by_people = [q for index, _ in parts for q in texts.questions.get(index, ()) if q.sentence in context]
    for _ in range(n_questions):
        if by_people and rng.random() < 0.4:
            question = rng.choice(by_people)
        else:
            question = ask(rng.choice(KINDS[:3]), rng.choice(context), rng)
        before = [*spelling.ids("\n\nQ:"), *spelling.words(question.text), *spelling.ids("\nA:")]
        answer = [*spelling.words(question.answer), spelling.end]
        ids += before + answer
        is_answer += [False] * len(before) + [True] * len(answer)
    return ids, is_answer


def _draw_document(texts: Texts, rng: random.Random) -> int:
    """Return the index of a document; with a probability of at least 0.3 one with questions of SQuAD."""
    if rng.random() < 0.3:
        return rng.choice(texts.with_questions)
    return rng.randrange(len(texts.documents))

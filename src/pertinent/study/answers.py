"""The answers of a study: a file for each person, to which each answer is added before the next question."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from pertinent.control_characters import shortened
from pertinent.decoding import PlainData, encode
from pertinent.errors import FileError, InputError
from pertinent.study.design import ANSWERS, Question, Study

_NAME = re.compile(r"[^\W_](?:[\w .'-]{0,38}[\w.'-])?")
"""Nicknames: up to 40 letters, digits, spaces and a few signs."""


@dataclass
class Person:
    """Somebody who takes part, by a nickname, and the answers so far, in the order of the questions."""

    number: int
    name: str
    questions: list[Question]
    answers: list[Any] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """Whether every question is answered."""
        return len(self.answers) == len(self.questions)

    @property
    def failed_checks(self) -> int:
        """How many attention checks were answered wrongly."""
        given = zip(self.questions, self.answers, strict=False)
        return sum(q.kind == "check" and answer != q.grade for q, answer in given)


class Answers:
    """The people of a study and their answers, in memory and on disk.

    A file has a line of JSON with the nickname and the questions, and one for each answer. A line is forced
    to the disk before the answer counts; one that was cut off, when a machine or a disk failed, is dropped.
    One process writes.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self._folder = study.folder / ANSWERS
        self._lock = Lock()
        self.people: dict[str, Person] = {}
        for path in sorted(self._folder.glob("*.jsonl")):
            person = self._read(path)
            if person is not None:
                self.people[person.name.casefold()] = person

    def person(self, name: str) -> Person | None:
        """Somebody who has begun; upper and lower case are the same name."""
        return self.people.get(clean_name(name).casefold())

    def enter(self, name: str) -> Person:
        """Somebody new, or who has begun already."""
        name = clean_name(name)
        with self._lock:
            if (known := self.people.get(name.casefold())) is not None:
                return known
            self._folder.mkdir(exist_ok=True)
            number = 1 + max((each.number for each in self.people.values()), default=-1)
            while (path := self._path(number)).exists():  # one whose name was never written
                number += 1
            person = Person(number, name, self.study.questions(number))
            _append(path, {"person": name, "questions": encode(person.questions)})
            _sync_folder(self._folder)
            self.people[name.casefold()] = person
            return person

    def record(self, person: Person, number: int, given: Any) -> bool:
        """Keep an answer to the question of this number; whether it was the one to be answered.

        One that is sent twice is kept once.
        """
        with self._lock:
            if number != len(person.answers) or person.is_done:
                return False
            question = person.questions[number]
            answer = self.study.checked_answer(question, given)
            line = {"question": number, **encode(question), "answer": answer}
            _append(self._path(person.number), line)
            person.answers.append(answer)
            return True

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:05d}.jsonl"

    def _read(self, path: Path) -> Person | None:
        """The person of a file; nothing if not even the name was written."""
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        lines = whole.splitlines()
        if not lines:
            return None
        try:
            first = PlainData(json.loads(lines[0]), "person")
            questions = list(first.value("questions", tuple[Question, ...]))
            for question in questions:
                self.study.check(question)
            person = Person(int(path.stem), first.text("person"), questions)
            for i, line in enumerate(lines[1:]):
                plain = PlainData(json.loads(line), "answer")
                question = person.questions[i]
                if {name: plain.value(name) for name in encode(question)} != encode(question):
                    raise InputError("it is not about the question that was asked")
                person.answers.append(self.study.checked_answer(question, plain.value("answer")))
        except (ValueError, IndexError) as error:
            raise FileError(f"{str(path)!r} is damaged: {error}") from error
        return person


def clean_name(name: str) -> str:
    """A nickname with single spaces; an `InputError` says what it must be."""
    cleaned = " ".join(name.split())
    if not _NAME.fullmatch(cleaned):
        raise InputError(
            "A nickname must be 1 to 40 letters, digits, spaces and . ' - _, and begin with a letter or a "
            f"digit, but got {shortened(repr(name), 60)}."
        )
    return cleaned


def _append(path: Path, plain: Any) -> None:
    """Add a line and force it to the disk; if that fails, the file is as it was."""
    data = (json.dumps(plain, ensure_ascii=False) + "\n").encode()
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            size = _whole(file)
            try:
                os.lseek(file, size, os.SEEK_SET)
                if os.write(file, data) != len(data):
                    raise OSError("the disk is full")  # noqa: TRY301
                os.fsync(file)
            except BaseException:
                os.ftruncate(file, size)
                raise
        finally:
            os.close(file)
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be written: {error.strerror or error}.") from error


def _whole(file: int) -> int:
    """The size of a file up to its last whole line; what comes after it is cut off."""
    size = os.fstat(file).st_size
    data = os.pread(file, size, 0)
    end = data.rfind(b"\n") + 1
    if end < size:
        os.ftruncate(file, end)
    return end


def _sync_folder(folder: Path) -> None:
    """Force the name of a new file to the disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)

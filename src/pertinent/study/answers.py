"""The answers of a study: a file for each person, to which each answer is added before the next question."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from pertinent.config.serialization import Index, encode
from pertinent.errors import FileError, InputError
from pertinent.files import make_folder, sync
from pertinent.printable import shorten
from pertinent.study.checksums import add_checksum, verify_checksum
from pertinent.study.design import ANSWERS, Study, StudyQuestion

logger = logging.getLogger(__name__)

_NAME = re.compile(r"[^\W_](?:[\w .'-]{0,38}[\w.'-])?")
"""Nicknames: up to 40 letters, digits, spaces and a few signs."""


@dataclass
class Person:
    """A participant with a nickname, and the answers so far, in the order of the questions.

    `damaged` holds the numbers of the questions whose answers can no longer be read; their entry in `answers`
    is None.
    """

    number: int
    name: str
    questions: list[StudyQuestion]
    answers: list[Any] = field(default_factory=list)
    damaged: set[int] = field(default_factory=set)

    @property
    def is_done(self) -> bool:
        """Whether every question is answered."""
        return len(self.answers) == len(self.questions)

    @property
    def answered(self) -> Iterator[tuple[StudyQuestion, Any]]:
        """The questions that were answered and the answers, except damaged ones."""
        for number, pair in enumerate(zip(self.questions, self.answers, strict=False)):
            if number not in self.damaged:
                yield pair

    @property
    def failed_checks(self) -> int:
        """How many attention checks were answered wrongly."""
        return sum(
            question.kind == "check" and answer != question.grade for question, answer in self.answered
        )


class Answers:
    """The people of a study and their answers, in memory and on disk.

    A file has a line of JSON with the nickname and the questions, and one for each answer, each with a
    checksum. A line is forced to the disk before the answer counts. `damaged` describes the lines that cannot
    be read; the others are kept. One process writes.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self._folder = study.folder / ANSWERS
        self._lock = Lock()
        self.people: dict[str, Person] = {}
        self.damaged: list[str] = []
        for path in sorted(self._folder.glob("*.jsonl")):
            person = self._read(path)
            if person is not None:
                self.people[person.name.casefold()] = person
        for line in self.damaged:
            logger.warning("A damaged line in the answers of %r is omitted: %s", str(study.folder), line)

    def person(self, name: str) -> Person | None:
        """Somebody who has begun; upper and lower case are the same name."""
        return self.people.get(clean_name(name).casefold())

    def enter(self, name: str) -> Person:
        """Somebody new, or who has begun already."""
        name = clean_name(name)
        with self._lock:
            if (known := self.people.get(name.casefold())) is not None:
                return known
            make_folder(self._folder)
            number = 1 + max((each.number for each in self.people.values()), default=-1)
            while (path := self._path(number)).exists():  # one whose name was never written
                number += 1
            person = Person(number, name, self.study.questions(number))
            _append(path, {"person": name, "questions": encode(person.questions)})
            sync(self._folder)
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
        """Read the file of a person; return None if the line with the name is missing or damaged."""
        *lines, rest = path.read_bytes().split(b"\n")
        person = None
        for number, line in enumerate(lines):
            with self._noting_damage(path, number):
                if number == 0:
                    person = self._read_person(path, line)
                elif person is not None:
                    self._read_answer(person, line)
        if rest:
            self._note_damage(path, len(lines), "it was cut off")
        return person

    def _read_person(self, path: Path, line: bytes) -> Person:
        data = verify_checksum(json.loads(line), "person")
        questions = list(data.value("questions", tuple[StudyQuestion, ...]))
        for question in questions:
            self.study.check(question)
        return Person(int(path.stem), data.text("person"), questions)

    def _read_answer(self, person: Person, line: bytes) -> None:
        data = verify_checksum(json.loads(line), "answer")
        number, n_read = data.value("question", Index), len(person.answers)
        if not n_read <= number < len(person.questions):
            raise InputError(f"question {number} is answered already or was not asked")
        question = person.questions[number]
        if {name: data.value(name) for name in encode(question)} != encode(question):
            raise InputError("it is not about the question that was asked")
        answer = self.study.checked_answer(question, data.value("answer"))
        person.damaged.update(range(n_read, number))
        person.answers += [*[None] * (number - n_read), answer]

    @contextmanager
    def _noting_damage(self, path: Path, line: int) -> Iterator[None]:
        try:
            yield
        except (ValueError, RecursionError) as error:
            self._note_damage(path, line, str(error))

    def _note_damage(self, path: Path, line: int, reason: str) -> None:
        effect = "" if line else "; all answers of this person are omitted"
        self.damaged.append(f"{path.name}, line {line + 1}: {reason}{effect}")


def clean_name(name: str) -> str:
    """A nickname with single spaces; an `InputError` says what it must be."""
    cleaned = " ".join(name.split())
    if not _NAME.fullmatch(cleaned):
        raise InputError(
            "A nickname must be 1 to 40 letters, digits, spaces and . ' - _, and begin with a letter or a "
            f"digit, but got {shorten(repr(name), 60)}."
        )
    return cleaned


def _append(path: Path, plain: Mapping[str, Any]) -> None:
    """Add a line and force it to the disk; if that fails, the file is as it was."""
    data = (json.dumps(add_checksum(plain), ensure_ascii=False) + "\n").encode()
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

"""Answers of a study: one file per participant, to which each answer is appended immediately."""

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
"""Valid nicknames: up to 40 letters, digits, spaces and some punctuation."""


@dataclass
class Person:
    """A participant with a nickname, and the answers so far, in the order of the questions.

    `damaged` holds the indices of the questions with unreadable answers, which are ``None`` in `answers`.
    """

    number: int
    name: str
    questions: list[StudyQuestion]
    answers: list[Any] = field(default_factory=list)
    damaged: set[int] = field(default_factory=set)

    @property
    def is_done(self) -> bool:
        """Whether all questions are answered."""
        return len(self.answers) == len(self.questions)

    @property
    def answered(self) -> Iterator[tuple[StudyQuestion, Any]]:
        """Pairs of question and answer, without damaged answers."""
        for number, pair in enumerate(zip(self.questions, self.answers, strict=False)):
            if number not in self.damaged:
                yield pair

    @property
    def failed_checks(self) -> int:
        """Number of failed attention checks."""
        return sum(
            question.kind == "check" and answer != question.grade for question, answer in self.answered
        )


class Answers:
    """Participants of a study and their answers, in memory and on disk.

    A file has a line of JSON with the nickname and the questions, and a line for each answer, each with a
    checksum. A line is synced to disk before the answer is accepted. `damaged` describes unreadable lines,
    which are omitted. Only one process may write.
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
        """Return the participant with this nickname (case-insensitive), if there is one."""
        return self.people.get(clean_name(name).casefold())

    def enter(self, name: str) -> Person:
        """Return the participant with this nickname, after adding a new one if needed."""
        name = clean_name(name)
        with self._lock:
            if (existing := self.people.get(name.casefold())) is not None:
                return existing
            make_folder(self._folder)
            number = 1 + max((person.number for person in self.people.values()), default=-1)
            while (path := self._path(number)).exists():  # a file without a readable name
                number += 1
            person = Person(number, name, self.study.questions(number))
            _append(path, {"person": name, "questions": encode(person.questions)})
            sync(self._folder)
            self.people[name.casefold()] = person
            return person

    def record(self, person: Person, number: int, answer: Any) -> bool:
        """Save the answer to the question with this index; return False unless it is the current question.

        A second submission of the same form is thus ignored.
        """
        with self._lock:
            if number != len(person.answers) or person.is_done:
                return False
            question = person.questions[number]
            answer = self.study.check_answer(question, answer)
            line = {"question": number, **encode(question), "answer": answer}
            _append(self._path(person.number), line)
            person.answers.append(answer)
            return True

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:05d}.jsonl"

    def _read(self, path: Path) -> Person | None:
        """Return the participant in a file; None if the line with the nickname is missing or damaged."""
        *lines, rest = path.read_bytes().split(b"\n")
        person = None
        for number, line in enumerate(lines):
            with self._record_damage(path, number):
                if number == 0:
                    person = self._read_person(path, line)
                elif person is not None:
                    self._read_answer(person, line)
        if rest:
            self._add_damage(path, len(lines), "it was cut off")
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
            raise InputError(f"question {number} has an answer already or does not exist")
        question = person.questions[number]
        if {name: data.value(name) for name in encode(question)} != encode(question):
            raise InputError("its question differs from that of the participant")
        answer = self.study.check_answer(question, data.value("answer"))
        person.damaged.update(range(n_read, number))
        person.answers += [*[None] * (number - n_read), answer]

    @contextmanager
    def _record_damage(self, path: Path, line: int) -> Iterator[None]:
        try:
            yield
        except (ValueError, RecursionError) as error:
            self._add_damage(path, line, str(error))

    def _add_damage(self, path: Path, line: int, reason: str) -> None:
        effect = "" if line else "; all answers of this person are omitted"
        self.damaged.append(f"{path.name}, line {line + 1}: {reason}{effect}")


def clean_name(name: str) -> str:
    """Return a nickname with single spaces; raise an `InputError` if it is invalid."""
    cleaned = " ".join(name.split())
    if not _NAME.fullmatch(cleaned):
        raise InputError(
            "A nickname must be 1 to 40 letters, digits, spaces and . ' - _, and begin with a letter or a "
            f"digit, got {shorten(repr(name), 60)}."
        )
    return cleaned


def _append(path: Path, plain: Mapping[str, Any]) -> None:
    """Append a line and sync it to disk; restore the file if that fails."""
    data = (json.dumps(add_checksum(plain), ensure_ascii=False) + "\n").encode()
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            size = _truncate_to_last_line(file)
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


def _truncate_to_last_line(file: int) -> int:
    """Remove an incomplete last line from a file, and return the size of the rest."""
    size = os.fstat(file).st_size
    data = os.pread(file, size, 0)
    end = data.rfind(b"\n") + 1
    if end < size:
        os.ftruncate(file, end)
    return end

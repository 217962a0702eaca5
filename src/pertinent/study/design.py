"""Design of a study: its explanations, and the questions of each participant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import lcm
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from pertinent.array_types import Ints
from pertinent.config.fingerprints import generator
from pertinent.config.serialization import Index, decode, encode
from pertinent.config.settings import Count, Seed
from pertinent.errors import FileError, InputError
from pertinent.files import file_exists, make_folder, read_json, write_json
from pertinent.inputs.modality import modality_named
from pertinent.results.explanation import Explanation, Explanations
from pertinent.study.checksums import add_checksum, verify_checksum

Kind: TypeAlias = Literal["guess", "prefer", "mark", "rate"]
KINDS: tuple[Kind, ...] = get_args(Kind)

FORMAT = "pertinent study 1"
DESCRIPTION, EXPLANATIONS, ANSWERS = "study.json", "explanations.parquet", "answers"

GRADES = (1, 2, 3, 4, 5)
"""Answers to a rating question and to an attention check."""


@dataclass(frozen=True)
class StudyQuestion:
    """A question for one participant.

    Attributes
    ----------
    kind
        ``"guess"`` the model's class from the highlighted features only, ``"prefer"`` one of two
        explanations, ``"mark"`` the features that matter, ``"rate"`` an explanation from 1 to 5; ``"check"``
        is an attention check, which asks for a specified grade.
    input
        The index of the input.
    methods
        The indices of the methods whose explanations are shown, from left to right.
    grade
        The correct answer of an attention check.
    """

    kind: Literal["guess", "prefer", "mark", "rate", "check"]
    input: Index = 0
    methods: tuple[Index, ...] = ()
    grade: Index = 0


@dataclass(frozen=True)
class StudyDescription:
    """Settings of a study, fixed at its creation; `id` is unique."""

    id: str
    title: str
    kinds: tuple[Kind, ...]
    methods: tuple[str, ...]
    inputs: Count
    top: Count
    checks: Index
    seed: Seed


class Study:
    """A study in a folder.

    The folder has ``study.json`` (the description), ``explanations.parquet`` (sorted by input, then method),
    and ``answers`` with a file for each participant.
    """

    def __init__(
        self, folder: Path, description: StudyDescription, explanations: Sequence[Explanation]
    ) -> None:
        self.folder, self.description = folder, description
        step = len(description.methods)
        self.explanations = [explanations[i : i + step] for i in range(0, len(explanations), step)]

    @property
    def nouns(self) -> tuple[str, str]:
        """Everyday nouns for an input and for one of its features."""
        return modality_named(self.explanations[0][0].input.kind).nouns

    def __repr__(self) -> str:
        description = self.description
        kinds, methods = ", ".join(description.kinds), ", ".join(description.methods)
        return f"<Study of {description.inputs} inputs: {kinds}; methods: {methods}>"

    @classmethod
    def read(cls, folder: str | Path) -> Study:
        """Read a study that `create_study` made."""
        path = Path(folder)
        if not file_exists(path / DESCRIPTION):
            raise FileError(f"{str(folder)!r} is not a study: create one with `pertinent study create`.")
        plain = read_json(path / DESCRIPTION)
        try:
            verify_checksum(plain, "study").text("format", (FORMAT,))
            description = decode(StudyDescription, plain)
        except (InputError, RecursionError) as error:
            raise FileError(f"{str(path / DESCRIPTION)!r} is damaged or not a study: {error}") from error
        explanations = Explanations.read(path / EXPLANATIONS)
        if len(explanations) != description.inputs * len(description.methods):
            raise FileError(f"{str(folder)!r} is damaged: the number of its explanations is wrong.")
        return cls(path, description, list(explanations))

    def write(self) -> None:
        """Write the folder, which must be new or empty."""
        make_folder(self.folder)
        if any(self.folder.iterdir()):
            raise FileError(f"The folder of a study must be new or empty, but {str(self.folder)!r} is not.")
        (self.folder / ANSWERS).mkdir()
        Explanations([e for by_method in self.explanations for e in by_method]).save(
            self.folder / EXPLANATIONS
        )
        # Last, because a folder with a description counts as a complete study.
        plain = add_checksum({"format": FORMAT, **encode(self.description)})
        write_json(self.folder / DESCRIPTION, plain)

    def highlighted(self, input: int, method: int) -> Ints:
        """Return the indices of the highlighted features: the most important ones, at most half of all."""
        e = self.explanations[input][method]
        return np.sort(e.ranking[: self.n_highlighted(input)])

    def n_highlighted(self, input: int) -> int:
        """Return the number of highlighted features of an input, the same for all methods."""
        return min(self.description.top, max(1, len(self.explanations[input][0].features) // 2))

    def conditions(self, kind: str) -> list[tuple[int, ...]]:
        """Return the possible `methods` of a question of a kind: single methods, ordered pairs, or none."""
        methods = range(len(self.description.methods))
        if kind == "prefer":
            pairs = list(combinations(methods, 2))
            return [*pairs, *((b, a) for a, b in pairs)]
        return [()] if kind == "mark" else [(method,) for method in methods]

    @property
    def cycle(self) -> int:
        """Number of participants after which each input was shown equally often in each condition."""
        kinds = self.description.kinds
        return len(kinds) * lcm(*(len(self.conditions(kind)) for kind in kinds))

    @cached_property
    def _order(self) -> list[int]:
        """Inputs in the random order in which kinds and methods are assigned."""
        return [
            int(i) for i in generator(self.description.seed, "study").permutation(self.description.inputs)
        ]

    def questions(self, person: int) -> list[StudyQuestion]:
        """Return the questions of the participant with this number.

        Each participant sees each input once, because an earlier question about it could help. With K kinds,
        participant p gets kind (i + p) mod K for the i-th input, and of the C conditions of this kind
        condition (i // K + p // K) mod C. Questions of a kind are consecutive; the order of kinds, of
        questions and of checks is random.
        """
        kinds = self.description.kinds
        by_kind: dict[str, list[StudyQuestion]] = {kind: [] for kind in kinds}
        for i, input in enumerate(self._order):
            kind = kinds[(i + person) % len(kinds)]
            conditions = self.conditions(kind)
            methods = conditions[(i // len(kinds) + person // len(kinds)) % len(conditions)]
            by_kind[kind].append(StudyQuestion(kind, input, methods))
        rng = generator(self.description.seed, "study", person)
        questions: list[StudyQuestion] = []
        for kind in rng.permutation(len(kinds)):
            block = by_kind[kinds[kind]]
            questions += [block[i] for i in rng.permutation(len(block))]
        for _ in range(self.description.checks):
            position, grade = int(rng.integers(1, len(questions) + 1)), int(rng.choice(GRADES))
            questions.insert(position, StudyQuestion("check", grade=grade))
        return questions

    def check(self, question: StudyQuestion) -> None:
        """Raise an `InputError` for a question that this study does not have."""
        if question.kind == "check":
            return
        if question.input >= self.description.inputs or question.methods not in self.conditions(
            question.kind
        ):
            raise InputError(f"The study has no question {question}.")

    def check_answer(self, question: StudyQuestion, answer: Any) -> Any:
        """Return an answer in its saved form; raise an `InputError` if it is invalid.

        A guess is a class or ``None`` (cannot tell), a preference the index of a method or ``None`` (no
        difference), marks are the indices of features, and a rating is a grade.
        """
        e = self.explanations[question.input][0]
        if question.kind == "mark":
            marked = decode(tuple[Index, ...], answer, "answer")
            if any(i >= len(e.features) for i in marked):
                raise InputError(
                    f"`answer` must be indices of {self.nouns[1]}s from 0 to {len(e.features) - 1}, got "
                    f"{list(marked)}."
                )
            return sorted(set(marked))
        choices: Sequence[Any] = GRADES
        if question.kind == "guess":
            choices = (*e.classes, None)
        if question.kind == "prefer":
            choices = (*question.methods, None)
        if answer not in choices or isinstance(answer, bool):
            raise InputError(f"The answer must be one of {', '.join(map(str, choices))}.")
        return answer

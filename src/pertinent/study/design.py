"""A study: its explanations, and which questions each person gets."""

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
"""The answers to a question that asks to rate, and to an attention check."""


@dataclass(frozen=True)
class StudyQuestion:
    """One question for one person.

    Attributes
    ----------
    kind
        ``"guess"`` the model's class from what is highlighted alone, ``"prefer"`` one of two explanations,
        ``"mark"`` the features that matter, ``"rate"`` an explanation from 1 to 5; ``"check"`` asks for a
        grade that it names, to find out who does not read.
    input
        The number of the input.
    methods
        The numbers of the methods whose explanations are shown, from left to right.
    grade
        The grade that a check asks for.
    """

    kind: Literal["guess", "prefer", "mark", "rate", "check"]
    input: Index = 0
    methods: tuple[Index, ...] = ()
    grade: Index = 0


@dataclass(frozen=True)
class StudyDescription:
    """What is fixed when a study is made; `id` tells studies apart."""

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

    The folder has ``study.json`` (what is fixed), ``explanations.parquet`` (of every input by every method,
    in this order), and ``answers`` with a file for each person.
    """

    def __init__(
        self, folder: Path, description: StudyDescription, explanations: Sequence[Explanation]
    ) -> None:
        self.folder, self.description = folder, description
        step = len(description.methods)
        self.explanations = [explanations[i : i + step] for i in range(0, len(explanations), step)]

    @property
    def nouns(self) -> tuple[str, str]:
        """What people call an input, and one of its features."""
        return modality_named(self.explanations[0][0].input.kind).nouns

    def __repr__(self) -> str:
        own = self.description
        kinds, methods = ", ".join(own.kinds), ", ".join(own.methods)
        return f"<Study of {own.inputs} inputs: {kinds}; methods: {methods}>"

    @classmethod
    def read(cls, folder: str | Path) -> Study:
        """Read a study that `create_study` made."""
        place = Path(folder)
        if not file_exists(place / DESCRIPTION):
            raise FileError(f"{str(folder)!r} is no study: make one with `pertinent study create`.")
        plain = read_json(place / DESCRIPTION)
        try:
            verify_checksum(plain, "study").text("format", (FORMAT,))
            description = decode(StudyDescription, plain)
        except (InputError, RecursionError) as error:
            raise FileError(f"{str(place / DESCRIPTION)!r} is damaged or holds no study: {error}") from error
        explanations = Explanations.read(place / EXPLANATIONS)
        if len(explanations) != description.inputs * len(description.methods):
            raise FileError(f"{str(folder)!r} is damaged: its explanations are not those of its inputs.")
        return cls(place, description, list(explanations))

    def write(self) -> None:
        """Write the folder, which must be new or empty."""
        make_folder(self.folder)
        if any(self.folder.iterdir()):
            raise FileError(f"The folder {str(self.folder)!r} is not empty: a study needs a new one.")
        (self.folder / ANSWERS).mkdir()
        Explanations([e for own in self.explanations for e in own]).save(self.folder / EXPLANATIONS)
        # Last, because a folder that has it is a study.
        plain = add_checksum({"format": FORMAT, **encode(self.description)})
        write_json(self.folder / DESCRIPTION, plain)

    def highlighted(self, input: int, method: int) -> Ints:
        """The features that are highlighted: the most important ones, but at most half of all."""
        e = self.explanations[input][method]
        return np.sort(e.ranking[: self.n_highlighted(input)])

    def n_highlighted(self, input: int) -> int:
        """How many features of an input are highlighted, whatever the method."""
        return min(self.description.top, max(1, len(self.explanations[input][0].features) // 2))

    def conditions(self, kind: str) -> list[tuple[int, ...]]:
        """What can be shown in a question of a kind: a method, two methods in either order, or none."""
        methods = range(len(self.description.methods))
        if kind == "prefer":
            pairs = list(combinations(methods, 2))
            return [*pairs, *((b, a) for a, b in pairs)]
        return [()] if kind == "mark" else [(method,) for method in methods]

    @property
    def cycle(self) -> int:
        """How many people it takes until every input was asked about equally often in every way."""
        kinds = self.description.kinds
        return len(kinds) * lcm(*(len(self.conditions(kind)) for kind in kinds))

    @cached_property
    def _order(self) -> list[int]:
        """The inputs in a random order, in which they are dealt out."""
        return [
            int(i) for i in generator(self.description.seed, "study").permutation(self.description.inputs)
        ]

    def questions(self, person: int) -> list[StudyQuestion]:
        """The questions of a person, by the number of the person.

        Each person sees each input once: what was seen in one question cannot help in another. Of K kinds,
        person p is asked kind (i + p) mod K about the i-th input, and of the C ways in which a question of
        this kind can be asked, way (i // K + p // K) mod C. Questions of a kind come together; the order of
        kinds, of questions and of checks is random.
        """
        kinds = self.description.kinds
        blocks: dict[str, list[StudyQuestion]] = {kind: [] for kind in kinds}
        for place, input in enumerate(self._order):
            kind = kinds[(place + person) % len(kinds)]
            ways = self.conditions(kind)
            way = ways[(place // len(kinds) + person // len(kinds)) % len(ways)]
            blocks[kind].append(StudyQuestion(kind, input, way))
        rng = generator(self.description.seed, "study", person)
        found: list[StudyQuestion] = []
        for kind in rng.permutation(len(kinds)):
            own = blocks[kinds[kind]]
            found += [own[i] for i in rng.permutation(len(own))]
        for _ in range(self.description.checks):
            place, grade = int(rng.integers(1, len(found) + 1)), int(rng.choice(GRADES))
            found.insert(place, StudyQuestion("check", grade=grade))
        return found

    def check(self, question: StudyQuestion) -> None:
        """Raise an `InputError` for a question that this study cannot ask."""
        if question.kind == "check":
            return
        if question.input >= self.description.inputs or question.methods not in self.conditions(
            question.kind
        ):
            raise InputError(f"The study has no question {question}.")

    def checked_answer(self, question: StudyQuestion, given: Any) -> Any:
        """An answer as it is kept; an `InputError` says what is wrong with it.

        A class or ``None`` (cannot tell) for a guess, the number of a method or ``None`` (no difference) for
        a preference, the numbers of the marked features, or a grade.
        """
        e = self.explanations[question.input][0]
        if question.kind == "mark":
            marked = decode(tuple[Index, ...], given, "answer")
            if any(i >= len(e.features) for i in marked):
                raise InputError(f"There are {len(e.features)} {self.nouns[1]}s, but got {list(marked)}.")
            return sorted(set(marked))
        known: Sequence[Any] = GRADES
        if question.kind == "guess":
            known = (*e.classes, None)
        if question.kind == "prefer":
            known = (*question.methods, None)
        if given not in known or isinstance(given, bool):
            raise InputError(f"The answer must be one of {', '.join(map(str, known))}.")
        return given

"""Report of a study: means with intervals, differences between methods, agreement, and a figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Floats
from pertinent.config.serialization import encode, json_text
from pertinent.config.settings import Range, checked
from pertinent.errors import InputError
from pertinent.metrics.base import Metric
from pertinent.metrics.plausibility import AveragePrecision, PrecisionAtK
from pertinent.number_format import count
from pertinent.printable import visible
from pertinent.results.explanation import Explanation
from pertinent.stats import (
    FEWEST,
    Difference,
    Interval,
    Level,
    alpha_interval,
    bootstrap,
    holm,
    paired_difference,
)
from pertinent.study.answers import Answers, Person
from pertinent.study.design import Study, StudyQuestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from pertinent.rendering.tables import Table

_RESAMPLES = 10_000
_FEW_PEOPLE = 8
"""With fewer participants, intervals covered the mean in less than 95% of simulated studies."""


_Answered = tuple[int, StudyQuestion, Any]
"""Index of a participant, a question and the answer."""

ABOUT = {
    "accuracy": "share of guesses that are the model's class",
    "cannot tell": "share of guesses that the highlighted features do not show the class",
    "preferred": "share of comparisons with other methods that were won, ties count half",
    "precision at k": "share of the highlighted features that people marked",
    "average precision": "mean precision down to the rank of each feature that people marked",
    "rating": "from 1 to 5",
}
"""Description of each measure."""

_LIMITS = {"rating": (1.0, 5.0)}
_LEVELS: Mapping[str, Level] = {"guess": "nominal", "prefer": "nominal", "mark": "nominal", "rate": "ordinal"}


@dataclass(frozen=True)
class StudyMean:
    """Mean of a measure for a method, with its interval; `answers` is the number of answers."""

    kind: str
    measure: str
    method: str
    interval: Interval
    answers: int


@dataclass(frozen=True)
class StudyDifference:
    """Mean difference of a measure between two methods."""

    kind: str
    measure: str
    a: str
    b: str
    difference: Difference


@dataclass(frozen=True)
class ParticipantAgreement:
    """Krippendorff's alpha of the answers to a kind of question; its `n` counts units with two answers."""

    kind: str
    level: Level
    alpha: Interval


@dataclass(frozen=True)
class StudyReport:
    """Results of a study.

    Attributes
    ----------
    title
        The title of the study.
    people, finished, excluded
        The number of participants, the number of those who answered everything, and the nicknames of those
        who were excluded because they failed attention checks.
    cycle
        The number of participants after which all questions were asked equally often.
    measured, differences, agreement
        The means with intervals, the differences between methods with p-values, and the agreement between
        participants.
    chance
        The accuracy of guessing by chance.
    damaged
        Descriptions of the damaged lines in the files of answers, which are omitted.
    """

    title: str
    people: int
    finished: int
    excluded: tuple[str, ...]
    cycle: int
    measured: tuple[StudyMean, ...]
    differences: tuple[StudyDifference, ...]
    agreement: tuple[ParticipantAgreement, ...]
    chance: float
    damaged: tuple[str, ...] = ()

    def mean(self, method: str, measure: str) -> float:
        """Return the mean of a measure for a method."""
        for each in self.measured:
            if (each.method, each.measure) == (method, measure):
                return each.interval.mean
        available = ", ".join(f"{each.method} {each.measure}" for each in self.measured)
        raise InputError(f"There is no {measure!r} of {method!r}. Available: {available}.")

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and dicts."""
        return {"format": "pertinent study report 1", **encode(self)}

    def to_json(self) -> str:
        """Return a JSON string; NaN becomes null."""
        return json_text(self.to_dict())

    def to_dataframe(self) -> Any:
        """Return a pandas data frame with a row for each kind of question, measure and method."""
        rows = [
            {"kind": each.kind, "measure": each.measure, "method": each.method, "answers": each.answers}
            | encode(each.interval)
            for each in self.measured
        ]
        return optional("pandas").DataFrame(rows)

    def to_markdown(self) -> str:
        """Return the tables and notes as Markdown."""
        from pertinent.rendering.text_tables import escape_markdown, markdown_table

        parts = [f"# {escape_markdown(self.title)}", self._heading()]
        for table in self.tables():
            parts += [f"## {table.title}", markdown_table(table)]
        return "\n\n".join([*parts, *self.notes]) + "\n"

    @property
    def notes(self) -> list[str]:
        """Notes on measures, intervals and limitations."""
        measures = dict.fromkeys(each.measure for each in self.measured)
        notes = [f"{name}: {ABOUT[name]}." for name in measures]
        notes.append(
            "95% bootstrap intervals over participants and inputs; for agreement over inputs. P-values are "
            "Holm-corrected within a measure."
        )
        if self.people < _FEW_PEOPLE:
            notes.append(f"With fewer than {_FEW_PEOPLE} participants, intervals are too narrow.")
        if any(each.difference.n < FEWEST for each in self.differences):
            notes.append(f"There are no p-values for comparisons on fewer than {FEWEST} inputs.")
        if self.people % self.cycle:
            notes.append(f"The design is balanced only for a multiple of {self.cycle} participants.")
        if self.damaged:
            notes.append(f"Damaged lines in the answers were omitted: {'; '.join(self.damaged)}.")
        return notes

    def plot(self) -> Figure:
        """Return a matplotlib figure: for each measure the mean of each method with its interval."""
        from pertinent.rendering.plots import LINES, QUIET, new_figure
        from pertinent.rendering.wording import clipped

        measures = list(dict.fromkeys(each.measure for each in self.measured))
        if not measures:
            raise InputError("The study has no answers to plot.")
        methods = list(dict.fromkeys(each.method for each in self.measured))
        columns = min(3, len(measures))
        rows = -(-len(measures) // columns)
        figure = new_figure(3.4 * columns, rows * (1.1 + 0.32 * len(methods)))
        grid: Any = figure.subplots(rows, columns, squeeze=False, sharey=True)
        chance = {"accuracy": self.chance, "preferred": 0.5}
        for axes, measure in zip(grid.flat, measures, strict=False):
            for each in (m for m in self.measured if m.measure == measure):
                i, row = each.interval, methods.index(each.method)
                bounds = np.nan_to_num([[i.mean - i.low], [i.high - i.mean]]).clip(0.0)
                axes.errorbar(i.mean, row, xerr=bounds, fmt="o", ms=5, color=LINES[0], elinewidth=1.2)
            if measure in chance:
                axes.axvline(chance[measure], color=QUIET, lw=0.8, ls=":")
            low, high = _LIMITS.get(measure, (0.0, 1.0))
            axes.set_xlim(low - 0.04 * (high - low), high + 0.04 * (high - low))
            axes.set_title(measure, loc="left", fontsize=10)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelsize=8)
        for axes in grid.flat[len(measures) :]:
            axes.set_visible(False)
        for axes in grid[:, 0]:
            axes.set_yticks(
                range(len(methods)), [visible(clipped(each)) for each in methods], parse_math=False
            )
        grid[0, 0].set_ylim(len(methods) - 0.5, -0.5)
        return figure

    def __rich__(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        from pertinent.rendering.terminal.tables import draw

        head = Text(visible(self.title), style="bold"), Text(self._heading()), Text()
        return Group(*head, *map(draw, self.tables()), *map(Text, self.notes))

    def _heading(self) -> str:
        excluded = f"; {len(self.excluded)} excluded for failed attention checks" if self.excluded else ""
        return f"{count(self.people, 'participant')}, {self.finished} finished{excluded}."

    def tables(self) -> Iterator[Table]:
        """Yield the table of each kind of question, of the differences, and of the agreement."""
        from pertinent.rendering.tables import Cell, Column, Table

        def table(title: str, names: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
            columns = [Column(name, is_number=i > 1) for i, name in enumerate(names)]
            return Table(columns, [list(map(Cell, row)) for row in rows], title)

        for kind in dict.fromkeys(mean.kind for mean in self.measured):
            means = [mean for mean in self.measured if mean.kind == kind]
            measures = list(dict.fromkeys(mean.measure for mean in means))
            cells = {(mean.method, mean.measure): str(mean.interval) for mean in means}
            counts = {mean.method: str(mean.answers) for mean in means}
            rows = [[m, counts[m], *(cells.get((m, name), "–") for name in measures)] for m in counts]
            yield table(_TITLES[kind], ["method", "answers", *measures], rows)
        if self.differences:
            rows = [[f"{d.a} − {d.b}", d.measure, *_difference_cells(d.difference)] for d in self.differences]
            yield table("Differences", ["difference", "measure", "mean", "inputs", "p"], rows)
        if self.agreement:
            rows = [
                [a.kind, a.level, "–" if np.isnan(a.alpha.mean) else str(a.alpha), str(a.alpha.n)]
                for a in self.agreement
            ]
            names = ["question", "level", "Krippendorff's alpha", "units"]
            yield table("Agreement between participants", names, rows)


def _difference_cells(difference: Difference) -> list[str]:
    """Return the mean with its interval, the number of inputs, and the p-value if there are enough inputs."""
    p_text = difference.p_text.partition(",")[0] if difference.n >= FEWEST else "–"
    return [f"{difference.mean:+.3f} {difference.bounds}".strip(), str(difference.n), p_text]


_TITLES = {
    "guess": "Guess the class from the highlighted features",
    "prefer": "Choose the better explanation",
    "mark": "Mark the features that matter",
    "rate": "Rate the explanation",
}


@checked
def report_study(
    study: str | Path | Study, *, failed_checks: Annotated[int, Range(at_least=0)] = 0
) -> StudyReport:
    """Summarize the answers to a study so far: means with intervals, differences and agreement.

    Parameters
    ----------
    study
        The folder of the study.
    failed_checks
        The number of failed attention checks above which a participant is excluded.
    """
    study = study if isinstance(study, Study) else Study.read(study)
    answers = Answers(study)
    participants = [person for person in answers.people.values() if person.answers]
    people = [person for person in participants if person.failed_checks <= failed_checks]
    answered = [
        (row, question, answer) for row, person in enumerate(people) for question, answer in person.answered
    ]
    measured, differences = _measured(study, answered, len(people))
    return StudyReport(
        title=study.description.title,
        people=len(people),
        finished=sum(person.is_done for person in people),
        excluded=tuple(_names(person for person in participants if person not in people)),
        cycle=study.cycle,
        measured=tuple(measured),
        differences=tuple(differences),
        agreement=tuple(_agreement(study, answered, len(people))),
        chance=1 / len(study.explanations[0][0].classes),
        damaged=tuple(answers.damaged),
    )


def _names(people: Iterable[Person]) -> list[str]:
    return sorted(person.name for person in people)


def _measured(
    study: Study, answered: Sequence[_Answered], n_people: int
) -> tuple[list[StudyMean], list[StudyDifference]]:
    """Return the means and the differences of all measures with answers."""
    methods, kinds = study.description.methods, [str(kind) for kind in study.description.kinds]
    measured: list[StudyMean] = []
    differences: list[StudyDifference] = []
    by_measure = _values(study, answered, n_people)
    for kind, measure in sorted(by_measure, key=lambda each: kinds.index(each[0])):
        values = by_measure[kind, measure]
        limits = _LIMITS.get(measure, (0.0, 1.0))
        for method, of_method in zip(methods, values, strict=True):
            if n := int(np.count_nonzero(~np.isnan(of_method))):
                interval = bootstrap(of_method, within=limits, resamples=_RESAMPLES)
                measured.append(StudyMean(kind, measure, method, interval, n))
        by_pair = {}
        for a, b in combinations(range(len(methods)), 2):
            difference = _difference(values[a], values[b])
            if difference.n:
                by_pair[methods[a], methods[b]] = difference
        corrected = zip(by_pair, holm(list(by_pair.values())), strict=True)
        differences += [StudyDifference(kind, measure, a, b, each) for (a, b), each in corrected]
    return measured, differences


def _difference(a: Floats, b: Floats) -> Difference:
    """Return the paired difference between two methods, each an array (participants, inputs).

    The pairs are the participants' answers about the same input, if they judged both methods on it. Otherwise
    the pairs are the inputs, with means over participants.
    """
    if (np.isnan(a) | np.isnan(b)).all():
        a, b = _over_people(a), _over_people(b)
    return paired_difference(a, b, resamples=_RESAMPLES)


def _over_people(values: Floats) -> Floats:
    """Return the mean over participants for each input; NaN without answers."""
    present = ~np.isnan(values)
    totals, counts = np.where(present, values, 0.0).sum(axis=0), present.sum(axis=0)
    return np.asarray(np.divide(totals, counts, out=np.full(len(counts), np.nan), where=counts > 0))


def _values(study: Study, answered: Sequence[_Answered], n_people: int) -> dict[tuple[str, str], Floats]:
    """Return an array (methods, participants, inputs) for each kind of question and measure.

    An entry is NaN if the participant was not asked about this method and input.
    """
    shape = (len(study.description.methods), n_people, study.description.inputs)
    by_measure: dict[tuple[str, str], Floats] = {}

    def note(question: StudyQuestion, measure: str, method: int, row: int, value: float) -> None:
        values = by_measure.setdefault((question.kind, measure), np.full(shape, np.nan))
        values[method, row, question.input] = value

    for row, question, answer in answered:
        explanations = study.explanations[question.input]
        if question.kind == "guess":
            (method,) = question.methods
            note(question, "accuracy", method, row, answer == explanations[method].target_name)
            note(question, "cannot tell", method, row, answer is None)
        elif question.kind == "prefer":
            for method in question.methods:
                note(question, "preferred", method, row, 0.5 if answer is None else answer == method)
        elif question.kind == "rate":
            note(question, "rating", question.methods[0], row, answer)
        elif question.kind == "mark" and answer:
            at_k = PrecisionAtK(study.n_highlighted(question.input))
            for method, e in enumerate(explanations):
                note(question, "precision at k", method, row, _measure(at_k, e, answer))
                note(question, "average precision", method, row, _measure(AveragePrecision(), e, answer))
    return by_measure


def _measure(metric: Metric, e: Explanation, marked: Sequence[int]) -> float:
    """Return a metric of marked features; it must be a metric that needs no model."""
    try:
        next(metric.measure(replace(e, annotations=marked)))
    except StopIteration as stop:
        return float(stop.value[None])
    raise AssertionError("the metric asks for the model")


def _agreement(study: Study, answered: Sequence[_Answered], n_people: int) -> Iterator[ParticipantAgreement]:
    """Yield the agreement of participants on each kind of question.

    A unit is an input with the methods that are shown, in any order; or a feature that can be marked.
    """
    for kind in study.description.kinds:
        ratings: dict[tuple[int, ...], dict[int, float]] = {}
        for row, question, answer in answered:
            for unit, value in _units(study, question, answer) if question.kind == kind else ():
                ratings.setdefault(unit, {})[row] = value
        if ratings:
            values = np.full((n_people, len(ratings)), np.nan)
            for column, by_person in enumerate(ratings.values()):
                values[list(by_person), column] = list(by_person.values())
            inputs = np.array([unit[0] for unit in ratings])
            yield ParticipantAgreement(
                kind, _LEVELS[kind], alpha_interval(values, _LEVELS[kind], groups=inputs)
            )


def _units(study: Study, question: StudyQuestion, answer: Any) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield the units that an answer rates, with the rating as a number; undecided is −1."""
    if question.kind == "mark":
        for i in range(len(study.explanations[question.input][0].features)):
            yield (question.input, i), float(i in answer)
        return
    shown = sorted(question.methods)
    if question.kind == "guess" and answer is not None:
        answer = study.explanations[question.input][0].classes.index(answer)
    if question.kind == "prefer" and answer is not None:
        # The position, not the method: with methods as categories, random answers would seem to agree.
        answer = shown.index(answer)
    yield (question.input, *shown), -1.0 if answer is None else float(answer)

"""Explanations and failures by input; each input has the same number in every report, from 0."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure

_NAMED = 3
_LISTED = 5


@dataclass(frozen=True)
class Explained:
    """All explanations of one input; `same_as` is the number of an earlier input with the same content."""

    explanations: tuple[Explanation, ...]
    number: int
    same_as: int | None

    @property
    def name(self) -> str:
        """The name of the input, as ``input 3 · order-17``."""
        return name_of(replace(self.explanations[0], index=self.number))

    @property
    def repeats(self) -> str:
        """Which input it repeats, as ``the same as input 0``; empty if it is new."""
        return "" if self.same_as is None else f"the same as input {self.same_as}"

    @property
    def title(self) -> str:
        """The name and whether it repeats another, as ``input 3 · order-17 · the same as input 0``."""
        return " · ".join(filter(None, (self.name, self.repeats)))


def name_of(of: Explanation | Failure) -> str:
    """The name of an input, as ``input 3``, or ``input 3 · order-17`` if it has an id."""
    return f"input {of.index}" if of.id is None else f"input {of.index} · {of.id}"


def by_input(explanations: Iterable[Explanation]) -> list[Explained]:
    """The explanations of each input together, in the order of the inputs.

    Explanations of separate runs may have the same index, so their contents are compared, too. If different
    inputs do, all are numbered in their order here, so that each has its own number.
    """
    groups: dict[tuple[int, Hashable], list[Explanation]] = {}
    for e in explanations:
        groups.setdefault((e.index, e.input.content), []).append(e)
    first: dict[Hashable, int] = {}
    found = []
    unique = len({index for index, _ in groups}) == len(groups)
    for place, ((index, content), group) in enumerate(sorted(groups.items(), key=lambda item: item[0][0])):
        number = index if unique else place
        original = first.setdefault(content, number)
        found.append(Explained(tuple(group), number, None if original == number else original))
    return found


def by_reason(failures: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The places of each reason, from pairs of place and reason."""
    places: dict[str, dict[str, None]] = {}
    for place, reason in failures:
        places.setdefault(reason, {})[place] = None
    return {reason: list(found) for reason, found in places.items()}


def places_text(places: Sequence[str]) -> str:
    """The places on one line, as ``input 0, input 4`` or ``9 inputs (input 0, input 4, input 5, …)``."""
    first = ", ".join(places[:_NAMED])
    return first if len(places) <= _NAMED else f"{len(places):,} inputs ({first}, …)"


def failure_lines(failures: Iterable[tuple[str, str]], most: int | None = None) -> Iterator[str]:
    """A line for each reason, and how many more failed for others if there are more than `most`.

    >>> list(failure_lines([("input 0", "empty"), ("input 4", "too long"), ("input 7", "empty")]))
    ['input 0, input 7: empty', 'input 4: too long']
    >>> list(failure_lines([("input 0", "empty"), ("input 4", "too long"), ("input 7", "empty")], 1))
    ['input 0, input 7: empty', '… and 1 more']
    """
    found = list(by_reason(failures).items())
    most = len(found) if most is None else most
    for reason, places in found[:most]:
        yield f"{places_text(places)}: {reason}"
    if len(found) > most:
        yield f"… and {sum(len(places) for _, places in found[most:]):,} more"


def named(failures: Iterable[Failure]) -> Iterator[tuple[str, str]]:
    """The name of each input that failed, and why."""
    return ((name_of(failure), str(failure)) for failure in failures)


def failure_notes(failures: Iterable[Failure]) -> Iterator[str]:
    """The failures as notes below a table."""
    return (f"Failed: {line}" for line in failure_lines(named(failures), _LISTED))

"""One number for an input in every report: its place in what was given, from 0."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure


@dataclass(frozen=True)
class Explained:
    """All explanations of one input; `same_as` is the number of an earlier input with the same content."""

    explanations: tuple[Explanation, ...]
    same_as: int | None

    @property
    def name(self) -> str:
        """As ``input 3 · order-17``."""
        return name_of(self.explanations[0])

    @property
    def repeats(self) -> str:
        """As ``the same as input 0``; empty for an input that was given once."""
        return "" if self.same_as is None else f"the same as input {self.same_as}"

    @property
    def title(self) -> str:
        """As ``input 3 · order-17 · the same as input 0``."""
        return " · ".join(filter(None, (self.name, self.repeats)))


def name_of(of: Explanation | Failure) -> str:
    """As ``input 3``, or ``input 3 · order-17`` if the input has an id."""
    return f"input {of.index}" if of.id is None else f"input {of.index} · {of.id}"


def by_input(explanations: Iterable[Explanation]) -> list[Explained]:
    """The explanations of each input together, in the order of the inputs.

    Explanations of separate runs may have the same number, so their contents are compared, too.
    """
    groups: dict[tuple[int, Hashable], list[Explanation]] = {}
    for e in explanations:
        groups.setdefault((e.index, e.input.content), []).append(e)
    first: dict[Hashable, int] = {}
    found = []
    for (index, content), group in sorted(groups.items(), key=lambda item: item[0][0]):
        original = first.setdefault(content, index)
        found.append(Explained(tuple(group), None if original == index else original))
    return found

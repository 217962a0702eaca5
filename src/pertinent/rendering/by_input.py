"""Explanations and failures grouped by input, with the number used for each input in all reports."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure

_NAMED = 3
_LISTED = 5


@dataclass(frozen=True)
class Explained:
    """The explanations of one input; `same_as` is the number of an earlier input with equal content."""

    explanations: tuple[Explanation, ...]
    number: int
    same_as: int | None

    @property
    def name(self) -> str:
        """Return the name of the input, as ``input 3 · order-17``."""
        return name_of(replace(self.explanations[0], index=self.number))

    @property
    def repeats(self) -> str:
        """Return which input it repeats, as ``the same as input 0``; empty for new content."""
        return "" if self.same_as is None else f"the same as input {self.same_as}"

    @property
    def title(self) -> str:
        """Return the name and the repetition, as ``input 3 · order-17 · the same as input 0``."""
        return " · ".join(filter(None, (self.name, self.repeats)))


def name_of(result: Explanation | Failure) -> str:
    """Return the name of an input, as ``input 3``, or ``input 3 · order-17`` if it has an id."""
    return f"input {result.index}" if result.id is None else f"input {result.index} · {result.id}"


def by_input(explanations: Iterable[Explanation]) -> list[Explained]:
    """Group explanations by input, in the order of the inputs.

    Explanations of separate runs may share an index, so the contents of inputs are also compared. If
    different inputs share an index, all inputs are numbered consecutively.
    """
    groups: dict[tuple[int, Hashable], list[Explanation]] = {}
    for e in explanations:
        groups.setdefault((e.index, e.input.content), []).append(e)
    first: dict[Hashable, int] = {}
    inputs = []
    is_unique = len({index for index, _ in groups}) == len(groups)
    for rank, ((index, content), group) in enumerate(sorted(groups.items(), key=lambda item: item[0][0])):
        number = index if is_unique else rank
        original = first.setdefault(content, number)
        inputs.append(Explained(tuple(group), number, None if original == number else original))
    return inputs


def by_reason(failures: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Group pairs of input name and reason: return the distinct names for each reason."""
    names: dict[str, dict[str, None]] = {}
    for name, reason in failures:
        names.setdefault(reason, {})[name] = None
    return {reason: list(group) for reason, group in names.items()}


def inputs_text(names: Sequence[str]) -> str:
    """Return input names on one line, as ``input 0, input 4`` or ``9 inputs (input 0, input 4, …)``."""
    first = ", ".join(names[:_NAMED])
    return first if len(names) <= _NAMED else f"{len(names):,} inputs ({first}, …)"


def failure_lines(failures: Iterable[tuple[str, str]], most: int | None = None) -> Iterator[str]:
    """Yield a line for each of the first `most` reasons, and a line that counts the other failures.

    >>> list(failure_lines([("input 0", "empty"), ("input 4", "too long"), ("input 7", "empty")]))
    ['input 0, input 7: empty', 'input 4: too long']
    >>> list(failure_lines([("input 0", "empty"), ("input 4", "too long"), ("input 7", "empty")], 1))
    ['input 0, input 7: empty', '… and 1 more']
    """
    reasons = list(by_reason(failures).items())
    most = len(reasons) if most is None else most
    for reason, names in reasons[:most]:
        yield f"{inputs_text(names)}: {reason}"
    if len(reasons) > most:
        yield f"… and {sum(len(names) for _, names in reasons[most:]):,} more"


def named(failures: Iterable[Failure]) -> Iterator[tuple[str, str]]:
    """Yield the name of each failed input, with the reason."""
    return ((name_of(failure), str(failure)) for failure in failures)


def failure_notes(failures: Iterable[Failure]) -> Iterator[str]:
    """Yield the failures as notes below a table."""
    return (f"Failed: {line}" for line in failure_lines(named(failures), _LISTED))

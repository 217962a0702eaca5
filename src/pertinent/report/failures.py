"""What failed and why: failures for the same reason share a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pertinent.report.numbering import name_of
from pertinent.results.failures import Failure

_NAMED = 3
_LISTED = 5


def by_reason(failures: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The places at which each reason was met, from places and reasons."""
    places: dict[str, dict[str, None]] = {}
    for place, reason in failures:
        places.setdefault(reason, {})[place] = None
    return {reason: list(found) for reason, found in places.items()}


def places_text(places: Sequence[str]) -> str:
    """As ``input 0, input 4``, or ``9 inputs (input 0, input 4, input 5, …)``."""
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

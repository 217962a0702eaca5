"""HTML from Jinja templates: everything but the templates' own text and `Markup` is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import markupsafe
from jinja2 import Environment, FunctionLoader, StrictUndefined

from pertinent.number_format import measure_text, number_text
from pertinent.printable import visible
from pertinent.rendering import wording
from pertinent.rendering.colours import DARK, LIGHT
from pertinent.results.explanation import Explanation

if TYPE_CHECKING:
    from typing import Self


class Markup(markupsafe.Markup):
    r"""A part of a page, which is not escaped; a text of any other class is, even if it calls itself safe.

    >>> str(Markup("<b>{}</b>").format("<i>\x00\u202e"))
    '<b>&lt;i&gt;␀�</b>'
    """

    __slots__ = ()

    @classmethod
    def escape(cls, s: Any, /) -> Self:
        """Text as a part of a page, with its control characters made visible."""
        return super().escape(_shown(s))


@dataclass(frozen=True)
class Axis:
    """A range of values mapped to the width of a cell."""

    low: float = 0.0
    high: float = 1.0

    @classmethod
    def from_ranges(cls, ranges: Iterable[tuple[float, float]]) -> Axis:
        """The axis that covers every range and zero, with room for a dot at its ends."""
        ends = [value for pair in ranges for value in pair if value == value]  # noqa: PLR0124  not NaN
        low, high = min([0.0, *ends]), max([0.0, *ends])
        room = 0.03 * (high - low) or 1.0
        return cls(low - room if low < 0 else low, high + room)

    def place(self, value: float) -> float:
        """Where a value lies, from 0 to 100."""
        return 100 * min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def span(self, low: float, high: float) -> str:
        """The style of what reaches from one value to another."""
        left, right = self.place(low), self.place(high)
        return f"left:{left:.1f}%;width:{right - left:.1f}%"


def ends(e: Explanation, features: Iterable[int]) -> list[tuple[float, float]]:
    """The ends of the whiskers on the bars of features."""
    bars = [(float(e.scores[i]), wording.error_of(e, i) or 0.0) for i in features]
    return [(score - error, score + error) for score, error in bars]


def from_template(file: str, /, **context: Any) -> Markup:
    """A part of a page from a file in `templates/`, or, as ``package:file``, of that folder in a package."""
    return Markup(_environment().get_template(file).render(context))


def fragment(*parts: Markup) -> str:
    """Parts of a page with their own style, for notebooks and other pages."""
    return str(from_template("fragment.html", style=style(), parts=parts))


@cache
def own_file(name: str, package: str = __name__) -> str:
    """The text of a file of this folder, or of another package's."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


@cache
def style(*more: str) -> Markup:
    """The style sheet of fragments, and those in other files of this folder."""
    colours = [
        f"--{name}-{part}: {colour};"
        for name, surface in (("light", LIGHT), ("dark", DARK))
        for part, colour in asdict(surface).items()
    ]
    rules = [f".pertinent {{ {' '.join(colours)} }}\n", *map(own_file, ("report.css", *more))]
    return Markup("".join(rules))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["ours"] = Markup  # what a macro returns
    environment.globals |= {"say": wording, "Axis": Axis, "ends": ends}
    environment.globals |= {"measure_text": measure_text, "number_text": number_text}
    return environment


def _template(name: str) -> str:
    package, _, file = name.rpartition(":")
    return own_file(f"templates/{file}", package or __name__)


def _shown(value: Any) -> Any:
    """A value as a page shows it: its control characters made visible, and nothing for ``None``."""
    return value if isinstance(value, Markup) else "" if value is None else visible(str(value))

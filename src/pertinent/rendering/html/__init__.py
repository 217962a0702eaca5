"""HTML from Jinja templates, which escape everything except `Markup`."""

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
    r"""HTML that is not escaped again; all other text is escaped, even if it claims to be safe.

    >>> str(Markup("<b>{}</b>").format("<i>\x00\u202e"))
    '<b>&lt;i&gt;␀�</b>'
    """

    __slots__ = ()

    @classmethod
    def escape(cls, s: Any, /) -> Self:
        """Return text as HTML, with visible control characters."""
        return super().escape(_printable(s))


@dataclass(frozen=True)
class Axis:
    """A linear mapping from a range of values to the width of a cell, in percent."""

    low: float = 0.0
    high: float = 1.0

    @classmethod
    def from_ranges(cls, ranges: Iterable[tuple[float, float]]) -> Axis:
        """Return the axis that covers all ranges and zero, with a margin for dots at its ends."""
        ends = [value for pair in ranges for value in pair if value == value]  # noqa: PLR0124  not NaN
        low, high = min([0.0, *ends]), max([0.0, *ends])
        margin = 0.03 * (high - low) or 1.0
        return cls(low - margin if low < 0 else low, high + margin)

    def position(self, value: float) -> float:
        """Return the position of a value, in percent of the width."""
        return 100 * min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def span(self, low: float, high: float) -> str:
        """Return the CSS of a bar from one value to another."""
        left, right = self.position(low), self.position(high)
        return f"left:{left:.1f}%;width:{right - left:.1f}%"


def ends(e: Explanation, features: Iterable[int]) -> list[tuple[float, float]]:
    """Return the ends (low, high) of the error whiskers of features."""
    bars = [(float(e.scores[i]), wording.error_of(e, i) or 0.0) for i in features]
    return [(score - error, score + error) for score, error in bars]


def from_template(file: str, /, **context: Any) -> Markup:
    """Render a template of `templates/`, or, for ``package:file``, of that folder in another package."""
    return Markup(_environment().get_template(file).render(context))


def fragment(*parts: Markup) -> str:
    """Return parts of a page with their style sheet, for notebooks and other pages."""
    return str(from_template("fragment.html", style=style(), parts=parts))


@cache
def read_asset(name: str, package: str = __name__) -> str:
    """Return the text of a file in this folder, or in the folder of another package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


@cache
def style(*more: str) -> Markup:
    """Return the style sheet of fragments, followed by other style sheets of this folder."""
    colours = [
        f"--{name}-{part}: {colour};"
        for name, surface in (("light", LIGHT), ("dark", DARK))
        for part, colour in asdict(surface).items()
    ]
    rules = [f".pertinent {{ {' '.join(colours)} }}\n", *map(read_asset, ("report.css", *more))]
    return Markup("".join(rules))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["ours"] = Markup  # output of a macro
    environment.globals |= {"say": wording, "Axis": Axis, "ends": ends}
    environment.globals |= {"measure_text": measure_text, "number_text": number_text}
    return environment


def _template(name: str) -> str:
    package, _, file = name.rpartition(":")
    return read_asset(f"templates/{file}", package or __name__)


def _printable(value: Any) -> Any:
    """Return a value for a page: with visible control characters, and empty for ``None``."""
    return value if isinstance(value, Markup) else "" if value is None else visible(str(value))

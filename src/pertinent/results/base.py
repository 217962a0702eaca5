"""What all results can do: convert to JSON, HTML, a data frame and a figure, and be saved and read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar, overload

from pertinent.config.serialization import PlainData, json_text
from pertinent.config.settings import checked
from pertinent.errors import FileError, InputError
from pertinent.files import read_json, write_text
from pertinent.results.failures import Failure, failures_of

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.figure import Figure

T = TypeVar("T")

Form: TypeAlias = Literal[
    "terminal", "html", "figure", "interactions", "waterfall", "curves", "pareto", "markdown", "latex"
]


class Result(ABC):
    """A result that can be shown, converted, saved and read.

    A subclass has a `kind`, the name of its files' format, and `to_dict`, `from_dict` and `to_dataframe`.
    How it is shown is listed in `pertinent.rendering`.
    """

    kind: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = (".json", ".csv")
    """The kinds of file that `save` writes; `read` reads all but ``.csv``."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts."""

    @classmethod
    @abstractmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; an `InputError` says what the result cannot be made of."""

    @abstractmethod
    def to_dataframe(self) -> Any:
        """A pandas frame."""

    def to_json(self) -> str:
        """A JSON string; NaN and infinity become null."""
        return json_text({"format": self.file_format(), **self.to_dict()})

    @classmethod
    def file_format(cls) -> str:
        """Return the value of `format` in JSON files of this kind."""
        return f"pertinent {cls.kind} 1"

    @checked
    def save(self, path: str | Path) -> None:
        """Write the kind of file that the suffix names, atomically; `read` reads all but ``.csv``."""
        path = Path(path)
        check_suffix(path, self.suffixes)
        if path.suffix.lower() == ".csv":
            write_text(path, self.to_dataframe().to_csv(index=False))
        else:
            write_text(path, self.to_json() + "\n")

    @classmethod
    @checked
    def read(cls, path: str | Path) -> Self:
        """Read a JSON file that `save` wrote."""
        plain = read_json(Path(path))
        try:
            PlainData(plain, cls.kind).text("format", (cls.file_format(),))
            return cls.from_dict(plain)
        except InputError as error:
            raise FileError(f"{str(path)!r} is damaged or holds no {cls.kind}: {error}") from error

    def plot(self, *args: Any, **options: Any) -> Figure:
        """A matplotlib figure."""
        figure: Figure = display(self, "figure", *args, **options)
        return figure

    def to_html(self) -> str:
        """A fragment of HTML with its own style; all text in it is escaped."""
        return str(display(self, "html"))

    def _repr_html_(self) -> str:
        return self.to_html()

    def __rich__(self) -> Any:
        return display(self, "terminal")


class ResultSequence(Result, Sequence[T]):
    """The results of several inputs, in their order; `failures` lists the inputs that failed and why.

    A slice has the failures of its inputs; an input without result stays with the next one that has one.
    """

    def __init__(self, results: Sequence[T], failures: Sequence[Failure] = ()) -> None:
        self._all = list(results)
        self.failures = list(failures)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> T | Self:
        if isinstance(index, slice):
            return type(self)(self._all[index], failures_of(self.failures, self._all, index))
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[T]:
        return iter(self._all)


def display(result: Any, form: Form, *args: Any, **options: Any) -> Any:
    """A result as something rich prints, as HTML, as a matplotlib figure, or as a plain table.

    The forms ``"interactions"``, ``"waterfall"``, ``"curves"`` and ``"pareto"`` are figures, too: of pairs of
    features, of scores that add up to the prediction, of what is measured at each sparsity, and of what it
    costs.

    The other arguments are those of the report on this kind of result. This is the one way from results up to
    reports, which are imported when something is shown.
    """
    from pertinent.rendering import show

    return show(result, form, *args, **options)


def check_suffix(path: Path, suffixes: tuple[str, ...]) -> None:
    """Raise a `FileError` unless the file's suffix is one of these."""
    if path.suffix.lower() not in suffixes:
        named = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}" if len(suffixes) > 1 else suffixes[0]
        raise FileError(f"The name of {str(path)!r} must end in {named}.")

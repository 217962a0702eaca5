"""Base classes of results: conversion to JSON, HTML, data frames and figures, saving and reading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar, overload

from pertinent.config.serialization import PlainData, encode, json_text
from pertinent.config.settings import checked
from pertinent.errors import FileError, InputError
from pertinent.files import read_json, write_text
from pertinent.results.failures import Failure, failures_from_plain, failures_of

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.figure import Figure

T = TypeVar("T", bound=Any)

Form: TypeAlias = Literal[
    "terminal", "html", "figure", "interactions", "waterfall", "curves", "pareto", "markdown", "latex"
]


class Result(ABC):
    """Base class of results that can be shown, converted, saved and read.

    A subclass defines `kind`, the name of its file format, `to_dict`, `from_dict` and `to_dataframe`.
    `pertinent.rendering` defines how it is shown.
    """

    kind: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = (".json", ".csv")
    """Suffixes of files that `save` writes; `read` reads all except ``.csv``."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and dicts."""

    @classmethod
    @abstractmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Create the result from the output of `to_dict`; an `InputError` names an invalid field."""

    @abstractmethod
    def to_dataframe(self) -> Any:
        """Return a pandas frame."""

    def to_json(self) -> str:
        """Return a JSON string; NaN and infinity become null."""
        return json_text({"format": self.file_format(), **self.to_dict()})

    @classmethod
    def file_format(cls) -> str:
        """Return the value of `format` in JSON files of this kind."""
        return f"pertinent {cls.kind} 1"

    @checked
    def save(self, path: str | Path) -> None:
        """Write a file atomically, in the format of its suffix; `read` reads all formats except ``.csv``."""
        path = Path(path)
        check_suffix(path, self.suffixes)
        if path.suffix.lower() == ".csv":
            write_text(path, self.to_dataframe().to_csv(index=False))
        else:
            write_text(path, self.to_json() + "\n")

    @classmethod
    @checked
    def read(cls, path: str | Path) -> Self:
        """Read a JSON file written by `save`."""
        plain = read_json(Path(path))
        try:
            PlainData(plain, cls.kind).text("format", (cls.file_format(),))
            return cls.from_dict(plain)
        except InputError as error:
            raise FileError(f"{str(path)!r} is damaged or contains no {cls.kind}: {error}") from error

    def plot(self, *args: Any, **options: Any) -> Figure:
        """Return a matplotlib figure."""
        figure: Figure = display(self, "figure", *args, **options)
        return figure

    def to_html(self) -> str:
        """Return an HTML fragment with inline styles; all text is escaped."""
        return str(display(self, "html"))

    def _repr_html_(self) -> str:
        return self.to_html()

    def __rich__(self) -> Any:
        return display(self, "terminal")


class ResultSequence(Result, Sequence[T]):
    """Results of several inputs, in order; `failures` lists the failed inputs with reasons.

    A slice includes the failures of its inputs; a failed input belongs to the next input with a result. A
    subclass defines `item_class`, the class of the results.
    """

    item_class: ClassVar[Any]

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

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and dicts."""
        return {self.kind: [result.to_dict() for result in self], "failures": encode(self.failures)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Create the results from the output of `to_dict`; an `InputError` names an invalid field."""
        data = PlainData(plain, cls.kind)
        results = [cls.item_class.from_dict(each) for each in data.value(cls.kind, list[Any])]
        return cls(results, failures_from_plain(data.value("failures")))

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<{len(self)} {self.kind}{failed}>"

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[T]:
        return iter(self._all)


def display(result: Any, form: Form, *args: Any, **options: Any) -> Any:
    """Render a result as a rich renderable, HTML, a matplotlib figure, or a plain-text table.

    ``"interactions"`` (pairs of features), ``"waterfall"`` (scores that sum to the prediction), ``"curves"``
    (measures by sparsity) and ``"pareto"`` (measures by cost) are also figures. Additional arguments are
    passed to the renderer, which is imported only here.
    """
    from pertinent.rendering import show

    return show(result, form, *args, **options)


def check_suffix(path: Path, suffixes: tuple[str, ...]) -> None:
    """Raise a `FileError` unless the file has one of these suffixes."""
    if path.suffix.lower() not in suffixes:
        listed = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}" if len(suffixes) > 1 else suffixes[0]
        raise FileError(f"The name of {str(path)!r} must end in {listed}.")

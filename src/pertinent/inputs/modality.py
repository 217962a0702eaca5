"""Modalities: the kinds of input, with everything that the rest of the library needs to know about them.

Text, image and table are registered in this folder. A modality from outside is registered in the same way,
by ``@modalities.register("time-series")`` or through an entry point in the group ``pertinent.inputs``.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pertinent.config.registry import Registry
from pertinent.config.serialization import PlainData, decode_fields, encode, json_text
from pertinent.errors import InputError
from pertinent.inputs.background import Background
from pertinent.inputs.base import Features, Input
from pertinent.printable import shorten

if TYPE_CHECKING:
    from typing import Self

    from pertinent.inputs.table import Columns


@dataclass(frozen=True)
class TextColumns:
    """Columns of a file for a text, the second text of a pair and a query; ``None`` by default."""

    text: str | None = None
    pair: str | None = None
    query: str | None = None


@dataclass(frozen=True)
class InputLimits:
    """Limits of an input in the web app.

    Attributes
    ----------
    text
        Maximum number of characters of a text, of all parts of a prompt, or of all values of a row.
    features
        Maximum number of features.
    pixels
        Maximum number of pixels of an image.
    """

    text: int = 20_000
    features: int = 4096
    pixels: int = 2**22

    def check_text(self, *texts: object) -> None:
        """Raise an `InputError` if the strings among the arguments have too many characters in total."""
        n = sum(len(text) for text in texts if isinstance(text, str))
        if n > self.text:
            raise InputError(
                f"The text must have at most {self.text:,} characters on this page, got {n:,}: shorten it."
            )


@dataclass(frozen=True)
class Modality(ABC):
    """A kind of input.

    Methods that need only an input belong to its class `input_type`. Attributes of the form ``"module:name"``
    are imported when they are used; they may also be the class itself.

    Attributes
    ----------
    input_type
        The class of its inputs.
    features
        The default granularity.
    aligned
        Whether features with the same name correspond across inputs, so that their scores can be stacked.
    dimensions
        The possible numbers of dimensions of an input that is an array.
    precedence
        The order in which modalities are tried for an input of unknown kind, lowest first.
    default_method
        The explainer used by default.
    default_removal
        The removal used by default, if the model does not choose one.
    fixed_baseline, drawn_baseline
        The removals that make the fixed and the random baseline of path gradients.
    scorer
        The network that learned explainers use by default, a `learners.networks.scorer.Scorer`; ``None`` if
        they cannot explain this kind of input.
    drawing
        The drawing of inputs in the terminal, in HTML and in plots, a subclass of
        `rendering.drawings.Drawing`; ``None`` to list the features.
    nouns
        Everyday nouns for an input and for one of its features.
    coarser
        The setting that gives fewer features, for warnings.
    is_trainable
        Whether `train` fine-tunes classifiers of such inputs.
    flag
        The flag of the command line that takes such inputs: ``"inputs"``, ``"image"`` or ``"row"``.
    granularities
        The granularities in the web app; by default only `features`.
    in_files, in_lines
        Whether a record of a table file, and whether a line of a .txt file, can be such an input.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    nouns: ClassVar[tuple[str, str]] = ("input", "feature")
    coarser: ClassVar[str] = "coarser features"
    is_trainable: ClassVar[bool] = False
    granularities: ClassVar[tuple[str, ...]] = ()
    flag: ClassVar[str] = "row"
    in_files: ClassVar[bool] = True
    in_lines: ClassVar[bool] = False
    input_type: ClassVar[type[Input]]
    features: ClassVar[str]
    aligned: ClassVar[bool] = True
    dimensions: ClassVar[tuple[int, ...]] = ()
    precedence: ClassVar[int] = 0
    default_method: ClassVar[str] = "shapley"
    default_removal: ClassVar[str]
    fixed_baseline: ClassVar[str] = "constant"
    drawn_baseline: ClassVar[str] = "uniform-noise"
    scorer: ClassVar[Any] = None
    drawing: ClassVar[Any] = None

    @property
    def plural(self) -> str:
        """Noun for several inputs, such as ``table rows``."""
        return f"{self.name} inputs"

    def recognises(self, raw: Any) -> bool:
        """Return whether an input of unknown kind is of this kind."""
        return False

    def is_one(self, raw: Any) -> bool:
        """Return whether a sequence is a single input of this kind; for arrays `dimensions` decide."""
        return False

    def split(self, raw: Any) -> Iterable[Any] | None:
        """Return the inputs in a collection, or ``None`` if `raw` is a single input of this kind."""
        return None if self.is_one(raw) else split_collection(raw, self.dimensions)

    @abstractmethod
    def prepare(self, raw: Any, features: Features | None = None) -> Input:
        """Divide an input into features, for a model that reads strings or arrays."""

    def with_columns(self, columns: Columns | None) -> Self:
        """Return the modality with the columns of the model, if its inputs are table rows."""
        return self

    def prepare_for_module(self, raw: Any, features: Features | None, channels: int | None) -> Input:
        """Divide an input into features, for a torch module that reads `channels` channels."""
        return self.prepare(raw, features)

    def make_background(self, rows: Any, prepare: Callable[[Any], Any]) -> Background:
        """Return the background of a model; `prepare` prepares one input for it."""
        return Background(rows)

    def to_fields(self, input: Any) -> dict[str, Any]:
        """Return the form fields of the input in the web app, as plain data."""
        return {"values": json_text(encode(input.raw))}

    def from_fields(self, fields: Mapping[str, Any], limits: InputLimits) -> Any:
        """Return the raw input of form fields: by default the numbers in a text."""
        text = PlainData(fields, "input").text("values").strip()
        limits.check_text(text)
        if text[:1] not in ("[", "{"):
            text = "[" + re.sub(r"[\s,;]+", ",", text) + "]"
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            got = shorten(repr(text), 60)
            raise InputError(f"`values` must be numbers or JSON, but got {got}.") from error

    def without_answer(self, raw: Any) -> Any:
        """Return a raw input with the same features that does not need an answer generated by the model."""
        return raw

    def background_notes(self, input: Any, background: Background | None) -> tuple[str, ...]:
        """Return notes on values of the input that never occur in the background."""
        return ()

    def text_columns(self, names: Sequence[str], chosen: TextColumns) -> dict[str, str] | None:
        """Return the column of a file for each key of an input; ``None`` if all columns form a row."""
        return None

    def from_columns(self, record: Mapping[str, Any], columns: Mapping[str, str]) -> Any:
        """Return the input in a record of a file with these `text_columns`; by default they hold texts."""
        for name in columns.values():
            if not isinstance(record[name], str):
                raise InputError(f"The column {name!r} must contain text, but contains {record[name]!r}.")
        return {key: record[name] for key, name in columns.items()}

    def default_removal_for(self, background: Background | None) -> str:
        """Return the default removal of a model with this background."""
        return self.default_removal

    def removal_warning(self, background: Background | None) -> str:
        """Return a warning about the default removal; empty if there is none."""
        return ""

    def baseline_removal(self, input: Any, background: Background | None, *, drawn: bool) -> str:
        """Return the removal that makes the baseline of path gradients, a random one if `drawn`."""
        if drawn and background is not None:
            return "background"
        return self.drawn_baseline if drawn else self.fixed_baseline


modalities: Registry[Modality] = Registry("kind of input", "pertinent.inputs")


@lru_cache
def modality_named(kind: str) -> Modality:
    """Return the modality with this name."""
    return modalities.make(kind)


def modality_of(raw: Any) -> Modality:
    """Return the modality that recognises an input by its type and shape."""
    by_precedence = sorted(map(modality_named, modalities.all()), key=lambda modality: modality.precedence)
    for modality in by_precedence:
        if modality.recognises(raw):
            return modality
    raise InputError(
        "An input must be a text, a pair of texts, an image (array, file path, PIL image) or a table "
        f"row (array, mapping, pandas row), but got {type(raw).__name__}."
    )


def split_collection(raw: Any, dimensions: Sequence[int]) -> Iterable[Any] | None:
    """Return the inputs in a collection, or ``None`` if `raw` is one input; arrays by `dimensions`."""
    if isinstance(raw, str | Path | Mapping):
        return None
    if hasattr(raw, "iterrows"):
        return _FrameRows(raw)
    if hasattr(raw, "tocsr"):
        raise InputError("A sparse matrix cannot be explained: pass `matrix.toarray()`.")
    if hasattr(raw, "shape"):
        return None if len(raw.shape) in (0, *dimensions) else raw
    return raw if isinstance(raw, Iterable) else None


class _FrameRows:
    """The rows of a data frame, created one at a time."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __len__(self) -> int:
        return len(self.frame)

    def __iter__(self) -> Iterator[Any]:
        return (row for _, row in self.frame.iterrows())


def input_from_dict(plain: Any, features: Sequence[str]) -> Input:
    """Return the input of the fields from `Input.to_dict`; raise an `InputError` if they are invalid."""
    data = PlainData(plain, "input")
    cls = modality_named(data.text("kind", modalities.all())).input_type
    fields = decode_fields(cls, plain, features=len(features))
    try:
        fingerprint = bytes.fromhex(data.text("fingerprint"))
    except ValueError:
        raise InputError(
            f"`fingerprint` must be hexadecimal, but got {data.text('fingerprint')[:40]!r}."
        ) from None
    return cls(raw=None, features=tuple(features), fingerprint=fingerprint, **fields).restore()

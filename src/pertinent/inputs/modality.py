"""A modality: one kind of input, and everything that the rest of the library needs to know about it.

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
    """The columns of a file with a text, the second text of a pair and a query, if a user names them."""

    text: str | None = None
    pair: str | None = None
    query: str | None = None


@dataclass(frozen=True)
class InputLimits:
    """Limits of one input that a user sends to the web page.

    Attributes
    ----------
    text
        Characters of a text, of all parts of a prompt, or of all values of a row.
    features
        Features of the input.
    pixels
        Pixels of an image.
    """

    text: int = 20_000
    features: int = 4096
    pixels: int = 2**22

    def check_text(self, *texts: object) -> None:
        """Raise an `InputError` if the strings among the arguments are too long together."""
        n = sum(len(text) for text in texts if isinstance(text, str))
        if n > self.text:
            raise InputError(
                f"The text has {n:,} characters, but this page explains at most {self.text:,}: shorten it."
            )


@dataclass(frozen=True)
class Modality(ABC):
    """One kind of input.

    What only needs an input is a method of its class `input_type`. What is named as ``"module:name"`` is
    imported when it is used; a class or function can be given in its place.

    Attributes
    ----------
    input_type
        The class of its inputs.
    features
        The default granularity.
    aligned
        Whether features of one name are the same thing in every input, so that their scores can be stacked.
    dimensions
        The possible numbers of dimensions of one input that is given as an array.
    precedence
        Modalities with a lower number are asked first whether they recognise an input.
    default_removal
        The removal used by default, if the model does not choose one.
    fixed_baseline, drawn_baseline
        The removals that make the baseline of path gradients, and a baseline that is drawn at random.
    scorer
        The network that learned explainers use by default, a `learned.networks.scorer.Scorer`; ``None`` if
        they cannot explain this kind of input.
    drawing
        How such an input is drawn in the terminal, in HTML and in plots, a subclass of
        `rendering.drawings.Drawing`; ``None`` to list its features.
    nouns
        What people call an input, and one of its features.
    coarser
        The setting that makes fewer features, for warnings.
    is_trainable
        Whether `train` fine-tunes classifiers of such inputs.
    flag
        The flag of the command line that takes such inputs: ``"inputs"``, ``"image"`` or ``"row"``.
    granularities
        The granularities that the page offers; by default `features`.
    in_files, in_lines
        Whether a record of a table file can be such an input, and whether a line of a .txt file can.
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
    default_removal: ClassVar[str]
    fixed_baseline: ClassVar[str] = "constant"
    drawn_baseline: ClassVar[str] = "uniform-noise"
    scorer: ClassVar[Any] = None
    drawing: ClassVar[Any] = None

    @property
    def plural(self) -> str:
        """What several inputs are called, as ``table rows``."""
        return f"{self.name} inputs"

    def recognises(self, raw: Any) -> bool:
        """Whether one input that a user gave, without saying what it is, is of this kind."""
        return False

    def is_one(self, raw: Any) -> bool:
        """Whether a sequence is itself one input of this kind; arrays are judged by `dimensions`."""
        return False

    def split(self, raw: Any) -> Iterable[Any] | None:
        """The inputs in a collection, or ``None`` if `raw` is itself one input of this kind."""
        return None if self.is_one(raw) else split_collection(raw, self.dimensions)

    @abstractmethod
    def prepare(self, raw: Any, features: Features | None = None) -> Input:
        """Divide one input that a user gave into features, for a model that reads strings or arrays."""

    def with_columns(self, columns: Columns | None) -> Self:
        """Return the modality for a model that reads the columns, if it reads rows of a table."""
        return self

    def prepare_for_module(self, raw: Any, features: Features | None, channels: int | None) -> Input:
        """Divide one input into features, for a torch module whose first convolution reads `channels`."""
        return self.prepare(raw, features)

    def make_background(self, rows: Any, prepare: Callable[[Any], Any]) -> Background:
        """Return the background of a model, which prepares an input by `prepare`."""
        return Background(rows)

    def to_fields(self, input: Any) -> dict[str, Any]:
        """Return the fields of the form on the page that make the input, as plain data."""
        return {"values": json_text(encode(input.raw))}

    def from_fields(self, fields: Mapping[str, Any], limits: InputLimits) -> Any:
        """Return one raw input from the fields of the form: by default the numbers in a text."""
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
        """Return a raw input that has the same features, and that the model does not have to answer first."""
        return raw

    def background_notes(self, input: Any, background: Background | None) -> tuple[str, ...]:
        """Return notes on values of the input that the background never has."""
        return ()

    def text_columns(self, names: Sequence[str], chosen: TextColumns) -> dict[str, str] | None:
        """Return a column of a file for each key of an input; ``None`` if all columns are values of a row."""
        return None

    def default_removal_for(self, background: Background | None) -> str:
        """The removal used by default, given the rows that the model was wrapped with."""
        return self.default_removal

    def removal_warning(self, background: Background | None) -> str:
        """A warning about the removal used by default; empty if it needs none."""
        return ""

    def baseline_removal(self, input: Any, background: Background | None, *, drawn: bool) -> str:
        """The removal that makes the baseline of path gradients; what is drawn comes from a background."""
        usual = self.drawn_baseline if drawn else self.fixed_baseline
        return "background" if drawn and background is not None else usual


modalities: Registry[Modality] = Registry("kind of input", "pertinent.inputs")


@lru_cache
def modality_named(kind: str) -> Modality:
    """The modality of this name."""
    return modalities.make(kind)


def modality_of(raw: Any) -> Modality:
    """The modality that recognises one input, by its type and shape."""
    known = sorted(map(modality_named, modalities.all()), key=lambda modality: modality.precedence)
    for modality in known:
        if modality.recognises(raw):
            return modality
    raise InputError(
        "An input must be a text, a pair of texts, an image (array, file path, PIL image) or a table "
        f"row (array, mapping, pandas row), but got {type(raw).__name__}."
    )


def split_collection(raw: Any, dimensions: Sequence[int]) -> Iterable[Any] | None:
    """The inputs in a collection, or ``None`` if `raw` is one, such as an array of these `dimensions`."""
    if isinstance(raw, str | Path | Mapping):
        return None
    if hasattr(raw, "iterrows"):
        return _FrameRows(raw)
    if hasattr(raw, "tocsr"):
        raise InputError("A sparse matrix cannot be explained: give its .toarray().")
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
    """The inverse of `Input.to_dict`; raises an `InputError` if the fields do not make an input."""
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

"""What a user of the page sends: an input of one of the kinds that models read, within limits."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Literal

import numpy as np

from pertinent._optional import optional
from pertinent.config.serialization import Index, decode
from pertinent.config.settings import Count, Seed
from pertinent.errors import InputError
from pertinent.inputs.base import Input
from pertinent.inputs.prompt import Prompt
from pertinent.inputs.text import Text
from pertinent.runs.request import DEFAULT_METHOD

_LONGEST_NAME = 1000
"""Characters of the name of a model, a method, a class and the like."""

_IMAGES = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""The formats of images that are decoded."""


@dataclass(frozen=True)
class Limits:
    """What one user may ask for.

    Attributes
    ----------
    text
        Characters of a text, of all parts of a prompt, or of all values of a row.
    budget
        Evaluations of one explanation.
    features
        Features of one input.
    pixels
        Pixels of an image.
    body
        Bytes of a request.
    seconds
        Seconds that a request may take.
    """

    text: int = 20_000
    budget: int = 10_000
    features: int = 4096
    pixels: int = 2**22
    body: int = 2**23
    seconds: float = 600.0

    def check_text(self, parts: Iterable[object]) -> None:
        """Raise an `InputError` if the strings among the parts have too many characters together."""
        n = sum(len(part) for part in parts if isinstance(part, str))
        if n > self.text:
            raise InputError(
                f"The text has {n:,} characters, but this page explains at most {self.text:,}: shorten it."
            )


@dataclass(frozen=True)
class ExplainForm:
    """What a user asks about one input of a model.

    Attributes
    ----------
    text, second, fixed
        A text, perhaps the other text of a pair, and which of the two is never removed.
    sources, answer, rather_than, chat
        Of a language model, beside the `text`: as in `Prompt`; `chat` makes the text a message of a chat.
    row
        A table row, by column.
    image
        An image as a data URI.
    without
        The features to predict without.
    model, method, target, budget, removal, features, seed
        As in `explain`.
    """

    model: str
    text: str | None = None
    second: str | None = None
    fixed: Literal["none", "first", "second"] = "none"
    sources: tuple[str, ...] = ()
    answer: str | None = None
    rather_than: str | None = None
    chat: bool = False
    row: Mapping[str, str | float | None] | None = None
    image: str | None = None
    method: str = DEFAULT_METHOD
    target: str | None = None
    budget: Count | None = None
    removal: str | None = None
    features: str | None = None
    seed: Seed = 0
    without: tuple[Index, ...] = ()

    @property
    def given(self) -> tuple[object, ...]:
        """What decides the input: two questions in which this is the same are about the same input."""
        row = None if self.row is None else tuple(self.row.items())
        texts = (self.text, self.second, self.fixed, self.sources, self.answer, self.rather_than, self.chat)
        return (*texts, row, self.image, self.features)

    def raw(self, kind: str, limits: Limits) -> Any:
        """What a model of this kind reads; a text is never the name of a file, nor is an image."""
        if kind == "table" and self.row is not None:
            limits.check_text(each for pair in self.row.items() for each in pair)
            return {name: np.nan if value is None else value for name, value in self.row.items()}
        if kind == "image" and self.image is not None:
            return decoded_image(self.image, limits.pixels)
        if kind not in ("text", "prompt") or self.text is None:
            raise InputError(f"This model reads {kind}: send that.")
        limits.check_text((self.text, self.second, *self.sources, self.answer, self.rather_than))
        if kind == "prompt":
            asked = (
                {"messages": [{"role": "user", "content": self.text}]} if self.chat else {"text": self.text}
            )
            answers = {"answer": self.answer or None, "rather_than": self.rather_than or None}
            return Prompt(**asked, sources=self.sources, **answers)  # type: ignore[arg-type]
        return Text.from_input(Text(self.text, self.second, self.fixed))


def read_form(plain: Any, limits: Limits) -> ExplainForm:
    """Decode a question; an `InputError` names a field that is longer than the limits allow.

    Lengths are compared first, because decoding takes much longer than counting.
    """
    if isinstance(plain, dict):
        most = {
            **dict.fromkeys(("sources", "row", "without"), limits.features),
            **dict.fromkeys(("model", "method", "target", "removal", "features", "fixed"), _LONGEST_NAME),
        }
        for name, limit in most.items():
            value = plain.get(name)
            if isinstance(value, str | list | dict) and len(value) > limit:
                unit = "characters" if isinstance(value, str) else "entries"
                raise InputError(
                    f"`{name}` must have at most {limit:,} {unit} on this page, but has {len(value):,}."
                )
    return decode(ExplainForm, plain)


def fields_of(input: Input) -> dict[str, Any]:
    """The fields of a question about an input, so that it can be edited and asked about again."""
    own: Any = input
    if input.kind == "text":
        return {"text": own.text.first, "second": own.text.second, "fixed": own.text.fixed}
    if input.kind == "prompt":
        prompt = own.text
        sources = [prompt.segments[i] for i in prompt.parts] if prompt.unit == "sources" else []
        rest = [part for i, part in enumerate(prompt.segments) if not sources or not prompt.removable(i)]
        written = prompt.answer_ids and not prompt.rather_than  # by the model, which will write it again
        answer = None if written else prompt.answer
        text = "".join(rest).strip() if sources else "".join(rest)
        return {"text": text, "sources": sources, "answer": answer, "rather_than": prompt.rather_than}
    if input.kind == "table":
        values = [None if value != value else value for value in own.values.tolist()]  # noqa: PLR0124  NaN
        return {"row": dict(zip(own.names, values, strict=True))}
    if input.kind == "image":
        from pertinent.rendering.drawings.image import data_uri, original

        return {"image": data_uri(original(own))}
    return {}


def decoded_image(uri: str, most_pixels: int) -> Any:
    """The PIL image in a data URI, if it has one of a few formats and not too many pixels."""
    pil, operations = optional("PIL.Image"), optional("PIL.ImageOps")
    try:
        data = b64decode(uri.partition(",")[2], validate=True)
        image = pil.open(BytesIO(data), formats=_IMAGES)
        width, height = image.size
    except (pil.DecompressionBombError, pil.DecompressionBombWarning) as error:
        raise InputError(f"The image has more than {most_pixels:,} pixels: make it smaller.") from error
    except Exception as error:  # a damaged image may raise anything in PIL
        raise InputError(f"The image cannot be read: send one of {', '.join(_IMAGES)}.") from error
    if width * height > most_pixels:
        raise InputError(
            f"The image has {width:,} × {height:,} pixels, but this page explains at most "
            f"{most_pixels:,}: make it smaller."
        )
    try:
        image.load()
        return operations.exif_transpose(image)
    except Exception as error:
        raise InputError(f"The image cannot be read: {error}") from error

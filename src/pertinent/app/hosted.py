"""The models of the page: what a user may send them, what they are asked, and what may be chosen."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from threading import Lock
from typing import Any

import numpy as np

from pertinent._optional import optional
from pertinent.api.catalogue import methods
from pertinent.api.request import DEFAULT_METHOD, make_explainer
from pertinent.api.service import Service
from pertinent.array_types import Floats
from pertinent.decoding import Index
from pertinent.engine.job import Published
from pertinent.errors import InputError, require, unknown
from pertinent.explainers.base import explainers, plan_budget
from pertinent.inputs.base import Input
from pertinent.inputs.text import Text
from pertinent.models.base import Model
from pertinent.removal.base import removals
from pertinent.results.explanation import Explanation
from pertinent.settings import Count, Seed

MEASURED = ("sufficiency", "comprehensiveness")
"""What is measured of every explanation on the page."""

_FEATURES = {
    "text": ("words", "sentences", "passages", "tokens"),
    "image": ("patches", "superpixels", "pixels"),
    "table": ("columns",),
}
_IMAGES = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""The formats of images that are decoded."""


@dataclass(frozen=True)
class Limits:
    """What one user may ask for.

    Attributes
    ----------
    text
        Characters of a text.
    budget
        Evaluations of one explanation.
    features
        Features of one input.
    pixels
        Pixels of an image.
    body
        Bytes of a request.
    """

    text: int = 20_000
    budget: int = 10_000
    features: int = 4096
    pixels: int = 2**22
    body: int = 2**23


@dataclass(frozen=True)
class Question:
    """What a user asks about one input: a `text`, a `row` of a table by column, or an `image` as a data URI.

    `without` are the features to predict without; the other fields are words of `explain`.
    """

    model: str
    text: str | None = None
    row: Mapping[str, str | float | None] | None = None
    image: str | None = None
    method: str = DEFAULT_METHOD
    target: str | None = None
    budget: Count | None = None
    removal: str | None = None
    features: str | None = None
    seed: Seed = 0
    without: tuple[Index, ...] = ()


@dataclass(frozen=True)
class Hosted:
    """A model on the page; it is loaded when it is first used, and has a service of its own."""

    name: str
    load: Callable[[], Model]
    limits: Limits
    examples: Callable[[], Sequence[Any]] = tuple
    lock: Lock = field(default_factory=Lock, compare=False)

    @cached_property
    def service(self) -> Service:
        """The service that explains; the lock is held while it is made and used."""
        return Service(self.load())

    @property
    def model(self) -> Model:
        """The model."""
        return self.service.model

    @property
    def kind(self) -> str:
        """The kind of input that it reads."""
        return self.model.kind or "text"

    def close(self) -> None:
        """End the service, if there is one."""
        if "service" in vars(self):
            self.service.close()

    def choices(self) -> dict[str, Any]:
        """What may be chosen for this model, as plain data."""
        with self.lock:
            kind = self.kind
            shown = [each for each in methods() if not each.fitted_first]
            shown.sort(key=lambda each: each.name != DEFAULT_METHOD)
            return {
                "name": self.name,
                "kind": kind,
                "classes": list(self.model.classes),
                "output": self.model.output.kind,
                "methods": [[each.name, each.summary] for each in shown],
                "removals": removals.for_kind(kind),
                "features": self._feature_names(),
                "examples": [self._example(each) for each in self.examples()] or self._background_row(),
                "limits": {"budget": self.limits.budget, "text": self.limits.text},
            }

    def prepare(self, question: Question) -> Input:
        """The input of a question, cut into features."""
        with self.lock:
            raw = self._raw(question)
            if question.features is not None and question.features not in self._feature_names():
                raise unknown("feature", question.features, self._feature_names())
            found = self.model.prepare(raw, question.features)
        if found.n_features > self.limits.features:
            raise InputError(
                f"The input has {found.n_features:,} features, but this page explains at most "
                f"{self.limits.features:,}: choose coarser ones."
            )
        return found

    def predict(self, question: Question, input: Input) -> Future[Floats]:
        """The future of the model's answer about the input without some of its features."""
        self._check_removal(question)
        with self.lock:
            return self.service.predict(input, question.without, removal=question.removal, seed=question.seed)

    def explain(
        self, question: Question, input: Input, on_partial: Callable[[Published], None]
    ) -> Future[Explanation]:
        """The future of the explanation, which is also measured."""
        self._check_removal(question)
        if question.method not in explainers:  # a name alone: neither settings nor a folder
            raise unknown("method", question.method, explainers.all())
        budget = plan_budget(make_explainer(question.method), question.budget, input.n_features)
        most = self.limits.budget
        require(budget <= most, "budget", f"at most {most:,} on this page", budget)
        with self.lock:
            return self.service.submit(
                input,
                question.method,
                on_partial=on_partial,
                target=question.target,
                budget=budget,
                removal=question.removal,
                seed=question.seed,
                metrics=MEASURED,
            )

    def _check_removal(self, question: Question) -> None:
        known = removals.for_kind(self.kind)
        if question.removal is not None and question.removal not in known:  # a name alone, without settings
            raise unknown("removal", question.removal, known)

    def _feature_names(self) -> list[str]:
        names = _FEATURES.get(self.kind, ())
        return [name for name in names if name != "tokens" or self.model.tokenizer is not None]

    def _raw(self, question: Question) -> Any:
        """What the model reads; a text is never the name of a file, nor is an image."""
        given = {"text": question.text, "table": question.row, "image": question.image}.get(self.kind)
        if given is None:
            raise InputError(f"The model {self.name!r} reads {self.kind}: send that.")
        if isinstance(given, Mapping):
            return {name: np.nan if value is None else value for name, value in given.items()}
        if self.kind == "image":
            return decoded_image(given, self.limits.pixels)
        if len(given) > self.limits.text:
            raise InputError(
                f"The text has {len(given):,} characters, but this page explains at most "
                f"{self.limits.text:,}: shorten it."
            )
        return Text.of(given)

    def _example(self, raw: Any) -> Any:
        """An example as the page shows it: a text, a row by column, or an image as a data URI."""
        if self.kind != "image":
            return raw
        from pertinent.report.drawings.image import data_uri, original

        return data_uri(original(self.model.prepare(raw)))  # type: ignore[arg-type]

    def _background_row(self) -> list[Any]:
        """The first row of a table's background, so that there are columns to edit."""
        if self.kind != "table" or self.model.background is None:
            return []
        row: Any = self.model.prepare(self.model.background.values[0])
        return [dict(zip(row.names, row.values.tolist(), strict=True))]


def decoded_image(uri: str, most_pixels: int) -> Any:
    """The PIL image in a data URI, if it has one of a few formats and not too many pixels."""
    pil, operations = optional("PIL.Image"), optional("PIL.ImageOps")
    try:
        data = b64decode(uri.partition(",")[2], validate=True)
        image = pil.open(BytesIO(data), formats=_IMAGES)
    except (binascii.Error, ValueError, OSError) as error:
        raise InputError(f"The image cannot be read: send one of {', '.join(_IMAGES)}.") from error
    width, height = image.size
    if width * height > most_pixels:
        raise InputError(
            f"The image has {width:,} × {height:,} pixels, but this page explains at most "
            f"{most_pixels:,}: make it smaller."
        )
    try:
        image.load()
    except Exception as error:  # a damaged image may raise anything in PIL
        raise InputError(f"The image cannot be read: {error}") from error
    return operations.exif_transpose(image)

"""What the questions of a study show of texts, images and table rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pertinent.array_types import Array, Masks
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.text import TextInput
from pertinent.rendering.colours import NEUTRAL
from pertinent.rendering.drawings.image import data_uri, kept, original, resized
from pertinent.rendering.drawings.text import pieces
from pertinent.rendering.html import Markup, from_template
from pertinent.study.design import GRADES, Study, StudyQuestion

UNDECIDED = "none"
SIDES = ("first", "second")
"""What forms send where none of the answers is chosen, and for the explanation on the left or right."""

_LARGE = 512
"""The longest side of an image, in pixels; a small one is enlarged towards it."""

_VIOLET, _BORDER = "7a3fd0", 5
"""The colour of the border of highlighted parts, which few images have, and its width in pixels."""

_MARK = 0.6
"""The size of what is pressed to mark a part of any shape, as a share of the square of its area."""


def question_view(study: Study, question: StudyQuestion) -> dict[str, Any]:
    """What the page of a question shows: nothing in it tells which methods are shown."""
    e = study.explanations[question.input][0]
    chosen = [study.highlighted(question.input, method).tolist() for method in question.methods]
    draw: Any = {"text": _TextView, "image": _ImageView, "table": _RowView}[e.input.kind](e.input)
    return {
        "kind": question.kind,
        "answered": e.target_name,
        "classes": e.classes,
        "grade": question.grade,
        "grades": GRADES,
        "sides": SIDES,
        "undecided": UNDECIDED,
        "shown": [draw.alone(own) if question.kind == "guess" else draw.highlighted(own) for own in chosen],
        "markable": draw.markable() if question.kind == "mark" else "",
    }


class _TextView:
    """A text, of which words are marked."""

    def __init__(self, input: Any) -> None:
        self.input: TextInput = input

    def highlighted(self, chosen: Iterable[int]) -> Markup:
        """The text with some features marked."""
        return from_template("pertinent.app:study_text.html", segments=_highlighted(self.input, {*chosen}))

    def alone(self, chosen: Iterable[int]) -> Markup:
        """These features alone."""
        return from_template("pertinent.app:study_text.html", segments=_words_alone(self.input, {*chosen}))

    def markable(self) -> Markup:
        """The text, each feature of which can be marked."""
        return from_template("pertinent.app:study_text.html", markable=_markable(self.input))


class _RowView:
    """A table row: a line for each feature, its name and value."""

    def __init__(self, input: Input) -> None:
        self.input = input

    def _drawn(self, lines: Iterable[int], chosen: Iterable[int] = (), *, markable: bool = False) -> Markup:
        values, marked = self.input.shown() or ("",) * self.input.n_features, {*chosen}
        rows = [(i, self.input.features[i], values[i], i in marked) for i in lines]
        left = self.input.n_features - len(rows)
        return from_template("pertinent.app:study_row.html", rows=rows, left=left, markable=markable)

    def highlighted(self, chosen: Iterable[int]) -> Markup:
        """The row with some columns marked."""
        return self._drawn(range(self.input.n_features), chosen)

    def alone(self, chosen: Iterable[int]) -> Markup:
        """These columns alone."""
        chosen = sorted(chosen)
        return self._drawn(chosen, chosen)

    def markable(self) -> Markup:
        """The row, each column of which can be marked."""
        return self._drawn(range(self.input.n_features), markable=True)


class _ImageView:
    """An image, of which patches or other parts are marked."""

    def __init__(self, input: Any) -> None:
        self.input: ImageInput = input

    def _mask(self, chosen: Iterable[int]) -> Masks:
        return np.isin(np.arange(self.input.n_features), [*chosen])

    def highlighted(self, chosen: Iterable[int]) -> Markup:
        """The image, faded but for some parts, which have a border."""
        mask = self._mask(chosen)
        return self._drawn(_bordered(kept(self.input, mask), mask[self.input.labels]))

    def alone(self, chosen: Iterable[int]) -> Markup:
        """These parts alone, the rest grey."""
        grey = np.frombuffer(bytes.fromhex(NEUTRAL[1:]), dtype=np.uint8)
        inside = self._mask(chosen)[self.input.labels]
        return self._drawn(_bordered(np.where(inside[..., None], original(self.input), grey), inside))

    def markable(self) -> Markup:
        """The image, each part of which can be marked."""
        places = [self._place(i) for i in range(self.input.n_features)]
        return self._drawn(resized(original(self.input), _LARGE, least=_LARGE), places)

    @staticmethod
    def _drawn(picture: Array, places: list[tuple[int, str, str]] | None = None) -> Markup:
        return from_template("pertinent.app:study_image.html", source=data_uri(picture), places=places)

    def _place(self, feature: int) -> tuple[int, str, str]:
        """A feature, its name, and where it is pressed: on its box if it fills that, else its middle."""
        inside = self.input.labels == feature
        rows, columns = np.nonzero(inside)
        height, width = inside.shape
        top, bottom, left, right = rows.min(), rows.max() + 1, columns.min(), columns.max() + 1
        if len(rows) < (bottom - top) * (right - left):
            side = _MARK * len(rows) ** 0.5
            nearest = np.argmin((rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2)
            middle = rows[nearest] + 0.5, columns[nearest] + 0.5
            top, bottom = middle[0] - side / 2, middle[0] + side / 2
            left, right = middle[1] - side / 2, middle[1] + side / 2
        shares = (left / width, top / height, (right - left) / width, (bottom - top) / height)
        place = "left:{:.2%};top:{:.2%};width:{:.2%};height:{:.2%}".format(*map(float, shares))
        return feature, self.input.features[feature], place


def _bordered(picture: Array, inside: Masks) -> Array:
    """The picture, enlarged or made smaller, with a border along the edges of what is inside."""
    picture = resized(picture, _LARGE, least=_LARGE).copy()
    mask = np.pad(resized(inside.astype(np.float64), _LARGE, least=_LARGE) > 0.5, _BORDER)
    height, width = picture.shape[:2]
    moves = [(_BORDER, 0), (-_BORDER, 0), (0, _BORDER), (0, -_BORDER)]
    inner = np.logical_and.reduce([np.roll(mask, move, axis=(0, 1)) for move in moves])
    edge = (mask & ~inner)[_BORDER : _BORDER + height, _BORDER : _BORDER + width]
    picture[edge] = np.frombuffer(bytes.fromhex(_VIOLET), dtype=np.uint8)
    return picture


def _highlighted(input: TextInput, chosen: set[int]) -> list[list[tuple[str, bool]]]:
    """The pieces of each segment, and whether they are highlighted."""
    found: list[list[tuple[str, bool]]] = [[] for _ in input.text.segments]
    for piece in pieces(input):
        found[piece.segment].append((piece.text, bool(chosen & {*piece.features})))
    return found


def _words_alone(input: TextInput, chosen: set[int]) -> list[list[tuple[str, bool]]]:
    """The highlighted pieces of each segment, with a gap where anything is left out.

    A segment that is never removed, such as the query of a document, is shown whole.
    """
    found: list[list[tuple[str, bool]]] = []
    for number, segment in enumerate(_highlighted(input, chosen)):
        if not input.text.removable(number):
            found.append(segment)
            continue
        shown: list[tuple[str, bool]] = []
        gap = ""
        for text, is_shown in segment:
            if is_shown:
                shown += [(gap, False), (text, True)] if gap else [(text, True)]
                gap = ""
            elif not text.isspace():
                gap = " … "
            else:
                gap = gap or " "
        found.append([*shown, (gap, False)] if gap.strip() else shown)
    return found


def _markable(input: TextInput) -> list[list[tuple[str, str]]]:
    """The pieces of each segment, and the numbers of their features, as the form sends them."""
    found: list[list[tuple[str, str]]] = [[] for _ in input.text.segments]
    for piece in pieces(input):
        found[piece.segment].append((piece.text, ",".join(map(str, piece.features))))
    return found

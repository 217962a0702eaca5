"""The input of an explanation as HTML: a text or an image, coloured by score."""

from __future__ import annotations

from collections.abc import Iterator

from pertinent.array_types import Array, Floats, Masks
from pertinent.inputs.image import ImageInput
from pertinent.inputs.text import TextInput
from pertinent.report import facts as say
from pertinent.report.markup import Markup
from pertinent.report.pictures import clipping, data_uri, heat_map, original, resized
from pertinent.report.pieces import Piece, pieces
from pertinent.results.explanation import Explanation

_LARGEST_PICTURE = 512
_TEXT = Markup('<p class="text" lang="" dir="auto">{}</p>')
_FIXED_TEXT = Markup('<p class="text fixed" title="fixed: never removed" lang="" dir="auto">{}</p>')


def coloured_input(e: Explanation, *, with_image: bool = True) -> Iterator[Markup]:
    """The text or image and its legend; of a row at most a legend, as its values stand beside its bars."""
    if isinstance(e.input, TextInput):
        yield from segments(e, e.input, say.relative_scores(e), say.smallest_set(e))
        yield _legend(e)
    elif isinstance(e.input, ImageInput):
        best = ", ".join(f"{e.features[i]} {say.score_text(e, i)}" for i in e.ranking[:3].tolist())
        heat = figure(heat_map(e), f"Heat map; the most important: {best}", "heat map")
        yield Markup('<div class="pictures">{}{}</div>').format(image(e.input) if with_image else "", heat)
        yield _legend(e)
    elif e.pertinence is not None:
        yield _legend(e)


def image(input: ImageInput) -> Markup:
    """The image as it was given."""
    height, width = input.labels.shape
    return figure(original(input), f"The image, {width} × {height} pixels", "image")


def figure(picture: Array, alt: str, caption: str) -> Markup:
    """A picture with its alternative text and a caption; the pixels of a small one can be seen."""
    picture = resized(picture, _LARGEST_PICTURE)
    coarse = Markup(' class="coarse"') if max(picture.shape) < 200 else ""
    return Markup('<figure><img{} src="{}" alt="{}"><figcaption>{}</figcaption></figure>').format(
        coarse, data_uri(picture), alt, caption
    )


def segments(e: Explanation, input: TextInput, share: Floats, smallest: Masks) -> Iterator[Markup]:
    """Each segment, its features shaded and a set underlined; `lang=""` marks the language as unknown."""
    inside: list[list[Markup]] = [[] for _ in input.text.segments]
    for piece in pieces(input):
        inside[piece.segment].append(_piece(e, piece, share, smallest))
    for segment, content in enumerate(inside):
        template = _TEXT if input.text.removable(segment) else _FIXED_TEXT
        yield template.format(Markup().join(content))


def _piece(e: Explanation, piece: Piece, shares: Floats, smallest: Masks) -> Markup:
    feature = piece.strongest(e)
    if piece.unread:
        return Markup('<span class="unread">{}</span>').format(piece.text)
    if feature is None:
        return Markup.escape(piece.text)
    share = float(shares[feature])
    told = "; ".join(f"{say.score_text(e, i)} {say.error_text(e, i)}".strip() for i in piece.features)
    return Markup('<span class="w{}{}"{} title="{}">{}</span>').format(
        " in" if smallest[list(piece.features)].any() else "",
        " against" if share < 0 else "",
        Markup(' style="--share:{:.0f}%"').format(100 * abs(share)) if share else "",
        told,
        piece.text,
    )


def _legend(e: Explanation) -> Markup:
    support, against = say.directions(e)
    half = "" if say.has_two_sides(e) else " half"
    if e.pertinence is None:
        scale = Markup('<span>{}</span> <span class="scale{}"></span> <span>{}</span>')
        parts = [scale.format(against, half, support)]
    else:
        key = Markup('<span><i class="key{}"></i> {}</span>')
        parts = [key.format("", support), key.format(" against", against)]
    if isinstance(e.input, TextInput) and e.chosen:
        parts.append(Markup("<span><u>underlined</u>: the smallest set</span>"))
    if isinstance(e.input, TextInput) and any(piece.unread for piece in pieces(e.input)):
        parts.append(Markup('<span><span class="unread">struck out</span>: not read by the model</span>'))
    if isinstance(e.input, ImageInput) and clipping(e):
        parts.append(Markup("<span>{}</span>").format(clipping(e)))
    return Markup('<p class="legend">{}</p>').format(Markup(" ").join(parts))

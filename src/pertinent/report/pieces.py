"""A text in pieces: its features, and the text between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pertinent.inputs.text import TextInput
from pertinent.results.explanation import Explanation


@dataclass(frozen=True)
class Piece:
    """Some characters of a segment and the features that cover them, if any.

    `unread` marks words that the model did not see, such as those after truncation.
    """

    segment: int
    text: str
    features: tuple[int, ...] = ()
    unread: bool = False

    def strongest(self, explanation: Explanation) -> int | None:
        """The feature with the largest magnitude, by which the piece is shaded."""
        return max(self.features, key=lambda i: abs(explanation.scores[i]), default=None)


def pieces(input: TextInput) -> Iterator[Piece]:
    """The pieces of every segment, in order; together they are the text, character by character.

    Tokens that share characters (the bytes of an emoji) form one piece, and a token without
    characters joins its neighbour.
    """
    for segment, text in enumerate(input.text.segments):
        position = 0
        runs = _runs(input, segment)
        for start, end, features in [*runs, (len(text), len(text), ())]:
            if start > position:
                outer = position == 0 or not features
                unread = input.truncation is not None and outer and input.text.removable(segment)
                yield Piece(
                    segment, text[position:start], unread=unread and not text[position:start].isspace()
                )
            if features:
                yield Piece(segment, text[start:end], features)
            position = end


def _runs(input: TextInput, segment: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """Spans of one segment in order, those that overlap joined."""
    own = [(a, b, i) for i, (s, a, b) in enumerate(input.spans.tolist()) if s == segment]
    runs: list[tuple[int, int, tuple[int, ...]]] = []
    for start, end, feature in sorted(own):
        if runs:
            first, last, features = runs[-1]
            if start < last or start == end or first == last:
                runs[-1] = (first, max(last, end), (*features, feature))
                continue
        runs.append((start, end, (feature,)))
    return runs

"""Drawings of language-model prompts: the prompt shaded by its effect on the answer, and the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console, RenderableType
from rich.text import Text

from pertinent.array_types import Floats
from pertinent.config.fingerprints import digest
from pertinent.inputs.modality import InputLimits
from pertinent.inputs.rendered_prompt import RenderedPrompt
from pertinent.printable import visible
from pertinent.rendering import wording as say
from pertinent.rendering.colours import LIGHT, shares
from pertinent.rendering.drawings import beginning_of
from pertinent.rendering.drawings.text import AnswerToken, TextDrawing
from pertinent.rendering.html import Markup, from_template
from pertinent.rendering.panels import Panel
from pertinent.rendering.plots import QUIET
from pertinent.results.explanation import Explanation

if TYPE_CHECKING:
    from pertinent.models.base import Model

_MOST_ROWS, _MOST_TOKENS = 20, 32
"""Largest number of features and tokens in a heat map."""


class PromptDrawing(TextDrawing):
    """Drawing of the prompt, with pale fixed segments, and the answer below it.

    On a page, users can select a token of the answer to shade the prompt by its effect on that token.
    """

    joins_segments = True

    def beginning(self, input: Any) -> str:
        """Return the first words."""
        return beginning_of(["".join(input.text.segments)])

    def heading(self, e: Explanation) -> str:
        """Return the answer."""
        input: Any = e.input
        return f"“{input.text.answer.strip()}”"

    def column_shares(self, e: Explanation) -> dict[int, Floats]:
        """Return the colours for the tokens of the answer."""
        return {token.column: token.share for token in answer_tokens(e)}

    def terminal(
        self, panel: Panel, console: Console, width: int, *, colour: bool
    ) -> Iterator[RenderableType]:
        """Yield the prompt, and the answer after an arrow."""
        input: Any = panel.explanation.input
        prompt = input.text
        yield from super().terminal(panel, console, width, colour=colour)
        yield Text()
        yield Text("→ ", style="dim").append(visible(prompt.answer.strip()), style="not dim bold")
        if prompt.rather_than is not None:
            yield Text("rather than ", style="dim").append(
                visible(prompt.rather_than.strip()), style="not dim"
            )

    def html(self, panel: Panel, *, small: bool = False) -> Markup:
        """Return the prompt as a paragraph, and the answer whose tokens can be chosen."""
        e = panel.explanation
        input: Any = e.input
        tokens = [] if small else answer_tokens(e)
        interactive = panel.look.interactive
        paragraphs = self.paragraphs(panel, [] if interactive else tokens)
        name = digest(input.fingerprint, e.method, e.index, repr(e.settings), e.removal, e.seed).hex()
        context = {"prompt": input.text, "tokens": tokens, "name": name, "e": e, "interactive": interactive}
        return from_template("prompt.html", paragraphs=paragraphs, **context)

    def style_of_fixed(self, text: Any, segment: int) -> str:
        """Return the HTML class of a fixed segment, which is smaller if a chat template adds it."""
        return "quiet template" if segment in text.template else "quiet"

    def form(self, fields: Mapping[str, Any], model: Model, limits: InputLimits) -> Markup:
        """Return text boxes for the prompt, its sources and its answers."""
        has_chat = getattr(model.tokenizer, "chat_template", None) is not None
        return from_template("form_prompt.html", fields=fields, has_chat=has_chat, limits=limits)

    def height_of_plot(self, panel: Panel) -> float:
        """Return the height of the heat map, if the method scored all tokens."""
        return 1.4 + 0.2 * min(len(panel.shown), _MOST_ROWS) if answer_tokens(panel.explanation) else 0.0

    def plot(self, axes: Any, panel: Panel) -> None:
        """Draw the scores of the strongest features for each token of the answer as a heat map."""
        e = panel.explanation
        assert e.class_scores is not None
        tokens = [token for token in answer_tokens(e) if token.is_token][:_MOST_TOKENS]
        rows = np.sort(panel.shown[:_MOST_ROWS])
        scores = e.class_scores[[token.column for token in tokens]][:, rows].T
        largest = float(np.abs(scores).max(initial=0.0)) or 1.0
        shown = axes.imshow(scores, cmap=panel.look.scale(), vmin=-largest, vmax=largest, aspect="auto")
        names = [say.clipped(e.features[i], 24) for i in rows.tolist()]
        axes.set_yticks(range(len(rows)), names, parse_math=False)
        labels = [say.clipped(token.text, 14) for token in tokens]
        axes.set_xticks(range(len(tokens)), labels, rotation=45, ha="right", parse_math=False)
        axes.tick_params(length=0, colors=QUIET)
        axes.set_facecolor(LIGHT.ground)
        bar = axes.figure.colorbar(shown, ax=axes, pad=0.02, aspect=12)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8, length=2)


def answer_tokens(e: Explanation) -> list[AnswerToken]:
    """Return the whole answer and its tokens, if the method scored all tokens.

    Tokens share one colour scale, so the prompt is pale for tokens on which it has little effect.
    """
    input: Any = e.input
    prompt: RenderedPrompt = input.text
    if e.class_scores is None or not prompt.answer_tokens or len(e.classes) != len(prompt.columns):
        return []
    first = prompt.first_token
    whole = [shares(e.class_scores[column]) for column in range(first)]
    of_tokens = shares(e.class_scores[first:])
    texts = [*e.classes[:first], *prompt.answer_tokens]
    return [
        AnswerToken(text, column, say.amount(e, column), share, column >= first)
        for column, (text, share) in enumerate(zip(texts, [*whole, *of_tokens], strict=True))
    ]

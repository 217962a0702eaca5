"""Check whether an answer of the user is far more likely with, or without, a space before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pertinent.errors import InputError, safe_repr
from pertinent.inputs.rendered_prompt import RenderedPrompt
from pertinent.printable import shorten

FAR = 3.0
"""Nats by which the other form must be more likely for a note."""


def other_spacing(prompt: RenderedPrompt, answer: str) -> str | None:
    """Return the answer with or without a leading space, if that form may be meant; else ``None``.

    >>> other_spacing(RenderedPrompt(("Who won? Answer:",), (0,)), "Bob")
    ' Bob'
    """
    text = "".join(prompt.segments)
    after_space = not text or text[-1].isspace()
    if answer[:1].isspace():
        return answer.lstrip() if after_space or prompt.template else None
    return f" {answer}" if answer[:1].isalnum() and not after_space else None


def spacing_notes(prompt: RenderedPrompt, log_ratio: Callable[[str, str], float]) -> Iterator[str]:
    """Yield a note for each answer of the user whose other form is far more likely.

    `log_ratio` returns log p of its first argument minus log p of its second argument.
    """
    if prompt.generation:
        return
    for name, answer in (("answer", prompt.answer), ("rather_than", prompt.rather_than)):
        other = None if answer is None else other_spacing(prompt, answer)
        if answer is None or other is None:
            continue
        try:
            nats = log_ratio(other, answer)
        except InputError:  # the other form cannot be tokenized, or is too long
            continue
        if nats > FAR:
            shown, instead = (safe_repr(shorten(text, 40)) for text in (answer, other))
            yield f"{name}={shown} is {nats:.1f} nats less likely than {instead}: pass {name}={instead}"

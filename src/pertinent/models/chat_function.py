"""Chat functions: from messages to the text of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from pertinent.config.settings import Count, checked
from pertinent.errors import ModelError, PertinentError
from pertinent.inputs.prompt import Prompt
from pertinent.inputs.rendered_prompt import RenderedPrompt
from pertinent.models.answer_values import Value
from pertinent.models.base import Answer, Model
from pertinent.models.chat import text_of_answer
from pertinent.models.endpoint_client import NotInForm
from pertinent.models.endpoint_usage import KeptAnswers
from pertinent.models.regeneration import RegeneratingModel, Writer
from pertinent.models.request_pool import RequestPool

ChatFunction: TypeAlias = Callable[[list[dict[str, Any]]], str | Mapping[str, Any]]


@checked
def wrap_chat_function(
    function: ChatFunction,
    *,
    value: str | Value,
    encoder: Any = None,
    samples: Count = 1,
    in_flight: Count = 1,
) -> Model:
    """Wrap a function from the messages of a chat to the text of an answer.

    Parameters
    ----------
    function
        Function from a list of ``{"role": …, "content": …}`` to a text, or to a message with tool calls,
        which are read as ``name(arguments)``.
    value, encoder, samples
        As in `wrap_endpoint`.
    in_flight
        Number of threads that call the function; by default one, because it may not be thread-safe.
    """
    model = RegeneratingModel(FunctionWriter(function, in_flight), value, encoder=encoder, samples=samples)
    model.wrapped = function
    return model


class FunctionWriter(Writer):
    """A chat function that writes answers; answers are kept for a repeated call."""

    max_new_tokens = None

    def __init__(self, function: ChatFunction, in_flight: int) -> None:
        self.function = function
        self.kept = KeptAnswers()
        self._pool = RequestPool(in_flight)

    @property
    def generation(self) -> str:
        """Return the name of the function."""
        return f"by {getattr(self.function, '__name__', type(self.function).__name__)}"

    def identity(self) -> object:
        """Return the function, whose digest includes its code and the variables it closes over."""
        return "chat function", self.function

    def render(self, prompt: Prompt) -> RenderedPrompt:
        """Return the prompt as messages."""
        return prompt.render_messages()

    def write(self, prompts: Sequence[RenderedPrompt]) -> list[str]:
        """Call the function for each prompt."""
        texts: list[str] = self.start(prompts).outputs()
        return texts

    def start(self, prompts: Sequence[RenderedPrompt], *, fresh: bool = False) -> Answer:
        """Start to call the function for each prompt."""
        return self._pool.start(partial(self._answer, fresh=fresh), prompts)

    def _answer(self, prompt: RenderedPrompt, *, fresh: bool) -> str:
        messages = prompt.messages
        key = self.kept.key("", {"messages": messages}, prompt.answer_seed or -1)
        kept = None if fresh else self.kept.get(key)
        if kept is not None:
            return str(kept)
        try:
            text = self.function(messages)
        except PertinentError:
            raise
        except Exception as error:
            raise ModelError(f"The chat function raised {type(error).__name__}: {error}") from error
        if isinstance(text, Mapping):
            with suppress(NotInForm):
                text = text_of_answer(text)
        if not isinstance(text, str):
            raise ModelError(
                f"The chat function must return a text or a message, but returned {type(text).__name__}."
            )
        self.kept.add(key, text)
        return text

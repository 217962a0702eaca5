"""Chat protocols: OpenAI's chat completions, and Ollama's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from pertinent.inputs.chat_messages import TEXT_PARTS, call_text, texts_of, with_parsed_arguments
from pertinent.inputs.rendered_prompt import RenderedPrompt
from pertinent.models.endpoint_client import (
    EndpointClient,
    NotInForm,
    RefusedRequest,
    only_choice,
)

FIRST_ANSWER = 16
"""Largest number of tokens in the answer to the first request, which finds out whether a protocol exists."""

_GREETING = RenderedPrompt(("Hello",), (0,))


@dataclass(frozen=True)
class ChatCompletions:
    """OpenAI's chat completions, which most servers and gateways speak.

    Options that the server rejects, such as a seed or a temperature, are omitted from later requests.

    Attributes
    ----------
    client, base
        As in `Completions`.
    rejected
        Names of the options that the server rejects.
    """

    client: EndpointClient
    base: str
    rejected: set[str] = field(default_factory=set, compare=False)
    reads_messages = True

    @property
    def address(self) -> str:
        """Return the address of the protocol."""
        return f"{self.base}/chat/completions"

    def check(self) -> None:
        """Raise an error unless the server speaks this protocol."""
        self.write(_GREETING, FIRST_ANSWER)

    def write(
        self, prompt: RenderedPrompt, max_tokens: int, temperature: float = 0.0, *, fresh: bool = False
    ) -> str:
        """Return the model's answer to a prompt; tool calls are written as ``name(arguments)``."""
        is_greedy = prompt.answer_seed is None
        options = {
            "max_tokens": max_tokens,
            "temperature": 0.0 if is_greedy else temperature,
            **({} if is_greedy else {"seed": prompt.answer_seed}),
        }
        while True:
            request = {"messages": prompt.messages, **_tools(prompt), **self._accepted(options)}
            try:
                return self.client.ask_text(self.address, request, _answer_in_choice, max_tokens, fresh=fresh)
            except RefusedRequest as error:
                name = self._rejected_option(error, request)
                if name is None:
                    raise
                self.rejected.add(name)

    def _accepted(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that the server accepts; the limit of tokens has two names."""
        accepted = {name: value for name, value in options.items() if name not in self.rejected}
        if "max_tokens" in self.rejected:
            accepted["max_completion_tokens"] = options["max_tokens"]
        return accepted

    @staticmethod
    def _rejected_option(error: RefusedRequest, request: Mapping[str, Any]) -> str | None:
        """Return the option of a request that the server's message names."""
        if error.status not in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
            return None
        if "max_tokens" in request and "max_completion_tokens" in error.reason:
            return "max_tokens"
        return next((n for n in ("seed", "temperature") if n in request and n in error.reason), None)


def _tools(prompt: RenderedPrompt) -> dict[str, Any]:
    return {"tools": json.loads(prompt.tools)} if prompt.tools else {}


def _answer_in_choice(answer: Mapping[str, Any]) -> str:
    return text_of_answer(only_choice(answer).get("message"))


@dataclass(frozen=True)
class OllamaChat:
    """Ollama's chat.

    Attributes
    ----------
    client, base
        As in `Completions`.
    """

    client: EndpointClient
    base: str
    reads_messages = True

    @property
    def address(self) -> str:
        """Return the address of the protocol."""
        return f"{self.base}/api/chat"

    def check(self) -> None:
        """Raise an error unless the server speaks this protocol."""
        self.write(_GREETING, FIRST_ANSWER)

    def write(
        self, prompt: RenderedPrompt, max_tokens: int, temperature: float = 0.0, *, fresh: bool = False
    ) -> str:
        """Return the model's answer to a prompt; tool calls are written as ``name(arguments)``."""
        is_greedy = prompt.answer_seed is None
        options: dict[str, Any] = {"num_predict": max_tokens, "temperature": 0 if is_greedy else temperature}
        if not is_greedy:
            options["seed"] = prompt.answer_seed
        messages = [_for_ollama(message) for message in prompt.messages]
        request = {"messages": messages, **_tools(prompt), "stream": False, "options": options}
        return self.client.ask_text(
            self.address,
            request,
            lambda answer: text_of_answer(answer.get("message")),
            max_tokens,
            fresh=fresh,
        )


def _for_ollama(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message in Ollama's form: a text, images in base64, and arguments of tools as mappings."""
    changed = dict(message)
    content = message.get("content")
    changed["content"] = "\n".join(texts_of(message))
    parts = content if isinstance(content, list) else []
    urls = [_image_url(part) for part in parts if part["type"] not in TEXT_PARTS]
    images = [url.partition("base64,")[2] for url in urls if "base64," in url]
    if images:
        changed["images"] = images
    if isinstance(message.get("tool_calls"), Sequence):
        changed["tool_calls"] = [with_parsed_arguments(call) for call in message["tool_calls"]]
    return changed


def _image_url(part: Mapping[str, Any]) -> str:
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else image
    return url if isinstance(url, str) else ""


def text_of_answer(message: Any) -> str:
    """Return the text of an answer's message, followed by its tool calls."""
    if not isinstance(message, Mapping):
        raise NotInForm
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "".join(part for part in parts if isinstance(part, str))
    calls = message.get("tool_calls")
    texts = [call_text(call) for call in calls] if isinstance(calls, list) else []
    if not isinstance(content, str) and (content is not None or "content" not in message) and not texts:
        raise NotInForm
    return "\n".join(filter(None, [content if isinstance(content, str) else "", *texts]))

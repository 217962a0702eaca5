"""Reading of traces: message lists, exports of spans, and files of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pertinent.errors import FileError, InputError
from pertinent.inputs.traces.messages import as_messages, read_messages, read_tools
from pertinent.inputs.traces.spans import (
    AROUND,
    MODEL,
    RETRIEVAL,
    TOOL,
    Span,
    read_span,
    spans_in,
    unknown_spans,
)
from pertinent.inputs.traces.trace import Trace

_FORMS = (
    "a list of messages with roles, an OpenInference or OpenTelemetry export of spans, a Langfuse export, or "
    "the path of such a JSON or JSON-lines file"
)


def read_trace(source: Any) -> Trace:
    """Return the trace in a list of messages, an export of spans, or a file of either."""
    if isinstance(source, Trace):
        return source
    return _read_file(Path(source)) if isinstance(source, str | Path) else _read_data(source)


def _read_data(source: Any) -> Trace:
    """Return the trace in a list of messages or an export of spans."""
    source = list(source) if isinstance(source, tuple) else source
    messages = as_messages(source)
    if messages is not None:
        tools = read_tools(source.get("tools")) if isinstance(source, Mapping) else ()
        return replace(Trace.from_messages(read_messages(_with_answer(source, messages))), tools=tools)
    if isinstance(source, Mapping) and not spans_in(source) and ("input" in source or "output" in source):
        return _of_spans([Span(MODEL, "trace", read=source.get("input"), written=source.get("output"))])
    spans = spans_in(source)
    if not spans:
        raise InputError(f"A trace must be {_FORMS}, but got {_describe(source)}.")
    return _of_spans([read_span(span) for span in spans])


def _read_file(path: Path) -> Trace:
    """Return the trace in a JSON file, or in a JSON-lines file with one message or span per line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # names with null bytes, and texts that are not UTF-8
        raise FileError(f"The trace {str(path)!r} cannot be read: {error}") from error
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        try:
            content = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise FileError(f"The trace {str(path)!r} is neither JSON nor JSON lines: {error}") from None
    try:
        return _read_data(content)
    except InputError as error:
        raise InputError(f"{str(path)!r}: {error}") from error


def _describe(source: Any) -> str:
    """Return what an unknown value is, for an error message."""
    if isinstance(source, Mapping):
        return f"an object with {', '.join(map(repr, list(source)[:8])) or 'no keys'}"
    if isinstance(source, Sequence) and source and not isinstance(source, str):
        return f"a list that begins with {_describe(source[0])}"
    return f"an empty {type(source).__name__}" if source in ([], "") else type(source).__name__


def _with_answer(source: Any, messages: list[Any]) -> list[Any]:
    """Return the messages, followed by the answer to them that a logged request also holds."""
    if not isinstance(source, Mapping) or "messages" not in source:
        return messages
    answers = [as_messages(source[key]) for key in ("response", "output", "completion") if source.get(key)]
    answer = next(filter(None, answers), None)
    return [*messages, *answer] if answer else messages


def _of_spans(spans: Sequence[Span]) -> Trace:
    """Return the trace of the last call of a language model, with all retrieved chunks."""
    spans = sorted(spans, key=lambda span: span.start)
    skipped = unknown_spans(spans)
    notes = [f"Skipped spans of unknown kind: {', '.join(skipped)}."] if skipped else []
    chunks = [text for span in spans if span.kind == RETRIEVAL for text in span.documents]
    calls = [span for span in spans if span.kind == MODEL and as_messages(span.read)]
    if calls:
        last = calls[-1]
        read = [*(as_messages(last.read) or ()), *_written(last)]
        if len(calls) > 1:
            notes.append(f"The trace is the last of {len(calls)} calls of a language model: {last.label}.")
        trace = Trace.from_messages(read_messages(read), chunks, notes)
        return replace(trace, tools=read_tools(last.tools))
    around = [span for span in spans if span.kind in (MODEL, AROUND) and isinstance(span.read or 0, str)]
    outer = next((span for span in around if span.kind == MODEL), around[0] if around else None)
    if outer is None or not isinstance(outer.written, str):
        kinds = ", ".join(dict.fromkeys(span.label for span in spans)) or "none"
        raise InputError(
            "The trace must have a span of a language model or of a whole run with its input and output, but "
            f"has only: {kinds}."
        )
    return Trace.from_messages(_rebuilt(outer, spans), chunks, notes)


def _written(span: Span) -> list[Any]:
    """Return the messages that a model wrote; a text is a message of the assistant."""
    messages = as_messages(span.written)
    if messages is None and isinstance(span.written, Mapping):
        messages = [{**span.written, "role": "assistant"}]
    if messages is None and isinstance(span.written, str):
        messages = [{"role": "assistant", "content": span.written}]
    return messages or []


def _rebuilt(outer: Span, spans: Sequence[Span]) -> list[dict[str, Any]]:
    """Return messages from the texts of spans: the documents and the input, tools, and the output."""
    documents = [text for span in spans if span.kind == RETRIEVAL for text in span.documents]
    absent = [text for text in documents if text.strip() not in outer.read]
    messages: list[Any] = [{"role": "user", "content": "\n\n".join([*absent, outer.read])}]
    for number, span in enumerate(span for span in spans if span.kind == TOOL):
        arguments = span.read if isinstance(span.read, str) else json.dumps(span.read, default=str)
        call = {"id": str(number), "function": {"name": span.name or "tool", "arguments": arguments}}
        result = span.written if isinstance(span.written, str) else json.dumps(span.written, default=str)
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(number), "content": result})
    return read_messages([*messages, {"role": "assistant", "content": outer.written}])

"""Spans of a trace, such as calls of language models, retrievals and tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pertinent.errors import InputError
from pertinent.inputs.traces.messages import as_messages, from_json

MODEL, RETRIEVAL, TOOL, AROUND = "model", "retrieval", "tool", "around"
"""Kinds of spans; `AROUND` contains other spans, such as a whole run of an agent."""

_KINDS = {
    **dict.fromkeys(
        ("llm", "generation", "chat", "text_completion", "generate_content", "completion"), MODEL
    ),
    **dict.fromkeys(("retriever", "retrieval", "reranker", "search"), RETRIEVAL),
    **dict.fromkeys(("tool", "execute_tool", "function"), TOOL),
    **dict.fromkeys(("chain", "agent", "invoke_agent", "create_agent", "span", "workflow", "task"), AROUND),
}
"""Kinds by their names in OpenInference, OpenTelemetry's conventions for generative AI, and Langfuse."""

_DOCUMENT_TEXTS = ("content", "page_content", "text", "document")


@dataclass(frozen=True)
class Span:
    """One operation of a run.

    Attributes
    ----------
    kind
        ``"model"``, ``"retrieval"``, ``"tool"`` or ``"around"``; empty if it is unknown.
    label
        Kind and name as they were recorded, for messages to the user.
    name
        Name of the tool or operation.
    start
        Time of the start as text, which sorts like the time, or a number.
    read, written
        The messages that a model read and wrote, or the input and output of another operation.
    documents
        Texts of retrieved documents.
    tools
        Tools that a model could call.
    """

    kind: str
    label: str
    name: str = ""
    start: Any = 0
    read: Any = None
    written: Any = None
    documents: Sequence[str] = field(default_factory=tuple)
    tools: Any = None


def is_span(value: Any) -> bool:
    """Return whether a mapping is a span or an observation of Langfuse."""
    if not isinstance(value, Mapping):
        return False
    is_observation = "type" in value and {"input", "output"} & value.keys()
    return bool(is_observation) or bool({"attributes", "span_kind", "spanId", "span_id"} & value.keys())


def spans_in(value: Any) -> list[Mapping[str, Any]]:
    """Return the spans of an export: a list, OTLP's ``resourceSpans``, or Langfuse's observations."""
    if isinstance(value, Mapping):
        if "resourceSpans" in value or "resource_spans" in value:
            return [
                span
                for resource in _mappings(value, "resourceSpans", "resource_spans")
                for scope in _mappings(resource, "scopeSpans", "scope_spans")
                for span in _mappings(scope, "spans")
            ]
        for key in ("observations", "spans", "data"):
            if isinstance(value.get(key), list):
                return spans_in(value[key])
        if isinstance(value.get("trace"), Mapping):
            return spans_in(value["trace"])
        return [value] if is_span(value) else []
    if isinstance(value, list):
        return [span for each in value for span in spans_in(each)]
    return []


def _mappings(value: Any, *keys: str) -> list[Mapping[str, Any]]:
    """Return the mappings in the list under one of these keys, if there is one."""
    listed = next((value[key] for key in keys if key in value), None) if isinstance(value, Mapping) else None
    return [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []


def read_span(raw: Mapping[str, Any]) -> Span:
    """Return a span in this form from one of OpenTelemetry or an observation of Langfuse."""
    if "attributes" not in raw and "type" in raw:
        return _read_observation(raw)
    attributes = nested(_plain_attributes(raw.get("attributes") or {}))
    semantic, openinference = _at(attributes, "gen_ai"), _at(attributes, "openinference", "span", "kind")
    operation = _at(semantic, "operation", "name")
    recorded = (
        openinference or raw.get("span_kind") or operation or _at(attributes, "traceloop", "span", "kind")
    )
    is_legacy = bool(_at(semantic, "prompt"))
    kind = _KINDS.get(str(recorded).lower(), MODEL if is_legacy else "")
    name = str(_at(attributes, "tool", "name") or _at(semantic, "tool", "name") or raw.get("name") or "")
    label = f"{recorded or 'no kind'} {name!r}"
    start = raw.get("startTimeUnixNano") or raw.get("start_time_unix_nano") or raw.get("start_time") or ""
    read, written = _model_messages(attributes)
    if kind != MODEL or read is None:
        read = _value(attributes, "input") or _at(semantic, "tool", "call", "arguments")
        written = _value(attributes, "output") or _at(semantic, "tool", "call", "result") or written
    documents = _at(attributes, "retrieval", "documents") or _at(attributes, "reranker", "output_documents")
    documents = documents or _at(semantic, "retrieval", "documents")
    texts = documents_in(documents or written) if kind == RETRIEVAL else []
    tools = _at(attributes, "llm", "tools") or _at(semantic, "tool", "definitions")
    return Span(kind, label, name, str(start), from_json(read), from_json(written), texts, tools)


def _model_messages(attributes: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the messages that a model read and wrote, in any of the conventions."""
    llm, semantic = _at(attributes, "llm") or {}, _at(attributes, "gen_ai") or {}
    if _at(llm, "input_messages"):
        return _at(llm, "input_messages"), _at(llm, "output_messages")
    if _at(semantic, "input", "messages"):
        system = from_json(_at(semantic, "system_instructions"))
        before = [{"role": "system", "content": system}] if system else []
        read = as_messages(_at(semantic, "input", "messages"))
        return [*before, *(read or [])], _at(semantic, "output", "messages")
    return _at(semantic, "prompt"), _at(semantic, "completion")


def _value(attributes: Mapping[str, Any], side: str) -> Any:
    return _at(attributes, side, "value") or _at(attributes, "traceloop", "entity", side)


def _read_observation(raw: Mapping[str, Any]) -> Span:
    """Return an observation of Langfuse."""
    name, recorded = str(raw.get("name") or ""), str(raw["type"])
    kind = _KINDS.get(recorded.lower(), "")
    if kind == AROUND and "retriev" in name.lower():  # before Langfuse had types for retrievals
        kind = RETRIEVAL
    read, written = from_json(raw.get("input")), from_json(raw.get("output"))
    texts = documents_in(written) if kind == RETRIEVAL else []
    start = str(raw.get("startTime") or raw.get("start_time") or "")
    tools = read.get("tools") if isinstance(read, Mapping) else None
    return Span(kind, f"{recorded} {name!r}", name, start, read, written, texts, tools)


def documents_in(value: Any) -> list[str]:
    """Return the texts of documents in a list or in the longest list of a mapping.

    >>> documents_in({"documents": [{"page_content": "Ann keeps the key."}, "Bob keeps the map."]})
    ['Ann keeps the key.', 'Bob keeps the map.']
    """
    value = from_json(value)
    if isinstance(value, Mapping):
        lists = [each for each in value.values() if isinstance(each, list)]
        return documents_in(max(lists, key=len)) if lists else []
    texts = []
    for each in value if isinstance(value, list) else ():
        while isinstance(each, Mapping):
            each = next((each[key] for key in _DOCUMENT_TEXTS if key in each), None)
        if isinstance(each, str) and each.strip():
            texts.append(each)
    return texts


def unknown_spans(spans: Iterable[Span]) -> list[str]:
    """Return each kind and name of unknown spans, with their number if there are several."""
    counts = Counter(span.label for span in spans if not span.kind)
    return [label if n == 1 else f"{label} ({n})" for label, n in counts.items()]


def _plain_attributes(attributes: Any) -> Mapping[str, Any]:
    """Return attributes by name; OTLP has a list of keys and typed values."""
    if isinstance(attributes, Mapping):
        return attributes
    if not isinstance(attributes, list):
        raise InputError(
            f"The attributes of a span must be a mapping or a list, got {type(attributes).__name__}."
        )
    named = [each for each in attributes if isinstance(each, Mapping) and isinstance(each.get("key"), str)]
    return {each["key"]: _otlp_value(each.get("value")) for each in named}


def _otlp_value(value: Any) -> Any:
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return (
            [_otlp_value(each) for each in _mappings(inner, "values")] if isinstance(inner, Mapping) else []
        )
    if kind == "kvlistValue":
        return _plain_attributes(_mappings(inner, "values") if isinstance(inner, Mapping) else [])
    return inner


def nested(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes with dotted names as nested mappings; mappings of numbers become lists.

    >>> nested({"llm.input_messages.0.message.role": "user", "llm": {"model_name": "m"}})
    {'llm': {'input_messages': [{'message': {'role': 'user'}}], 'model_name': 'm'}}
    """
    tree: dict[str, Any] = {}
    for name, value in attributes.items():
        *path, last = str(name).split(".")
        branch = tree
        for key in path:
            inner = branch.setdefault(key, {})
            if not isinstance(inner, dict):  # a value and names below it
                inner = branch[key] = {"": inner}
            branch = inner
        value = nested(value) if isinstance(value, Mapping) else value
        if isinstance(branch.get(last), dict) and isinstance(value, dict):
            branch[last] |= value
        else:
            branch[last] = value
    return {key: _listed(value) for key, value in tree.items()}


def _listed(value: Any) -> Any:
    """Return nested mappings whose keys are numbers as lists."""
    if not isinstance(value, dict):
        return value
    inner = {key: _listed(each) for key, each in value.items()}
    if inner and all(key.isdecimal() for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    return inner


def _at(tree: Any, *path: str) -> Any:
    """Return the value at a path of nested mappings; ``None`` if there is none."""
    for key in path:
        if not isinstance(tree, Mapping) or key not in tree:
            return None
        tree = tree[key]
    return tree

"""One run of an agent in the forms of different libraries."""

import json

CHUNKS = ["Ann keeps the key.", "Bob keeps the map.", "Carl keeps the lamp."]
CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"what": "map"}'}}
MESSAGES = [
    {"role": "system", "content": "You are brief."},
    {"role": "user", "content": "Who keeps the map?"},
    {"role": "assistant", "content": "I should look it up.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "\n\n".join(CHUNKS)},
    {"role": "assistant", "content": "<think>The second entry\nnames Bob.</think>Bob"},
]
NAMES = ["system prompt", "user turn", "reasoning 1", *(f"search result {i}" for i in (1, 2, 3))]
NAMES += ["reasoning 2", "reasoning 3"]

RAG = f"Context:\n{CHUNKS[0]}\n{CHUNKS[1]}\n{CHUNKS[2]}\n\nWho keeps the map?"


def openinference(*, nested=False):
    """Return a retrieval, a call of a model and the run around them."""
    llm = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "You are brief.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": RAG,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Bob",
    }
    if nested:
        messages = [("system", "You are brief."), ("user", RAG)]
        read = [{"message": {"role": role, "content": content}} for role, content in messages]
        written = [{"message": {"role": "assistant", "content": "Bob"}}]
        llm = {
            "openinference": {"span": {"kind": "LLM"}},
            "llm": {"input_messages": read, "output_messages": written},
        }
    retriever = {"openinference.span.kind": "RETRIEVER", "input.value": "Who keeps the map?"}
    for i, chunk in enumerate(CHUNKS):
        retriever[f"retrieval.documents.{i}.document.content"] = chunk
        retriever[f"retrieval.documents.{i}.document.id"] = str(i)
    return [
        {"name": "answer", "attributes": llm, "start_time": "2025-01-01T00:00:03Z", "span_id": "c"},
        {"name": "retrieve", "attributes": retriever, "start_time": "2025-01-01T00:00:02Z", "span_id": "b"},
        {
            "name": "run",
            "attributes": {"openinference.span.kind": "CHAIN", "input.value": "Who keeps the map?"},
            "start_time": "2025-01-01T00:00:01Z",
            "span_id": "a",
        },
    ]


def otlp(spans):
    """Return spans as an OTLP export."""

    def typed(value):
        return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}

    converted = [
        {
            "name": span["name"],
            "spanId": span["span_id"],
            "startTimeUnixNano": span["start_time"],
            "attributes": [{"key": key, "value": typed(value)} for key, value in span["attributes"].items()],
        }
        for span in spans
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": converted}]}]}


def generative_ai():
    """Return a span in OpenTelemetry's conventions for generative AI."""
    read = [
        {"role": "user", "parts": [{"type": "text", "content": "Who keeps the map?"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "search", "arguments": {"what": "map"}}],
        },
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "c1", "response": [{"text": c} for c in CHUNKS]}],
        },
    ]
    written = [{"role": "assistant", "parts": [{"type": "text", "content": "Bob"}], "finish_reason": "stop"}]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "You are brief."}]),
        "gen_ai.input.messages": json.dumps(read),
        "gen_ai.output.messages": json.dumps(written),
    }
    return [{"name": "chat model", "attributes": attributes, "span_id": "a", "start_time": "1"}]


def langfuse():
    """Return a trace of Langfuse with its observations."""
    observations = [
        {"type": "SPAN", "name": "retrieval", "startTime": "1", "input": "map", "output": CHUNKS},
        {
            "type": "GENERATION",
            "name": "answer",
            "startTime": "2",
            "input": {"messages": [{"role": "user", "content": RAG}]},
            "output": {"role": "assistant", "content": "Bob"},
        },
        {"type": "WEATHER", "name": "storm", "startTime": "3", "input": None, "output": None},
    ]
    return {"id": "t", "name": "run", "input": "Who keeps the map?", "observations": observations}

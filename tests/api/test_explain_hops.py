"""Explanations of an agent's step through the steps before it."""

import json
import math
from io import StringIO

import pytest
from rich.console import Console

import pertinent
from pertinent.errors import SettingError
from tests.inputs.traces.examples import CALL, CHUNKS

RESULT = {"role": "tool", "tool_call_id": "c1", "content": "\n\n".join(CHUNKS)}
RUN = [
    {"role": "system", "content": "Use <b>tools</b>."},
    {"role": "user", "content": "Who keeps the map?"},
    {"role": "assistant", "content": "I am an agent.\nI search.", "tool_calls": [CALL]},
    RESULT,
    {"role": "assistant", "content": "<think>The weather is fine.\nIt is Bob.</think>Bob"},
]


def agent(messages):
    """Write the next step: each depends on one thing before it."""
    written = json.dumps(messages)
    if "It is Bob." in written:
        return "Bob"
    if "Bob keeps the map." in written:
        return "It is Bob."
    if "I search." in written:
        return 'search({"what": "map"})'
    return "I search." if "tools" in written else "?"


@pytest.fixture(scope="module")
def hops():
    model = pertinent.wrap(agent, value="exact-match")
    return pertinent.explain_hops(model, RUN, "leave-one-out", progress=False)


def test_shares_are_combined_along_paths(hops):
    assert hops.target == "answer"
    assert [(hop.step, hop.part) for name in hops.texts for hop in hops.hops_of(name)] == [
        ("reasoning 2", "system prompt"),
        ("call of search", "reasoning 2"),
        ("search result 2", "call of search"),
        ("reasoning 4", "search result 2"),
        ("answer", "reasoning 4"),
    ]
    assert hops.top(2) == [("search result 2", 1.0), ("system prompt", 0.0)]
    assert hops.share("call of search") == hops.share("reasoning 2") == 1.0
    assert [e.id for e in hops.explanations] == ["reasoning 2", "call of search", "reasoning 4", "answer"]


def test_steps_that_the_answer_does_not_depend_on_are_flagged(hops):
    assert hops.unused == ["reasoning 1", "reasoning 3"]
    assert "does not depend on reasoning 1, reasoning 3" in shown(hops)
    assert "Held fixed: “Who keeps the map?”" in shown(hops)


def shown(hops):
    console = Console(width=120, file=StringIO())
    console.print(hops)
    return console.file.getvalue()


def test_the_graph_is_shown_everywhere(hops, tmp_path):
    text = shown(hops)
    for part in ("answer: Bob", "100%  reasoning 4: It is Bob.", "search result 2: Bob keeps the map."):
        assert part in text
    html = hops.to_html()
    assert "<b>tools</b>" not in html
    assert "&lt;b&gt;tools&lt;/b&gt;" in html
    assert html.count("<path d=") == 5
    page = pertinent.save_report(hops, tmp_path / "hops.html").read_text()
    assert "reasoning 4 → answer: 100%" in page
    assert "<b>tools</b>" not in page
    assert len(hops.plot().axes) == 1


def test_hops_are_saved_and_read(hops, tmp_path):
    hops.save(tmp_path / "hops.json")
    again = pertinent.read(tmp_path / "hops.json")
    assert again.shares == hops.shares
    assert again.steps == hops.steps
    assert again.unused == hops.unused
    assert [hop.share for hop in again.hops] == [hop.share for hop in hops.hops]
    assert any(math.isnan(hop.score) for hop in again.hops)
    frame = hops.to_dataframe()
    assert len(frame) == len(hops.hops)
    assert frame[frame.step == "answer"].set_index("part").share["reasoning 4"] == 1.0


def test_a_step_and_a_contrast():
    model = pertinent.wrap(agent, value="exact-match")
    words = {"rather_than": 'search({"what": "key"})', "progress": False}
    hops = pertinent.explain_hops(model, RUN, "leave-one-out", step="call of search", **words)
    assert hops.steps == ("reasoning 1", "reasoning 2", "call of search")
    assert hops.top(1) == [("system prompt", 1.0)]
    with pytest.raises(SettingError, match="features"):
        pertinent.explain_hops(model, RUN, features="words")


def test_likelihoods_have_standard_errors():
    facts = {"role": "user", "content": "Ann keeps the key.\n\nBob keeps the map.\n\nWho keeps the map?"}
    run = [facts, {"role": "assistant", "content": "Bob"}]
    hops = pertinent.explain_hops("recall", run, budget=40, progress=False)
    assert all(hop.standard_error > 0 for hop in hops.hops)
    assert hops.top(1)[0][0] == "user turn, part 2"
    assert hops.top(1)[0][1] > 0.9


def test_a_step_without_clear_causes_is_noted():
    model = pertinent.wrap(lambda messages: "Bob", value="exact-match")
    assert "No part has a clear" in shown(pertinent.explain_hops(model, RUN, "leave-one-out", progress=False))

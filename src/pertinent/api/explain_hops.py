"""Explanation of a step of an agent through the steps before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from typing import Annotated, Any

from pertinent.api.explain import explain
from pertinent.config.settings import Share, checked
from pertinent.engine.progress import Callback
from pertinent.errors import require
from pertinent.inputs.prompt import Prompt
from pertinent.inputs.traces.read_trace import read_trace
from pertinent.inputs.traces.trace import Step, Trace
from pertinent.printable import shorten
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.hops import Hop, Hops, hops_in
from pertinent.runs.model_names import load_or_wrap
from pertinent.runs.request import Method

_SHOWN = 200
"""Number of characters of a part's text in the result."""


@checked
def explain_hops(
    model: Any,
    trace: Any,
    method: Method | None = None,
    *,
    step: Annotated[int | str, "N|NAME"] | None = None,
    rather_than: Annotated[Any, "TEXT"] = None,
    fixed: str | list[Annotated[str, "TEXT"]] | None = None,
    threshold: Share = 0.05,
    progress: Callback | bool | None = None,
    **words: Any,
) -> Hops:
    r"""Explain what an agent said or called, through the steps before it.

    The explained step and then each earlier step of reasoning or tool call that it depends on is explained by
    its context. The share of a part in a step is its share in the clear positive effects, those above 1.96
    standard errors. Shares are multiplied along each path and summed. A step is also explained if its call
    returned an important result.

    Parameters
    ----------
    model
        A language model, as in `explain`.
    trace
        Messages with tool calls, an OpenInference, OpenTelemetry or Langfuse export, or the path of such a
        file. See `Prompt.from_trace`.
    method
        As in `explain`. It must score features.
    step
        Index or name of the step to explain; by default the last one.
    rather_than
        Another answer, or another tool call such as ``search({"city": "Rome"})``, to contrast the step with.
    fixed
        Parts of the messages that are never removed, or "none"; by default the last request of the user.
    threshold
        Smallest share of a step that is explained too. `Hops.unused` lists the other steps.
    progress
        As in `explain`.
    **words
        Other arguments of `explain`, such as ``budget=200``, and settings of the method.

    Examples
    --------
    >>> import pertinent
    >>> def agent(messages):
    ...     text = str(messages)
    ...     return "Bob" if "It is Bob." in text else "It is Bob." if "Bob keeps it" in text else "Nobody"
    >>> run = [
    ...     {"role": "user", "content": "Ann left.\n\nBob keeps it.\n\nWho keeps it?"},
    ...     {"role": "assistant", "reasoning_content": "It is Bob.", "content": "Bob"},
    ... ]
    >>> model = pertinent.wrap(agent, value="exact-match")
    >>> hops = pertinent.explain_hops(model, run, "leave-one-out", progress=False)
    >>> hops.top(1)
    [('user turn, part 2', 1.0)]
    """
    require(
        words.get("features") is None, "features", "omitted: the parts of the trace", words.get("features")
    )
    wrapped, read = load_or_wrap(model), read_trace(trace)
    target = read.step(step)
    steps = read.steps[: read.steps.index(target) + 1]
    if method is not None:
        words["method"] = method
    callers = {part.name: part.call for part in read.parts if part.call}
    shares, with_calls = {target.name: 1.0}, {target.name: 1.0}
    explanations: list[Explanation] = []
    hops: list[Hop] = []
    for each in reversed(steps):
        if with_calls.get(each.name, 0.0) < threshold:
            continue
        other = rather_than if each is target else None
        prompt = Prompt(**read.prompt_fields(each, other), fixed=fixed)
        if prompt.parts:
            e = explain(wrapped, prompt, progress=progress, **words)
            assert isinstance(e, Explanation)
            explanations.insert(0, replace(e, id=each.name))
            found = list(hops_in(e, each.name, e.input.text.names))  # type: ignore[attr-defined]
        else:
            found = [Hop(each.name, name, nan, nan, 1.0) for name in _only_parts(read, each)]
        for hop in found:
            hops.append(hop)
            _add(shares, hop.part, shares.get(each.name, 0.0) * hop.share)
            for name in filter(None, (hop.part, callers.get(hop.part))):
                _add(with_calls, name, with_calls[each.name] * hop.share)
    called = dict.fromkeys(hop.part for hop in hops if hop.share > 0 and hop.part in callers)
    hops += [Hop(part, callers[part], nan, nan, 1.0) for part in called]
    numbered = [replace(e, index=index) for index, e in enumerate(explanations)]
    return Hops(
        texts=_texts(read, steps),
        steps=tuple(each.name for each in steps),
        hops=tuple(hops),
        shares=shares,
        shares_with_calls=with_calls,
        explanations=Explanations(numbered),
        threshold=threshold,
        notes=read.notes,
    )


def _add(shares: dict[str, float], name: str, share: float) -> None:
    shares[name] = shares.get(name, 0.0) + share


def _only_parts(trace: Trace, step: Step) -> list[str]:
    """Return the name of the only part before a step, if there is one."""
    return [part.name for part in trace.parts_before(step)][:1]


def _texts(trace: Trace, steps: Sequence[Step]) -> dict[str, str]:
    """Return the text of each part and step by name, in order."""
    last = steps[-1]
    parts = [(part.message, part.start, part.name, part.text) for part in trace.parts_before(last)]
    written = [(step.message, step.start, step.name, step.text) for step in steps]
    in_order = sorted([*parts, *written], key=lambda entry: (entry[0], entry[1], entry[2] == last.name))
    return {name: shorten(" ".join(text.split()), _SHOWN) for _, _, name, text in in_order}

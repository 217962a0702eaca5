"""``pertinent trace``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pertinent
from pertinent.api.estimate import estimate_evaluations
from pertinent.cli.command_output import CommandOutput, conclude
from pertinent.cli.loading import DEFAULTS, ModelFlags, load_methods
from pertinent.cli.signatures import call_with
from pertinent.cli.verbs import arguments_of
from pertinent.inputs.fixed_parts import NONE
from pertinent.inputs.traces.read_trace import read_trace
from pertinent.inputs.traces.trace import Trace
from pertinent.models.base import Model
from pertinent.models.endpoint import EndpointModel
from pertinent.models.regeneration import PromptModel
from pertinent.results.explanation import Explanations
from pertinent.runs.request import default_method

_REPORTS = (".html", ".htm")


def trace(args: Namespace, *, hops: bool = False) -> int:
    """Explain a step of an agent's trace, and write the requested files.

    Parameters
    ----------
    hops
        Also explain the earlier steps that the step depends on, and show the graph.
    """
    if args.out is not None and args.out.suffix.lower() in _REPORTS and args.html is None:
        args.html, args.out = args.out, None
    output = call_with(args, CommandOutput, read=[args.trace])
    words = arguments_of(args) | {"progress": output.progress}
    names = "step", "rather_than", "fixed", "threshold"
    chosen = {name: words.pop(name) for name in names}
    if isinstance(chosen["step"], str) and chosen["step"].removeprefix("-").isdecimal():
        chosen["step"] = int(chosen["step"])
    if chosen["fixed"] == [NONE]:
        chosen["fixed"] = NONE
    read = read_trace(args.trace)
    step = read.step(chosen["step"])
    (words["method"],) = load_methods([args.method or default_method("prompt")], args.set)
    model = _reading_messages(call_with(args, ModelFlags, model=args.model or DEFAULTS["prompt"]).load())
    output.show(_outline(read))
    chosen_steps = read.steps[: read.steps.index(step) + 1] if hops else (step,)
    output.show(_estimate(model, [read.prompt_fields(each) for each in chosen_steps], words))
    if hops:
        result = pertinent.explain_hops(model, read, **chosen, **words)
        output.show(result)
        return conclude(1, output.write(result, result.explanations, title=_title(args, step.name)))
    del chosen["threshold"]
    explanation: Any = pertinent.explain(model, pertinent.Prompt.from_trace(read, **chosen), **words)
    explanations = Explanations([replace(explanation, id=step.name)])
    output.show_all(explanations)
    return conclude(1, output.write(explanations[0], explanations, title=_title(args, step.name)))


def _reading_messages(model: Model) -> Model:
    """Return the model; for an endpoint that would score texts, that of its chat, which reads messages."""
    if not isinstance(model, EndpointModel):
        return model
    client = model.completions.client
    return pertinent.wrap_endpoint(client.url, model=client.model, protocol="chat")


def _estimate(model: Model, prompts: Sequence[Mapping[str, Any]], words: Mapping[str, Any]) -> str:
    """Return the largest numbers of evaluations and, for an endpoint, of requests and tokens."""
    steps = [pertinent.Prompt(**fields) for fields in prompts]
    options = {name: words[name] for name in ("budget", "features")}
    if isinstance(model, PromptModel):
        return str(pertinent.estimate_requests(model, steps, words["method"], **options))
    n = sum(estimate_evaluations(model, prompt, words["method"], **options) for prompt in steps)
    return f"at most {n:,} evaluations"


def _title(args: Namespace, step: str) -> str:
    return f"{args.trace.name}: {step}"


def _outline(trace: Trace) -> str:
    """Return the number of parts and the names of the steps."""
    steps = ", ".join(f"{i} {step.name}" for i, step in enumerate(trace.steps))
    return f"{len(trace.messages)} messages, {len(trace.parts)} parts; steps: {steps}"

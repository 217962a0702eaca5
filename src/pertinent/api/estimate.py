"""Estimate of the requests and tokens that explanations need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pertinent.config.settings import Count, checked
from pertinent.errors import ModelError
from pertinent.explainers.base import DEFAULT_BUDGET, Explainer, plan_budget
from pertinent.inputs.base import Input
from pertinent.models.base import Model
from pertinent.models.regeneration import PromptModel
from pertinent.runs.explanation_steps import REPEATED
from pertinent.runs.model_names import load_or_wrap
from pertinent.runs.request import Method, Request, default_method, features_of
from pertinent.runs.run import Run


@dataclass(frozen=True)
class RequestEstimate:
    """The most that explanations need, for a model behind an endpoint or a chat function.

    Attributes
    ----------
    evaluations
        Number of evaluations: distinct prompts with only some of the features.
    requests
        Number of requests, including those for the explained answers and the check for random answers.
    tokens
        Number of tokens of prompts and answers, if each request had the whole prompt and the longest answer.
        On average half of the features are removed, so fewer are used.
    """

    evaluations: int
    requests: int
    tokens: int

    def __str__(self) -> str:
        return (
            f"at most {self.evaluations:,} evaluations, {self.requests:,} requests and about "
            f"{self.tokens:,} tokens"
        )


@checked
def estimate_requests(
    model: Any,
    inputs: Any,
    method: Method | None = None,
    *,
    budget: Count | None = None,
    features: Any = None,
    **settings: Any,
) -> RequestEstimate:
    """Estimate the requests and tokens that explanations need, without sending a request.

    Parameters
    ----------
    model
        A model from `wrap_endpoint`, or a wrapped chat function.
    inputs
        A prompt, or a collection of prompts.
    method, budget, features
        As in `explain`.
    **settings
        Settings of the method.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda messages: "Bob", value="overlap")
    >>> prompt = pertinent.Prompt("Who has it?", sources=["Ann has a key.", "Bob has it."])
    >>> print(pertinent.estimate_requests(model, prompt))
    at most 4 evaluations, 10 requests and about 120 tokens
    """
    wrapped = load_or_wrap(model)
    if not isinstance(wrapped, PromptModel):
        raise ModelError("`estimate_requests` needs a model from `wrap_endpoint` or a wrapped chat function.")
    chosen = default_method(wrapped.kind) if method is None else method
    request = Request.from_keywords(chosen, {"budget": budget, "features": features, **settings})
    run = Run.from_arguments(wrapped, inputs, request.method.name)
    evaluations = requests = tokens = 0
    for index, raw in enumerate(run.inputs):
        input = wrapped.outline(raw, features_of(request.features, index, one=run.one))
        n = _evaluations(request.method, request.budget, input)
        repeats = 1 + REPEATED if index < REPEATED and not wrapped.is_random else 0
        first, each, size = wrapped.request_cost(input)
        n_requests = first + each * (n + 1 + repeats)
        evaluations, requests = evaluations + n, requests + n_requests
        tokens += n_requests * size
    return RequestEstimate(evaluations, requests, tokens)


def estimate_evaluations(
    model: Model, prompt: Any, method: Explainer, *, budget: int | None = None, features: Any = None
) -> int:
    """Return the largest number of evaluations of an explanation of one input."""
    if isinstance(model, PromptModel):
        return _evaluations(method, budget, model.outline(prompt, features))
    return _planned(method, budget, model.prepare(prompt, features))


def _evaluations(explainer: Explainer, budget: int | None, input: Input) -> int:
    """Return the largest number of distinct masks that are evaluated by a model without gradients."""
    n, planned = input.n_features, _planned(explainer, budget, input)
    return min(planned, 2**n) if n < 40 else planned


def _planned(explainer: Explainer, budget: int | None, input: Input) -> int:
    return budget or DEFAULT_BUDGET if input.levels else plan_budget(explainer, budget, input.n_features)

"""The models of the page: what a user may send them, what they are asked, and what may be chosen."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any

from pertinent.api.catalogue import list_methods
from pertinent.app.categories import find_categories, find_unknown_values
from pertinent.app.explain_form import ExplainForm, Limits, fields_of
from pertinent.array_types import Floats
from pertinent.config.fingerprints import digest
from pertinent.errors import InputError, require, unknown
from pertinent.explainers.base import explainers, plan_budget
from pertinent.inputs.base import Input
from pertinent.inputs.prompt import Prompt
from pertinent.inputs.table import TableInput
from pertinent.models.base import Model
from pertinent.outputs import LogLikelihoods
from pertinent.removals.base import removals
from pertinent.results.explanation import Explanation
from pertinent.runs.request import DEFAULT_METHOD, make_explainer
from pertinent.runs.service import Service

MEASURED = ("sufficiency", "comprehensiveness")
"""What is measured of every explanation on the page."""

_FEATURES = {
    "text": ("words", "sentences", "passages", "tokens"),
    "prompt": ("words", "sentences", "passages", "tokens", "sources", "messages"),
    "image": ("patches", "superpixels", "pixels"),
    "table": ("columns",),
}
"""What inputs of each kind may be cut into."""

_REMEMBERED = 64
"""How many prompts are remembered, so that a model does not write its answer again for each word removed."""


@dataclass(frozen=True)
class ServedModel:
    """A model on the page; it is loaded when it is first used, and has a service of its own.

    `reads` is the kind of its inputs, where that is known before it is loaded.
    """

    name: str
    load: Callable[[], Model]
    limits: Limits
    examples: Callable[[], Sequence[Any]] = tuple
    reads: str = ""
    lock: Lock = field(default_factory=Lock, compare=False)
    _prompts: OrderedDict[bytes, Input] = field(default_factory=OrderedDict, compare=False)

    @cached_property
    def service(self) -> Service:
        """The service that explains; the lock is held while it is made and used."""
        return Service(self.load())

    @property
    def model(self) -> Model:
        """The model."""
        return self.service.model

    @cached_property
    def categories(self) -> dict[str, list[str]]:
        """The values of the categorical columns of a table's background, by column."""
        if self.kind != "table" or self.model.background is None:
            return {}
        row: Any = self.model.prepare(self.model.background.values[0])
        return find_categories(self.model.background, row.names)

    @property
    def kind(self) -> str:
        """The kind of input that it reads; of a language model prompts."""
        if isinstance(self.model.output, LogLikelihoods):
            return "prompt"
        return self.model.kind or "text"

    def close(self) -> None:
        """End the service, if there is one."""
        if "service" in vars(self):
            self.service.close()

    def choices(self) -> dict[str, Any]:
        """What may be chosen for this model, as plain data."""
        with self.lock:
            kind = self.kind
            shown = [each for each in list_methods() if not each.fitted_first]
            shown.sort(key=lambda each: each.name != DEFAULT_METHOD)
            refusals = {each.name: explainers.get(each.name).refusal(self.model) for each in shown}
            return {
                "name": self.name,
                "kind": kind,
                "classes": list(self.model.classes),
                "output": self.model.output.kind,
                "methods": [[each.name, each.summary, refusals[each.name]] for each in shown],
                "removals": removals.for_kind(kind),
                "features": self._feature_names(),
                "segments": self._segments(),
                "chat": getattr(self.model.tokenizer, "chat_template", None) is not None,
                "values": self.categories,
                "examples": [self._example(each) for each in self.examples()] or self._background_row(),
                "limits": {"budget": self.limits.budget, "text": self.limits.text},
            }

    def prepare(self, question: ExplainForm) -> Input:
        """The input of a question, cut into features."""
        with self.lock:
            if question.features is not None and question.features not in self._feature_names():
                raise unknown("feature", question.features, self._feature_names())
            found = self._prepared(question)
        if found.n_features > self.limits.features:
            raise InputError(
                f"The input has {found.n_features:,} features, but this page explains at most "
                f"{self.limits.features:,}: choose coarser ones."
            )
        return found

    def predict(self, question: ExplainForm, input: Input) -> Future[Floats]:
        """The future of the model's answer about the input without some of its features."""
        self._check_removal(question)
        with self.lock:
            return self.service.predict(input, question.without, removal=question.removal, seed=question.seed)

    def explain(
        self, question: ExplainForm, input: Input, on_partial: Callable[[Explanation], None]
    ) -> Future[Explanation]:
        """The future of the explanation, which is also measured."""
        self._check_removal(question)
        if question.method not in explainers:  # a name alone: neither settings nor a folder
            raise unknown("method", question.method, explainers.all())
        budget = plan_budget(make_explainer(question.method), question.budget, input.n_features)
        most = self.limits.budget
        require(budget <= most, "budget", f"at most {most:,} on this page", budget)
        with self.lock:
            return self.service.submit(
                input,
                question.method,
                on_partial=on_partial,
                target=question.target,
                budget=budget,
                removal=question.removal,
                seed=question.seed,
                metrics=MEASURED,
            )

    def _check_removal(self, question: ExplainForm) -> None:
        known = removals.for_kind(self.kind)
        if question.removal is not None and question.removal not in known:  # a name alone, without settings
            raise unknown("removal", question.removal, known)

    def _feature_names(self) -> list[str]:
        names = _FEATURES.get(self.kind, ())
        return [name for name in names if name != "tokens" or self.model.tokenizer is not None]

    def _prepared(self, question: ExplainForm) -> Input:
        """The input; the last prompts are remembered with the answers that the model wrote."""
        if self.kind != "prompt":
            input = self.model.prepare(question.raw(self.kind, self.limits), question.features)
            if isinstance(input, TableInput):
                return replace(input, notes=(*input.notes, *find_unknown_values(input, self.categories)))
            return input
        key = digest(question.given)
        if key not in self._prompts:
            self._prompts[key] = self.model.prepare(question.raw(self.kind, self.limits), question.features)
        self._prompts.move_to_end(key)
        while len(self._prompts) > _REMEMBERED:
            self._prompts.popitem(last=False)
        return self._prompts[key]

    def _segments(self) -> list[str]:
        """The names of the two texts of a model that reads pairs alone; empty for others."""
        return list(getattr(getattr(self.model, "head", None), "segments", ()))

    def _example(self, raw: Any) -> dict[str, Any]:
        """The fields of a question about an example; a prompt is not answered yet."""
        if isinstance(raw, Prompt):
            return {"text": raw.text, "sources": list(raw.sources), "answer": raw.answer}
        if isinstance(raw, str):
            return {"text": raw}
        return fields_of(self.model.prepare(raw))

    def _background_row(self) -> list[Any]:
        """The first row of a table's background, so that there are columns to edit."""
        if self.kind != "table" or self.model.background is None:
            return []
        return [fields_of(self.model.prepare(self.model.background.values[0]))]

"""Models of the web app, with their forms, limits and explanations."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from pertinent.api.catalogue import Entry, list_methods
from pertinent.app.explain_form import ExplainForm, Limits
from pertinent.array_types import Floats
from pertinent.config.fingerprints import digest
from pertinent.config.serialization import json_text
from pertinent.errors import InputError, PertinentError, require, unknown
from pertinent.explainers.base import DEFAULT_SPARSITIES, explainers, plan_budget
from pertinent.inputs.base import Input
from pertinent.inputs.modality import Modality, modalities, modality_named
from pertinent.models.base import Model
from pertinent.outputs import column_index
from pertinent.removals.base import removals
from pertinent.rendering.drawings import drawing_named
from pertinent.rendering.html import Markup
from pertinent.results.explanation import Explanation
from pertinent.results.records import Cost, Prediction, RequestRecord
from pertinent.runs.request import make_explainer
from pertinent.runs.service import Service

METRICS = ("sufficiency", "comprehensiveness")
"""Metrics that are computed for every explanation."""

_CACHED_INPUTS = 64
"""Number of cached inputs; a cached prompt spares a language model from generating its answer again."""


@dataclass(frozen=True)
class ServedModel:
    """A model of the web app and its service; the model is loaded when it is first used.

    Attributes
    ----------
    examples
        Returns the form fields of the example inputs.
    reads
        The kind of its inputs, empty if that is unknown before it is loaded.
    lock
        Held while the service is created and used.
    """

    name: str
    load: Callable[[], Model]
    limits: Limits
    examples: Callable[[], Sequence[Mapping[str, Any]]] = tuple
    reads: str = ""
    lock: Lock = field(default_factory=Lock, compare=False)
    _inputs: OrderedDict[bytes, Input] = field(default_factory=OrderedDict, compare=False)

    @cached_property
    def service(self) -> Service:
        """Return the service that explains; the caller holds the lock."""
        return Service(self.load())

    @property
    def model(self) -> Model:
        """Return the model."""
        return self.service.model

    @property
    def modality(self) -> Modality:
        """Return the modality of its inputs, by default text."""
        return getattr(self.model, "modality", None) or modality_named(self.model.kind or "text")

    def close(self) -> None:
        """End the service, if there is one."""
        if "service" in vars(self):
            self.service.close()

    # -- the form ------------------------------------------------------------------------------------

    def form_context(self, form: ExplainForm, kind: str | None) -> dict[str, Any]:
        """Return the context of the form's template: choices, and the fields of the input.

        They are the fields of an example if the form has no input, or one of another `kind`. The default
        method of this kind becomes that of the model's.
        """
        with self.lock:
            modality, examples = self.modality, self._examples()
            fits = bool(form.input) and kind in (None, modality.name)
            fields = form.input if fits else next(iter(examples), {})
            form = replace(form, input=fields)
            if kind in modalities and form.method == modality_named(kind).default_method:
                form = replace(form, method=None)  # the default of another kind of input may differ
            return {
                "served": self,
                "kind": modality.name,
                "form": form,
                "editor": self._editor(fields),
                "examples": [
                    (json_text(fields), str(fields["text"])) for fields in examples if "text" in fields
                ],
                "misfit": kind if form.input and not fits else None,
                "methods": self._methods(form),
                "columns": self.model.classes,
                "output": self.model.output,
                "removals": removals.for_kind(modality.name),
                "features": self._granularities(),
                "limits": self.limits,
            }

    def methods(self, form: ExplainForm) -> list[tuple[Entry, str]]:
        """Return each method with the reason why it cannot explain the input of the form, empty if it can."""
        with self.lock:
            return self._methods(form)

    def _methods(self, form: ExplainForm) -> list[tuple[Entry, str]]:
        entries = [entry for entry in list_methods() if not entry.fitted_first]
        entries.sort(key=lambda entry: entry.name != self.modality.default_method)
        try:
            input = self._prepared(form, answered=False)
        except PertinentError:  # the user may still be typing
            input = None
        return [(entry, self._refusal(entry.name, form, input)) for entry in entries]

    def _refusal(self, method: str, form: ExplainForm, input: Input | None) -> str:
        reason = explainers.get(method).refusal(self.model)
        if reason or input is None:
            return reason
        try:
            self._budget(method, form, input)
            removal = removals.make(form.removal or self.model.default_removal(input))
            for kind in explainers.get(method).traits.asks:
                self.model.check_question(kind, input, removal)
        except PertinentError as error:
            return str(error)
        return ""

    def _editor(self, fields: Mapping[str, Any]) -> Markup:
        drawing = drawing_named(self.modality.name)
        return drawing.form(defaultdict(lambda: None, fields), self.model, self.limits)

    def _examples(self) -> list[Mapping[str, Any]]:
        """Return the form fields of the examples, by default of the first row of the background."""
        examples = list(self.examples())
        if not examples and self.model.background is not None:
            examples = [self.modality.to_fields(self.model.prepare(self.model.background.values[0]))]
        return examples

    def _granularities(self) -> list[str]:
        names = self.modality.granularities or (self.modality.features,)
        return [name for name in names if name != "tokens" or self.model.tokenizer is not None]

    # -- explanations --------------------------------------------------------------------------------

    def prepare(self, form: ExplainForm) -> Input:
        """Return the input of a form, divided into features; raise an `InputError` for too many features."""
        with self.lock:
            if form.features is not None and form.features not in self._granularities():
                raise unknown("feature", form.features, self._granularities())
            input = self._prepared(form)
        if input.n_features > self.limits.features:
            raise InputError(
                f"The input must have at most {self.limits.features:,} features on this page, got "
                f"{input.n_features:,}: choose coarser features."
            )
        return input

    def _prepared(self, form: ExplainForm, *, answered: bool = True) -> Input:
        """Return the input, without its answer unless `answered`; small inputs are cached."""
        key = digest(json_text(form.input), form.features, answered)
        input = self._inputs.pop(key, None)
        if input is None:
            raw = self.modality.from_fields(form.input, self.limits)
            input = self.model.prepare(raw if answered else self.modality.without_answer(raw), form.features)
            notes = self.modality.background_notes(input, self.model.background)
            input = replace(input, notes=(*input.notes, *notes)) if notes else input
        if input.nbytes == 0:
            self._inputs[key] = input
            while len(self._inputs) > _CACHED_INPUTS:
                self._inputs.popitem(last=False)
        return input

    def predict(self, form: ExplainForm, input: Input, without: Sequence[int] = ()) -> Future[Floats]:
        """Return the future of the prediction for the input with some features removed."""
        self._check_removal(form)
        with self.lock:
            return self.service.predict(input, without, removal=form.removal, seed=form.seed)

    def unexplained(self, form: ExplainForm, input: Input, prediction: Floats) -> Explanation:
        """Return an explanation without scores, which shows the input and its prediction."""
        columns, output = self.model.columns_of(input), self.model.output
        target = output.default_target(prediction)
        if form.target is not None:
            target = column_index(form.target, columns, "target")
        return Explanation(
            request=RequestRecord(
                self._method_of(form), {}, form.removal or self.model.default_removal(input)
            ),
            input=input,
            prediction=Prediction(prediction, columns, output),
            target=target,
            cost=Cost(0),
            scores=np.zeros(input.n_features),
            details=self.model.details(input),
        )

    def explain(
        self,
        form: ExplainForm,
        input: Input,
        on_partial: Callable[[Explanation], None],
        on_progress: Callable[[int], None],
    ) -> Future[Explanation]:
        """Return the future of the explanation, with its metrics."""
        self._check_removal(form)
        method = self._method_of(form)
        if method not in explainers:  # a name only: neither settings nor a folder
            raise unknown("method", method, explainers.all())
        with self.lock:
            return self.service.submit(
                input,
                method,
                on_partial=on_partial,
                on_progress=on_progress,
                target=form.target,
                budget=self._budget(method, form, input),
                removal=form.removal,
                seed=form.seed,
                metrics=METRICS,
            )

    def budget(self, form: ExplainForm, input: Input) -> int:
        """Return the number of evaluations of the explanation."""
        return self._budget(self._method_of(form), form, input)

    def _budget(self, method: str, form: ExplainForm, input: Input) -> int:
        explainer, limit = make_explainer(method), self.limits.budget
        budget = plan_budget(explainer, form.budget, input.n_features)
        explainer.check_sizes(input.n_features, DEFAULT_SPARSITIES, budget)
        require(budget <= limit, "budget", f"at most {limit:,} on this page", budget)
        return budget

    def _method_of(self, form: ExplainForm) -> str:
        return form.method or self.modality.default_method

    def _check_removal(self, form: ExplainForm) -> None:
        names = removals.for_kind(self.modality.name)
        if form.removal is not None and form.removal not in names:  # a name only, without settings
            raise unknown("removal", form.removal, names)

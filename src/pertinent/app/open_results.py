"""Results that are open in the web app, kept in memory for further requests about them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Any

from pertinent.app.explain_form import ExplainForm
from pertinent.app.served_model import ServedModel
from pertinent.array_types import Floats
from pertinent.errors import InputError
from pertinent.rendering import wording as say
from pertinent.rendering.colours import Look
from pertinent.rendering.drawings import drawing_of
from pertinent.rendering.html import Markup, from_template
from pertinent.rendering.html.explanation import card, columns_to_choose, prediction_axis
from pertinent.results.explanation import Explanation

_MOST_RESULTS, _MOST_BYTES = 64, 2**28
"""Number of results that are kept, and bytes of their inputs."""


@dataclass
class OpenResult:
    """An explanation shown in the web app; `explanation` is replaced while it is refined."""

    served: ServedModel
    form: ExplainForm
    explanation: Explanation
    is_begun: bool = False
    id: str = field(default_factory=lambda: token_urlsafe(12))

    def card(self, column: int | None = None, *, is_done: bool = True) -> Markup:
        """Return the HTML of the explanation, of its scores for another column if requested."""
        e, share = self.explanation, None
        if column is not None and column != e.target:
            if column not in columns_to_choose(e):
                raise InputError(f"There are no scores for column {column}.")
            share = drawing_of(e.input).column_shares(e).get(column)
            e = e.for_class(column)
        look = Look(interactive=True, folds=is_done)
        return card(e, look=look, with_input=False, share=share, is_begun=self.is_begun)

    def without(self, features: list[int], values: Floats) -> Markup:
        """Return the HTML of the predictions before and after the removal of features."""
        e = self.explanation
        column = e.output.default_target(values)
        changed = None if column == say.predicted(e) else e.classes[column]
        return from_template(
            "pertinent.app:without.html",
            e=e,
            values=values,
            axis=prediction_axis(e, values),
            choices=columns_to_choose(e),
            names=[say.on_one_line(e.features[i]) for i in features],
            changed=changed,
        )

    def difference(self, other: OpenResult) -> str:
        """Return how the prediction differs from another result of the same model."""
        e, theirs = self.explanation, other.explanation
        if self.served is not other.served:
            return ""
        headings = [drawing_of(each.input).heading(each) for each in (theirs, e)]
        if e.classes != theirs.classes:
            return f"The other version answers {headings[0]}, this one {headings[1]}."
        if (e.prediction.values == theirs.prediction.values).all():
            return "The other version has the same prediction."
        column = say.predicted(theirs)
        amounts = say.amount(theirs, column), say.amount(e, column)
        return f"{e.classes[column]}: {amounts[0]} in the other version, {amounts[1]} in this one."


class OpenResults:
    """The latest results, by id."""

    def __init__(self) -> None:
        self._results: OrderedDict[str, OpenResult] = OrderedDict()

    def add(self, result: OpenResult) -> None:
        """Keep a result; drop the oldest ones beyond the limits of number and size."""
        self._results[result.id] = result
        while len(self._results) > _MOST_RESULTS or (len(self._results) > 1 and self._nbytes > _MOST_BYTES):
            self._results.popitem(last=False)

    def get(self, id: Any) -> OpenResult:
        """Return the result with an id; raise an `InputError` if it is no longer kept."""
        if not isinstance(id, str) or id not in self._results:
            raise InputError("This result is no longer in memory: explain the input again.")
        return self._results[id]

    @property
    def _nbytes(self) -> int:
        return sum(result.explanation.input.nbytes for result in self._results.values())

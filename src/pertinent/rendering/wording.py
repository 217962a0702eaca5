"""Texts and numbers of an explanation, shared by all reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, floor, isfinite, log10
from typing import Literal

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.errors import PertinentError
from pertinent.explainers.base import n_kept
from pertinent.number_format import number_text
from pertinent.outputs import LogLikelihoods, column_index
from pertinent.outputs.log_likelihoods import CONTRAST, PER_TOKEN
from pertinent.printable import shorten_name, visible
from pertinent.rendering.colours import shares
from pertinent.results.explanation import Explanation, most_likely
from pertinent.results.hops import Hops

FEW_CLASSES = 10
_UNMEASURABLE = 1e-6
"""Share of the prediction below which scores count as rounding errors of the model."""

_UNLISTED = {"class": "less likely classes", "label": "less likely labels", "value": "other values"}
_ARROWS = {"lower": "↓", "higher": "↑"}


def facts(explanation: Explanation) -> dict[str, str]:
    """Return the settings and costs of an explanation, by label."""
    e = explanation
    return {
        "method": e.method,
        "settings": ", ".join(f"{k}={clipped(str(v), 60)}" for k, v in e.settings.items()) or "defaults",
        "removal": e.removal,
        **({"scale": e.request.scale} if e.request.scale != "natural" else {}),
        "features": f"{len(e.features):,} ({e.input.granularity.partition(':')[0]})",
        "budget": f"{e.cost.budget:,}{' per sparsity' if e.cost.budget_per_sparsity else ''}",
        "evaluations": f"{e.evaluations:,}",
        "model time": _duration(e.cost.seconds),
        "seed": str(e.seed),
        **{name: _detail(value) for name, value in e.details.items() if isinstance(value, int | float | str)},
    }


def predicted(explanation: Explanation) -> int:
    """Return the column of the predicted class, or the first value."""
    return explanation.prediction.column


def amount(explanation: Explanation, column: int, values: Floats | None = None) -> str:
    """Return the model's output for a column, as ``93.1%`` or ``2.31 m``; optionally of other `values`."""
    e = explanation
    value = float((e.prediction.values if values is None else values)[column])
    described = e.output.describe(value)
    if (
        not isinstance(e.output, LogLikelihoods)
        or e.output.unit == PER_TOKEN
        or e.classes[column] == CONTRAST
    ):
        return described
    return f"{100 * exp(min(0.0, value)):.3g}% ({described})"


def uninformative_reason(explanation: Explanation) -> str | None:
    """Return why the scores are uninformative; ``None`` if features differ measurably."""
    scores, floor = np.nan_to_num(explanation.scores), unmeasurable(explanation)
    largest = float(np.abs(scores).max(initial=0.0))
    if largest <= floor:
        return f"No feature moves the prediction measurably: the largest score is {largest:.1g}."
    if len(scores) > 1 and explanation.meaning != "membership" and np.ptp(scores) <= floor:
        return "All features have the same score: the method does not distinguish them."
    return None


def relative_scores(explanation: Explanation) -> Floats:
    """Return the scores divided by the largest magnitude; zeros if none is measurable."""
    return shares(explanation.scores, unmeasurable(explanation))


def coloured_scores(explanation: Explanation) -> Floats:
    """Return the relative scores with the signs of the colours in a picture.

    For a method with pertinence, present features have positive values and absent features negative ones.
    """
    share, pertinence = relative_scores(explanation), explanation.pertinence
    return share if pertinence is None else np.maximum(share, 0) * pertinence


def directions(explanation: Explanation) -> tuple[str, str]:
    """Return the meaning of the supporting and the opposing colour."""
    name = explanation.target_name
    if explanation.pertinence is not None:
        towards, away = "present, must go", "absent, must appear"
        if explanation.input.value_texts() is not None:  # values change, words are present or absent
            towards, away = "towards its absent value", "away from its absent value"
        target = attack_target(explanation)
        return f"{towards} for {target}", f"{away} for {target}"
    if explanation.meaning == "attack":
        return "needed by an attack", "not needed by an attack"
    if explanation.meaning == "membership":
        return "in every set", "never chosen"
    if explanation.meaning == "magnitude":
        return f"matters for {name}", f"does not matter for {name}"
    if not _more_is_better(explanation):
        return f"raises {name}", f"lowers {name}"
    return f"supports {name}", f"opposes {name}"


def _more_is_better(explanation: Explanation) -> bool:
    """Return whether a larger output supports the decision, which is not the case for plain values."""
    return explanation.output.kind != "value" or isinstance(explanation.output, LogLikelihoods)


def verb(explanation: Explanation) -> str:
    """Return what features do to the target, such as ``supports``."""
    if not _more_is_better(explanation):
        return "moves"
    return "matters for" if explanation.meaning == "magnitude" else "supports"


def has_two_sides(explanation: Explanation) -> bool:
    """Return whether a picture needs both colours."""
    return explanation.pertinence is not None or explanation.meaning in ("effect", "attack")


def attack_target(explanation: Explanation) -> str:
    """Return the target class of an attack; ``another class`` if it is untargeted."""
    toward, classes = explanation.settings.get("toward"), explanation.classes
    if toward is None:
        return "another class"
    try:
        return classes[column_index(toward, classes)]
    except PertinentError:  # saved settings may contain any class
        return str(toward)


def side(explanation: Explanation, feature: int) -> Literal["support", "against", "plain"]:
    """Return the colour of a feature's bar; plain if an attack does not need the feature."""
    pertinence = explanation.pertinence
    sign = explanation.scores[feature] if pertinence is None else pertinence[feature]
    return "support" if sign > 0 else "plain" if pertinence is not None and sign == 0 else "against"


def pertinence_text(explanation: Explanation, feature: int) -> str:
    """Return the role of a feature in an attack, as ``must go`` or ``not needed``, or an empty text."""
    pertinence = explanation.pertinence
    if pertinence is None:
        return ""
    moves = ("must go", "must come") if explanation.input.value_texts() is None else ("towards", "away")
    return ("not needed", *moves)[pertinence[feature]]


def listed_classes(explanation: Explanation) -> list[int]:
    """Return the columns to list: all if there are few, else the most likely and the explained column."""
    n = len(explanation.classes)
    return list(range(n)) if n <= FEW_CLASSES else most_likely(explanation)


def unlisted(explanation: Explanation) -> str:
    """Return the number of unlisted columns, as ``and 995 less likely classes``."""
    left = len(explanation.classes) - len(listed_classes(explanation))
    return f"and {left:,} {_UNLISTED[explanation.output.kind]}" if left else ""


def strongest(explanation: Explanation, top: int | None) -> Ints:
    """Return the `top` features by magnitude, without zeros, in the order of the ranking."""
    if top is None:
        return explanation.ranking
    size = np.abs(explanation.scores)
    largest = np.argsort(-size, kind="stable")[:top]
    largest = largest[size[largest] > 0] if size.any() else largest
    return explanation.ranking[np.isin(explanation.ranking, largest)]


def error_of(explanation: Explanation, feature: int) -> float | None:
    """Return the standard error of a feature's score, or ``None``."""
    if explanation.standard_errors is None or not isfinite(explanation.standard_errors[feature]):
        return None
    return float(explanation.standard_errors[feature])


def score_texts(explanation: Explanation) -> list[str]:
    """Return each feature's score and standard error, as ``+0.123 ± 0.010``."""
    form = number_format(explanation.scores)
    return [
        f"{score_text(explanation, i, form)} {error_text(explanation, i, form)}".strip()
        for i in range(len(explanation.features))
    ]


def score_text(explanation: Explanation, feature: int, form: str = "") -> str:
    """Return the score of a feature, as ``+0.123``, or ``in 3 of 4 sets`` for a search.

    `form` is a precomputed `number_format` of the scores.
    """
    score = float(explanation.scores[feature])
    if explanation.meaning == "membership" and isfinite(score):
        sizes = len({n_kept(s, len(explanation.features)) for s in explanation.chosen})
        return f"in {round(score * sizes)} of {sizes} sets"
    return f"{score:+{form or number_format(explanation.scores)}}"


def error_text(explanation: Explanation, feature: int, form: str = "") -> str:
    """Return the standard error of a score, as ``± 0.010``; empty if unknown."""
    error = error_of(explanation, feature)
    return "" if error is None else f"± {error:{form or number_format(explanation.scores)}}"


def number_format(values: Floats) -> str:
    """Return a format with three significant digits for the largest magnitude."""
    largest = float(np.abs(np.nan_to_num(values)).max(initial=0.0))
    if largest == 0:
        return ".3f"
    if largest < 1e-5:
        return ".2e"
    return f"{',' if largest >= 1e4 else ''}.{max(0, 2 - floor(log10(largest)))}f"


def on_one_line(name: str) -> str:
    """Return a name with white space collapsed, or its `repr` if the result is empty."""
    return " ".join(name.split()) or repr(name)


def clipped(name: str, most: int = 32) -> str:
    """Return a name on one line of at most `most` characters, with visible control characters."""
    return shorten_name(visible(on_one_line(name)), most)


@dataclass(frozen=True)
class MetricValues:
    """The values of one metric by sparsity."""

    name: str
    arrow: str
    better: str
    values: Mapping[float | None, float]

    @property
    def mean(self) -> float:
        """Return the mean over sparsities."""
        return float(np.mean(list(self.values.values())))


def measures(explanation: Explanation) -> list[MetricValues]:
    """Return the metrics of an explanation that have values."""
    better = {name: explanation.better.get(name, "") for name in explanation.measures}
    return [
        MetricValues(name, arrow(better[name]), better[name], values)
        for name, values in explanation.measures.items()
        if values
    ]


def measured_sparsities(explanation: Explanation) -> list[float]:
    """Return the sparsities at which any metric has a value, in ascending order."""
    return sorted({s for m in measures(explanation) for s in m.values if s is not None})


def arrow(better: str) -> str:
    """Return ``↓`` if lower is better, ``↑`` if higher is better, or an empty text."""
    return _ARROWS.get(better, "")


@dataclass(frozen=True)
class ChosenSet:
    """A set chosen by a search, and the sparsities at which it was chosen."""

    sparsities: str
    mask: Masks


def chosen_sets(explanation: Explanation) -> list[ChosenSet]:
    """Return the distinct sets of a search, smallest first."""
    sets: dict[bytes, tuple[list[str], Masks]] = {}
    for sparsity, mask in sorted(explanation.chosen.items()):
        sets.setdefault(mask.tobytes(), ([], mask))[0].append(f"{100 * sparsity:g}%")
    return [ChosenSet(", ".join(labels), mask) for labels, mask in sets.values()]


def smallest_set(explanation: Explanation) -> Masks:
    """Return a mask of the smallest set of a search; all ``False`` without a search."""
    sets = chosen_sets(explanation)
    return sets[0].mask if sets else np.zeros(len(explanation.features), dtype=np.bool_)


def unmeasurable(explanation: Explanation) -> float:
    """Return the largest score that may be a rounding error of the model."""
    return _UNMEASURABLE * float(np.abs(np.nan_to_num(explanation.prediction.values)).max(initial=0.0))


def _detail(value: float | str) -> str:
    return str(value) if isinstance(value, str | bool) else number_text(value, 3)


def _duration(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:,.1f} s"


def hops_notes(hops: Hops) -> list[str]:
    """Return notes on steps without clear causes, steps that were not used, and the trace."""
    notes = []
    explained = dict.fromkeys(hop.step for hop in hops.hops)
    if unclear := [step for step in explained if not hops.hops_of(step)]:
        notes.append(f"No part has a clear positive effect on {', '.join(unclear)} at this budget.")
    if unused := hops.unused:
        few = f"{hops.target} does not depend on {', '.join(unused)} (shares below {hops.threshold:.0%})."
        notes.append(f"{few[:1].upper()}{few[1:]}")
    held = dict.fromkeys(remark for e in hops.explanations for remark in e.input.remarks)
    return [*notes, *held, *hops.notes]

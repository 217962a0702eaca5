"""Do similar texts have similar explanations? Intersection over union with neighbours (Vo et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias

import numpy as np

from pertinent.array_types import Floats
from pertinent.config.settings import Count, Range, checked
from pertinent.diagnostics.base import InputMeasure, MeasureDiagnostic, diagnostics
from pertinent.errors import InputError, SettingError, require
from pertinent.metrics import english_words
from pertinent.metrics.nearest_texts import Neighbourhood, mean_overlap
from pertinent.metrics.top_features import lower, top_mask, top_words
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure
from pertinent.runs.run import raise_first

NAME = "iou-stability"

Number: TypeAlias = Annotated[int, Range(at_least=0), Range(at_most=10**9)]


@diagnostics.register("neighbour-stability")
@dataclass(frozen=True, kw_only=True, repr=False)
class NeighbourStability(MeasureDiagnostic):
    """How much the top words of similar texts' explanations are the same (Vo et al. 2023, App. B.4).

    Attributes
    ----------
    rows
        The intersection over union of each text that has neighbours; `input` is its position among the
        explanations.
    k
        The number of top features that are compared.
    lexical, semantic
        The number of neighbours by words and by embedding.
    """

    question = "Do similar texts have similar explanations?"

    k: Count
    lexical: Number
    semantic: Number


@checked
def neighbour_stability(
    explanations: Sequence[Explanation],
    embed: Any = None,
    *,
    k: Count = 10,
    lexical: Number = 10,
    semantic: Number = 10,
    stop_words: Iterable[str] | None = None,
) -> NeighbourStability:
    r"""Measure how much the top words of a text's explanation are those of its neighbours.

    The neighbours of a text are others that are explained here and of which the model decides the same: those
    nearest by embedding, and of the rest those with the most words in common (Vo et al. 2023, App. B.4).

    :math:`\frac{1}{|N(x)|} \sum_{x' \in N(x)} \frac{|v_x \cap v_{x'}|}{|v_x \cup v_{x'}|}`, v the top K words

    Parameters
    ----------
    explanations
        Of texts, by one method; the more there are, the nearer the neighbours.
    embed
        A function from a list of texts to one vector for each, of which cosines are compared. In
        Python also the vectors. The paper sums the last hidden states of BERT.
    k
        How many of the top features count.
    lexical
        How many neighbours by words in common.
    semantic
        How many neighbours by embedding, which need `embed`.
    stop_words
        Words that do not count, nor does punctuation; by default NLTK's English ones.

    Returns
    -------
    NeighbourStability
        The measure ``"iou-stability"`` of each text, with its interval; the explanations carry it.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> found = pertinent.explain(model, ["a bad film", "bad luck", "so bad"], method="leave-one-out")
    >>> neighbour_stability(found, k=1, semantic=0, stop_words=[])
    leave-one-out            iou-stability      1.000 [1.000, 1.000]
    """
    require(lexical + semantic > 0, "lexical", "at least 1 where `semantic` is 0", lexical)
    several = _of_one_method(explanations)
    words = None if stop_words is None else list(stop_words)
    are_texts = words is None or all(isinstance(word, str) for word in words)
    require(are_texts and not isinstance(stop_words, str), "stop_words", "a list of words", stop_words)
    ignored = english_words.stop_words() if words is None else frozenset(map(lower, words))
    top = [
        {w for w in top_words(e, top_mask(e, k)) if w not in ignored and not english_words.is_punctuation(w)}
        for e in several
    ]
    neighbourhood = Neighbourhood(
        words=[{*map(lower, e.features)} for e in several],
        labels=[_decision(e) for e in several],
        identities=[e.input.fingerprint for e in several],
        vectors=_vectors(several, embed) if semantic else None,
    )
    found, rows, failures = list(several), [], []
    for i, nearest in enumerate(neighbourhood.find(lexical, semantic)):
        e = several[i]
        if len(nearest):
            value = mean_overlap(top[i], [top[other] for other in nearest])
            rows.append(InputMeasure(i, e.method, None, value, e.id))
            found[i] = replace(
                e, measures={**e.measures, NAME: {None: value}}, better={**e.better, NAME: "higher"}
            )
        else:
            error = InputError("There is no other text of which the model decides the same.")
            failures.append(Failure(e.index, str(error), metric=NAME, error=error, id=e.id))
    if not rows:
        raise_first(failures, "compared")
    return NeighbourStability(
        rows=tuple(rows),
        better={NAME: "higher"},
        explanations=Explanations(found),
        features=several[0].input.granularity.partition(":")[0],
        failures=tuple(failures),
        k=k,
        lexical=lexical,
        semantic=semantic,
    )


def _of_one_method(explanations: Sequence[Explanation]) -> list[Explanation]:
    several = list(explanations)
    require(len(several) > 1, "explanations", "at least two", len(several))
    methods = {(e.method, repr(e.settings)): e.method for e in several}
    if len(methods) > 1:
        names = ", ".join(methods.values())
        raise SettingError(f"`explanations` must be by one method with one setting, but are by {names}.")
    return several


def _decision(explanation: Explanation) -> Hashable:
    """The model's decision about a text; ``None`` if its output is a plain value."""
    kind, p, target = explanation.output.kind, explanation.prediction.values, explanation.target
    if kind == "label":
        return target, bool(p[target] >= 0.5)
    return int(p.argmax()) if kind == "class" else None


def _vectors(explanations: Sequence[Explanation], embed: Any | Callable[[list[str]], Any]) -> Floats:
    """The embedding of each text."""
    if embed is None:
        raise SettingError(
            "Neighbours by embedding need `embed`, a function from texts to vectors; or give semantic=0."
        )
    texts = [e.input.search_text for e in explanations if e.input.has_words]
    vectors = np.asarray(embed(texts) if callable(embed) else embed, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise SettingError(
            f"`embed` must give one vector of numbers for each of {len(texts)} texts, but gave an array of "
            f"shape {vectors.shape}."
        )
    return vectors

"""Neighbour stability: overlap of the top words of similar texts (Vo et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeAlias

import numpy as np

from pertinent.array_types import Floats
from pertinent.config.settings import Count, Range, checked
from pertinent.errors import InputError, SettingError, require
from pertinent.metrics import english_words
from pertinent.metrics.nearest_texts import Neighbourhood, mean_overlap
from pertinent.metrics.top_features import lower, top_mask, top_words
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure
from pertinent.runs.run import raise_first

MEASURE = "iou-stability"
"""Name of the measure in an evaluation."""

NeighbourCount: TypeAlias = Annotated[int, Range(at_least=0), Range(at_most=10**9)]


@checked
def neighbour_stability(
    explanations: Sequence[Explanation],
    embed: Any = None,
    *,
    k: Count = 10,
    lexical: NeighbourCount = 10,
    semantic: NeighbourCount = 10,
    stop_words: Iterable[str] | None = None,
) -> Evaluation:
    r"""Measure the overlap of the top words of similar texts.

    The neighbours of a text are explained texts for which the model makes the same decision: those nearest by
    embedding and, among the rest, those that share the most words (Vo et al. 2023, App. B.4).

    :math:`\frac{1}{|N(x)|} \sum_{x' \in N(x)} \frac{|v_x \cap v_{x'}|}{|v_x \cup v_{x'}|}`, with v the top K
    words

    Parameters
    ----------
    explanations
        Explanations of texts by one method; more texts have closer neighbours.
    embed
        A function from a list of texts to one vector each, compared by cosine similarity. From Python, the
        vectors themselves are also accepted. The paper sums BERT's last hidden states.
    k
        Number of top features to compare.
    lexical
        Number of neighbours by shared words.
    semantic
        Number of neighbours by embedding; requires `embed` unless 0.
    stop_words
        Words to ignore, in addition to punctuation; by default NLTK's English stop words.

    Returns
    -------
    Evaluation
        Values of ``"iou-stability"``, with an interval over texts.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> explanations = pertinent.explain(model, ["a bad film", "bad luck", "so bad"], method="leave-one-out")
    >>> neighbour_stability(explanations, k=1, semantic=0, stop_words=[])
    leave-one-out            iou-stability      1.000 [1.000, 1.000]
    """
    require(lexical + semantic > 0, "lexical", "at least 1 if `semantic` is 0", lexical)
    explanations = _check_one_method(explanations)
    words = None if stop_words is None else list(stop_words)
    are_texts = words is None or all(isinstance(word, str) for word in words)
    require(are_texts and not isinstance(stop_words, str), "stop_words", "a list of words", stop_words)
    ignored = english_words.stop_words() if words is None else frozenset(map(lower, words))
    top = [
        {w for w in top_words(e, top_mask(e, k)) if w not in ignored and not english_words.is_punctuation(w)}
        for e in explanations
    ]
    neighbourhood = Neighbourhood(
        words=[{*map(lower, e.features)} for e in explanations],
        labels=[_decision(e) for e in explanations],
        identities=[e.input.fingerprint for e in explanations],
        vectors=_embed(explanations, embed) if semantic else None,
    )
    measured, failures = [], []
    for e, words_of_e, nearest in zip(explanations, top, neighbourhood.find(lexical, semantic), strict=True):
        if len(nearest):
            overlap = mean_overlap(words_of_e, [top[other] for other in nearest])
            measures: dict[str, Any] = {**e.measures, MEASURE: {None: overlap}}
            measured.append(replace(e, measures=measures, better={**e.better, MEASURE: "higher"}))
        else:
            error = InputError("The model makes this decision for no other text.")
            failures.append(Failure(e.index, str(error), metric=MEASURE, error=error, id=e.id))
    if not measured:
        raise_first(failures, "compared")
    settings = {"k": k, "lexical": lexical, "semantic": semantic}
    return Evaluation.from_explanations(measured, {MEASURE: "higher"}, failures, settings=settings)


def _check_one_method(explanations: Sequence[Explanation]) -> list[Explanation]:
    """Return the explanations as a list; raise a `SettingError` unless they are two or more by one method."""
    require(len(explanations) > 1, "explanations", "at least two", len(explanations))
    methods = {(e.method, repr(e.settings)): e.method for e in explanations}
    if len(methods) > 1:
        names = ", ".join(methods.values())
        raise SettingError(f"`explanations` must be by one method with the same settings, got {names}.")
    return list(explanations)


def _decision(explanation: Explanation) -> Hashable:
    """Return the model's decision for a text; ``None`` if its output is a plain value."""
    kind, p, target = explanation.output.kind, explanation.prediction.values, explanation.target
    if kind == "label":
        return target, bool(p[target] >= 0.5)
    return int(p.argmax()) if kind == "class" else None


def _embed(explanations: Sequence[Explanation], embed: Any | Callable[[list[str]], Any]) -> Floats:
    """Return the vector of each text, (texts, dimensions)."""
    if embed is None:
        raise SettingError(
            "Neighbours by embedding need `embed`, a function from texts to vectors; or set semantic=0."
        )
    texts = [e.input.search_text for e in explanations if e.input.has_words]
    vectors = np.asarray(embed(texts) if callable(embed) else embed, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise SettingError(
            f"`embed` must return one vector of numbers for each of {len(texts)} texts, got an array of "
            f"shape {vectors.shape}."
        )
    return vectors

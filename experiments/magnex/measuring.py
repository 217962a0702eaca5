"""Measures of what an explainer selects, next to LIME and integrated gradients with as many features.

- ``sufficiency``, ``share removed``: as in the tables;
- ``comprehensiveness``: how much of the answer is lost without the selection, at least 0;
- ``of one``: sufficiency of the best feature alone; ``large``: number of scores of at least half the largest;
- ``in the question``, ``of the question``: selected words of a question, and its number of words.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

import pertinent
from experiments.magnex.fits import (
    DEV,
    GOALS_OF_SHARE,
    GRID,
    PAPERS,
    VARIANTS,
    Fit,
    Sizes,
    Subject,
    choose,
    other_methods,
    settings_of,
)
from experiments.magnex.models import MAX_LENGTH, accuracy, answers
from experiments.magnex.sets import as_pairs, images, questions
from experiments.shared.stages import Run, read_record
from pertinent.array_types import Floats, Masks
from pertinent.results.explanation import Explanation, Explanations

Result = dict[str, Any]
METRICS = ("sufficiency-of-selected", "share-removed")
AS_PAPER = "as many as the paper"
"""Suffix of rows in which the share of features is that of the paper's explainer."""
AROUND = (0, 1, 2, 3, 5, 10, 20)
"""Words on either side of an answer that are kept with it."""
REPEATS = 3
"""Times that inputs are explained to measure seconds, of which the least counts."""
EXAMPLES = 10
"""Explanations that are kept for pictures."""


def record_of(name: str) -> str:
    """Return the file of a record."""
    return f"{name.replace(',', '').replace(chr(39), '').replace(' ', '_')}.json"


def measure_box(run: Run, fit: Fit, sizes: Sizes) -> Result:
    """Measure the accuracy of a black box of images."""
    return {"accuracy": accuracy(Subject(run, fit, sizes).model, *images(run.data, "test"))}


def try_setting(run: Run, fit: Fit, sizes: Sizes) -> Result:
    """Measure an explainer's selections of dev inputs, by which its settings are chosen."""
    subject = Subject(run, fit, sizes)
    fitted = subject.fit_explainer(0)
    inputs = subject.inputs("test", sizes.test + DEV)[sizes.test :]
    explanations = explain(subject.model, inputs, fitted, **subject.options)
    return measure(subject.model, explanations, [e.scores > 0.5 for e in explanations])


def chosen_fit(run: Run, box: str) -> Fit:
    """Return the setting that was chosen for a black box."""
    records = {fit.setting: read_record(run.results / record_of(fit.setting)) for fit in GRID[box]}
    fit = choose(box, records)
    assert fit is not None
    return fit


def record_scores(run: Run, box: str, method: str, sizes: Sizes) -> Result:
    """Record the scores of the test inputs by LIME or integrated gradients."""
    subject = Subject(run, GRID[box][0], sizes)
    settings = settings_of(box, method) | subject.options
    explanations = explain(subject.model, subject.inputs("test", sizes.test), method, **settings)
    return {"scores": [e.scores.tolist() for e in explanations]}


def measure_chosen(run: Run, box: str, seed: int, sizes: Sizes) -> Result:
    """Fit with the chosen setting and a seed, and measure the explainer and the other methods."""
    subject = Subject(run, chosen_fit(run, box), sizes)
    fitted, result = fit_and_describe(subject, seed, keep=True)
    explanations, masks, rows = select(subject, fitted)
    result |= rows
    for method in other_methods(box):
        stored = read_record(run.results / record_of(f"{box} {method}"))["scores"]
        result |= compare(subject, explanations, masks, method, [np.array(row) for row in stored])
    Explanations(explanations[:EXAMPLES]).save(fit_folder(run, box, seed).with_suffix(".json"))
    return result


def measure_variant(run: Run, box: str, variant: str, seed: int, sizes: Sizes) -> Result:
    """Fit a variant and measure it; with the first seed and our estimator, also the other methods."""
    subject = Subject(run, VARIANTS[box][variant], sizes)
    fitted, result = fit_and_describe(subject, seed)
    explanations, masks, rows = select(subject, fitted)
    result |= rows
    if seed or subject.fit.baseline == PAPERS:
        return result
    inputs = subject.inputs("test", sizes.test)
    for method in other_methods(box):
        theirs = explain(subject.model, inputs, method, **settings_of(box, method), **subject.options)
        result |= compare(subject, explanations, masks, method, [e.scores for e in theirs])
    result["seconds"] = seconds_one_by_one(subject, fitted)
    if box in ("imdb", "sentiment", "squad"):
        result["together"] = seconds_together(subject, fitted, inputs)
    return result


def time_fit(run: Run, box: str, sizes: Sizes) -> Result:
    """Measure the seconds of the explainer with the first seed, for inputs one by one and together."""
    subject = Subject(run, chosen_fit(run, box), sizes)
    fitted = pertinent.load_explainer(fit_folder(run, box, 0))
    inputs = subject.inputs("test", sizes.together)
    together = seconds_together(subject, fitted, inputs) | {"device": run.device}
    return {"seconds": seconds_one_by_one(subject, fitted), "together": together}


def fit_folder(run: Run, box: str, seed: int) -> Any:
    """Return the folder of an explainer with the chosen setting."""
    return run.work / box / f"fit-{seed}"


def fit_and_describe(subject: Subject, seed: int, *, keep: bool = False) -> tuple[Any, Result]:
    """Return a fitted explainer, and what its fit took and reached on dev inputs."""
    start = time.perf_counter()
    out = fit_folder(subject.run, subject.fit.box, seed) if keep else None
    fitted = subject.fit_explainer(seed, out)
    card: Any = fitted.network.card
    checks = [each for each in card["history"] if "eval_quality" in each]
    return fitted, {
        "v": subject.fit.v,
        "learning rate": subject.fit.learning_rate,
        "fit seconds": time.perf_counter() - start,
        "steps": card["steps"],
        "dev": {name: value for name, value in card.items() if name.startswith("dev_")},
        "history": [each["eval_quality"] for each in checks],
        "measured after": [each["epoch"] for each in checks],
    }


def select(subject: Subject, fitted: Any) -> tuple[list[Explanation], list[Masks], Result]:
    """Return explanations of test inputs, the features that they select, and their measures."""
    inputs = subject.inputs("test", subject.sizes.test)
    explanations = explain(subject.model, inputs, fitted, **subject.options)
    masks = [e.scores > 0.5 for e in explanations]
    scores = [e.scores for e in explanations]
    shares = [top_share(subject.fit.box, row) for row in scores]
    rows = {
        "magnex": judge(subject.model, explanations, masks, scores),
        f"magnex, {AS_PAPER}": judge(subject.model, explanations, shares, scores),
    }
    return explanations, masks, rows


def compare(
    subject: Subject,
    explanations: Sequence[Explanation],
    masks: Sequence[Masks],
    method: str,
    scores: Sequence[Floats],
) -> Result:
    """Return the measures of another method's top features, as many as the explainer selects."""
    as_many = [top(row, int(mask.sum())) for row, mask in zip(scores, masks, strict=True)]
    shares = [top_share(subject.fit.box, row) for row in scores]
    return {
        method: judge(subject.model, explanations, as_many, scores),
        f"{method}, {AS_PAPER}": measure(subject.model, explanations, shares),
    }


def explain(model: Any, inputs: Sequence[Any], method: Any, **settings: Any) -> list[Explanation]:
    """Return explanations of all inputs, or raise the first failure."""
    settings = {"progress": False} | settings
    explanations: Explanations = pertinent.explain(model, list(inputs), method, **settings)
    if explanations.failures:
        raise RuntimeError(explanations.failures[0].reason)
    return list(explanations)


def top(scores: Floats, k: int) -> Masks:
    """Return a mask of the k features with the highest scores."""
    mask = np.zeros(len(scores), dtype=bool)
    mask[np.argsort(-scores, kind="stable")[:k]] = True
    return mask


def top_share(box: str, scores: Floats) -> Masks:
    """Return a mask of the share of features that the paper's explainer keeps."""
    return top(scores, round((1 - GOALS_OF_SHARE[box][1]) * len(scores)))


def measure(model: Any, explanations: Sequence[Explanation], masks: Sequence[Masks]) -> Result:
    """Return the sufficiency of what masks keep, and the share that they remove."""
    selected = [
        replace(e, scores=mask.astype(float), details={"selected": int(mask.sum())})
        for e, mask in zip(explanations, masks, strict=True)
    ]
    rows = pertinent.evaluate(model, Explanations(selected), list(METRICS), progress=False).rows
    sufficiency, removed = ([round(row.value, 4) for row in rows if row.metric == name] for name in METRICS)
    return {"sufficiency": sufficiency, "share removed": removed}


def judge(
    model: Any, explanations: Sequence[Explanation], masks: Sequence[Masks], scores: Sequence[Floats]
) -> Result:
    """Return all measures of masks, and of the scores that they come from."""
    without = measure(model, explanations, [~mask for mask in masks])["sufficiency"]
    one = measure(model, explanations, [top(row, 1) for row in scores])["sufficiency"]
    segments = [getattr(e.input, "spans", np.ones((len(e.scores), 3)))[:, 0] == 0 for e in explanations]
    return measure(model, explanations, masks) | {
        "comprehensiveness": [round(1 - value, 4) for value in without],
        "of one": one,
        "large": [count_large(row) for row in scores],
        "in the question": [int(mask[own].sum()) for mask, own in zip(masks, segments, strict=True)],
        "of the question": [int(own.sum()) for own in segments],
        "features": [len(mask) for mask in masks],
    }


def count_large(scores: Floats) -> int:
    """Count the scores that are at least half of the largest; 0 if none is positive."""
    largest = float(np.max(scores))
    return int((scores >= largest / 2).sum()) if largest > 0 else 0


def seconds_one_by_one(subject: Subject, fitted: Any) -> Result:
    """Return the least seconds for each input, one at a time, after two inputs to warm up."""
    inputs, box = subject.inputs("test", subject.sizes.timed), subject.fit.box
    seconds: Result = {}
    for row, method in {
        "prediction": "random",
        "magnex": fitted,
        **{m: m for m in other_methods(box)},
    }.items():
        settings = settings_of(box, method) | subject.options
        explain(subject.model, inputs[:2], method, **settings)
        seconds[row] = [round(least_seconds(subject, [input], method, settings), 4) for input in inputs]
    return seconds


def seconds_together(subject: Subject, fitted: Any, inputs: Sequence[Any]) -> Result:
    """Return the least seconds for all inputs together: with one pass of the encoder, and with two."""
    seconds: Result = {"inputs": len(inputs)}
    two_passes = patch.object(type(fitted.network.scorer), "sharing_passes", lambda *_: nullcontext())
    rows = [("prediction", "random", nullcontext()), ("magnex", fitted, nullcontext())]
    if hasattr(type(fitted.network.scorer), "sharing_passes"):
        rows.append(("magnex, two passes", fitted, two_passes))
    for row, method, context in rows:
        with context:
            explain(subject.model, inputs, method, **subject.options)
            seconds[row] = least_seconds(subject, inputs, method, subject.options)
    return seconds


def least_seconds(subject: Subject, inputs: Sequence[Any], method: Any, settings: dict[str, Any]) -> float:
    """Return the least of several times that a method takes for inputs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        explain(subject.model, inputs, method, **settings)
        times.append(time.perf_counter() - start)
    return min(times)


def measure_windows(run: Run, reader: str, sizes: Sizes) -> Result:
    """Measure the words of the reader's answer, alone and with the words around it."""
    model = Subject(run, Fit("squad", 0.0, reader=reader), sizes).model
    rows = questions(run.data, "test", sizes.test)
    explanations = explain(model, as_pairs(rows), "random")
    spans = [words_of_answer(model, e) for e in explanations]
    result: Result = {"readings": [reading(model, row) for row in rows]}
    for w in AROUND:
        result[f"± {w}"] = measure(model, explanations, [widen(mask, w) for mask in spans])
    sentences = [within_sentence(e.features, mask) for e, mask in zip(explanations, spans, strict=True)]
    return result | {"its sentence": measure(model, explanations, sentences)}


def reading(model: Any, row: dict[str, Any]) -> Result:
    """Return whether the reader's answer is right, and its certainty: p(start) p(end), each the largest."""
    import torch

    right = answers(model, [row])
    batch = model.tokenizer(
        row["question"],
        row["context"],
        truncation="only_second",
        max_length=MAX_LENGTH["squad"],
        return_tensors="pt",
    ).to(model.device)
    with torch.no_grad():
        answer = model.model(**batch)
    certainty = answer.start_logits.softmax(-1).max() * answer.end_logits.softmax(-1).max()
    return {"exact match": right["exact match"], "F1": right["F1"], "certainty": float(certainty)}


def words_of_answer(model: Any, e: Explanation) -> Masks:
    """Return the features that share a character with the reader's answer to the whole input."""
    input: Any = e.input
    tokens = input.tokens or model.prepare(input.text).tokens
    model.details(input)
    first, last = map(int, model.head.references[tokens].tolist())
    if first > last:
        return np.zeros(len(e.features), dtype=np.bool_)
    answer = np.array([[1, tokens.char_spans[first, 1], tokens.char_spans[last, 2]]])
    words: Masks = input.match_annotation(answer)
    return words


def widen(mask: Masks, w: int) -> Masks:
    """Return a mask of words with w more on either side."""
    wide = np.zeros_like(mask)
    for index in np.flatnonzero(mask):
        wide[max(0, index - w) : index + w + 1] = True
    return wide


def within_sentence(words: Sequence[str], mask: Masks) -> Masks:
    """Return a mask of words widened to their sentences, which end with a full stop or the like."""
    ends = np.array([word[-1] in ".!?" and not word[0].isalnum() for word in words])
    number = np.concatenate([[0], np.cumsum(ends)[:-1]])
    return np.isin(number, number[mask])

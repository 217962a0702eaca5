"""How much do explanations depend on the seed? Every seed of every input in one run (Yang et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeAlias

from pertinent.api.explain_run import explain_all
from pertinent.api.request import Request
from pertinent.api.run import Run, raise_first
from pertinent.diagnostics.removal_check import label
from pertinent.diagnostics.seed_agreement import agreement
from pertinent.diagnostics.stability_result import Stability
from pertinent.engine.progress import Callback
from pertinent.errors import InputError, require
from pertinent.explainers.base import Explainer
from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure
from pertinent.settings import Count, Range, checked

Several: TypeAlias = Annotated[int, Range(at_least=2), Range(at_most=1000)]


@checked
def stability(
    model: Any,
    inputs: Any,
    method: str | Explainer | Request,
    *,
    seeds: Several = 5,
    ids: Sequence[Any] | None = None,
    batch_size: Count | None = None,
    progress: Callback | bool | None = None,
    **words: Any,
) -> Stability:
    """Explain the same inputs with several seeds, and measure how well the explanations agree.

    For each input, over all pairs of seeds: Spearman's correlation of the scores, the share of the top
    5 and top 10 features in common, and the mean squared difference (Yang et al. 2023, Sec. 4, Tables
    1 and 2). The seed decides what the method and a random removal draw; all explain the same target.

    Parameters
    ----------
    model, inputs, method
        As in `explain`.
    seeds
        How many seeds: 0, 1, 2 …; at least 2.
    ids, batch_size, progress
        As in `explain`.
    **words
        The words of `explain`, such as ``budget=200``, and settings of the method, such as ``samples=25``.

    Notes
    -----
    The top features are those that `Explanation.top` gives: as in the paper those with the highest
    scores, not the largest magnitudes, except for a plain value. The paper gives their number in
    common, this the share. Unlike the authors' code it leaves out no pair because its difference is large.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> found = stability(model, ["not bad at all", "a bad thing"], "leave-one-out", seeds=3)
    >>> found.summary["spearman"].mean, found.summary["mse"].mean
    (1.0, 0.0)
    """
    run = Run.of(model, inputs, "stability", ids=ids, batch_size=batch_size, progress=progress)
    require("seed" not in words, "seed", "left out: `seeds` says how many there are", words.get("seed"))
    request = Request.of_words(method, words)
    return measure_stability(run, [replace(request, seed=seed) for seed in range(seeds)])


def measure_stability(run: Run, requests: Sequence[Request]) -> Stability:
    """Explain every input by requests that differ in their seed alone, and measure the agreement."""
    found = explain_all(run, requests)
    if not len(found) and not found.failures:
        raise InputError("There are no inputs to explain.")
    failures = {failure.index: failure for failure in reversed(found.failures)}
    of_inputs: dict[int, list[Explanation]] = {}
    for e in found:
        of_inputs.setdefault(e.index, []).append(e)
    for index, own in of_inputs.items():
        if index not in failures and len({e.target for e in own}) > 1:
            failures[index] = _different_targets(own)
    explained = [own for index, own in of_inputs.items() if index not in failures]
    in_order = tuple(failures[index] for index in sorted(failures))
    if not explained:
        raise_first(in_order, "explained with every seed")
    first = explained[0][0]
    return Stability(
        rows=tuple(agreement(own) for own in explained),
        method=first.method,
        settings=first.settings,
        budget=requests[0].budget,
        removal=label(first.removal, first.removal_settings),
        features=first.input.granularity.partition(":")[0],
        scale=first.scale,
        seeds=tuple(request.seed for request in requests),
        warnings=first.warnings,
        failures=in_order,
    )


def _different_targets(explanations: Sequence[Explanation]) -> Failure:
    """The failure of an input whose prediction changed from one seed to the next."""
    first = explanations[0]
    names = ", ".join(sorted({e.target_name for e in explanations}))
    error = InputError(
        f"The model is random: it predicted {names} for the same input, and scores of different targets "
        "cannot be compared. Name the target."
    )
    return Failure(first.index, str(error), error=error, id=first.id)

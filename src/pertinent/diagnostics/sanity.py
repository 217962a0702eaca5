"""Do explanations depend on what the model has learned? Randomise it and see (Adebayo et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pertinent.api.explain_run import explain_all
from pertinent.api.request import Request
from pertinent.api.run import Run, raise_first
from pertinent.diagnostics.removal_check import label
from pertinent.diagnostics.sanity_result import Correlation, Sanity, correlation
from pertinent.engine.progress import Callback
from pertinent.errors import InputError
from pertinent.explainers.base import Explainer
from pertinent.results.failures import Failure
from pertinent.settings import Count, checked


@checked
def sanity(
    model: Any,
    inputs: Any,
    method: str | Explainer | Request,
    *,
    layers: Sequence[str] | Literal["cascading", "last"] = "cascading",
    ids: Sequence[Any] | None = None,
    batch_size: Count | None = None,
    progress: Callback | bool | None = None,
    **words: Any,
) -> Sanity:
    """Explain the same inputs with the model as it is and with its parameters randomised, and compare.

    An explanation of a model must change when what the model has learned is destroyed. At each stage one
    more layer is randomised, from the output down, and Spearman's correlation with the explanation of
    the model as it is, is measured (Adebayo et al. 2018, Sec. 3; Hsieh et al. 2021, App. I). The
    class that the model as it is predicted is explained throughout. The model itself is never changed: a
    copy is.

    Parameters
    ----------
    model
        A torch module, or a transformers model with its tokenizer or image processor, as in `explain`.
    inputs, method
        As in `explain`.
    layers
        ``"cascading"``: all layers, one more at each stage. ``"last"``: the last alone (Hsieh et al.
        2021, Table 7). Or the names of modules, as ``["classifier", "encoder.layer.1"]``: these alone,
        one more at each stage.
    ids, batch_size, progress
        As in `explain`.
    **words
        The words of `explain`, such as ``budget=200``, and settings of the method, such as ``samples=25``.
        The `seed` is that of the random parameters, too.

    Notes
    -----
    Layers are taken in the order in which the model registers its modules, the last first, which is the
    order of use in most models: it is not known how the forward pass uses them. A member of a
    ``Sequential`` or ``ModuleList``, such as a block of a transformer, is one layer; elsewhere each module
    with parameters of its own. A layer is initialised by its modules' own ``reset_parameters``;
    parameters of modules without it are permuted.

    The intervals are over inputs, for one draw of random parameters: another `seed` shows how much that
    matters. From a mean correlation of 0.7 on, at the last stage, the result warns that explanations hardly
    changed.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.load("sentiment")
    >>> found = sanity(model, ["slow but wonderful", "a dull and lazy film"], "random", layers="last")
    >>> found.passed, found.stages[0].spearman.mean
    (False, 1.0)
    """
    run = Run.of(model, inputs, "sanity", ids=ids, batch_size=batch_size, progress=progress)
    return check_sanity(run, Request.of_words(method, words), layers)


def check_sanity(run: Run, request: Request, layers: str | Sequence[str] = "cascading") -> Sanity:
    """Explain every input by the request with the model as it is and at every stage, and compare."""
    from pertinent.models.torch.randomised import RandomisedModel, layers_of

    chosen = layers_of(run.model, None if isinstance(layers, str) else layers)
    n_layers = len(layers_of(run.model))
    found = explain_all(run, [request])
    if not len(found) and not found.failures:
        raise InputError("There are no inputs to explain.")
    if not len(found):
        raise_first(found.failures, "explained")
    # After the model has answered: only then lazy layers have parameters, and what answers mean is known.
    copied = RandomisedModel(run.model, request.seed)
    target = tuple(e.target for e in found) if request.method.any_target else None
    same = replace(request, target=target, features=None)
    stages = chosen[:1] if layers == "last" else chosen
    rows: list[Correlation] = []
    failures = list(found.failures)
    for stage, layer in enumerate(stages, start=1):
        copied.randomise(layer)
        again = explain_all(run.over([e.input for e in found], copied.model), [same])
        rows += [correlation(found[e.index], e, stage) for e in again]
        for failure in again.failures:
            own = found[failure.index]
            reason = f"with {layer} randomised: {failure.reason}"
            failures.append(Failure(own.index, reason, error=failure.error, id=own.id))
    if not rows:
        raise_first(failures, "explained with random parameters")
    first = found[0]
    return Sanity(
        rows=tuple(rows),
        method=first.method,
        settings=first.settings,
        budget=request.budget,
        removal=label(first.removal, first.removal_settings),
        features=first.input.granularity.partition(":")[0],
        layers=tuple(stages),
        n_layers=n_layers,
        seed=request.seed,
        noticed=run.warnings,
        failures=tuple(failures),
    )

"""Explaining a model's decisions for one or many inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias, overload

from pertinent.config.settings import Count, Seed, Share, checked
from pertinent.engine.progress import Callback
from pertinent.errors import require
from pertinent.explainers.early_stopping import EarlyStopping
from pertinent.inputs.text import Text
from pertinent.metrics.base import Metric
from pertinent.outputs import Scale
from pertinent.removals.base import Removal
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.explanation_folder import ExplanationFolder
from pertinent.results.failures import Failure
from pertinent.runs.executor import Executor
from pertinent.runs.explain import explain_all, explain_each
from pertinent.runs.file_store import explain_to_file
from pertinent.runs.folder_store import explain_to_folder, is_folder
from pertinent.runs.request import WORDS, Method, Request, default_method
from pertinent.runs.run import Run, raise_first

_One: TypeAlias = str | Text | Mapping[str, Any] | tuple[str, str]
_Several: TypeAlias = list[str] | Iterator[Any] | Sequence[Text | Mapping[str, Any] | tuple[str, str]]


@overload
def explain(model: Any, inputs: _One, method: Method = ..., **words: Any) -> Explanation: ...
@overload
def explain(model: Any, inputs: _Several, method: Method = ..., **words: Any) -> Explanations: ...
@overload
def explain(
    model: Any, inputs: Any, method: Method = ..., **words: Any
) -> Explanation | Explanations | ExplanationFolder: ...
@checked
def explain(
    model: Any,
    inputs: Any,
    method: Method | None = None,
    *,
    target: Any = None,
    sparsity: Share | Sequence[Share] | None = None,
    budget: Count | None = None,
    removal: str | Removal | None = None,
    features: Any = None,
    scale: Scale = "natural",
    early_stopping: str | EarlyStopping | None = None,
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    seed: Seed = 0,
    check: Any = None,
    ids: Sequence[Any] | None = None,
    out: str | Path | None = None,
    shard: Annotated[str, "I/N"] | None = None,
    batch_size: Count | None = None,
    cluster: Executor | None = None,
    progress: Callback | bool | None = None,
    **settings: Any,
) -> Explanation | Explanations | ExplanationFolder:
    """Explain one or many inputs.

    Scores say how much each feature matters for the model's decision. Searches find the few features that
    determine it.

    Parameters
    ----------
    model
        A wrapped model, anything that `wrap` accepts, or a name: of an embedded model such as
        ``"sentiment"``, a folder, or ``"package.module:name"``. On a cluster, workers load a named model
        themselves.
    inputs
        A single input returns an `Explanation`. A list (array, frame, generator) returns `Explanations` in
        the same order; failed inputs are in their `failures`.
    method
        A name from `list_methods()`, optionally with settings as in ``"lime:samples=50"``, or a fitted
        explainer; by default ``"bayesian-regression"`` for prompts, else ``"shapley"``. From Python, any
        explainer instance is also accepted, and so is a `Request`, which replaces the arguments from `target`
        to `seed`.
    target
        The class, label or value to explain, by name or index; by default the predicted class, the most
        probable label or the first value. A list has one entry for each input.
    sparsity
        Shares of features that a search chooses, and at which explanations are measured; by default 0.05,
        0.1, 0.2 and 0.5 (Hase et al. 2021).
    budget
        Largest number of evaluations (for a search, per sparsity), where a distinct mask counts 1 and a
        gradient 2; by default as many as the settings of the method need, else 1000.
    removal
        How features are removed: a name from `list_removals()`, optionally with settings as in
        ``"background:rows=20"``; by default one that suits the model (attention-mask for transformers). From
        Python, an instance is also accepted.
    features
        Kind of features: for texts ``"words"``, ``"tokens"``, ``"sentences"``, ``"lines"``, ``"paragraphs"``,
        ``"passages:50"`` (at most 50 words each, the default for texts of more than 500) or
        ``"coarse-to-fine"`` (passages, then the words of the strongest passages); for prompts also
        ``"sources"``, ``"messages"``, ``"slots"`` or the ``"parts"`` of a trace (by default the sentences
        before the question, if there are several); for images ``"patches:4"``, ``"pixels"`` or
        ``"superpixels:50"``; for table rows ``"columns"``. From Python, custom features are also accepted: an
        array of segment indices (height, width) for images, a list of character spans (start, end) for a
        text. For several inputs, a list with one entry for each.
    scale
        Score features by probabilities or values (``"natural"``), by log-odds of a class or label against the
        rest (``"logit"``), by log-probabilities (``"log-probability"``), or by the model's scores before
        softmax or sigmoid (``"raw"``: a network's logits, the margin of boosted trees). Searches and plain
        values support only the natural scale.
    early_stopping
        Stop before the budget is spent once the order of the 5 strongest features is settled with 95%
        confidence: ``"stable"``, or ``"stable:top=3,confidence=0.9"`` for other numbers. From Python, an
        `EarlyStopping` is also accepted. The explanation's ``evaluations`` are those actually used, and its
        ``details`` state why it stopped. Supported by shapley, shapley-sampling and shapley-interactions,
        which tests the order of pairs.
    metrics
        Names from `list_metrics()` to measure each explanation with in the same run, optionally with settings
        as in ``"faithfulness:k=5"``; by default none. From Python, instances are also accepted.
    seed
        Seed of all random draws. Equal seeds give equal explanations, independent of the batch size, the
        order of the inputs and other inputs in the same call.
    check
        Result of `check_removal`: explanations with a removal that is badly out of distribution get a
        warning.
    ids
        Your name for each input, available as `id` of its explanation or failure.
    out
        The ``.parquet`` file to write, or a folder for more inputs than fit into memory. It stores finished
        explanations, so repeating the call resumes an interrupted run. A name without a suffix is a folder;
        each block of inputs becomes a Parquet file in it. Without `out`, the finished explanations of an
        interrupted run (Ctrl-C, inputs that raise) are in the exception's ``finished``.
    shard
        The part of the inputs to explain, such as ``"2/8"`` for the second of eight shards. Shards may run in
        different processes or on different machines; `merge` merges their files.
    batch_size
        Cost of a batch: tokens for transformers, else rows; by default determined during the run.
    cluster
        A `Cluster` whose workers do the work, on one or several machines; by default this process does it.
    progress
        A callback, or ``True``/``False`` for a progress bar; by default a bar on terminals and in notebooks.
    **settings
        Settings of the method, such as ``samples=25``.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> pertinent.explain(model, "not bad at all", method="leave-one-out").top(1)
    [('bad', 0.7)]
    """
    words = {name: value for name, value in locals().items() if name in WORDS}
    require(check is None or hasattr(check, "attach"), "check", "a RemovalCheck or None", check)
    options: dict[str, Any] = {"ids": ids, "shard": shard, "batch_size": batch_size, "progress": progress}
    run, request = _plan(model, inputs, method, words | settings, cluster=cluster, **options)
    if out is not None and is_folder(Path(out)):
        require(check is None, "check", "omitted if explanations go to a folder", check)
        return explain_to_folder(run, request, Path(out))
    explanations = explain_all(run, [request]) if out is None else explain_to_file(run, [request], Path(out))
    if explanations.failures and not len(explanations):
        raise_first(explanations.failures, "explained")
    explanations = explanations if check is None else check.attach(explanations)
    return explanations[0] if run.one else explanations


@checked
def explain_iter(
    model: Any,
    inputs: Iterable[Any],
    method: Method | None = None,
    *,
    ids: Sequence[Any] | None = None,
    batch_size: Count | None = None,
    cluster: Executor | None = None,
    progress: Callback | bool | None = None,
    **words: Any,
) -> Iterator[Explanation | Failure]:
    """Explain many inputs and yield each explanation when it is finished, in constant memory.

    Inputs are read as needed to fill batches; on a cluster, one block at a time. If the model has other work,
    it waits for a slow source no longer than a batch takes.

    Parameters
    ----------
    model, inputs, method, ids, batch_size, cluster, progress
        As in `explain`; inputs may be an unbounded generator.
    **words
        Other arguments of `explain`, such as ``budget=200``, and settings of the method.

    Yields
    ------
    Explanation | Failure
        In the order in which they finish; `index` is the index of the input. An input that could not be
        explained yields a `Failure` with the reason.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> stream = (f"not {word} at all" for word in ("bad", "good"))
    >>> sorted((e.index, e.top(1)) for e in pertinent.explain_iter(model, stream, method="leave-one-out"))
    [(0, [('bad', 0.7)]), (1, [('not', 0.0)])]
    """
    options: dict[str, Any] = {"ids": ids, "batch_size": batch_size, "progress": progress}
    run, request = _plan(model, inputs, method, words, cluster=cluster, **options)
    outcomes = explain_each(run, [request])
    return (each.failures[0] if each.explanation is None else each.explanation for each in outcomes)


def _plan(
    model: Any, inputs: Any, method: Method | None, words: dict[str, Any], **options: Any
) -> tuple[Run, Request]:
    """Return the run and the request; settings of a given method are checked before the model is loaded."""
    request = None if method is None else Request.from_keywords(method, words)
    run = Run.from_arguments(model, inputs, "explain" if request is None else request.method.name, **options)
    if request is None:
        request = Request.from_keywords(default_method(run.model.kind), words)
        run = replace(run, title=request.method.name)
    return run, request

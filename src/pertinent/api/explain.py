"""From a model and inputs to explanations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from pertinent.runs.request import DEFAULT_METHOD, WORDS, Method, Request
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
    method: Method = DEFAULT_METHOD,
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
    """Explain one input, or many.

    Scores say how much each feature matters for the model's decision. Searches find the few features that
    determine it.

    Parameters
    ----------
    model
        A wrapped model, anything that `wrap` accepts, or a name: of an embedded model such as
        ``"sentiment"``, a folder, or ``"package.module:name"``. On a cluster the workers load it by its name.
    inputs
        One input gives an `Explanation`. A list (array, frame, generator) gives `Explanations` in the same
        order; inputs that failed are in their `failures`.
    method
        A name from `list_methods()`, perhaps with settings as in ``"lime:samples=50"``, or a fitted
        explainer. In Python also any explainer instance, or a `Request`, which replaces the arguments
        from `target` to `seed`.
    target
        The class, label or value to explain, by name or number; by default the predicted class, the
        most probable label, the first value. A list has one for each input.
    sparsity
        The shares of features that a search chooses, and at which explanations are measured; by
        default 0.05, 0.1, 0.2 and 0.5 (Hase et al. 2021).
    budget
        The largest number of evaluations, in a search for each sparsity: a distinct mask counts 1, a
        gradient 2; by default as many as the settings of the method need, else 1000.
    removal
        How features are removed: a name from `list_removals()`, perhaps with settings as in
        ``"background:rows=20"``; by default what suits the model (attention-mask for transformers).
        In Python also an instance.
    features
        The kind of features: for texts ``"words"``, ``"tokens"``, ``"sentences"``, ``"lines"``,
        ``"paragraphs"``, ``"passages:50"`` (of at most 50 words, the default for texts of more than 500) or
        ``"coarse-to-fine"`` (passages, then the words of the strongest passages); for prompts also
        ``"sources"``, ``"messages"`` or ``"slots"``; for images ``"patches:4"``, ``"pixels"`` or
        ``"superpixels:50"``; for table rows ``"columns"``. In Python also custom features: an array of
        segment numbers (height, width) for images, a list of character spans (start, end) for a
        text. For several inputs a list with one entry for each.
    scale
        Score features by probabilities or values (``"natural"``), by log-odds of a class or label against
        the rest (``"logit"``), by log-probabilities (``"log-probability"``), or by the model's own scores
        before softmax or sigmoid (``"raw"``: a network's logits, the margin of boosted trees). Searches
        and plain values have only the natural scale.
    early_stopping
        Stop before the budget is spent, when the order of the 5 strongest features is settled with
        95% confidence: ``"stable"``, or ``"stable:top=3,confidence=0.9"`` for other numbers. In
        Python also an `EarlyStopping`. The explanation's ``evaluations`` are the evaluations it took, its
        ``details`` the reason why it stopped. For shapley, shapley-sampling and shapley-interactions, where
        the order of pairs is tested.
    metrics
        Names from `list_metrics()` to measure each explanation by in the same run, perhaps with settings as
        in ``"faithfulness:k=5"``, or none. In Python also instances.
    seed
        The same seed gives the same explanation. The batch size, the order of the inputs and other inputs
        in the same call do not matter.
    check
        The result of `check_removal`: explanations by a removal that is badly out of distribution get
        a warning.
    ids
        Your name for each input, which its explanation or failure has as `id`.
    out
        The ``.parquet`` file to write, or a folder for more inputs than fit into memory: finished
        explanations are stored, and the same call continues a stopped run. A name without a suffix is a
        folder; each block of inputs becomes a Parquet file in it. Without `out`, the finished
        explanations of an interrupted run (Ctrl-C, inputs that raise) are in the exception's ``finished``.
    shard
        The part of the inputs to explain, such as ``"2/8"`` for the second of eight shards, which may run in
        different processes or on different machines; `merge` merges their files.
    batch_size
        The cost of a batch: tokens for transformers, else rows; by default determined during the run.
    cluster
        A `Cluster` whose workers do the work, on this machine or on several; by default this process does it.
    progress
        A callback, or ``True``/``False`` for a bar; by default a bar on terminals and in notebooks.
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
    request = Request.from_keywords(method, words | settings)
    options: dict[str, Any] = {"ids": ids, "shard": shard, "batch_size": batch_size, "progress": progress}
    run = Run.from_arguments(model, inputs, request.method.name, cluster=cluster, **options)
    if out is not None and is_folder(Path(out)):
        require(check is None, "check", "left out if explanations go to a folder", check)
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
    method: Method = DEFAULT_METHOD,
    *,
    ids: Sequence[Any] | None = None,
    batch_size: Count | None = None,
    cluster: Executor | None = None,
    progress: Callback | bool | None = None,
    **words: Any,
) -> Iterator[Explanation | Failure]:
    """Explain many inputs, and yield each explanation when it is finished, in constant memory.

    Inputs are read as they are needed to fill batches; on a cluster, a block at a time. While the model could
    go on without another input, a slow source is waited for no longer than the model takes for a batch.

    Parameters
    ----------
    model, inputs, method, ids, batch_size, cluster, progress
        As in `explain`; inputs may be an unbounded generator.
    **words
        Other arguments of `explain`, such as ``budget=200``, and settings of the method.

    Yields
    ------
    Explanation | Failure
        In the order in which they are finished; `index` is the position of the input. An input that could
        not be explained gives a `Failure` with the reason.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> stream = (f"not {word} at all" for word in ("bad", "good"))
    >>> sorted((e.index, e.top(1)) for e in pertinent.explain_iter(model, stream, method="leave-one-out"))
    [(0, [('bad', 0.7)]), (1, [('not', 0.0)])]
    """
    request = Request.from_keywords(method, words)
    options: dict[str, Any] = {"ids": ids, "batch_size": batch_size, "progress": progress}
    run = Run.from_arguments(model, inputs, request.method.name, cluster=cluster, **options)
    outcomes = explain_each(run, [request])
    return (each.failures[0] if each.explanation is None else each.explanation for each in outcomes)

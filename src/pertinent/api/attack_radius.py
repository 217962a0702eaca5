"""The attack radius: the smallest change of features that changes the model's decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from pertinent.asks import Attack
from pertinent.asks.attack_radii import AttackName
from pertinent.config.settings import Count, Positive, Seed, checked
from pertinent.engine.progress import Callback
from pertinent.errors import SettingError
from pertinent.results.attack_results import Attacked, Attacks
from pertinent.results.failures import Failure
from pertinent.runs.attack import AttackTask, check_rivals
from pertinent.runs.executor import Executor, Item
from pertinent.runs.model_names import load_or_wrap
from pertinent.runs.run import Run, raise_first


@checked
def attack_radius(
    model: Any,
    inputs: Any,
    sets: Any = None,
    *,
    toward: Any = None,
    algorithm: AttackName = "auto",
    norm: Literal["l2", "linf"] = "l2",
    steps: Count | None = None,
    max_radius: Positive = 10.0,
    features: Any = None,
    seed: Seed = 0,
    batch_size: Count | None = None,
    cluster: Executor | None = None,
    progress: Callback | bool | None = None,
) -> Attacked | Attacks:
    """Find the smallest perturbation of features that changes the prediction (Hsieh et al. 2021, Eqn. 1).

    The perturbation applies to the values of images and table rows, and to the word embeddings of texts.

    Parameters
    ----------
    model
        A classifier of images or table rows, or a transformer that reads text, as in `explain`.
    inputs
        One or several inputs.
    sets
        The features that may change: names, indices or a row of booleans, or a list of such sets; for several
        inputs, a list with an entry for each. By default all features.
    toward
        Class that the prediction must change to, by name or index; by default any other class.
    algorithm, norm, steps, max_radius
        As in `Attack`. Models that do not use torch get a ``"decision"`` attack, which needs no gradients.
    features
        As in `explain`.
    seed
        Seed of the decision attack's random probes.
    batch_size, cluster, progress
        As in `explain`. The model is also loaded in this process.

    Examples
    --------
    >>> import pertinent
    >>> attacked = attack_radius("sentiment", "slow but wonderful", [["slow"], ["wonderful"]], progress=False)
    >>> bool(attacked.radii[1] < attacked.radii[0])
    True
    """
    options: dict[str, Any] = {"batch_size": batch_size, "cluster": cluster, "progress": progress}
    run = Run.from_arguments(load_or_wrap(model), inputs, "attack", **options).listed()
    n_inputs = run.n_inputs or 0
    per_input = [sets] * n_inputs if run.one or sets is None else sets
    if not isinstance(per_input, Sequence | np.ndarray) or len(per_input) != n_inputs:
        raise SettingError(f"`sets` must have one entry for each of the {n_inputs} inputs.")
    check_rivals(run.model, run.model.classes)
    task = AttackTask(Attack(algorithm, norm, steps, max_radius), toward, features, run.one, seed)
    items = [Item(index, pair) for index, pair in enumerate(zip(run.inputs, per_input, strict=True))]
    ended = sorted(run.results(task, items, n_inputs), key=lambda each: each.key)
    failures = [Failure(each.key, str(each.error), error=each.error) for each in ended if each.error]
    if len(failures) == len(ended):
        raise_first(failures, "attacked")
    attacked = Attacks([each.result for each in ended if each.error is None], failures)
    return attacked[0] if run.one else attacked

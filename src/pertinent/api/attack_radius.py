"""How little must change for the model to decide otherwise? The attack radius of sets of features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from pertinent.array_types import Masks
from pertinent.asks import Algorithm, Attack, AttackRadii, Values
from pertinent.asks.attack_radii import AttackName, aim_of, never_rising
from pertinent.config.settings import Count, Positive, Seed, checked
from pertinent.engine.job import JobResult
from pertinent.engine.progress import Callback
from pertinent.errors import InputError, ModelError, SettingError
from pertinent.inputs.base import Input
from pertinent.masks import full_mask
from pertinent.models.base import Model
from pertinent.models.wrap import wrap
from pertinent.outputs import column_index
from pertinent.removals.base import Removal
from pertinent.results.attack_results import Attacked, Attacks
from pertinent.results.failures import Failure
from pertinent.runs.blocks import Cluster, Item
from pertinent.runs.request import features_of
from pertinent.runs.run import Run, Work, raise_first
from pertinent.runs.work_block import carry_out_items


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
    cluster: Cluster | None = None,
    progress: Callback | bool | None = None,
) -> Attacked | Attacks:
    """Find the smallest perturbation of features that changes the prediction (Hsieh et al. 2021, Eqn. 1).

    Of images and table rows the values are perturbed, of texts the embeddings of their words.

    Parameters
    ----------
    model
        A classifier: images or table rows under any model, texts under a transformer, whose word
        embeddings are perturbed.
    inputs
        One input or several.
    sets
        The features that may change: names, numbers or a row of booleans, or a list of such sets; for
        several inputs a list with an entry for each. By default all features.
    toward
        The class that the prediction must be changed to, by name or number; by default any other.
    algorithm, norm, steps, max_radius
        As in `Attack`. Models other than torch's get a ``"decision"`` attack, which needs answers alone.
    features
        As in `explain`.
    seed
        The seed of the decision attack's random probes.
    batch_size, cluster, progress
        As in `explain`; the model is needed in this process, too.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.load("sentiment")
    >>> attacked = attack_radius(model, "slow but wonderful", [["slow"], ["wonderful"]], progress=False)
    >>> bool(attacked.radii[1] < attacked.radii[0])
    True
    """
    options: dict[str, Any] = {"batch_size": batch_size, "cluster": cluster, "progress": progress}
    run = Run.from_arguments(wrap(model), inputs, "attack", **options).listed()
    n_inputs = run.n_inputs or 0
    wanted = [sets] * n_inputs if run.one or sets is None else sets
    if not isinstance(wanted, Sequence | np.ndarray) or len(wanted) != n_inputs:
        raise SettingError(f"`sets` must have an entry for each of the {n_inputs} inputs.")
    _check_rivals(run.model, run.model.classes)
    attack = Attack(algorithm, norm, steps, max_radius)

    items = [Item(index, (raw, own)) for index, (raw, own) in enumerate(zip(run.inputs, wanted, strict=True))]
    works_of = partial(_works, features=features, toward=toward, attack=attack, seed=seed)
    done = sorted(carry_out_items(run, items, works_of, n_inputs), key=lambda one: one.key)
    failures = [Failure(d.key, str(d.error), error=d.error) for d in done if d.error is not None]
    if len(failures) == len(done):
        raise_first(failures, "attacked")
    attacked = Attacks([d.result for d in done if d.error is None], failures)
    return attacked[0] if run.one else attacked


def _works(
    run: Run, item: Item, *, features: Any, toward: Any, attack: Attack, seed: int
) -> Iterator[Work | JobResult]:
    """The attack on an input."""
    raw, sets = item.raw
    try:
        input = run.prepare(raw, features_of(features, item.index, one=run.one))
    except Exception as error:  # noqa: BLE001  recorded, the other inputs go on
        yield JobResult(item.index, None, error)
    else:
        yield Work(item.index, input, _algorithm(run.model, sets, toward, attack, item.index), seed=seed)


def _algorithm(model: Model, sets: Any, toward: Any, attack: Attack, index: int) -> Any:
    def steps(input: Input, removal: Removal) -> Algorithm:
        del removal
        masks = _masks(sets, input)
        prediction = (yield Values(full_mask(input.n_features)))[0]
        decided = model.output.default_target(prediction)
        columns = model.columns_of(input)
        _check_rivals(model, columns)
        aim = aim_of(toward, decided, columns, model.output)
        found = yield AttackRadii(masks, prediction, decided, aim, attack, keep_changes=True)
        found = never_rising(masks, found)
        assert found.changes is not None
        return Attacked(
            input=input,
            index=index,
            sets=masks,
            radii=found.radii,
            changes=found.changes,
            passes=found.passes,
            prediction=prediction,
            predicted=columns[decided],
            toward=None if aim is None else columns[aim],
            norm=attack.norm,
        )

    return steps


def _check_rivals(model: Model, columns: Sequence[str]) -> None:
    """Raise a `ModelError` if the only class leaves no other to reach."""
    if model.output.kind == "class" and len(columns) == 1:
        raise ModelError(f"The model has one class alone, {columns[0]!r}: there is no other to reach.")


def _masks(sets: Any, input: Input) -> Masks:
    """Sets of features as rows of booleans."""
    if sets is None:
        return full_mask(input.n_features)
    several = list(sets) if _holds_sets(sets) else [sets]
    return np.array([_mask(one, input) for one in several], dtype=np.bool_).reshape(-1, input.n_features)


def _holds_sets(sets: Any) -> bool:
    """Whether these are several sets, and not the members of one."""
    if isinstance(sets, np.ndarray) and sets.ndim in (1, 2):
        return sets.ndim == 2
    if isinstance(sets, str | bytes | np.ndarray) or not isinstance(sets, Sequence):
        raise InputError(f"`sets` must hold names or numbers of features, or booleans, but got {sets!r}.")
    several = [isinstance(one, Sequence | np.ndarray) and not isinstance(one, str | bytes) for one in sets]
    if any(several) and not all(several):
        odd = sets[several.index(False)]
        raise InputError(f"`sets` must hold sets alone or features alone, but got {odd!r} among sets.")
    return any(several)


def _mask(features: Any, input: Input) -> Masks:
    members = list(np.asarray(features).flat if isinstance(features, np.ndarray) else features)
    if members and all(isinstance(one, bool | np.bool_) for one in members):
        if np.shape(features) != (input.n_features,):
            raise InputError(
                f"A set of booleans must have one for each of the {input.n_features} features, but has shape "
                f"{np.shape(features)}."
            )
        return np.array(members)
    mask = np.zeros(input.n_features, dtype=np.bool_)
    for one in members:
        mask[column_index(one, input.features, "feature")] = True
    return mask

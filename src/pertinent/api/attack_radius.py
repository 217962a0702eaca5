"""How little must change for the model to decide otherwise? The attack radius of sets of features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from pertinent.api.request import for_each, of_input
from pertinent.api.runner import Runner, Task, raise_first
from pertinent.array_types import Masks
from pertinent.asks import Algorithm, Attack, AttackRadii, Values
from pertinent.asks.attack_radii import aim_of, never_rising
from pertinent.engine.progress import Callback
from pertinent.errors import InputError, ModelError, SettingError, require
from pertinent.inputs.base import Input
from pertinent.masks import full_mask
from pertinent.models.base import Model
from pertinent.models.wrap import wrap
from pertinent.outputs import column_index
from pertinent.removal.base import Removal
from pertinent.results.attack_results import Attacked, Attacks
from pertinent.results.failures import Failure
from pertinent.settings import Count, Positive, Seed, checked


@checked
def attack_radius(
    model: Any,
    inputs: Any,
    sets: Any = None,
    *,
    toward: Any = None,
    algorithm: Literal["auto", "projection", "pgd", "decision"] = "auto",
    norm: Literal["l2", "linf"] = "l2",
    steps: Count | None = None,
    largest: Positive = 10.0,
    features: Any = None,
    seed: Seed = 0,
    batch_size: Count | None = None,
    progress: Callback | bool | None = None,
) -> Attacked | Attacks:
    """Find the smallest perturbation of features that changes the prediction (Hsieh et al. 2021, Eqn. 1).

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
        The class, by name or number, that the prediction must be changed to; by default any other.
    algorithm, norm, steps, largest
        As in `Attack`. Models other than torch's get a ``"decision"`` attack, which needs answers alone.
    features
        What a feature is, as in `explain`.
    seed
        Of the decision attack's random probes.
    batch_size, progress
        As in `explain`.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.load("sentiment")
    >>> attacked = attack_radius(model, "slow but wonderful", [["slow"], ["wonderful"]], progress=False)
    >>> bool(attacked.radii[1] < attacked.radii[0])
    True
    """
    model = wrap(model)
    many = model.split(inputs)
    several = [inputs] if many is None else list(many)
    require(len(several) > 0, "inputs", "at least one", inputs)
    wanted = [sets] * len(several) if many is None or sets is None else sets
    if not isinstance(wanted, Sequence | np.ndarray) or len(wanted) != len(several):
        raise SettingError(f"`sets` must have an entry for each of the {len(several)} inputs.")
    attack = Attack(algorithm, norm, steps, largest)
    runner = Runner(model, "attack", batch_size, progress)
    cuts = for_each(features, one=many is None)
    attacked = attack_all(runner, several, list(wanted), attack, toward=toward, features=cuts, seed=seed)
    return attacked[0] if many is None else attacked


def attack_all(
    runner: Runner,
    inputs: Sequence[Any],
    sets: Sequence[Any],
    attack: Attack,
    *,
    toward: Any = None,
    features: Any = None,
    seed: int = 0,
) -> Attacks:
    """Attack every input, or raise the error of the first if none can be; `sets` has an entry for each."""
    model = runner.model
    if model.output.kind == "class" and len(model.classes) == 1:
        raise ModelError(f"The model has one class alone, {model.classes[0]!r}: there is no other to reach.")

    def tasks() -> Iterator[Task]:
        for index, (raw, own) in enumerate(zip(inputs, sets, strict=True)):
            algorithm = _algorithm(model, own, toward, attack, index)
            yield Task(index, raw, algorithm, of_input(features, index), seed=seed)

    done = sorted(runner.run(tasks(), len(inputs)), key=lambda one: one.key)
    failures = [Failure(d.key, str(d.error), error=d.error) for d in done if d.error is not None]
    if len(failures) == len(done):
        raise_first(failures, "attacked")
    return Attacks([d.result for d in done if d.error is None], failures)


def _algorithm(model: Model, sets: Any, toward: Any, attack: Attack, index: int) -> Any:
    def steps(input: Input, removal: Removal) -> Algorithm:
        del removal
        masks = _masks(sets, input)
        prediction = (yield Values(full_mask(input.n_features)))[0]
        decided = model.output.default_target(prediction)
        aim = aim_of(toward, decided, model.classes, model.output)
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
            decided=model.classes[decided],
            toward=None if aim is None else model.classes[aim],
            norm=attack.norm,
        )

    return steps


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

"""Checks of methods: requirements for every explainer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import pertinent
from pertinent.asks import AttackRadii, MaskGradients
from pertinent.config.settings import changed_settings, setting_names
from pertinent.errors import BudgetError, InputError, ModelError, PertinentError, SettingError
from pertinent.explainers.base import Explainer, explainers, n_kept
from pertinent.results.explanation import Explanation
from pertinent.testing.assertions import assert_same, raises, verify
from pertinent.testing.examples import (
    N_FEATURES,
    SPARSITIES,
    Example,
    differentiable_example,
    examples_for,
    function_example,
    small_budget,
    table_example,
    tree_example,
    value_example,
)
from pertinent.testing.row_log import RowLog


def check_explainer(method: str | type[Explainer] | Explainer) -> None:
    """Raise an `AssertionError` if a method violates what its traits or settings promise.

    >>> check_explainer("leave-one-out")
    """
    if isinstance(method, str):
        method = explainers.parse(method)
    explainer = method() if isinstance(method, type) else method
    for check in EXPLAINER_CHECKS:
        try:
            check(explainer)
        except PertinentError as error:
            raise AssertionError(f"{check.__name__}: {type(error).__name__}: {error}") from error


def check_description(explainer: Explainer) -> None:
    """Check that the method has a name, a paper and a one-line summary."""
    for name in ("name", "paper", "summary"):
        text = getattr(explainer, name, None)
        verify(isinstance(text, str) and text, f"{type(explainer).__name__} needs the attribute `{name}`.")
    verify("\n" not in explainer.summary, f"{explainer.name}: `summary` must be one line.")


def check_result(explainer: Explainer) -> None:
    """Check that explanations of inputs of several sizes have what the traits promise."""
    for example in examples_for(explainer):
        for d in example.sizes:
            options = {"budget": small_budget(explainer, d)}
            _check_explanation(explainer, example.explain(explainer, example.input(d), **options), d)


def _check_explanation(explainer: Explainer, e: Explanation, d: int) -> None:
    name, traits, classes = explainer.name, explainer.traits, e.classes
    verify(len(e.features) == d, f"{name}: {len(e.features)} features instead of {d}.")
    verify(e.scores.shape == (d,), f"{name}: scores have the shape {e.scores.shape} instead of ({d},).")
    verify(e.scores.dtype == np.float64, f"{name}: scores are {e.scores.dtype} instead of float64.")
    verify(np.isfinite(e.scores).all(), f"{name}: scores are not finite.")
    verify(e.target == e.prediction.values.argmax(), f"{name}: the target is not the predicted class.")
    verify(e.method == name and e.seed == 0, f"{name}: recorded as {e.method} with seed {e.seed}.")
    if e.meaning == "magnitude":
        verify(e.scores.min() >= 0, f"{name}: a score of the meaning 'magnitude' is negative.")
    for trait, present in (
        ("all_classes", e.class_scores is not None),
        ("adds_up", e.base_values is not None),
        ("standard_errors", e.standard_errors is not None),
    ):
        promised = getattr(traits, trait)
        verify(promised == present, f"{name}: the trait `{trait}` is {promised}, but was {present}.")
    if e.class_scores is not None:
        verify(e.class_scores.shape == (len(classes), d), f"{name}: class scores {e.class_scores.shape}.")
        np.testing.assert_array_equal(e.class_scores[e.target], e.scores)
    if e.base_values is not None and e.class_scores is not None:
        sums = e.base_values + e.class_scores.sum(axis=1)
        np.testing.assert_allclose(sums, e.prediction.values, atol=1e-9, err_msg=f"{name}: sum of scores")
    if e.standard_errors is not None:
        verify(e.standard_errors.shape == (d,), f"{name}: standard errors {e.standard_errors.shape}.")
        possible = not (e.standard_errors < 0).any() and not np.isinf(e.standard_errors).any()
        verify(possible, f"{name}: a standard error is negative or infinite.")
    chosen = SPARSITIES if traits.meaning == "membership" else ()
    verify(tuple(e.chosen) == chosen, f"{name}: sets are chosen for {tuple(e.chosen)} instead of {chosen}.")
    for sparsity in SPARSITIES:
        size = int(e.mask(sparsity).sum())
        verify(size == n_kept(sparsity, d), f"{name}: {size} features are chosen at sparsity {sparsity}.")
    json.loads(e.to_json(), parse_constant=_refuse_constant)


def _refuse_constant(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON: details must be finite numbers, or null.")


def check_target(explainer: Explainer) -> None:
    """Check that a requested class is explained, or rejected if only the predicted class can be."""
    example = examples_for(explainer)[-1]
    predicted = example.explain(explainer)
    for target, name in enumerate(example.model.classes):
        if not explainer.traits.any_target and target != predicted.target:
            with raises(SettingError, "target"):
                example.explain(explainer, target=target)
            continue
        e = example.explain(explainer, target=name)
        verify(e.target == target, f"{explainer.name}: explains class {e.target} instead of {target}.")
        if e.class_scores is None:
            with raises(SettingError, "explains one class at a time"):
                e.for_class(target)
        else:
            other = predicted.for_class(target)
            what = f"of class {name!r} differ when that class is the target"
            np.testing.assert_array_equal(other.scores, e.scores, err_msg=f"{explainer.name}: scores {what}")
            errors = other.standard_errors, e.standard_errors
            np.testing.assert_equal(*errors, err_msg=f"{explainer.name}: standard errors {what}")


def check_decisive_feature(explainer: Explainer) -> None:
    """Check that the only feature that the model reads scores highest, unless scores are a control."""
    example = table_example(explainer)
    if explainer.traits.draws_per_input or example is None:
        return
    decisive, n_features = 4, 9
    e: Any = pertinent.explain(
        _decisive_model(example, decisive, n_features),
        np.ones(n_features),
        example.adapt(explainer),
        removal="constant",
        progress=False,
    )
    other_scores = np.delete(e.scores, decisive)
    verify(
        e.ranking[0] == decisive and e.scores[decisive] > other_scores.max() and e.mask(0.1)[decisive],
        f"{explainer.name}: feature {decisive} is decisive, but the scores are {e.scores.tolist()}.",
    )


def _decisive_model(example: Example, decisive: int, n_features: int) -> Any:
    """Return a model like the example's that reads only one column."""
    if example.log is None:
        from sklearn.tree import DecisionTreeClassifier

        rows = np.random.default_rng(0).integers(0, 2, (40, n_features)).astype(float)
        return pertinent.wrap(DecisionTreeClassifier().fit(rows, rows[:, decisive]), background=0 * rows[:5])
    if example.tolerance:
        from pertinent.testing.networks import OneColumnNetwork

        return pertinent.wrap(OneColumnNetwork(decisive), kind="table")
    answers = np.array([[0.1, 0.9], [0.9, 0.1]])
    return pertinent.wrap(lambda rows: answers[(rows[:, decisive] > 0.5).astype(int)], kind="table")


def check_evaluations(explainer: Explainer) -> None:
    """Check that the reported evaluations match the model's, and do not exceed the budget."""
    example = table_example(explainer)
    if example is None or example.log is None:
        return
    n_forks = len({n_kept(s, N_FEATURES) for s in SPARSITIES}) if explainer.budget_per_sparsity else 1
    for d in example.sizes:
        del example.log.values[:], example.log.gradients[:]
        e = example.explain(explainer, example.input(d), budget=small_budget(explainer, d))
        made = len(set(example.log.values)) + 2 * len(example.log.gradients)
        verify(
            e.evaluations <= e.cost.budget * n_forks,
            f"{explainer.name}: {e.evaluations} evaluations, but the budget is {e.cost.budget}.",
        )
        verify(
            made - 1 <= e.evaluations,  # every explanation evaluates the whole input for the prediction
            f"{explainer.name}: {e.evaluations} evaluations are counted, but {made} were made.",
        )
        verify(
            e.evaluations <= made * n_forks or AttackRadii in explainer.traits.asks,
            f"{explainer.name}: {e.evaluations} evaluations are counted, but {made} were made.",
        )


def check_min_budget(explainer: Explainer) -> None:
    """Check that the smallest budget works, and that a smaller one is rejected with both numbers."""
    example = examples_for(explainer)[-1]
    least = explainer.min_budget(N_FEATURES)
    try:
        e = example.explain(explainer, budget=least)
    except BudgetError:  # some sparsities need more
        e = example.explain(explainer, budget=least, sparsity=1.0)
    n_forks = len(SPARSITIES) if explainer.budget_per_sparsity else 1
    verify(e.evaluations <= least * n_forks, f"{explainer.name}: {e.evaluations} evaluations of {least}.")
    with raises(BudgetError if least > 1 else SettingError, least, least - 1):
        example.explain(explainer, budget=least - 1)


def check_samples(explainer: Explainer) -> None:
    """Check that the setting `samples`, if any, determines the budget."""
    if "samples" not in setting_names(explainer):
        return
    example = examples_for(explainer)[-1]
    needed = type(explainer)(**{**changed_settings(explainer), "samples": 60}).evaluations(N_FEATURES)
    assert needed is not None
    verify(example.explain(explainer, samples=60, budget=None).cost.budget == needed, "the default budget")
    e = example.explain(explainer, samples=60, budget=needed + 5)
    verify(e.evaluations <= needed, f"{explainer.name}: {e.evaluations} evaluations instead of {needed}.")
    with raises(BudgetError, f"at least {needed}", f"{N_FEATURES} features", f"got {needed - 1}"):
        example.explain(explainer, samples=60, budget=needed - 1)
    with raises(SettingError, "`samples` must be at least"):
        example.explain(explainer, samples=0)


def check_settings(explainer: Explainer) -> None:
    """Check that settings can be saved, and that an unknown setting is rejected."""
    example = examples_for(explainer)[-1]
    with raises(SettingError, "no_such_setting"):
        example.explain(explainer, no_such_setting=3)
    names = {f.name for f in fields(explainer) if f.init}
    request = pertinent.Request.from_method(explainer).to_dict()
    verify(set(request["settings"]) <= names, f"{explainer.name}: settings {request['settings']}.")
    for name, value in request["settings"].items():
        verify(
            json.loads(json.dumps(value)) == value and not isinstance(value, dict),
            f"{explainer.name}: the setting `{name}` cannot be saved: use numbers or strings.",
        )


def check_seed(explainer: Explainer) -> None:
    """Check that results depend on the seed if and only if the method is not deterministic."""
    example = examples_for(explainer)[-1]
    input = example.input(N_FEATURES + 3 if len(example.sizes) > 1 else N_FEATURES)
    results = []
    for seed in (0, 0, 1):
        if example.log is not None:
            example.log.values.clear()
            example.log.gradients.clear()
        e = example.explain(explainer, input, seed=seed)
        log = example.log or RowLog()
        results.append((e, set(log.values), set(log.gradients)))
    (one, *rows), (again, *rows_again), (other, *other_rows) = results
    assert_same(one, again, tolerance=example.tolerance)
    verify(rows == rows_again, f"{explainer.name}: asks different questions with the same seed.")
    verify(other.seed == 1, f"{explainer.name}: the seed is recorded as {other.seed}.")
    close = np.allclose(one.scores, other.scores, rtol=0, atol=example.tolerance)
    if AttackRadii in explainer.traits.asks and not explainer.traits.deterministic:
        return  # attacks draw random starts only if the model has no gradients
    is_deterministic = rows == other_rows and close
    promised = explainer.traits.deterministic
    verify(
        is_deterministic == promised,
        f"{explainer.name}: the trait `deterministic` is {promised}, but was {is_deterministic}.",
    )


def check_batches(explainer: Explainer) -> None:
    """Check that results do not depend on the batch size, or on the order or number of inputs."""
    for example in examples_for(explainer):
        small = example.sizes[len(example.sizes) // 2]
        sizes = (N_FEATURES, example.sizes[0], small, N_FEATURES)
        inputs = [example.input(d, seed) for seed, d in enumerate(sizes)]
        single = [example.explain(explainer, input, seed=5) for input in inputs]
        for order, batch_size in (([0, 1, 2, 3], None), ([3, 0], 1), ([2, 1, 3], 3), ([3, 2, 1, 0], 1000)):
            batched = example.explain(explainer, [inputs[i] for i in order], seed=5, batch_size=batch_size)
            verify(not batched.failures, f"{explainer.name}: {list(map(str, batched.failures))}")
            for i, e in zip(order, batched, strict=True):
                assert_same(e, single[i], tolerance=example.tolerance)


def check_random_removals(explainer: Explainer) -> None:
    """Check that with a random removal, results depend only on the input and the seed."""
    background = np.random.default_rng(0).normal(size=(30, N_FEATURES))
    example = table_example(explainer)
    if example is None:
        return
    assert example.make is not None
    example = example.make("table", background=background)
    rows = [example.input(seed=seed) for seed in range(3)]
    for removal in ("background:rows=3", "uniform-noise:samples=2"):
        try:
            single = example.explain(explainer, rows[1], removal=removal)
        except SettingError as error:
            verify("removal" in str(error), f"{explainer.name}: {error}")
            continue
        for batch_size in (1, 7, 1000):
            batched = example.explain(explainer, rows[::-1], removal=removal, batch_size=batch_size)
            assert_same(batched[1], single, tolerance=example.tolerance)


def check_cache(explainer: Explainer) -> None:
    """Check that the method costs the same after another method has asked the same questions."""
    example = table_example(explainer)
    if example is None:
        return
    budget = None if small_budget(explainer) is None else 2**N_FEATURES
    options: dict[str, Any] = {"budget": budget, "sparsity": SPARSITIES}
    single = example.explain(explainer, **options)
    first = "leave-one-out" if explainer.name == "exact-shapley" else "exact-shapley"
    methods: list[str | Explainer] = [first, example.adapt(explainer)]
    both = pertinent.compare(
        example.model, [example.input()], methods, "insertion", progress=False, **options
    )
    assert_same(both.explanations[-1], single, tolerance=example.tolerance)


def check_saved(explainer: Explainer) -> None:
    """Check that explanations are unchanged by saving and reading; needs pyarrow and pandas."""
    for example in examples_for(explainer):
        inputs = [example.input(d) for d in (N_FEATURES, example.sizes[-2:][0])]
        explanations = example.explain(explainer, inputs)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "explanations.parquet"
            explanations.save(path)
            read = pertinent.read(path)
        for first, other in zip(explanations, read, strict=True):
            assert_same(first, other)
            for name in ("settings", "removal", "classes", "seed"):
                values = getattr(first, name), getattr(other, name)
                verify(values[0] == values[1], f"{explainer.name}: `{name}` is read as {values[1]}.")
            verify(
                first.input.fingerprint == other.input.fingerprint, f"{explainer.name}: the input differs."
            )
        frame = explanations.to_dataframe()
        scores = np.concatenate([e.scores for e in explanations])
        np.testing.assert_array_equal(frame["score"], scores)


def check_refusal(explainer: Explainer) -> None:
    """Check that unsupported models are rejected for the reason that `refusal` gives in advance."""
    rows = np.random.default_rng(0).normal(size=(30, N_FEATURES))
    options = {"removal": "mean"} if MaskGradients in explainer.traits.asks else {}
    makers = function_example, value_example, differentiable_example, tree_example
    for example in (make("table", background=rows) for make in makers):
        expected = type(explainer).refusal(example.model)
        try:
            example.explain(explainer, **options)
        except (InputError, ModelError, SettingError) as error:
            verify(
                str(error) == expected,
                f"{explainer.name}: `refusal` returns {expected!r}, but the error is: {error}",
            )
        else:
            verify(not expected, f"{explainer.name}: `refusal` returns {expected!r}, but there is no error.")


EXPLAINER_CHECKS: tuple[Callable[[Explainer], None], ...] = (
    check_description,
    check_result,
    check_target,
    check_decisive_feature,
    check_evaluations,
    check_min_budget,
    check_samples,
    check_settings,
    check_seed,
    check_batches,
    check_random_removals,
    check_cache,
    check_saved,
    check_refusal,
)
"""All checks of a method; each raises an `AssertionError`."""

"""Stability: what is measured of pairs of seeds, in one run, and what is said where there is nothing."""

import json
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr
from sklearn.ensemble import RandomForestClassifier

import pertinent
from pertinent.diagnostics.stability import (
    SeedAgreement,
    Stability,
    agreement,
    mean_squared_difference,
    top_in_common,
)
from pertinent.errors import FileError, InputError, SettingError
from pertinent.stats import average_ranks, spearman
from tests.stubs import printed, sentiment

ROWS = np.random.default_rng(0).normal(size=(6, 12))


def interacting(rows):
    """Return probabilities with interactions, so that few samples give uncertain scores."""
    rows = np.asarray(rows, dtype=float).reshape(len(rows), -1)
    p = 1 / (1 + np.exp(-(rows * np.roll(rows, 1, axis=1)).sum(axis=1)))
    return np.stack([1 - p, p], axis=1)


def table_model(function=interacting):
    return pertinent.wrap(function, kind="table")


def of_rows(*rows, **changes):
    """Return a result with rows of (input, features, spearman)."""
    made = [SeedAgreement(i, d, s, 0.4, 0.5, 0.1, 20.0, 0.2) for i, d, s in rows]
    fields = {"settings": {}, "budget": None, "removal": "constant", "features": "columns", "seeds": (0, 1)}
    return Stability(rows=tuple(made), method="lime", **fields | changes)


# -- measures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", [False, True])
def test_spearman_equals_scipy(ties):
    rng = np.random.default_rng(0)
    for d in (2, 3, 10, 57):
        rows = rng.integers(4, size=(5, d)).astype(float) if ties else rng.normal(size=(5, d))
        rows[:, 0], rows[:, -1] = -1.0, 9.0  # no row is constant
        result = spearman(rows)
        for a, b in combinations(range(5), 2):
            assert result[a, b] == pytest.approx(spearmanr(rows[a], rows[b]).statistic, abs=1e-12)
        for row in rows:
            np.testing.assert_array_equal(average_ranks(row), rankdata(row))


def test_a_constant_row_has_no_correlation():
    result = spearman(np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    assert np.isnan(result[0]).all()
    assert result[1, 2] == pytest.approx(-1.0)


def test_pairs_of_rows_as_computed_one_by_one():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(4, 15))
    pairs = list(combinations(range(4), 2))
    assert mean_squared_difference(rows) == pytest.approx(
        np.mean([((rows[a] - rows[b]) ** 2).mean() for a, b in pairs])
    )
    orders = [np.argsort(-row).tolist() for row in rows]
    for k in (1, 5, 10, 14):
        common = [len(set(orders[a][:k]) & set(orders[b][:k])) / k for a, b in pairs]
        assert top_in_common(orders, k) == pytest.approx(np.mean(common))
    assert np.isnan(top_in_common(orders, 15))  # the top 15 of 15 are always the same
    assert np.isnan(mean_squared_difference(np.array([[1e300], [-1e300]])))


def test_measures_equal_those_of_separate_explanations():
    model = table_model()
    result = pertinent.stability(model, ROWS, "shapley-sampling", samples=2, seeds=3)
    several = [pertinent.explain(model, ROWS, "shapley-sampling", samples=2, seed=s) for s in range(3)]
    assert result.inputs == 6
    for number, row in enumerate(result.rows):
        own = [explanations[number] for explanations in several]
        pairs = list(combinations([e.scores for e in own], 2))
        assert row.spearman == pytest.approx(np.mean([spearmanr(a, b).statistic for a, b in pairs]))
        assert row.mse == pytest.approx(np.mean([((a - b) ** 2).mean() for a, b in pairs]))
        tops = combinations([{name for name, _ in e.top(5)} for e in own], 2)
        assert row.top_5 == pytest.approx(np.mean([len(a & b) / 5 for a, b in tops]))
        assert row.evaluations == pytest.approx(np.mean([e.evaluations for e in own]))
        assert (row.input, row.features) == (number, 12)
    assert list(result.summary) == ["spearman", "top_5", "top_10", "mse", "evaluations", "seconds"]
    for name in result.summary:
        mean = np.mean([getattr(row, name) for row in result.rows])
        assert result.summary[name].mean == pytest.approx(mean)
    assert 0 < result.summary["spearman"].low < result.summary["spearman"].high < 1


def test_stability_grows_with_samples():
    few, many = (
        pertinent.stability(table_model(), ROWS, "shapley-sampling", samples=n, seeds=3) for n in (1, 40)
    )
    assert many.summary["spearman"].mean > few.summary["spearman"].mean + 0.1
    assert many.summary["mse"].mean < few.summary["mse"].mean / 5
    fixed = pertinent.stability(table_model(), ROWS, "leave-one-out", seeds=2)
    assert [fixed.summary[name].mean for name in ("spearman", "top_5", "top_10", "mse")] == [1, 1, 1, 0]


# -- one run -------------------------------------------------------------------------------------


def test_all_seeds_of_all_inputs_share_batches():
    sizes = []

    def counted(rows):
        sizes.append(len(rows))
        return interacting(rows)

    seen = []
    model = table_model(counted)
    pertinent.stability(model, ROWS, "lime", samples=20, seeds=4, batch_size=10_000, progress=seen.append)
    assert max(sizes) > 2 * 6 * 20  # more than two seeds ask for together
    assert {progress.total for progress in seen} == {6 * 4}


@pytest.mark.parametrize("batch_size", [1, 1000])
def test_the_batch_size_changes_nothing(batch_size):
    result = pertinent.stability(table_model(), ROWS[:2], "lime", samples=15, seeds=2, batch_size=batch_size)
    other = pertinent.stability(table_model(), ROWS[:2], "lime", samples=15, seeds=2, batch_size=7)
    assert result.summary["spearman"] == other.summary["spearman"]


def test_a_random_removal_draws_by_the_seed():
    forest = RandomForestClassifier(5, random_state=0).fit(ROWS, [0, 1] * 3)
    model = pertinent.wrap(forest, background=np.random.default_rng(1).normal(size=(200, 12)))
    result = pertinent.stability(model, ROWS[:2], "leave-one-out", removal="background:rows=3", seeds=3)
    assert result.summary["mse"].mean > 0
    assert result.removal == "background rows=3"


def test_texts_images_and_tables():
    texts = pertinent.wrap(sentiment)
    result = pertinent.stability(texts, ["not bad at all", "such a bad thing"], "lime", samples=9, seeds=2)
    assert (result.features, result.rows[1].features) == ("words", 4)
    images = pertinent.wrap(interacting, kind="image")
    pixels = np.random.default_rng(0).random((2, 8, 8, 1))
    result = pertinent.stability(images, pixels, "lime", samples=9, seeds=2, features="patches:2")
    assert (result.features, result.rows[0].features, result.inputs) == ("patches", 16, 2)
    assert pertinent.stability(table_model(), ROWS[0], "lime", samples=9, seeds=2).inputs == 1


def test_logits():
    result = pertinent.stability(table_model(), ROWS[:2], "lime", samples=9, seeds=2, scale="logit")
    plain = pertinent.stability(table_model(), ROWS[:2], "lime", samples=9, seeds=2)
    assert (result.name, plain.name) == ("lime samples=9 scale=logit", "lime samples=9")
    assert result.summary["mse"].mean > plain.summary["mse"].mean


def test_a_search_and_its_sparsity():
    result = pertinent.stability(
        table_model(), ROWS[:2], "random-search", sparsity=0.2, budget=8, seeds=3, target=1
    )
    assert result.name == "random-search budget=8"
    assert -1 <= result.summary["spearman"].mean < 1


# -- what cannot be measured ---------------------------------------------------------------------


def test_constant_scores_are_counted_as_missing():
    def rounding(rows):
        """Return only rounding noise for rows with a 7."""
        dull = (np.asarray(rows) == 7).any(axis=1)
        noise = np.abs(rows).sum(axis=1) * 1e-9
        return np.where(dull[:, None], np.stack([0.5 - noise, 0.5 + noise], axis=1), interacting(rows))

    rows = ROWS[:3].copy()
    rows[1] = 7.0
    result = pertinent.stability(table_model(rounding), rows, "leave-one-out", removal="constant", seeds=2)
    varied = pertinent.stability(
        table_model(lambda r: np.full((len(r), 2), 0.5)), rows, "lime", samples=9, seeds=2
    )
    assert varied.summary["spearman"].n == 0
    assert "Missing from Spearman: 3 of 3 inputs, because a seed gave all their features the same" in printed(
        varied
    )
    assert "nan" not in printed(varied) + varied._repr_html_()
    assert varied.plot().axes
    assert result.summary["spearman"].n == 2
    assert "Missing from Spearman: 1 of 3 inputs" in printed(result)


def test_short_inputs_have_no_top_k():
    rows = ROWS[:, :5]
    result = pertinent.stability(table_model(), rows, "lime", samples=9, seeds=2)
    assert result.summary["top_5"].n == 0
    assert "Missing from top 5: 6 of 6 inputs, because they have at most 5 features." in printed(result)
    assert "fewer than 20" in printed(result)


def test_the_repr_of_few_columns_has_no_nan():
    result = pertinent.stability(
        table_model(), np.random.default_rng(0).normal(size=(4, 4)), "shapley-sampling", seeds=2
    )
    assert "nan" not in repr(result)
    assert "Spearman" in repr(result)


def test_failures_of_inputs_are_recorded():
    def refusing(rows):
        if (np.asarray(rows) == 13).any():
            raise ValueError("not this one")
        return interacting(rows)

    rows = ROWS.copy()
    rows[2, 3] = 13
    result = pertinent.stability(table_model(refusing), rows, "lime", samples=9, seeds=2, ids=list("abcdef"))
    assert [(f.index, f.id) for f in result.failures] == [(2, "c")]
    assert "not this one" in result.failures[0].reason
    assert [(row.input, row.id) for row in result.rows] == list(zip([0, 1, 3, 4, 5], "abdef", strict=True))
    assert "Failed: input 2 · c" in printed(result)
    with pytest.raises(pertinent.PertinentError, match="not this one"):
        pertinent.stability(table_model(refusing), rows[2], "lime", samples=9)


def test_random_predictions_require_a_target():
    calls = iter(range(10**6))

    def fickle(rows):
        return [[0.9, 0.1] if next(calls) % 2 else [0.1, 0.9] for _ in rows]

    with pytest.raises(InputError, match="The model is random: it predicted class 0, class 1 for the same"):
        pertinent.stability(table_model(fickle), ROWS[0], "leave-one-out", seeds=6)
    with_target = pertinent.stability(table_model(fickle), ROWS[:1], "leave-one-out", seeds=6, target=0)
    assert with_target.inputs == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 1}, "`seeds` must be at least 2, but got 1"),
        ({"seeds": 2000}, "`seeds` must be at most 1000, but got 2000"),
        ({"seeds": "3"}, "`seeds` must be a whole number, but got '3'"),
        ({"samples": 0}, "`samples` must be at least 2, but got 0"),
        ({"sampels": 9}, "sampels"),
        ({"budget": 0}, "`budget` must be at least 1, but got 0"),
    ],
)
def test_invalid_settings(options, message):
    with pytest.raises(SettingError, match=message):
        pertinent.stability(table_model(), ROWS, "lime", **options)


def test_no_inputs():
    with pytest.raises(InputError, match="There are no inputs to explain"):
        pertinent.stability(table_model(), ROWS[:0], "lime")


# -- the result ----------------------------------------------------------------------------------


def test_groups_of_lengths():
    result = of_rows(
        (0, 3, 1.0), (1, 9, 0.8), (2, 10, 0.6), (3, 19, 0.4), (4, 20, 0.2), (5, 39, 0.0), (6, 640, -1)
    )
    assert [(str(length), length.inputs) for length in result.by_length] == [
        ("1–9", 2),
        ("10–19", 2),
        ("20–39", 2),
        ("640–1279", 1),
    ]
    assert [length.measures["spearman"].mean for length in result.by_length] == pytest.approx(
        [0.9, 0.5, 0.1, -1.0]
    )


def test_save_and_read(tmp_path):
    result = of_rows(
        (0, 12, 0.5), (1, 3, np.nan), settings={"samples": 9}, budget=40, run_warnings=("careful",)
    )
    result.save(tmp_path / "s.json")
    again = Stability.read(tmp_path / "s.json")
    assert repr(again.rows) == repr(result.rows)  # NaN is not equal to itself
    assert (again.name, again.warnings, again.seeds) == ("lime samples=9 budget=40", ("careful",), (0, 1))
    assert again.to_json() == result.to_json()
    assert "Warning: careful" in printed(again)
    with pytest.raises(FileError, match=r"must end in \.json"):
        result.save(tmp_path / "s.txt")


def test_save_and_read_a_measured_result(tmp_path):
    result = pertinent.stability(table_model(), ROWS, "lime", samples=9, seeds=2)
    result.save(tmp_path / "s.json")
    assert pertinent.Stability.read(tmp_path / "s.json") == result


@pytest.mark.parametrize(
    ("place", "value"),
    [("spearman", 1.5), ("top_5", -0.1), ("mse", -1.0), ("seconds", -1.0), ("features", 0)],
)
def test_numbers_out_of_range_are_refused(tmp_path, place, value):
    plain = json.loads(of_rows((0, 12, 0.5)).to_json())
    plain["rows"][0][plain["columns"].index(place)] = value
    (tmp_path / "s.json").write_text(json.dumps(plain))
    with pytest.raises(FileError, match=f"contains no stability: .*{place}"):
        Stability.read(tmp_path / "s.json")


def test_displays():
    result = of_rows(*((i, 5 + i, 0.5 + i / 100) for i in range(30)), settings={"<b>": "$x$"})
    assert repr(result).startswith("<Stability of lime <b>=$x$, 2 seeds, 30 inputs: Spearman 0.645 [")
    frame = result.to_dataframe()
    assert list(frame.columns) == [*SeedAgreement.__dataclass_fields__]
    assert len(frame) == 30
    text, page = printed(result), result._repr_html_()
    for part in ("1–9", "10–19", "20–39", "all", "Spearman", "evaluations"):
        assert part in text
        assert part in page
    assert "<b>" not in page.partition("</style>")[2]
    assert "fewer than 20" not in text


def test_the_plot_has_a_line_for_each_result():
    one = of_rows((0, 5, 0.9), (1, 25, 0.5), (2, 30, 0.3))
    other = of_rows((0, 15, 0.9), (1, 25, np.nan), settings={"samples": 50})
    (axes,) = one.plot(other).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1–9", "10–19", "20–39"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["lime", "lime samples=50"]
    drawn = [line for line in axes.lines if len(line.get_ydata())]
    np.testing.assert_allclose(drawn[0].get_ydata(), [0.9, 0.4])


def test_agreement_needs_no_run():
    model = table_model()
    own = [pertinent.explain(model, ROWS[0], "lime", samples=20, seed=s) for s in range(3)]
    assert (
        agreement(own).spearman
        == pertinent.stability(model, ROWS[0], "lime", samples=20, seeds=3).rows[0].spearman
    )

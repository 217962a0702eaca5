"""Numbers of `experiments/hase2021` on cases with a known answer."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import pertinent
from tests.miniature import experiment, write_frame


@pytest.fixture
def load():
    with experiment("hase2021") as importer:
        importer("results").RESAMPLES = 2000
        yield importer


def search(probability, logs):
    """A search of four features: one is kept at each sparsity but the last, where two are."""
    trajectory = {str(k): log for k, log in logs.items()}
    return SimpleNamespace(
        prediction=SimpleNamespace(values=np.array([1 - probability, probability])),
        target=1,
        mask=lambda share: np.arange(4) < (2 if share == 0.5 else 1),
        details={"trajectory": trajectory},
    )


def logistic(weights):
    """A model of table rows whose log-odds are a weighted sum; removed columns become 0."""

    def classify(rows):
        p = 1 / (1 + np.exp(-np.asarray(rows, dtype=float) @ np.array(weights, dtype=float)))
        return np.column_stack([1 - p, p])

    return pertinent.wrap(classify, kind="table", background=np.zeros((1, len(weights))))


def constant(levels):
    """A function of rows, metrics and trainings to constant values of some rows."""
    return lambda row, metric, training: np.full((2, 20), levels[row]) if row in levels else None


def write_record(folder, name, *rows, seed=0):
    """Write one model's rows: method, budget, metric, probability, log-odds, at 250 evaluations."""
    for metric in {row[2] for row in rows}:
        results = [
            {
                "method": method,
                "budget": budget,
                "metric": metric,
                "values": {"probability": [[p]] * 20, "weight-of-evidence": [[odds]] * 20},
                "course": after and [[None] * 7 + [after] * 9] * 20,
            }
            for method, budget, own_metric, p, odds, after in rows
            if own_metric == metric
        ]
        folder.mkdir(exist_ok=True)
        (folder / f"{name}-{seed}-{metric}.json").write_text(json.dumps({"results": results}))


# -- explaining ---------------------------------------------------------------------------------


def test_course_of_a_search(load):
    """The metric after each number of evaluations is a mean over sparsities."""
    explaining = load("explaining")
    e = search(0.9, {1: [(5, 0.1), (30, 0.5)], 2: [(5, 0.3), (100, 0.7)]})
    course = dict(zip(explaining.GRID, explaining.course([e])[0], strict=True))
    assert course[10] == pytest.approx((3 * 0.8 + 0.6) / 4)
    assert course[50] == pytest.approx((3 * 0.4 + 0.6) / 4)
    assert course[1000] == pytest.approx((3 * 0.4 + 0.2) / 4)
    late = search(0.9, {1: [(20, 0.1)], 2: [(5, 0.3)]})
    assert explaining.course([late])[0][0] is None  # one sparsity has nothing yet


def test_salience_methods_have_as_many_passes_as_searches(load):
    explaining, methods = load("explaining"), load("methods")
    settings = methods.salience(1000)
    assert settings["integrated-gradients"]["points"] * 2 + 4 == settings["lime"]["samples"] + 4 == 1000
    budgets = {}
    for trial in explaining.plan("sufficiency", short=False):
        budgets.setdefault(trial.method, set()).add(trial.budget)
    assert budgets["thompson-search"] == budgets["ordered-search"] == {250, 1000}
    assert budgets["parallel-local-search"] == {1000}


def test_metrics_on_both_scales(load):
    """Of log-odds 3 and 1: kept alone, the first loses 1 of 4 and its probability; removed, 3 of 4."""
    explaining = load("explaining")
    model = logistic([3, 1])
    options = {"sparsity": explaining.SPARSITIES, "removal": "mean", "progress": False}
    explanations = pertinent.explain(model, np.ones((1, 2)), "leave-one-out", **options)
    kept, removed = (
        explaining.measure(model, explanations, name) for name in ("sufficiency", "comprehensiveness")
    )
    share = 1 / (1 + np.exp(-np.array([4.0, 3.0, 1.0])))
    assert kept["weight-of-evidence"] == [pytest.approx([1.0] * 4)]
    assert removed["weight-of-evidence"] == [pytest.approx([3.0] * 4)]
    assert kept["probability"] == [pytest.approx([share[0] - share[1]] * 4, abs=1e-6)]
    assert removed["probability"] == [pytest.approx([share[0] - share[2]] * 4, abs=1e-6)]


def test_rows_are_extended_by_more_texts(load):
    extend = load("explaining").extend
    names = ("values", "course", "evaluations", "seconds", "method")
    one = dict(zip(names, ({"probability": [[0.1], [0.2]]}, [[1], [2]], 10.0, 3.0, "lime"), strict=True))
    more = dict(zip(names, ({"probability": [[0.3]]}, [[3]], 40.0, 1.0, "lime"), strict=True))
    both = extend(one, more)
    assert both["values"] == {"probability": [[0.1], [0.2], [0.3]]} and both["course"] == [[1], [2], [3]]
    assert (both["evaluations"], both["seconds"], both["method"]) == (20.0, 4.0, "lime")
    assert extend(one | {"course": None}, more)["course"] is None


def test_correct_predictions(load):
    training = load("training")
    model, rows = logistic([2, -1]), [np.array(row, dtype=float) for row in ([1, 0], [0, 1], [1, 1], [-1, 0])]
    explanations = pertinent.explain(model, rows, "random", progress=False)
    assert [e.target for e in explanations] == [1, 0, 1, 0]
    training.pertinent = SimpleNamespace(explain=lambda *_, **__: explanations)
    data = load("experiments.shared.data").Examples(rows, [1, 1, 1, 0])
    assert training.correct_predictions(model, data) == [1, 0, 1, 1]


def test_thompson_search_compared_with_pls(load, monkeypatch):
    """PLS reaches 0.5 after 250 of 1000 evaluations and 0.6 at the end; thompson-search 0.7, after 20."""
    own_search = load("own_search")
    pls = search(0.9, {1: [(5, 0.1), (200, 0.5), (900, 0.6)], 2: [(5, 0.5), (900, 0.6)]})
    thompson = search(0.9, {1: [(5, 0.1), (20, 0.7)], 2: [(20, 0.7)]})
    results = {"parallel-local-search": [pls, pls], "thompson-search": [thompson, thompson]}
    explain = SimpleNamespace(explain=lambda _, __, name, **___: results[name])
    monkeypatch.setattr(own_search, "pertinent", explain)
    row = own_search.compare_searches(None, ["", ""], "sufficiency")
    assert row[:4] == ["sufficiency", "60.00", "50.00", "70.00"]
    assert row[4].startswith("+10.00 [10.00, 10.00]") and row[5].startswith("+20.00")
    assert row[6:] == ["100% / 0% / 0%", "100%, median 20"]
    assert own_search.compare_searches(None, ["", ""], "comprehensiveness")[6] == "0% / 0% / 100%"


def test_evaluations_needed_by_a_search(load):
    own_search = load("own_search")
    logs = own_search.logs_of([search(0.9, {1: [(5, 0.1), (30, 0.5)], 2: [(5, 0.3), (100, 0.7)]})])
    assert own_search.reached(logs).tolist() == [[0.5, 0.5, 0.5, 0.7]]
    assert own_search.reached(logs, 50).tolist() == [[0.5, 0.5, 0.5, 0.3]]
    goals = np.array([[0.1, 0.4, 0.6, 0.7]])
    np.testing.assert_array_equal(own_search.evaluations_needed(logs, goals, 1), [[5, 30, np.nan, 100]])
    goals = np.full((1, 4), 0.2)
    np.testing.assert_array_equal(own_search.evaluations_needed(logs, goals, -1), [[5, 5, 5, np.nan]])


# -- results ------------------------------------------------------------------------------------


def test_values_of_seeds(load, tmp_path):
    """Values are (seeds, inputs) in points, means over sparsities; a seed that was not measured is NaN."""
    results = load("results")
    for seed, methods in ((0, ("lime", "gradient")), (1, ("lime",))):
        rows = [
            {
                "method": method,
                "budget": None,
                "metric": "sufficiency",
                "values": {"probability": [[0.1, 0.3], [0.5, 0.7]], "weight-of-evidence": [[1, 2], [3, 4]]},
            }
            for method in methods
        ]
        (tmp_path / f"sst2-standard-{seed}-sufficiency.json").write_text(json.dumps({"results": rows}))
    part = results.read_parts(tmp_path)["sst2"]
    values = part.values("lime", "sufficiency", "standard")
    np.testing.assert_allclose(values, [[20, 60], [20, 60]])
    odds = part.values("lime", "sufficiency", "standard", "weight-of-evidence")
    np.testing.assert_allclose(odds, [[1.5, 3.5]] * 2)
    other = part.values("gradient", "sufficiency", "standard")
    assert np.isnan(other[1]).all() and len(results.measured_seeds(other)) == 1
    assert results.difference(values, other).mean == 0.0
    assert part.values("random-search", "sufficiency", "standard") is None


def test_texts_that_all_methods_explained_count(load, tmp_path):
    """One method explained three texts, the other two; parts are read separately."""
    results = load("results")

    def write(name, **methods):
        rows = [
            {"method": method, "budget": None, "metric": "sufficiency", "values": {"probability": values}}
            for method, values in methods.items()
        ]
        (tmp_path / f"{name}-sufficiency.json").write_text(json.dumps({"results": rows}))

    write("fever-standard-0", lime=[[0.1], [0.2], [0.3]], gradient=[[0.4], [0.5]])
    write("boolq-standard-1", lime=[[0.7]])
    write("fever-3layers-standard-0", lime=[[0.9], [0.8], [0.7]])
    write("fever-standard-0-short", lime=[[0.6]])
    parts = results.read_parts(tmp_path)
    assert set(parts) == {"fever", "boolq", "fever-3layers", "fever-short"}
    values = {name: part.values("lime", "sufficiency", "standard") for name, part in parts.items()}
    np.testing.assert_allclose(values["fever"], [[10, 20]])
    assert results.difference(np.array([[3.0, 4.0, 9.0]]), values["fever"]).mean == -11.5
    np.testing.assert_allclose(values["boolq"], [[70]])
    np.testing.assert_allclose(values["fever-3layers"], [[90, 80, 70]])


def test_means_are_shown_with_half_of_their_interval(load):
    results = load("results")
    assert results.show(SimpleNamespace(mean=2.0, low=1.5, high=3.0)) == "2.00 (0.75)"
    interval = results.interval(np.array([[1.0, 1.0], [3.0, 3.0], [np.nan, np.nan]]))
    assert (interval.mean, interval.low, interval.high) == pytest.approx((2.0, 1.0, 3.0))


def test_values_after_a_reduced_budget(load, tmp_path):
    """PLS and random search after 250 of 1000; others in a run of 250; LIME as it is."""
    tables, results = load("tables"), load("results")
    rows = [("lime", None, 0.1), ("parallel-local-search", 1000, 0.2), ("random-search", 1000, 0.3)]
    rows += [("ordered-search", 250, 0.4), ("ordered-search", 1000, 0.9), ("thompson-search", 250, 0.5)]
    rows += [("taylor-search", 1000, 0.6)]
    full = [(m, b, "sufficiency", 0.7, 0.0, after if b else None) for m, b, after in rows]
    write_record(tmp_path, "boolq-standard", *full)
    part = results.read_parts(tmp_path)["boolq"]
    values = {row: part.reduced(row, "sufficiency", "standard") for row in (*tables.METHODS, tables.AT_250)}
    assert {row: round(float(v.mean()), 6) for row, v in values.items() if v is not None} == {
        "lime": 70.0,
        "parallel-local-search": 20.0,
        "random-search": 30.0,
        "ordered-search": 40.0,
        "thompson-search at 250": 50.0,
    }
    course = part.course("random-search", "sufficiency", "standard")
    assert np.isnan(course[..., 6]).all() and course[..., 7].tolist() == [[30.0] * 20]


# -- tables -------------------------------------------------------------------------------------


def test_best_of_a_column(load):
    """Sufficiency is better if lower; a lead that is not clear or not visible does not count."""
    tables = load("tables")
    low, high = np.full((2, 30), 1.0), np.full((2, 30), 2.0)
    assert tables.clearly_best({"a": low, "b": high}, "sufficiency") == "a"
    assert tables.clearly_best({"a": low, "b": high}, "comprehensiveness") == "b"
    assert tables.clearly_best({"a": low, "b": low + 0.001}, "sufficiency") is None
    assert tables.versus(low, high, "sufficiency").startswith("1.00 points better")
    assert tables.versus(low, high, "comprehensiveness").startswith("1.00 points worse")


def test_comparison_with_the_best_of_others(load):
    tables, methods = load("tables"), load("methods")
    values = {name: np.full((2, 30), level) for name, level in (("a", 1.0), ("b", 2.0), ("c", 4.0))}
    assert tables.ahead(values, "sufficiency", "c", "abx").startswith("c is 3.00 points worse")
    assert tables.ahead(values, "sufficiency", "c", "abx").endswith("than a")
    assert tables.ahead(values, "comprehensiveness", "c", "abc").endswith("than b")
    values["b"][1] = np.nan
    assert tables.few_seeds(values["b"]) == " [1]" and tables.few_seeds(values["a"]) == ""
    assert methods.run_of("lime") == ("lime", None)
    assert methods.run_of("thompson-search") == ("thompson-search", 1000)
    assert methods.run_of("thompson-search at 250") == ("thompson-search", 250)


def test_order_does_not_depend_on_seeds_that_some_rows_lack(load):
    """The second seed is 10 points higher; `a` has only that seed, and is worse there than `b`."""
    tables = load("tables")
    nothing, zeros = np.full(30, np.nan), np.zeros(30)
    values = {"a": np.array([nothing, zeros + 9.0]), "b": np.array([zeros, zeros + 10.0])}
    assert tables.ranked(values, "comprehensiveness") == ["b", "a"]
    assert tables.ranked(values, "sufficiency") == ["a", "b"]
    assert tables.clearly_best(values, "comprehensiveness") == "b"
    assert tables.ahead(values | {"c": zeros + np.zeros((2, 1))}, "comprehensiveness", "c", "ab").endswith(
        "b"
    )
    apart = {"a": np.array([nothing, zeros + 1]), "b": np.array([zeros, nothing])}
    assert tables.ranked(apart, "comprehensiveness") == ["a", "b"]


def test_rows_of_a_table(load):
    """The paper's numbers, then ours; the best of each column is bold, a missing value a dash."""
    tables = load("tables")
    levels = constant({"lime": 2.0, "random-search": 1.0})

    def values_of(row, metric, training):
        return levels(row, metric, training) if training == "standard" else None

    paper = {"lime": ((1.0, 0.1), (2.0, 0.2), (3.0, 0.3), (4.0, 0.4))}
    theirs = ["1.00 (0.10)", "2.00 (0.20)", "3.00 (0.30)", "4.00 (0.40)"]
    assert tables.metric_rows(values_of, paper, ["gradient", "lime", "random-search"]) == [
        ["lime", *theirs, "2.00 (0.00)", "–", "**2.00 (0.00)**", "–"],
        ["random-search", *["–"] * 4, "**1.00 (0.00)**", "–", "1.00 (0.00)", "–"],
    ]


def test_findings_of_table_1(load):
    """Counterfactual models are 2 points higher, which is worse for sufficiency."""
    levels = {"parallel-local-search": 1.0, "random-search": 3.0, "lime": 2.0, "gradient": 9.0}
    levels["thompson-search at 250"] = 0.5

    def values_of(row, metric, training):
        return np.full((2, 20), levels[row] + 2 * (training != "standard")) if row in levels else None

    page = load("tables").findings(values_of)
    for text in (
        "Sufficiency, CT: parallel-local-search is 1.00 points better",
        "than lime; parallel-local-search is 2.00 points better",
        "than random-search; lime is 7.00 points better",
        "than gradient; thompson-search at 250 is 0.50",
        "Sufficiency of CT models beside Standard's: 2.00 points worse",
        "Comprehensiveness of CT models beside Standard's: 2.00 points better",
    ):
        assert text in page


def test_accuracies_of_seeds_that_have_both(load, tmp_path):
    """A seed without a CT model counts for the standard accuracy, not for the difference."""
    rights = {"standard-0": [1, 1], "standard-1": [0, 0], "attention-mask-0": [1, 0]}
    for name, right in rights.items():
        (tmp_path / f"boolq-{name}.train.json").write_text(json.dumps({"right": right}))
    tables = load("tables")
    standard, trained = tables.accuracies_by_training(tmp_path, "boolq")
    np.testing.assert_array_equal(standard, [[100, 100], [0, 0]])
    np.testing.assert_array_equal(trained, [[100, 0], [np.nan, np.nan]])
    (line,) = [row for row in tables.accuracy_table(tmp_path).splitlines() if row.startswith("| BoolQ")]
    assert line.startswith("| BoolQ | 74.16 (1.62) | 73.76 (1.62) | ") and line.endswith("| 2 |")
    assert "| 50.00 (50.00) | 50.00 (50.00) [1] | -50.00 (" in line
    assert tables.accuracies_by_training(tmp_path, "snli") is None


def parts_of(levels, load):
    """Parts whose values are noise and a level of each row, better for both metrics if higher."""
    tables = load("tables")
    noise = np.random.default_rng(0).normal(size=(1, 40))

    def part(rows):
        def values(row, metric, training):
            if row not in rows:
                return None
            return tables.SIGN[metric] * (rows[row] - (training != "standard")) + noise

        return SimpleNamespace(values=values, reduced=values)

    return {name: part(rows) for name, rows in levels.items()}


def test_count_of_preferences(load):
    """Searches are clearly better on one data set, LIME on the other; PLS and random search are level."""
    tables = load("tables")
    base = np.random.default_rng(0).normal(size=(1, 40))
    assert tables.clear_win(base, base + 1, "sufficiency") == 1
    assert tables.clear_win(base, base + 1, "comprehensiveness") == -1
    assert tables.clear_win(base, base, "sufficiency") == 0
    assert tables.count_wins([1, 1, 0, -1], "a", "b") == "a is preferable in 2 of 4 comparisons, b in 1"
    searches = dict.fromkeys(tables.COMPARED, 0.0)
    parts = parts_of(
        {"snli": searches | {"lime": -5.0}, "fever": searches | {"lime": 5.0}, "boolq": {}}, load
    )
    assert tables.preferences(parts.values()).splitlines() == [
        "- the best search is preferable in 4 of 8 comparisons, LIME in 4.",
        "- PLS is preferable in 4 of 8 comparisons, LIME in 4.",
        "- PLS is preferable in 0 of 8 comparisons, random search in 0.",
    ]


def test_number_of_columns_in_which_a_claim_holds(load):
    """PLS is clearly ahead of random search on FEVER, level on BoolQ; CT models are 1 point worse."""
    both = {"parallel-local-search": 0.0, "random-search": 0.0}
    levels = {"fever": both | {"parallel-local-search": 3.0}, "boolq": both | {"lime": 2.0, "gradient": 1.0}}
    assert load("tables").tallies(parts_of(levels, load), levels).splitlines() == [
        (
            "- parallel-local-search beside the best of the paper's other methods: "
            "better in 4 of 8, clearly in 4; clearly worse in 4."
        ),
        "- parallel-local-search beside random-search: better in 4 of 8, clearly in 4; clearly worse in 0.",
        "- Standard models beside CT, by PLS: better in 4 of 4, clearly in 4; clearly worse in 0.",
        "- lime beside the best other salience method: better in 4 of 4, clearly in 4; clearly worse in 0.",
    ]


def test_data_sets_of_a_later_run_are_counted(load, tmp_path):
    """LIME is ahead on BoolQ, random search on SNLI, of which only a later run has results."""
    tables, results = load("tables"), load("results")
    for folder, name, lime, search in (
        (tmp_path, "boolq", 0.1, 0.3),
        (tmp_path / "counted", "snli", 0.3, 0.1),
    ):
        for training in results.TRAININGS:
            rows = [("lime", None, "sufficiency", lime, 0.0, None)]
            rows += [("random-search", 1000, "sufficiency", 0.0, 0.0, search)]
            rows += [("lime", None, "comprehensiveness", 1 - lime, 0.0, None)]
            rows += [("random-search", 1000, "comprehensiveness", 0.0, 0.0, 1 - search)]
            write_record(folder, f"{name}-{training}", *rows)
    parts = results.read_parts(tmp_path)
    page = tables.reduced_table(parts, results.read_parts(tmp_path / "counted"))
    assert "\nBoolQ; 20 test points, 1 seed in a later run of SNLI; two metrics and" in page
    assert "- the best search is preferable in 4 of 8 comparisons, LIME in 4.\n" in page
    assert "## BoolQ\n" in page and "## SNLI" not in page
    page = tables.reduced_table(parts, {})
    assert "\nBoolQ; two metrics and" in page and "in 0 of 4 comparisons, LIME in 4.\n" in page


def test_log_odds_and_another_encoder(load, tmp_path):
    """Table 7 has the change in log-odds of the CT model, Table 6 the points of the one with three layers."""
    tables = load("tables")
    for name, p in (("multirc-attention-mask", 0.1), ("multirc-3layers-attention-mask", 0.2)):
        rows = [
            ("lime", None, m, p, odds, None) for m, odds in (("sufficiency", -1), ("comprehensiveness", 2))
        ]
        write_record(tmp_path, name, *rows)
    parts = load("results").read_parts(tmp_path)
    (line,) = [row for row in tables.evidence_table(parts).splitlines() if row.startswith("| lime")]
    assert line == "| lime | -0.33 (0.09) | 1.54 (0.17) | -1.00 (0.00) | 2.00 (0.00) |"
    page = tables.second_table(parts)
    assert "## MultiRC: 20 test points, 1 seed\n" in page
    (line,) = [row for row in page.splitlines() if row.startswith("| lime")]
    assert line == "| lime | – | – | 20.00 (0.00) | 20.00 (0.00) |"


def test_wall_times_compared_with_the_paper(load):
    rows = [
        {"method": name, "points": 500, "paper hours": hours, "seconds per 500": 36.0, "times faster": times}
        for name, hours, times in (("lime", 1.0, 100.0), ("gradient", 0.99, 99.0), ("thompson", None, None))
    ]
    lines = load("speed").page([{"device": "GPU", "rows": rows}]).splitlines()[-3:]
    assert lines[0] == "| lime | 500 | 3,600 | 36.0 | 100× | yes |"
    assert lines[1].endswith("| 99× | NO |") and lines[2].endswith("| – | 36.0 | – | – |")


def test_sizes_of_data_sets(load):
    """Words as tokens: documents of 3 and 1, queries of 1 and 2; both sentences of a pair count."""
    sizes = load("sizes")

    def length(text):
        return len(text.split())

    queries = [{"query": "a", "document": "b c d"}, {"query": "a b", "document": "c"}]
    assert sizes.size(queries, length) == [2, 2.0, 1.5]
    assert sizes.size([{"premise": "a b", "hypothesis": "c"}], length) == [1, 3.0]
    assert sizes.show([1200, 2.0]) == ["1,200", "2.0", "–"] and sizes.show(None) == ["–"] * 3


# -- figures and pages --------------------------------------------------------------------------


def test_accuracies_by_removal(load, tmp_path, monkeypatch):
    """Models that start from the filler are read separately."""
    figures = load("figures")
    rows = [SimpleNamespace(removal="mask-token", share=s, right=r) for s in (0.0, 0.5) for r in (1, 0)]
    for name in ("snli-10000-standard-0", "snli-10000-standard-1", "snli-10000-filler-standard-0"):
        (tmp_path / f"removals-{name}.json").touch()
    monkeypatch.setattr(figures.RemovalCheck, "read", lambda _: SimpleNamespace(rows=rows))
    accuracies = figures.accuracies(tmp_path, "snli")
    assert {key: value.tolist() for key, value in accuracies.items()} == {
        ("Standard", "mask-token", share): [[100.0, 0.0]] * 2 for share in (0.0, 0.5)
    }
    masked = figures.accuracies(tmp_path, "snli", "filler")
    assert masked["Standard", "mask-token", 0.5].shape == (1, 2)
    better, worse = (
        {("Standard", "mask-token", 0.5): masked["Standard", "mask-token", 0.5] * 0 + level}
        for level in (60, 50)
    )
    assert figures.gain(better, worse, "mask-token", 0.5).startswith("+10.0 ")
    levels = {("CT", removal, 0.5): np.full((2, 9), share) for removal, share in (("a", 70.0), ("b", 68.5))}
    assert figures.lead(levels, "CT", "a", "b", 0.5).startswith("b by 1.50")


def test_curves_of_figure_3(load, tmp_path):
    """A curve begins where all texts have a set, and ends at the budget."""
    rows = [("random-search", 1000, m, 0.0, 0.0, 0.2) for m in ("sufficiency", "comprehensiveness")]
    write_record(tmp_path, "boolq-attention-mask", *rows)
    part = load("results").read_parts(tmp_path)["boolq"]
    for axes in load("figures").draw_courses(part, "boolq").axes:
        (line,) = axes.lines
        assert line.get_xdata().tolist() == [n for n in load("methods").GRID if n >= 250]
        np.testing.assert_allclose(line.get_ydata(), 20.0)


def test_sections_that_were_not_measured_again_are_kept(load):
    pages = load("pages")
    old = (
        "# Old\n\n## SST-2: 9 points\n\nold\n\n## FEVER\n\nold\n\n## Which\n\nold\n\n## FEVER before\n\nold\n"
    )
    new = "# New\n\n## FEVER: 3 points\n\nnew\n\n## BoolQ\n\nnew\n\n## Which\n\nnew\n"
    page = pages.merge_sections(new, old)
    assert page.count("old") == 2 and page.count("new") == 3
    assert page.startswith("# New\n\n## SST-2: 9 points")
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert headings[1:] == ["## FEVER: 3 points", "## BoolQ", "## Which", "## FEVER before"]
    assert pages.merge_sections(new, "") == new
    head = "| set | a |\n| --- | --- |\n"
    rows = pages.merge_rows(f"# T\n\n{head}| FEVER | 2 |\n", f"# T\n\n{head}| SST-2 | 1 |\n| FEVER | 1 |\n")
    assert rows == f"# T\n\n{head}| SST-2 | 1 |\n| FEVER | 2 |\n"


# -- stages and data ----------------------------------------------------------------------------


def test_models_that_are_trained(load):
    stages = load("stages")
    options = {"second_sets": ["fever"], "removal_sets": ["sst2"], "seeds": [4], "standard_only": True}
    jobs = {job.name: job for job in stages.train(None, sets=["fever", "sst2"], **options)}
    assert [name.removesuffix(".train") for name in jobs] == [
        "nli-standard-0",
        "fever-standard-4",
        "fever-attention-mask-4",
        "sst2-standard-4",
        "sst2-attention-mask-4",
        "fever-3layers-attention-mask-4",
        "filler",
        "sst2-10000-standard-4",
        "sst2-10000-filler-standard-4",
    ]
    assert jobs["fever-standard-4.train"].needs == ["nli-standard-0.train.json"]
    assert jobs["sst2-standard-4.train"].needs == []
    assert jobs["sst2-10000-filler-standard-4.train"].needs == ["filler.train.json"]
    settings = jobs["fever-3layers-attention-mask-4.train"].compute.keywords
    assert (settings["layers"], settings["start"]) == (3, "nli-standard-0")


def test_models_that_start_from_each_other(load):
    """BoolQ starts from FEVER's standard model of the same seed, and that from sentence pairs."""
    options = {"second_sets": [], "removal_sets": [], "seeds": [4]}
    jobs = {job.name: job for job in load("stages").train(None, sets=["boolq", "fever"], **options)}
    assert {name.removesuffix(".train"): job.needs for name, job in jobs.items()} == {
        "nli-standard-0": [],
        "fever-standard-4": ["nli-standard-0.train.json"],
        "boolq-standard-4": ["fever-standard-4.train.json"],
        "boolq-attention-mask-4": ["fever-standard-4.train.json"],
        "fever-attention-mask-4": ["nli-standard-0.train.json"],
    }


def test_documents_are_cut_near_their_evidence(load, tmp_path):
    data = load("data")
    text = "".join(chr(ord("a") + i) for i in range(20))
    for window in (4, 9, 15):
        part = data.cut_near(text, [[8, 12], [0, 2]], window, "characters")
        assert len(part) == window and "ijkl" in part and part in text
    assert data.cut_near(text, [[8, 12]], 2, "characters") == "ij"
    assert data.cut_near(text, [[18, 20]], 30, "characters") == text
    assert data.cut_near(text, [], 5, "characters") == "abcde"
    assert data.cut_near("one two three four", [[2, 3]], 5, "words") == "three"
    frame = {"query": ["q"], "document": ["one two three four"], "label": [1]}
    write_frame(tmp_path / "b.parquet", **frame, evidence_spans=[[[1, 2]]])
    spec = data.DataSet("b", "B", (), data.DOCUMENT, {}, 1, 1, 9, window=3)
    assert data.read_file(tmp_path / "b", spec) == [{"query": "q", "document": "two", "label": 1}]


def test_held_out_examples_are_not_trained_on(load, tmp_path):
    """Of ten rows in two files, three are the dev set; the order is always the same, and not the files'."""
    data = load("data")
    files = {"train": ("a/one", "a/two"), "test": ("a/one",)}
    spec = data.DataSet("a", "A", ("no", "yes"), {"query": "q"}, files, 1, 1, 9, held_out=3)
    for file, numbers in (("one", range(6)), ("two", range(6, 10))):
        write_frame(tmp_path / "a" / f"{file}.parquet", q=[str(i) for i in numbers], label=list(numbers))
    train, dev, test = (data.read(tmp_path, spec, split) for split in ("train", "dev", "test"))
    assert (len(train.labels), len(dev.labels), len(test.labels)) == (7, 3, 6)
    assert sorted(train.labels + dev.labels) == list(range(10)) and sorted(test.labels) == list(range(6))
    assert [int(e["query"]) for e in train.inputs] == train.labels != sorted(train.labels)
    assert data.read(tmp_path, spec, "train", 2).labels == train.labels[:2]

"""Numbers of `experiments/vo2023` on cases with a known answer."""

import gzip
import json
import tarfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import pertinent
from tests.miniature import scripts


@pytest.fixture
def load():
    with scripts("experiments/vo2023") as found:
        yield found


def test_rates_of_selected_columns(load):
    truth = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1]], dtype=bool)
    chosen = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 1]], dtype=bool)
    # Half found and half wrong; nothing found and nothing wrong; all found and nothing wrong.
    assert load("known_features").rates(chosen, truth) == pytest.approx((1.5 / 3, 0.5 / 3))


def test_what_a_decision_depends_on(load):
    own = load("known_features")
    rng = np.random.default_rng(0)
    for task in own.TASKS:
        x = own.draw_rows(task, 200, 0)
        needed = own.relevant(task, x)
        for column in range(own.N_COLUMNS):
            moved = x.copy()
            moved[:, column] += rng.normal(size=200) * (column != 9)  # a switch stays where it is
            changed = ~np.isclose(own.log_odds(task, x), own.log_odds(task, moved))
            assert not changed[~needed[:, column]].any()
            assert changed[needed[:, column]].all() or column == 9
    flipped = own.draw_rows("switch", 200, 0) * np.where(np.arange(10) == 9, -1, 1)
    assert not np.isclose(
        own.log_odds("switch", own.draw_rows("switch", 200, 0)), own.log_odds("switch", flipped)
    ).any()


def test_ranks_are_those_of_the_largest_scores(load):
    ranks = load("known_features").ranks_of(np.array([[0.1, 3.0, -1.0]]), np.random.default_rng(0))
    assert ranks.tolist() == [[2, 1, 3]]


@pytest.mark.parametrize(("task", "median"), [("xor", 1.5), ("orange skin", 2.5)])
def test_shapley_values_of_the_tasks_rank_relevant_columns_first(load, task, median):
    found = load("known_features").measure(task, "kernel-shap", 40, 0, n_test=10)
    assert found[:2] == (median, 1.0) and np.isnan(found[2:]).all()  # it selects no number of columns


def test_means_over_seeds_and_inputs(load):
    results = load("results")
    runs = [
        {"values": {"brevity": [1.0, 2.0, 6.0]}, "words": [["a"] * 4, ["b"] * 2, ["c"] * 4]},
        {"values": {"brevity": [3.0, 4.0, 8.0]}, "words": [["a"] * 4, ["b"] * 2, ["c"] * 4]},
        {"values": {}, "words": []},
    ]
    assert results.over(runs, "brevity").mean == pytest.approx(4.0)
    assert results.over(runs, "brevity", first=2).mean == pytest.approx(2.5)
    assert results.over(runs, "brevity", more_words_than=3).mean == pytest.approx(4.5)
    assert results.over(runs, "purity") is None


def test_results_of_one_row(load, tmp_path):
    results = load("results")
    for name in ("imdb_aim_0", "imdb_aim_1", "imdb_aim_with_a_selector_0", "imdb_l2x_5_0", "imdb_l2x_0"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"name": name}))
    (tmp_path / "imdb_aim_2.json").write_text(json.dumps({"error": "it failed"}))
    found = results.read_results(tmp_path)
    assert [own["name"] for own in results.of(found, "imdb", "aim")] == ["imdb_aim_0", "imdb_aim_1"]
    assert [own["name"] for own in results.of(found, "imdb", "l2x")] == ["imdb_l2x_0"]
    assert [own["name"] for own in results.of(found, "imdb", "l2x 5")] == ["imdb_l2x_5_0"]
    assert len(results.of(found, "imdb", "aim, with a selector")) == 1


def test_two_classes_of_hatexplain(load):
    sets = load("sets")
    assert [sets._label("hatexplain", label) for label in (0, 1, 2)] == [1, 0, 1]
    assert [sets._label("ag_news", label) for label in range(4)] == [0, 1, 2, 3]


def test_a_linear_box_of_words_explained_by_its_own_weights(load):
    """An explainer that gives the true weights finds all true words, with the right signs."""
    import torch

    own = load("linear_box")
    weights = np.random.default_rng(0).normal(size=(30, 2))
    embeddings = SimpleNamespace(weight=torch.tensor(weights))
    ids, feature = np.arange(2, 28), np.array([-1, *range(24), -1])
    tokens = SimpleNamespace(ids=ids, feature=feature)
    model = SimpleNamespace(
        model=SimpleNamespace(embeddings=embeddings), prepare=lambda _: SimpleNamespace(tokens=tokens)
    )
    apart = (weights[:, 1] - weights[:, 0])[ids[1:-1]]
    right = SimpleNamespace(index=0, target=1, scores=apart, class_scores=None)
    wrong = SimpleNamespace(index=0, target=1, scores=-apart, class_scores=None)
    assert own.true_words(model, ["text"], [right])["true words"] == 1.0
    assert own.true_words(model, ["text"], [right])["true signs"] == 1.0
    assert own.true_words(model, ["text"], [wrong])["rank correlation"] == pytest.approx(-1.0)
    shifted = np.stack([weights[ids[1:-1], 0], weights[ids[1:-1], 1]]) + 5.0
    of_classes = SimpleNamespace(index=0, target=1, scores=shifted[1], class_scores=shifted)
    assert own.true_words(model, ["text"], [of_classes])["true signs, relative"] == 1.0


def test_what_is_found_of_true_words(load):
    found = load("linear_box").agreement
    truth = np.array([4.0, 3.0, 0.1, -5.0, 3.0, 0.0])
    assert found(truth, truth, k=2) == (1.0, 1.0, pytest.approx(1.0))
    assert found(-truth, truth, k=2) == (0.0, 0.0, pytest.approx(-1.0))
    # Words 1 and 4 have the same weight: either is right. Of 3 and 0, the weightiest, 3 has the wrong sign.
    scores = np.array([2.0, 0.0, 0.5, 1.0, 3.0, -1.0])
    share, signs, rho = found(scores, truth, k=2)
    assert (share, signs) == (1.0, 0.5)
    ranks = [5, 2, 3, 4, 6, 1], [6, 4.5, 3, 1, 4.5, 2]
    assert rho == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert found(np.zeros(6), truth, k=2)[2] == 0.0


def test_log_odds_of_the_tasks(load):
    own = load("known_features")
    x = np.zeros((2, 10))
    x[:, :2], x[:, 9] = (2, 3), (1, -1)
    assert own.log_odds("xor", x).tolist() == [6, 6]
    assert own.log_odds("orange skin", x).tolist() == [4 + 9 - 4] * 2
    additive = -10 * np.sin(0.4) + 3 + 0 + 1 - 2.4
    assert own.log_odds("additive", x) == pytest.approx([additive] * 2)
    # Up, a switch is orange skin of the first columns, down the additive task of columns 4 to 7, here 0.
    assert own.log_odds("switch", x) == pytest.approx([9, 1 - 2.4])
    assert own.black_box("xor")(x)[0] == pytest.approx([1 / (1 + np.exp(6)), 1 / (1 + np.exp(-6))])


def test_purity_counts_every_stop_word_and_sign(load, monkeypatch):
    own = load("words")
    monkeypatch.setattr("pertinent.metrics.english_words.stop_words", lambda: {"the"})
    monkeypatch.setattr(own, "clusters", lambda words: [[word] for word in dict.fromkeys(words)])
    runs = {
        "imdb_l2x_0": {"words": [["The", "good", "the", "a", "b", "c"]], "failures": []},
        "imdb_l2x_5_0": {"words": [["good", "film", "the", "x", "y", "z"]], "failures": []},
    }
    found = own.word_measures(runs, "imdb", "l2x")
    assert found["purity 5"].mean == pytest.approx(1 / 5)  # of what was fitted with K = 5
    assert found["purity 10"].mean == pytest.approx(2 / 6) and found["brevity 10"].mean == 5
    assert found["purity as published 10"].mean == pytest.approx(1 / 10)  # one stop word, of K
    assert "purity 20" not in found and own.word_measures(runs, "imdb", "aim") == {}


def test_stability_is_the_overlap_with_neighbours(load, monkeypatch):
    """Two texts with the same decision are neighbours; a third has none. Stop words do not count."""
    own = load("words")
    monkeypatch.setattr(own, "is_contaminated", {"the"}.__contains__)
    texts = ["a good film with actors", "a good film with music", "a bad film with actors"]
    run = {"words": [["Good", "the", "film"], ["good", "music"], ["bad"]], "targets": ["yes", "yes", "no"]}
    found = own.stability(run, texts)
    assert found[:2] == pytest.approx([1 / 3, 1 / 3]) and np.isnan(found[2])


def test_means_over_seeds_of_a_form(load):
    own = load("paper_form")
    runs = [{"kept": 1.0}, {"kept": 2.0}, {"kept": 3.0}, {"kept": None}, {}]
    assert own.over_seeds(runs, "kept") == "2.000 ± 1.000"
    assert own.over_seeds(runs[:1], "kept") == "1.000" and own.over_seeds(runs, "true words") == "–"


def logistic(weights):
    """A model of table rows whose log-odds are a weighted sum; removed columns become 0."""

    def classify(rows):
        p = 1 / (1 + np.exp(-np.asarray(rows, dtype=float) @ np.array(weights, dtype=float)))
        return np.column_stack([1 - p, p])

    return pertinent.wrap(classify, kind="table", background=np.zeros((1, len(weights))))


def test_metrics_of_a_form(load):
    """Ten of twelve columns are kept or removed; at a sparsity of 10% two of them."""
    own, weights = load("paper_form"), np.arange(12, 0, -1) / 20
    model = logistic(weights)
    found = pertinent.explain(model, np.ones((2, 12)), "leave-one-out", removal="mean", progress=False)
    means = own.measured(model, found, every_class=False)
    p = {n: 1 / (1 + np.exp(-weights[n:].sum())) for n in (0, 2)}
    assert means["faithfulness"] == 1.0 and means["explained"] == 2 and means["failures"] == 0
    assert means["positive-delta-log-odds"] == pytest.approx(weights[:10].sum())
    assert means["negative-delta-log-odds"] == pytest.approx(weights[10:].sum())
    assert means["comprehensiveness"] == pytest.approx(p[0] - p[2])


def test_aim_beside_lime_on_the_texts_of_both(load):
    """Of the texts that every row has, AIM's mean over seeds."""
    own = load("tables")
    runs = {
        name: {"values": dict.fromkeys(own.PAIRED, values), "words": [["w"]] * len(values)}
        for name, values in (
            ("imdb_aim_0", [0.5, 0.5, 0.0]),
            ("imdb_aim_1", [0.7, 0.7, 0.0]),
            ("imdb_lime_0", [0.4, 0.4]),
        )
    }
    assert own._shared(runs, "imdb") == 2
    first, second = own.differences(runs).splitlines()[2:4]
    assert first.startswith("| imdb | class-faithfulness | 60.0 | 40.0 | 20.0 [20.0, 20.0] |")
    assert second.startswith("| imdb | positive-delta-log-odds | 0.60 | 0.40 | 0.20 [0.20, 0.20] |")


def test_faithfulness_of_l2x_that_was_fitted_with_this_k(load):
    runs = {
        "imdb_l2x_0": {"values": {"faithfulness of 5": [0.0], "faithfulness of 10": [1.0]}, "words": []},
        "imdb_l2x_5_0": {"values": {"faithfulness of 5": [1.0]}, "words": []},
    }
    own = load("pictures")
    assert own.faithfulness(runs, "imdb", "l2x", 5).mean == 1.0
    assert own.faithfulness(runs, "imdb", "l2x", 10).mean == 1.0
    assert own.faithfulness(runs, "imdb", "l2x", 20) is None
    assert own.marked(["good", "no", "good"]) == "good ×2 · no"


def test_rows_in_deviations_of_others(load):
    like = pd.DataFrame({"a": [0.0, 2.0], "b": [1.0, 5.0]})
    found = load("tabular").standardised(pd.DataFrame({"a": [3.0], "b": [3.0]}), like)
    assert found.to_numpy().tolist() == [[2.0, 0.0]]


def test_rows_are_measured_by_what_masking_changes(load):
    """With log-odds 3 and 1 and K = 1: the first column decides, and masking it costs 3."""
    own = load("tabular")
    ones = pd.DataFrame({"a": [1.0, 1.0], "b": [1.0, 1.0]})
    rows = own.Rows(logistic([3, 1]), ones * 0, ones, 1, 1.0, ("mean",))
    found = own.measured(rows, "admission", "kernel-shap", 0, draws=2)["values"]
    assert found["faithfulness, mean"] == [1.0, 1.0]
    assert found["positive-delta-log-odds, mean"] == pytest.approx([3.0, 3.0])


def test_what_a_search_has_reached(load):
    """One of five columns is kept, and ten evaluations try all."""
    own, weights = load("refinement"), np.array([0.1, 0.2, 2.0, 0.3, 0.4])
    case = own.Case(logistic(weights), None, None, {})
    found = own.reached(case, np.ones((3, 5)), "parallel-local-search", 10, 2, removal="mean")
    p = 1 / (1 + np.exp(-np.array([3.0, 2.0])))
    assert found == pytest.approx(np.full((2, 3), p[0] - p[1]))


def test_shares_are_shown_in_percent(load):
    """Of texts that every row has, and of all; the classes' mean is over their values."""
    own = load("tables")
    few, many = [0.5] * 2, [0.5, 0.5, 1.0, 1.0]
    shares = (
        "faithfulness",
        "class-faithfulness",
        "class-iou",
        "class-faithfulness 0",
        "class-faithfulness 1",
    )
    deltas = ("positive-delta-log-odds", "negative-delta-log-odds")
    runs = {
        name: {"values": dict.fromkeys((*shares, *deltas), values), "words": [["w"] * 11] * len(values)}
        for name, values in (("imdb_aim_0", many), ("imdb_lime_0", few))
    }
    cells = own.texts(runs).splitlines()[2].split(" | ")
    assert cells[2] == "99.62" and cells[3].startswith("75.0 [") and cells[4].startswith("50.0 [")
    assert cells[6].startswith("0.75 [") and cells[-2:] == ["4", "1 |"]
    cells = own.classes(runs).splitlines()[2].split(" | ")
    assert cells[2] == "98.09 / 98.96" and cells[4] == "98.5"
    assert cells[6].startswith("50.0 [") and cells[7].startswith("75.0 [")


def test_the_fastest_of_several_times(load):
    found = {"imdb_timed": {"inputs": 1000, "black box": [2.0, 1.0, 3.0], "aim": [1.5, 2.5, 1.75]}}
    assert "| imdb | 1,000 | 1.00 s | 1.50 s | 1.50× |" in load("tables").seconds(found)


def test_faithfulness_of_images_by_size(load):
    run = {"aim": {"200": [1.0, 0.0], "300": [1.0, 1.0], "400": [1.0, 1.0]}}
    lines = load("tables").images({"mnist_pixels_0": run}).splitlines()
    assert len(lines) == 3 and lines[2].startswith(
        "| mnist | pixels | 200 / 300 / 400 | `aim` | 96.2 / 97.0 / 97.3 |"
    )
    assert "| 50.0 [" in lines[2] and " / 100.0 [" in lines[2]


def test_forms_over_seeds(load):
    own = load("paper_form")
    made = {
        f"imdb | network | paper | {seed}": {"faithfulness": value, "kept": None}
        for seed, value in enumerate((0.9, 0.7))
    }
    lines = own.page_table(made, "imdb", "network").splitlines()
    assert lines == [
        "| form | faithfulness | seeds |",
        "| --- | --- | --- |",
        "| `paper` | 0.800 ± 0.141 | 2 |",
    ]


def tuned(**faithfulness):
    """Results of forms on validation texts and on two test texts of AG News, by seed."""
    metrics = ("faithfulness", "positive-delta-log-odds", "negative-delta-log-odds", "comprehensiveness")
    return {
        f"ag_news | network | {form} | {seed}": {
            "dev faithfulness": dev,
            "faithfulness": float(np.mean(test)),
            "values": dict.fromkeys(metrics, test),
        }
        for form, values in faithfulness.items()
        for seed, (dev, test) in enumerate(values)
    }


def test_a_form_is_chosen_by_validation_texts(load):
    """Not by test texts; it is then shown over all its seeds, and beside AIM."""
    own = load("baselines")
    forms = {
        "l2x, τ 0.1": [(0.7, [1.0, 1.0])],
        "l2x, τ 0.2": [(0.8, [1.0, 0.0]), (0.9, [0.0, 0.0])],
        "from probabilities": [(0.9, [1.0, 1.0])] * 2,
    }
    made = tuned(**forms)
    assert own.best("ag_news", "l2x", made) == "l2x, τ 0.2" and own.best("ag_news", "vibi", made) is None
    shown = {row[1]: row[2:] for row in own.rows(made, "ag_news")}
    assert [*shown] == ["`aim`", "`l2x, tuned: τ 0.2`"]
    cells = shown["`l2x, tuned: τ 0.2`"]
    assert cells[:2] == ["90.13", "85.0"] and cells[2].startswith("25.0 [") and cells[3].startswith("0.25 [")
    assert cells[6].startswith("75.0 [") and cells[7] == "2"
    lines = own.grids_table(made).splitlines()
    assert lines[2:] == [
        "| ag_news | `l2x, τ 0.1` | 89.4 | 70.0 | 100.0 |  |",
        "| ag_news | `l2x, τ 0.2` | 90.1 | 80.0 | 50.0 | chosen |",
    ]


def test_how_far_aim_is_ahead_and_what_tuning_changed(load):
    """Of 40 texts AIM keeps all, L2X half of them, and tuned every fourth."""
    own = load("baselines")
    half, fourth = [1.0, 0.0] * 20, [1.0, 0.0, 0.0, 0.0] * 10
    made = tuned(
        **{
            "from probabilities": [(1.0, [1.0] * 40)] * 2,
            "l2x": [(0.5, half)] * 3,
            "l2x, τ 0.1": [(0.3, fourth)] * 2,
        }
    )
    gap = own.gap(*(own.runs_of(made, "ag_news", form) for form in ("from probabilities", "l2x")))
    assert gap.mean == 0.5 and gap.n == 40 and gap.p_value < 0.001
    said = own.tuned_verdict(made)
    assert said.startswith("- ag_news: AIM keeps 50.0 to 75.0 points more decisions than L2X and VIBI")
    assert "(ahead in 2 of 2 rows). Tuning changes l2x by -25.0 [" in said and "vibi" not in said


def test_grids_come_first_and_then_the_seeds_of_what_was_chosen(load):
    own = load("baselines")
    made = {}
    first, second = own.phases(["ag_news"], 2, made), []
    names = [fit.form for fit in next(first)]
    assert names[:3] == ["from probabilities", "l2x", "vibi"] and len(names) == 3 + 4 + 9
    made |= tuned(**{"vibi, τ 0.5, β 0.1": [(1.0, [1.0, 1.0])]})
    second = [(fit.form, fit.seed) for fit in next(first)]
    assert second == [(form, 1) for form in ("vibi, τ 0.5, β 0.1", "from probabilities", "l2x", "vibi")]


def test_scores_of_single_classes_as_one_explanation(load):
    """Log-odds 3 and −2: the first column speaks for one class, the second for the other."""
    own, model = load("extra"), logistic([3, -2])
    of_class = [
        [
            pertinent.explain(model, row, "leave-one-out", removal="mean", target=c, progress=False)
            for row in np.ones((2, 2))
        ]
        for c in (0, 1)
    ]
    found = own.as_one(of_class)
    assert [e.class_scores.argmax(axis=1).tolist() for e in found] == [[1, 0]] * 2


def test_words_that_stay_for_a_larger_k(load):
    assert load("extra").nested([["a", "b"], ["c"]], [["a", "x"], ["c", "d"]]) == pytest.approx(0.75)


def test_rows_of_tables_beside_the_papers(load, tmp_path):
    own = load("tabular")
    names = [f"{metric}, {masking}" for metric in own.METRICS for masking in own.MASKINGS]
    for seed, value in enumerate((0.5, 1.0)):
        run = {
            "values": {name: [value] * 4 for name in names},
            "fit seconds": 10.0 + seed,
            "seconds an input": 0.002,
        }
        (tmp_path / f"{own.file_stem('admission', 'aim')}_seed{seed}.json").write_text(json.dumps(run))
    cells = own.tables(tmp_path)["admission"].splitlines()[2].strip("| ").split(" | ")
    assert cells[1].startswith("(94.0) 75.0 [") and cells[3].startswith("(1.12) 0.75 [")
    assert cells[-3:] == ["10", "2.0", "2"]


def test_an_image_of_its_best_patches(load):
    own = load("figure3")
    image = np.ones((1, 28, 28))
    scores = np.zeros(16)
    scores[[0, 5]] = 1.0, 2.0
    left = own.kept(image, scores, k=2)[0]
    assert left[:7, :7].all() and left[7:14, 7:14].all() and left.sum() == 2 * 49
    assert own.two_of_each([SimpleNamespace(target=t) for t in (1, 0, 1, 1, 0, 2)], 3) == [1, 4, 0, 2, 5]


@pytest.fixture
def known_words(monkeypatch):
    """One stop word, and a WordNet that knows two words, which are no synonyms."""
    monkeypatch.setattr("pertinent.metrics.english_words.stop_words", lambda: {"the"})
    known = {word: SimpleNamespace(own={word}, similar=set()) for word in ("film", "good")}
    nothing = SimpleNamespace(own=set(), similar=set())
    return lambda word: known.get(word, nothing)


def test_words_as_published_beside_every_occurrence(load, monkeypatch, known_words):
    own = load("records")
    monkeypatch.setattr(own, "senses", known_words)
    monkeypatch.setattr(own, "clusters", lambda words: [[word] for word in dict.fromkeys(words)])
    assert own.counted([["The", "the", "film", "."], ["good", "film"]]) == {
        "purity": [3 / 4, 0.0],
        "purity as published": [2 / 10, 0.0],  # "the" and ".", of ten
        "brevity": [3.0, 2.0],
        "brevity as published": [3.0, 1.0],  # all words that WordNet knows are one cluster
    }
    page = load("extra_page")
    runs = [{"counted": {name: [0.2, 0.4] for name in page.MEASURES}}] * 2
    assert page.measures(runs)["purity"].mean == pytest.approx(0.3)
    assert page.paper_figures("imdb", "aim") == ("8.22", "2.48")
    assert page.paper_figures("imdb", "paper, D.1: from the selector") == ("22.72", "3.15")
    assert page.paper_figures("imdb", "lime") == ("36.55", "7.73")


def test_records_are_numbers(load, monkeypatch, tmp_path):
    """What was chosen keeps the values of its texts, what was only tried its means; words are counted."""
    own = load("records")
    monkeypatch.setattr(own, "counted", lambda words: {"purity": [float(len(each)) for each in words]})
    made = tuned(**{"l2x, τ 0.1": [(0.7, [1.0, 1.0])], "l2x, τ 0.2": [(0.8, [1.0, 0.0])]})
    whole = {name: run | {"words": [["a"], ["a", "b"]]} for name, run in made.items()}
    found = own.of_fits(whole)
    tried, chosen = (found[f"ag_news | network | l2x, τ {tau} | 0"] for tau in (0.1, 0.2))
    assert tried == {"dev faithfulness": 0.7, "faithfulness": 1.0}
    assert chosen["values"]["faithfulness"] == [1.0, 0.0] and chosen["counted"] == {"purity": [1.0, 2.0]}
    assert own.of_fits(found) == found
    (tmp_path / "made.json").write_text(json.dumps(found))
    assert own.read_all([tmp_path / "made.json", tmp_path / "extra.json"]) == found
    words = {f"{row} {k}": [["a", "b"]] for row in ("l2x", "aim") for k in (5, 10, 20)} | {
        "l2x 10": [["a", "c"]]
    }
    sizes = own.of_part("hatexplain sizes", {"words": words, "faithfulness": {}, "texts": ["an offence"]})
    assert (
        sizes["stay"] == {"l2x 5": 0.5, "l2x 10": 0.5, "aim 5": 1.0, "aim 10": 1.0} and sizes["texts"] == []
    )
    draws = own.of_part("imdb draws", {"50": {"faithfulness": [1.0], "seconds": 2.0, "words": [["a"]]}})
    assert draws == {"50": {"faithfulness": [1.0], "seconds": 2.0, "counted": {"purity": [1.0]}}}


def test_words_of_l2x_by_k(load):
    own = load("extra_page")
    stay = {"l2x 5": 0.5, "aim 5": 1.0}
    found = {
        "imdb sizes": {"stay": stay, "faithfulness": {f"l2x {k}": [1.0, 0.0] for k in (5, 10, 20)}},
        "imdb samples": {str(n): {"faithfulness": [1.0], "seconds": 0.5} for n in (50, 100)},
    }
    rows = [line.strip("| ").split(" | ") for line in own.by_size(found).splitlines()[2:]]
    assert rows[0][2] == "83.42" and rows[0][3].startswith("50.0 [") and rows[0][4:] == ["50.0", "100.0"]
    assert rows[2][4:] == ["–", "–"]
    assert own.by_samples(found).splitlines()[2].startswith("| imdb | 50 | 100.0")


def test_lime_and_functional_information_by_setting(load):
    own = load("extra_page")
    one = {"faithfulness": [1.0, 0.0], "counted": {name: [0.2, 0.4] for name in own.MEASURES}}
    found = {"ag_news draws": {str(n): one for n in own.DRAWS}}
    lines = own.by_setting(found).splitlines()[2:]
    assert len(lines) == 3
    assert lines[0].startswith("| ag_news | `functional-information, draws 50` | 75.75 | 50.0 [")
    assert " | 27.62 | 30.0 [" in lines[0] and " | 4.90 | 0.30 [" in lines[0]


def test_a_method_by_its_settings(load, monkeypatch):
    """Log-odds of 12 columns: the ten largest decide; two settings of LIME are tried."""
    own, weights = load("extra"), np.arange(12, 0, -1) / 20
    monkeypatch.setattr(own, "black_box", lambda *_: (logistic(weights), None, np.ones((2, 12)), 1.0))
    explain = pertinent.explain
    monkeypatch.setattr(pertinent, "explain", lambda *a, **k: explain(*a, **k | {"removal": "mean"}))
    settings = [{"samples": 100}, {"samples": 200}]
    *_, found = own.by_setting(SimpleNamespace(), "imdb", 2, "lime", settings)
    assert [*found] == ["100", "200"] and found["200"]["faithfulness"] == [1.0, 1.0]
    assert len(found["200"]["words"][0]) == own.K


def test_what_a_row_costs_and_alphas(load):
    """Minutes of two fits of 60 and 180 seconds; the α of Table 6 is the row with a selector."""
    own = load("tables")
    metrics = ("faithfulness", "class-faithfulness", "positive-delta-log-odds", "negative-delta-log-odds")
    values = {"sufficiency 0.1": [0.1, 0.3], "comprehensiveness 0.1": [0.5, 0.7]}
    values |= {metric: [0.0, 1.0] for metric in metrics}
    run = {"values": values, "words": [["w"]] * 2, "evaluations": 1.0}
    runs = {
        "imdb_aim_with_a_selector_0": run | {"fit seconds": 60.0},
        "imdb_aim_with_a_selector_1": run | {"fit seconds": 180.0},
        "imdb_aim_alpha_0.5_0": run,
    }
    cells = own.cost(runs).splitlines()[2].strip("| ").split(" | ")
    assert (
        cells[2].startswith("0.20 [") and cells[3].startswith("0.60 [") and cells[4:] == ["1", "2.0", "11.19"]
    )
    lines = [line.strip("| ").split(" | ") for line in own.alphas(runs).splitlines()]
    rows = {cells[1]: cells for cells in lines if cells[0] == "imdb"}
    assert rows["1.8"][2] == "99.62" and rows["1.8"][-1] == "2" and rows["2.0"][-1] == "–"
    assert rows["0.5"][3].startswith("50.0 [") and rows["0.5"][5].startswith("(8.83) 0.50 [")


def test_words_of_the_black_boxes(load, monkeypatch):
    """The most frequent words are known, in small letters; others are unknown, and texts are cut."""
    own = load("black_boxes")
    monkeypatch.setattr(own, "KNOWN", 2)
    tokenizer = own.word_tokenizer(["Good film.", "a good film", "good"], 3)
    assert tokenizer("film GOOD actor good", truncation=True)["input_ids"] == [3, 2, 1]


def test_black_boxes_do_not_read_padding(load):
    """Logits of a text are the same alone and behind a longer one."""
    import torch

    own = load("black_boxes")
    rows = [torch.tensor([2, 3, 4]), torch.tensor([5, 2, 3, 4, 6, 2, 5])]
    for which in own.BODIES:
        torch.manual_seed(0)
        model = own.TextClassifier(which, 8).eval()
        with torch.no_grad():
            together = model(*own._padded(rows, "cpu")).logits
            alone = torch.cat([model(*own._padded([row], "cpu")).logits for row in rows])
        assert torch.allclose(together, alone, atol=1e-5)
    places = own._positions(torch.zeros(1, 2, 4))
    assert places[0].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert places[1].tolist() == pytest.approx([np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)])


def test_arrays_in_the_format_of_mnist(load, tmp_path):
    content = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, *range(6)])
    with gzip.open(tmp_path / "images.gz", "wb") as file:
        file.write(content)
    assert load("sets").read_idx(tmp_path / "images.gz").tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_page_is_of_the_records(load, tmp_path):
    """The tables without intervals, as the records that are kept give them."""
    own = load("extra_page")
    with tarfile.open(own.HERE / "records.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    made, extra = (own.read_all([tmp_path / f"{name}.json"]) for name in ("made", "extra"))
    page = own.README.read_text(encoding="utf-8")
    assert own.grids_table(made) in page and own.words_by_size(extra) in page

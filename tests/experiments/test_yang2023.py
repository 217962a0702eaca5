"""Numbers of `experiments/yang2023` on cases with a known answer."""

import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pertinent
from pertinent.learners.fitted_network import FittedNetwork
from pertinent.learners.methods.amortized_shapley import AmortizedShapley
from tests.miniature import ROOT, experiment, write_frame, write_nltk


@pytest.fixture
def load():
    with experiment("yang2023") as importer:
        yield importer


def explanation(scores, **more):
    """An explanation with these scores, as far as the measures read it."""
    scores = np.array(scores, dtype=float)
    ranking = np.argsort(-scores, kind="stable")
    own = {"scores": scores, "ranking": ranking, "features": ["w"] * len(scores), "standard_errors": None}
    own |= {"evaluations": 10, "index": 0, "id": None}
    own["prediction"] = SimpleNamespace(values=np.array([0.2, 0.8]))
    own["cost"] = SimpleNamespace(seconds=1.0)
    return SimpleNamespace(**own | more)


def test_columns_of_a_method(load):
    """Seven features, two seeds: agreement between them, and of both with the references."""
    measure = load("measure")
    references = measure.References([np.arange(7.0)], [np.zeros(7)], [np.arange(7.0)[::-1]])
    seeds = [[explanation(np.arange(7.0))], [explanation(np.arange(7.0) + 1, evaluations=20)]]
    columns = {name: values[0] for name, values in measure.columns(seeds, references).items()}
    assert columns["spearman"] == 1.0 and columns["mse"] == 1.0 and columns["top_5"] == 1.0
    assert columns["top_10"] is None  # there are only seven
    assert columns["reference spearman"] == 1.0 and columns["svs spearman"] == -1.0
    assert columns["reference mse"] == 0.5  # 0 of the first, 1 of the second
    assert columns["svs top_5"] == pytest.approx(3 / 5)
    assert columns["evaluations"] == 15.0 and columns["coverage"] is None


def test_agreement_of_each_training(load):
    """Two texts, two trainings: the first agrees with the references, the second is their reverse."""
    measure = load("measure")
    rows = [np.arange(3.0), np.arange(3.0) * 2]
    references = measure.References(rows, [np.zeros(3)] * 2, rows)
    runs = [[explanation(row) for row in rows], [explanation(row[::-1]) for row in rows]]
    means = measure.means_of_runs(runs, references)
    assert means["svs spearman"] == [1.0, -1.0]
    # The reverse is off by 2, 0 and 2, and by twice as much.
    assert means["reference mse"] == [0.0, pytest.approx((8 / 3 + 32 / 3) / 2, rel=1e-4)]


def test_local_adaption_of_permutations_that_were_drawn(load):
    """Alg. 1 with two permutations adds half of the prediction to their mean; ours keeps the total."""
    model = pertinent.wrap(
        lambda rows: np.asarray(rows) @ np.array([2.0, -1.0, 0.5]), kind="table", output="value"
    )
    fitted_to = {"scale": "natural", "features": None}
    card = {"error_variances": [1.0], "sampling_variances": [[4.0], [2.0]], **fitted_to}
    own = AmortizedShapley(FittedNetwork(torch.nn.Linear(1, 1), card))
    (sampled,) = pertinent.explain(model, np.ones((1, 3)), "shapley-sampling", samples=2, progress=False)
    prediction = replace(sampled, scores=np.array([4.0, 0.0, -2.0]))
    adapt = load("measure").adapt
    (found,) = adapt(own.refined(2, combine="paper"), [prediction], [sampled])
    np.testing.assert_allclose(found.scores, [2.0 + 2.0, -1.0 + 0.0, 0.5 - 1.0])
    assert found.standard_errors is None and found.evaluations == sampled.evaluations + 1
    (found,) = adapt(own.refined(2), [prediction], [sampled])
    assert found.scores.sum() == pytest.approx(1.5) and (found.standard_errors > 0).all()
    between = np.sort([prediction.scores - 1 / 6, sampled.scores], axis=0)  # the prediction, normalized
    assert ((between[0] <= found.scores) & (found.scores <= between[1])).all()


def test_seconds_are_the_least_of_several(load, monkeypatch):
    measure = load("measure")
    clock = iter([0.0, 3.0, 10.0, 11.0, 20.0, 22.0, 30.0, 35.0])
    monkeypatch.setattr(measure.time, "perf_counter", lambda: next(clock))
    calls = []
    methods = {
        name: partial(lambda name, text: calls.append((name, text)), name) for name in ("slow", "fast")
    }
    assert measure.least_seconds(methods, ["text"], 2) == {"slow": [2.0], "fast": [1.0]}
    assert calls == [("slow", "text"), ("fast", "text")] * 2


def test_coverage_counts_the_error_of_the_reference(load):
    coverage = load("measure")._coverage
    e = explanation([0.0, 0.0, 0.0, 0.0], standard_errors=np.full(4, 3.0))
    values = np.array([0.0, 1.96 * 3, 1.96 * 5 - 0.1, 1.96 * 5 + 0.1])
    assert coverage(e, values, np.full(4, 4.0)) == 0.75  # √(3² + 4²) = 5
    assert np.isnan(coverage(explanation([0.0]), np.zeros(1), np.zeros(1)))


def test_classes_of_words(load, tmp_path):
    classes = load("word_classes").WordClasses(write_nltk(tmp_path / "nltk"))
    expected = {"the": "function", "not": "negation", "42nd": "number", "?!": "punctuation", "dogs": "noun"}
    expected |= {"geese": "noun", "ran": "verb", "runs": "verb", "Paris": "name", "xyzzy": "other"}
    assert {word: classes(word) for word in expected} == expected
    assert classes("Paris", first=True) == "other"


def test_shares_of_scores_on_classes_of_words(load):
    own = load("calibration")
    kinds = {"dog": "noun", "runs": "verb", "sleeps": "verb"}
    words = own.words_of(("dog runs", "dog sleeps"), lambda word, first: kinds[word])
    assert words[0] == (0, 0, 3, "common noun") and words[3] == (1, 4, 10, "verb")
    assert own.bag(words) == {"0 common noun": 1, "0 verb": 1, "1 common noun": 1, "1 verb": 1}
    spans = [(0, 0, 3), (0, 4, 6), (0, 6, 8), (1, 0, 3), (1, 4, 10)]
    found = own.shares(words, spans, [3.0, 0.5, 0.5, -1.0, -3.0])
    positive = {"+ 0 common noun": 0.75, "+ 0 verb": 0.25, "+ 0": 1.0}
    assert {k: v for k, v in found.items() if k[0] == "+" and v} == positive
    assert found["- 1 common noun"] == 0.25 and found["- 1 verb"] == 0.75 and found["- 1"] == 1.0
    assert own.matrix([{"b": 1.0}, {"a": 2.0}]).tolist() == [[0.0, 1.0], [2.0, 0.0]]


def test_calibration_reverses_wrong_decisions(load):
    """A feature that tells when the model is wrong makes every decision right."""
    own = load("calibration")
    own.TREES = 5
    rng = np.random.default_rng(0)
    labels, wrong = rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    decided = np.where(wrong == 1, 1 - labels, labels)
    split = np.arange(60) < 30
    table, areas = own.calibrated(wrong[:, None].astype(float), decided, labels, [split])
    assert np.isnan(table[0, :30]).all() and (table[0, 30:] == 1).all() and areas == [1.0]
    table, areas = own.calibrated(None, decided, np.array([1] * 40 + [0] * 20), [split])
    assert np.nanmean(table) == pytest.approx(1 / 3) and areas == []


def test_test_texts_are_balanced(load, monkeypatch):
    sets = load("sets")
    texts = [{"text": str(i)} for i in range(7)]
    data = load("experiments.shared.data").Examples(texts, [0, 0, 0, 0, 1, 1, 0])
    monkeypatch.setattr(sets, "read", lambda *_: data)
    balanced = sets.test_texts(None, "sst2", 4)
    assert balanced.labels == [0, 1, 0, 1] and [e["text"] for e in balanced.inputs] == ["0", "4", "1", "5"]


def test_sizes_are_changed_by_name(load):
    sizes, changed = load("sets").Sizes(), load("experiments.shared.options").changed
    assert changed(sizes, ["texts=3", "few_seeds=1"]) == replace(sizes, texts=3, few_seeds=1)
    for word in ("text=3", "texts=many", "texts"):
        with pytest.raises(SystemExit, match="--sizes must be NAME=NUMBER"):
            changed(sizes, [word])


def test_yelp_is_split_into_test_and_training_texts(load, tmp_path):
    """The first 200 rows are tested on; of the others 100 are the dev set. Reviews are cut to 100 words."""
    data, spec = load("experiments.hase2021.data"), load("sets").SETS["yelp"]
    texts = [f"t{i}<br />" + " word" * 120 for i in range(320)]
    write_frame(tmp_path / f"{load('sets').YELP[0]}.parquet", text=texts, label=[0, 1] * 160)
    first = {split: data.read(tmp_path, spec, split).inputs for split in spec.splits}
    numbers = {split: sorted(int(t["text"].split()[0][1:]) for t in own) for split, own in first.items()}
    assert numbers["test"] == list(range(200)) and sorted(numbers["train"] + numbers["dev"]) == list(
        range(200, 320)
    )
    assert {split: len(own) for split, own in numbers.items()} == {"train": 20, "test": 200, "dev": 100}
    assert {len(t["text"].split()) for t in first["test"]} == {100}


def test_verdicts(load):
    own = load("conclusions")
    sure, never, open = (SimpleNamespace(low=a, high=b) for a, b in ((1, 2), (-2, -1), (-1, 1)))
    assert own.verdict([sure, sure]) == "yes" and own.verdict([never]) == "no, the reverse"
    assert own.verdict([sure, open]) == "on some sets" and own.verdict([open, never]) == "no"
    assert own.verdict([open, open]) == "undecided"
    assert own.verdict([sure, never]) == "on some sets, on others the reverse" and own.verdict([]) == "–"


class Stages:
    """Records with columns and right decisions, by name."""

    def __init__(self, columns, right=None, stages=None):
        self._columns, self._right, self._stages = columns, right or {}, stages or {}

    def column(self, dataset, stage, measure, row=None):
        values = self._columns.get(stage if row is None else f"{stage} {row}", {}).get(measure)
        return None if values is None else np.array(values)

    def right(self, dataset, stage, removal, share):
        return self._right.get((stage, removal, share))

    def stage(self, dataset, name):
        return self._stages.get(name)

    second = None

    def having(self, dataset, stage):
        return self


def test_findings_are_differences_that_are_positive_where_they_hold(load):
    own = load("conclusions")
    columns = {
        "method-KS-200": {"spearman": [0.9, 0.1, 0.5, 0.3], "features": [5, 80, 10, 40]},
        "padded-KS-200": {"spearman": [0.7, 0.1]},
        "adapted-5 prediction": {"svs spearman": [0.5, 0.5]},
        "adapted-5 alg. 1": {"svs spearman": [0.7, 0.7]},
        "adapted-5 SVS": {"svs spearman": [0.6, 0.6]},
        "transfer-sst2 amortized": {"svs spearman": [0.6, 0.8]},
        "transfer-sst2 KS-100": {"svs spearman": [0.4, 0.5]},
    }
    right = {("method-KS-200", "pad-token", "0.2"): np.array([1.0, 1.0])}
    right |= {("method-amortized", "pad-token", "0.2"): np.array([0.0, 1.0])}
    stages = {"seconds": {"alone": {"KS-200": [1.0, 0.9], "amortized": [0.02, 0.03]}}}
    results = Stages(columns, right, stages)
    assert own.below("KS-200", 0.4)(results, "sst2").mean == pytest.approx(0.4 - 0.45)
    assert own.padding(results, "sst2").mean == pytest.approx(0.1)  # the texts of both
    assert own.shorter(results, "sst2").mean == pytest.approx(0.7 - 0.2)
    assert own.adaption(5, "alg. 1", "SVS")(results, "sst2").mean == pytest.approx(0.1)
    assert own.adaption(5, "alg. 1", "prediction")(results, "sst2").mean == pytest.approx(0.2)
    assert own.transfer("yelp")(results, "sst2").mean == pytest.approx(0.25)
    assert own.transfer("yelp")(results, "mnli") is None
    assert own.transfer("yelp", "KS-200")(results, "sst2") is None
    assert own.speedup("seconds")(results, "sst2").mean == pytest.approx((50 + 30) / 2 - 1)
    assert own.speedup("seconds-cpu")(results, "sst2") is None
    assert own.masking("KS-200", "amortized")(results, "sst2").mean == pytest.approx(0.5)
    assert own.between("SVS-25", "KS-200", "spearman")(results, "sst2") is None
    beside = {"mean": -0.1, "low": -0.2, "high": 0.0, "p_value": 0.05, "n": 9}
    results = Stages({}, stages={"calibration": {"rows": {"amortized": {"beside KS-2000": beside}}}})
    assert own.calibration("KS-2000")(results, "mnli").mean == -0.1
    assert own.calibration("KS-200")(results, "mnli") is None
    assert own.calibration("KS-2000")(Stages({}), "mnli") is None


def test_columns_of_records(load, tmp_path):
    results_module = load("results")
    record = {
        "columns": {"mse": [1.0, None], "row": {"mse": [2.0]}},
        "accuracy": {"pad-token": {"0.2": [1, 0]}},
    }
    (tmp_path / "sst2.one.json").write_text(json.dumps(record))
    results = results_module.Results(tmp_path)
    np.testing.assert_array_equal(results.column("sst2", "one", "mse"), [1.0, np.nan])
    assert results.column("sst2", "one", "mse", "row").tolist() == [2.0]
    assert results.right("sst2", "one", "pad-token", "0.2").tolist() == [1.0, 0.0]
    assert results.column("sst2", "two", "mse") is None and results.column("sst2", "one", "spearman") is None
    assert results_module.show_error(np.full(3, 1.5e-4)) == "1.50e-04 [1.50e-04, 1.50e-04]"
    assert results_module.show_error(np.full(3, 0.5)) == "0.5000 [0.5000, 0.5000]"


def test_spread_over_trainings_and_records_of_the_learning_curve(load, tmp_path):
    own = load("results")
    runs = {"svs spearman": [0.5, 0.7], "row": {"svs spearman": [0.5]}}
    stages = {"method-amortized": {"runs": runs}, "learned": {"texts": 30}, "curve-10": {"texts": 3}}
    for name, stage in stages.items():
        (tmp_path / f"sst2.{name}.json").write_text(json.dumps(stage))
    results = own.Results(tmp_path)
    assert results.spread("sst2", "method-amortized", "svs spearman") == pytest.approx(0.02**0.5)
    assert results.spread("sst2", "method-amortized", "svs spearman", "row") is None
    assert results.spread("sst2", "adapted", "svs spearman") is None
    assert results.curve("sst2", 10) == ("curve-10", 3)
    assert results.curve("sst2", 100) == ("method-amortized", 30)
    assert results.curve("sst2", 30) == ("curve-30", None)


def test_findings_of_other_runs_are_marked(load, tmp_path):
    """What the first run lacks is of the second run, or as an earlier one printed it."""
    own = load("conclusions")
    (tmp_path / "second").mkdir()
    for path, value in (("sst2.method-KS-200.json", 0.5), ("second/sst2.method-KS-200.json", 0.9)):
        (tmp_path / path).write_text(json.dumps({"columns": {"spearman": [value] * 2}}))
    (tmp_path / "second" / "sst2.padded-KS-200.json").write_text('{"columns": {"spearman": [0.6, 0.6]}}')
    results = load("results").Results(tmp_path)
    assert results.having("sst2", "padded-KS-200") is results.second
    assert results.having("sst2", "method-KS-200") is results.having("sst2", "model") is results
    first = own.FINDINGS[0]
    assert own.measured(results, first, "sst2")[0].mean == pytest.approx(-0.1)
    (fast,) = [each for each in own.FINDINGS if each.text == "amortized is better than FastSHAP"]
    gap, mark = own.measured(results, fast, "imdb")
    assert (gap.mean, gap.low, gap.high, mark) == (0.11, 0.08, 0.14, own.OF_EARLIER)
    assert own.measured(results, first, "imdb") == (None, "")
    (tokens,) = [each for each in own.FINDINGS if "ranks the tokens" in each.text]
    gap, mark = own.measured(results, tokens, "sst2")
    assert gap.mean == pytest.approx(0.3) and mark == own.OF_SECOND
    assert own.EARLIER.keys() <= {each.text for each in own.FINDINGS}


def test_evaluations_of_a_training(load):
    stages = {"learned": {"evaluations": 552.4}, "FastSHAP-0": {"samples": 32, "epochs": 10.0}}
    stages |= {"FastSHAP-fresh-0": {"samples": 50, "epochs": 9.0}}
    stages |= {"FastSHAP-surrogate-0": {"samples": 32, "epochs": 9.0, "surrogate": {"dev_loss": 0.1}}}
    count = load("tables").training_evaluations
    results = Stages({}, stages=stages)
    assert {name: count(results, "sst2", name) for name in load("measure").LEARNED} == {
        "amortized": "552",
        "FastSHAP": "34",
        "FastSHAP-equal": "–",
        "FastSHAP-fresh": "502",
        "FastSHAP-surrogate": "1",
    }


def test_ratio_of_seconds(load):
    alone = {"KS-200": [0.3, 0.5], "amortized": [0.01, 0.01]}
    results = Stages({}, stages={"seconds-alone": {"alone": alone}})
    line, *_ = load("tables").seconds(results).splitlines()[2:]
    cells = line.strip("| ").split(" | ")
    assert cells[:2] == ["SST-2, H200, KS-200", "2"] and cells[4].startswith("40.0 ") and cells[5] == "69"


def test_errors_and_ranks_over_methods_and_texts(load):
    """On a falling line the correlation is −1, whatever method a text is of; missing ones do not count."""
    columns = {
        "method-KS-25": {"mse": [1.0, np.nan], "spearman": [0.0, 0.9]},
        "method-KS-200": {"mse": [0.5, 0.0], "spearman": [0.5, 1.0]},
    }
    own = load("tables")
    assert own.mse_and_spearman(Stages(columns), "sst2") == pytest.approx(-1.0)
    assert np.isnan(own.mse_and_spearman(Stages({}), "sst2"))


def test_accuracy_without_the_top_features(load, monkeypatch):
    """Of log-odds 3, −1 and −1 without the first: the other class is predicted, at every share."""
    own = load("measure")
    monkeypatch.setattr(own, "REMOVALS", ("mean",))

    def classify(rows):
        p = 1 / (1 + np.exp(-np.asarray(rows, dtype=float) @ np.array([3.0, -1.0, -1.0])))
        return np.column_stack([1 - p, p])

    model = pertinent.wrap(classify, kind="table", background=np.zeros((1, 3)))
    found = pertinent.explain(model, np.ones((2, 3)), "leave-one-out", removal="mean", progress=False)
    right = own.accuracy(model, found, [1, 0])["mean"]
    assert right == {"0": [1, 0], **{str(share): [0, 1] for share in own.SHARES}}


def test_agreement_by_length(load):
    own = load("figures")
    columns = {name: [1.0, 0.0, 0.5] for name in own.MEASURES} | {"features": [5, 50, 60]}
    found = own.by_length(Stages({"method-KS-25": columns}), "sst2", "KS-25")
    means = {
        each.low: each.measures["spearman"].mean for each in found.by_length if each.measures["spearman"].n
    }
    assert list(means.values()) == [1.0, 0.25]
    assert own.by_length(Stages({}), "sst2", "KS-25") is None


def test_references_survive_a_round_trip(load):
    measure = load("measure")
    references = measure.References([np.array([1.0, 2.0])], [np.array([0.1, 0.2])], [np.array([3.0, 4.0])])
    again = measure.References.from_dict(references.to_dict())
    for name in ("scores", "errors", "svs"):
        np.testing.assert_array_equal(getattr(again, name), getattr(references, name))


def test_padding_is_compared_on_the_same_texts(load):
    columns = {
        "method-KS-200": {"spearman": [0.5, 0.7, 0.0]},
        "padded-KS-200": {"spearman": [0.4, 0.4]},
    }
    results = Stages(columns)
    results.sets = ["sst2"]
    (line,) = load("tables").padding(results).splitlines()[2:]
    cells = line.strip("| ").split(" | ")
    assert cells[:2] == ["SST-2, KS-200", "0.16"]
    assert cells[2].startswith("0.40") and cells[3].startswith("0.60")


def test_calibration_in_percent(load):
    row = {"mean": 0.7, "low": 0.65, "high": 0.75, "auc": 0.8}
    row["beside BOW"] = {"mean": 0.01, "low": -0.02, "high": 0.04}
    row["beside KS-2000, captum"] = {"mean": -0.01, "low": -0.02, "high": 0.0}
    found = {"uncalibrated": row, "rows": {"amortized": row}, "pairs": 1000, "splits": 20, "train": 500}
    page = load("tables").calibration(Stages({}, stages={"calibration": found}))
    assert page.startswith("1,000 pairs, 20 splits with 500")
    assert "| 68.0 | 70.0 [65.0, 75.0] | +1.0 [-2.0, +4.0] | -1.0 [-2.0, +0.0] | 80.0 |" in page


def test_jobs_of_each_data_set(load):
    """Of Yelp-Polarity only the transfer is measured; a method is measured after its training."""
    stages, measuring = load("stages"), load("measuring")
    jobs = {name: {job.name: job for job in stages.measure(None, sets=[name])} for name in stages.SIZES}
    assert list(jobs["yelp"])[-1] == "yelp.transfer-sst2" and "yelp.reference" not in jobs["yelp"]
    for name in ("sst2", "mnli", "imdb"):
        records = {job.record for job in jobs[name].values()}
        assert all(set(job.needs) <= records for job in jobs[name].values())
        assert f"{name}.amortized-4.json" in jobs[name][f"{name}.adapted-5"].needs
        assert all(f"{name}.{m}-0.json" in jobs[name][f"{name}.method-{m}"].needs for m in measuring.FASTSHAP)
        assert {f"{name}.method-{m}" for m in load("measure").METHODS} <= jobs[name].keys()
        assert (f"{name}.pairs-KS-2000, padded" in jobs[name]) == (name == "mnli")
        assert (f"{name}.transfer-sst2" in jobs[name]) == (name == "imdb")
    timed = {job.name for job in stages.timings(None)}
    assert "sst2.seconds-cpu" in timed and "yelp.seconds-cpu" not in timed


def test_layout_of_tokens_and_drawing_of_a_review(load):
    own = load("figures")
    positions = own.layout(["ab", "cd", "efg", "a longer one", "h"], 5)
    assert positions == [(0, 0), (0, 3), (1, 0), (2, 0), (3, 0)]
    assert own.figure_1(Stages({})) is None
    record = {"tokens": ["good", "film"], "scores": [[1.0, -0.5], [0.5, 0.0]]}
    figure = own.figure_1(Stages({}, stages={"example": record}))
    assert [axes.get_title("left") for axes in figure.axes[:2]] == ["KS-200, seed 0", "KS-200, seed 1"]


def test_an_example_is_explained_with_two_seeds(load, monkeypatch):
    own = load("measuring")
    monkeypatch.setattr(own, "agreement", lambda runs: SimpleNamespace(spearman=float(len(runs))))
    runs = [[explanation([0.123456, 1.0])], [explanation([0.0, 1.0])]]
    subject = SimpleNamespace(test=SimpleNamespace(inputs=["a", "b"]), explain=lambda name, texts, n: runs)
    record = own.explain_example(subject)
    assert record == {"tokens": ["w", "w"], "scores": [[0.12346, 1.0], [0.0, 1.0]], "spearman": 2.0}


def test_another_domain_with_padding(load):
    columns = {
        "transfer-sst2 KS-100": {"svs spearman": [0.8, 0.8], "reference spearman": [0.9, 0.9]},
        "transfer-sst2 KS-100, padded": {"svs spearman": [0.6, 0.6]},
    }
    results = Stages(columns, stages={"transfer-sst2": {"right": [1, 0]}})
    results.spread = lambda *_: 0.01
    found = load("tables").transfer(results).splitlines()
    plain, padded = (line.strip("| ").split(" | ") for line in found if line.startswith("| Yelp"))
    assert plain[1:4] == ["50%", "KS-100", "0.46"] and plain[4].startswith("0.80") and len(plain) == 7
    assert padded[4].startswith("0.60") and padded[6] == "–"


def test_the_regression_is_captums(load):
    """captum's scores from the same masks: with fewer masks than players, and with more."""
    captum = pytest.importorskip("captum.attr")
    regression = load("padding").captum_regression
    for n in (15, 90):
        rows = []

        def answer(inputs, rows=rows):
            rows.append(inputs[0].numpy().copy())
            return inputs @ torch.arange(20.0) + inputs[:, 3] * inputs[:, 4]

        torch.manual_seed(n)
        expected = captum.KernelShap(answer).attribute(torch.ones(1, 20), n_samples=n)[0].numpy()
        masks = np.array(rows[-n:]) > 0
        assert masks[0].all() and not masks[1].any()
        values = answer(torch.from_numpy(masks).float()).numpy()[:, None]
        np.testing.assert_allclose(regression(masks, values)[:, 0], expected, atol=1e-3)


def test_sizes_of_masks_are_captums(load):
    """A size k has probability ∝ 1 / (k (d − k)), and every feature is kept equally often."""
    masks = load("padding").captum_masks(5, 40_002, np.random.default_rng(0))
    assert masks[0].all() and not masks[1].any()
    weight = 1 / (np.arange(1, 5) * np.arange(4, 0, -1))
    sizes = np.bincount(masks[2:].sum(axis=1), minlength=6)
    np.testing.assert_allclose(sizes[1:5] / 40_000, weight / weight.sum(), atol=0.01)
    np.testing.assert_allclose(masks[2:].mean(axis=0), 0.5, atol=0.01)


def test_padding_plays_and_gets_no_part_of_a_linear_game(load):
    """With more masks than players captum's estimator is exact; two of five players are the tokens."""
    padding = load("padding")
    model = pertinent.wrap(
        lambda rows: np.asarray(rows) @ np.array([2.0, -1.0]),
        kind="table",
        output="value",
        background=np.zeros((1, 2)),
    )
    own = padding.Padded(padding.CaptumKernelShap(40), players=5)
    (found,) = pertinent.explain(model, np.ones((1, 2)), own, removal="mean", progress=False)
    np.testing.assert_allclose(found.scores, [2.0, -1.0], atol=1e-6)
    np.testing.assert_allclose(found.details["special"], np.zeros(3), atol=1e-6)


def test_records_of_a_game_survive_a_round_trip(load, tmp_path):
    record = load("game_record").GameRecord(tmp_path / "sst2.npz")
    record.add("sst2/KS-25, captum/0", [np.array([1.0, -0.5]), np.array([0.25])], [[0.5, 0.0, 1.0]] * 2)
    record.add("sst2/SVS-25/98", [np.array([1.0, 2.0]), np.array([3.0])])
    record.meta["model"] = {"accuracy": 0.9}
    record.save()
    again = load("game_record").GameRecord(tmp_path / "sst2.npz")
    assert again.keys == ["sst2/KS-25, captum/0", "sst2/SVS-25/98"] and "sst2/SVS-25/98" in again
    assert [row.tolist() for row in again.scores("sst2/KS-25, captum/0")] == [[1.0, -0.5], [0.25]]
    assert again.special("sst2/KS-25, captum/0", 2)[1].tolist() == [0.5, 0.0]
    assert again.special("sst2/SVS-25/98", 2)[0].tolist() == [0.0, 0.0]
    assert again.meta == {"model": {"accuracy": 0.9}}


def game_record(load, path):
    """Two texts: captum's seeds are each other's reverse, the amortized model agrees with SVS-25."""
    record = load("game_record").GameRecord(path)
    up, down = [np.arange(3.0), np.arange(4.0)], [np.arange(3.0)[::-1], np.arange(4.0)[::-1]]
    for texts in ("yelp", "sst2"):
        for key, rows in (("SVS-25/98", up), ("SVS-25/0", up), ("amortized/0", up)):
            record.add(f"{texts}/{key}", rows)
        record.add(f"{texts}/KS-200, captum/0", up, [[9.0, 9.0, 9.0]] * 2)
        record.add(f"{texts}/KS-200, captum/1", down, [[-9.0, -9.0, -9.0]] * 2)
    record.meta["seconds"] = {"KS-200, one mask per pass": [2.0], "KS-200, one batch": [0.2]}
    record.meta["seconds"] |= {"amortized": [0.1], "one pass": [0.05]}
    return record


def test_stability_and_agreement_in_the_papers_game(load, tmp_path):
    record = game_record(load, tmp_path / "yelp.npz")
    assert record.stability("yelp", "KS-200, captum").tolist() == [-1.0, -1.0]
    assert record.agreement("yelp", "KS-200, captum").tolist() == [0.0, 0.0]
    assert record.spread("yelp", "KS-200, captum") == pytest.approx(np.sqrt(2))
    assert record.agreement("yelp", "amortized").tolist() == [1.0, 1.0]
    assert record.stability("yelp", "SVS-25") is None  # the truth is no second seed
    assert record.agreement("yelp", "KS-25, captum") is None
    special = record.seeds("yelp", "KS-200, captum", special=True)
    assert special[0][0].tolist() == [0.0, 1.0, 2.0, 9.0, 9.0]


def test_measures_of_the_papers_game(load):
    measures = load("game_record").MEASURES
    a, b = np.arange(7.0), np.arange(7.0)[::-1]
    assert measures["ρ"](a, b) == -1.0 and measures["top 5"](a, b) == 3.0
    assert np.isnan(measures["top 10"](a, b)) and measures["MSE"](a, a + 2) == 4.0


def test_tables_of_the_papers_game(load, tmp_path):
    tables, records = load("game_tables"), {"yelp": game_record(load, tmp_path / "yelp.npz")}

    def cells(text, name):
        (line,) = [line for line in text.splitlines() if line.startswith(f"| {name} |")]
        return line.strip("| ").split(" | ")[1:]

    assert cells(tables.stability(records), "Yelp-Polarity, KS-200, captum")[:3] == ["2", "2", "0.16"]
    agreement = cells(tables.approximation(records), "Yelp-Polarity, amortized")
    assert agreement[1:3] == ["0.61", "1.00 [1.00, 1.00]"]
    transfer = cells(tables.transfer(records), "Yelp-Polarity → SST-2, KS-200, captum")
    assert transfer[2].startswith("0.00") and transfer[6] == "+1.00 [+1.00, +1.00]"
    assert cells(tables.findings(records), "Yelp-Polarity")[0].startswith("+1.40")
    assert cells(tables.seconds(records), "Yelp-Polarity")[5:] == ["20.0", "2.0", "40.0", "69"]


def test_the_page_of_the_papers_game_has_the_numbers_of_its_records(load):
    load("experiments.shared.intervals").RESAMPLES = 10_000
    pages, shared = load("pages"), load("experiments.shared.pages")
    folder = ROOT / "experiments" / "yang2023"
    page = (folder / "paper_game.md").read_text(encoding="utf-8")
    with shared.unpacked_records(folder, load("experiments.shared.stages").Run()) as run:
        parts = pages.paper_game(run)
        for name in ("models", "seconds", "calibration"):
            assert parts[name]() in page
        transfer = load("game_tables").transfer({"yelp": pages.records_of(run.results)["yelp"]})
    assert transfer.partition("---\n")[2] in page


def test_calibration_takes_the_pairs_that_all_methods_have(load, tmp_path, monkeypatch):
    write_frame(tmp_path / "mrpc" / "test.parquet", sentence1=["a", "b"], sentence2=["c", "d"], label=[1, 0])
    calibration, stages = load("calibration"), load("experiments.shared.stages")
    record = load("game_record").GameRecord(tmp_path / "mnli.npz")
    record.add("mrpc/amortized/0", [np.ones(2), np.ones(3)])
    record.add("mrpc/KS-2000, captum/0", [np.ones(2)])
    record.meta["pairs"] = {"labels": [1, 0], "spans": [[], []]}
    record.save()
    monkeypatch.setattr(calibration, "calibrate", lambda pairs, scores, *_: (pairs, scores))
    pairs, scores = calibration.calibrate_game(stages.Run(tmp_path, results=tmp_path), None, 1, 1)
    assert pairs == {"labels": [1], "spans": [[]], "pairs": [["a", "c"]]}
    assert {name: len(rows) for name, rows in scores.items()} == {"amortized": 1, "KS-2000, captum": 1}

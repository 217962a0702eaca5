"""Numbers of `experiments/vo2023` on cases with a known answer."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import pertinent
from tests.miniature import ROOT, experiment


@pytest.fixture
def load():
    with experiment("vo2023") as importer:
        yield importer


def logistic(weights):
    """Return a model of table rows whose log-odds are a weighted sum; removed columns become 0."""

    def classify(rows):
        p = 1 / (1 + np.exp(-np.asarray(rows, dtype=float) @ np.array(weights, dtype=float)))
        return np.column_stack([1 - p, p])

    return pertinent.wrap(classify, kind="table", background=np.zeros((1, len(weights))))


# -- black boxes --------------------------------------------------------------------------------


def test_two_classes_of_hatexplain(load, tmp_path):
    for name in ("hatexplain", "ag_news"):
        (tmp_path / name).mkdir()
        columns = {"text": list("abcd"), "label": np.array([0, 1, 2, 3], dtype=np.int8)}
        pd.DataFrame(columns).to_parquet(tmp_path / name / "train.parquet")
    rows = {name: load("sets").read(tmp_path, name, "train") for name in ("hatexplain", "ag_news")}
    labels = {name: dict(zip(split.inputs, split.labels, strict=True)) for name, split in rows.items()}
    assert labels["hatexplain"] == {"a": 1, "b": 0, "c": 1, "d": 1}
    assert labels["ag_news"] == {"a": 0, "b": 1, "c": 2, "d": 3}


def test_black_boxes_do_not_read_padding(load):
    """Logits of a text are the same alone and next to a longer one."""
    import torch

    boxes = load("black_boxes")
    rows = [torch.tensor([2, 3, 4]), torch.tensor([5, 2, 3, 4, 6, 2, 5])]
    for dataset in boxes.BODIES:
        torch.manual_seed(0)
        model = boxes.TextClassifier(dataset, 8).eval()
        with torch.no_grad():
            together = model(*boxes._pad(rows, "cpu")).logits
            alone = torch.cat([model(*boxes._pad([row], "cpu")).logits for row in rows])
        assert torch.allclose(together, alone, atol=1e-5)
    positions = boxes._positions(torch.zeros(1, 2, 4))
    assert positions[0].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert positions[1].tolist() == pytest.approx([np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)])


def test_agreement_with_true_weights(load):
    agreement = load("fitting").agreement
    truth = np.array([4.0, 3.0, 0.1, -5.0, 3.0, 0.0])
    assert agreement(truth, truth, k=2) == (1.0, 1.0, pytest.approx(1.0))
    assert agreement(-truth, truth, k=2) == (0.0, 0.0, pytest.approx(-1.0))
    # Words 1 and 4 have the same weight: either is right. Of 3 and 0, the largest, 3 has the wrong sign.
    scores = np.array([2.0, 0.0, 0.5, 1.0, 3.0, -1.0])
    share, signs, rho = agreement(scores, truth, k=2)
    assert (share, signs) == (1.0, 0.5)
    ranks = [5, 2, 3, 4, 6, 1], [6, 4.5, 3, 1, 4.5, 2]
    assert rho == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert agreement(np.zeros(6), truth, k=2)[2] == 0.0


def test_true_words_of_a_linear_black_box(load):
    """An explainer that returns the true weights finds all true words, with the right signs."""
    import torch

    true_words = load("fitting").true_words
    weights = np.random.default_rng(0).normal(size=(30, 2))
    embeddings = SimpleNamespace(weight=torch.tensor(weights))
    ids, feature = np.arange(2, 28), np.array([-1, *range(24), -1])
    tokens = SimpleNamespace(ids=ids, feature=feature)
    model = SimpleNamespace(
        model=SimpleNamespace(embeddings=embeddings), prepare=lambda _: SimpleNamespace(tokens=tokens)
    )
    relative = (weights[:, 1] - weights[:, 0])[ids[1:-1]]
    right = SimpleNamespace(index=0, target=1, scores=relative, class_scores=None)
    wrong = SimpleNamespace(index=0, target=1, scores=-relative, class_scores=None)
    assert true_words(model, ["text"], [right])["true words"] == 1.0
    assert true_words(model, ["text"], [right])["true signs"] == 1.0
    assert true_words(model, ["text"], [wrong])["rank correlation"] == pytest.approx(-1.0)
    shifted = np.stack([weights[ids[1:-1], 0], weights[ids[1:-1], 1]]) + 5.0
    of_classes = SimpleNamespace(index=0, target=1, scores=shifted[1], class_scores=shifted)
    assert true_words(model, ["text"], [of_classes])["true signs, relative"] == 1.0


def test_metrics_of_a_fit(load):
    """Ten of twelve columns are kept or removed; at a sparsity of 10% two of them."""
    weights = np.arange(12, 0, -1) / 20
    model = logistic(weights)
    explanations = pertinent.explain(model, np.ones((2, 12)), "leave-one-out", removal="mean", progress=False)
    means = load("fitting").measure(model, explanations, of_classes=False)
    p = {n: 1 / (1 + np.exp(-weights[n:].sum())) for n in (0, 2)}
    assert means["faithfulness"] == 1.0 and means["failures"] == []
    assert means["positive-delta-log-odds"] == pytest.approx(weights[:10].sum(), abs=1e-4)
    assert means["negative-delta-log-odds"] == pytest.approx(weights[10:].sum(), abs=1e-4)
    assert means["comprehensiveness"] == pytest.approx(p[0] - p[2], abs=1e-4)


# -- means and words ----------------------------------------------------------------------------


def test_means_over_seeds_and_inputs(load):
    results = load("results")
    results.RESAMPLES = 50
    runs = [
        {"values": {"brevity": [1.0, 2.0, 6.0]}, "words": [["a"] * 4, ["b"] * 2, ["c"] * 4]},
        {"values": {"brevity": [3.0, 4.0, 8.0]}, "words": [["a"] * 4, ["b"] * 2, ["c"] * 4]},
        {"values": {}, "words": []},
    ]
    assert results.mean_of(runs, "brevity").mean == pytest.approx(4.0)
    assert results.mean_of(runs, "brevity", first=2).mean == pytest.approx(2.5)
    assert results.mean_of(runs, "brevity", more_words_than=3).mean == pytest.approx(4.5)
    assert results.mean_of(runs, "purity") is None


def test_records_of_a_form(load, tmp_path):
    """Records of single jobs are added to those of the kept file."""
    results = load("results")
    (tmp_path / "made").mkdir()
    names = ("imdb | network | l2x | 0", "imdb | network | l2x, K 5 | 0", "imdb | linear | l2x | 0")
    kept = {name: {"name": name, "values": {}} for name in names}
    (tmp_path / "made.json").write_text(json.dumps(kept))
    more = {"name": "imdb | network | l2x | 1", "values": {}}
    (tmp_path / "made" / "imdb_network_l2x_1.json").write_text(json.dumps(more))
    (tmp_path / "made" / "means.json").write_text(json.dumps({"name": "imdb | network | l2x | 2"}))
    records = results.read_records(tmp_path, "made")
    assert [run["name"][-1] for run in results.runs_of(records, "imdb", "l2x")] == ["0", "1"]
    assert len(results.runs_of(records, "imdb", "l2x, K 5")) == 1
    assert results.runs_of(records, "imdb", "aim") == []


def test_purity_counts_every_stop_word_and_sign(load, monkeypatch):
    words = load("words")
    monkeypatch.setattr("pertinent.metrics.english_words.stop_words", lambda: {"the"})
    monkeypatch.setattr(words, "clusters", lambda several: [[word] for word in dict.fromkeys(several)])
    runs = [{"words": [["The", "good", "the", "a", "b", "c"]], "failures": []}]
    by_size = {5: [{"words": [["good", "film", "the", "x", "y", "z"]], "failures": []}], 20: []}
    measures = words.measure_words(runs, by_size, None, 1)
    assert measures["purity 5"].mean == pytest.approx(1 / 5)  # of the words of the fit with K = 5
    assert measures["purity 10"].mean == pytest.approx(2 / 6) and measures["brevity 10"].mean == 5
    assert measures["purity as published 10"].mean == pytest.approx(1 / 10)  # one stop word, of K
    assert "purity 20" not in measures and words.measure_words([], {}, None, 1) == {}


def test_stability_is_the_overlap_with_neighbours(load, monkeypatch):
    """Two texts with the same decision are neighbours; a third has none. Stop words do not count."""
    words = load("words")
    monkeypatch.setattr(words, "is_contaminated", {"the"}.__contains__)
    texts = ["a good film with actors", "a good film with music", "a bad film with actors"]
    run = {"words": [["Good", "the", "film"], ["good", "music"], ["bad"]], "targets": ["yes", "yes", "no"]}
    overlaps = words.stability(run, texts)
    assert overlaps[:2] == pytest.approx([1 / 3, 1 / 3]) and np.isnan(overlaps[2])


def test_words_as_the_authors_count_them(load, monkeypatch):
    """WordNet has two of the words, which are no synonyms; the authors' code joins them."""
    results, tables = load("results"), load("form_tables")
    senses = {word: SimpleNamespace(direct={word}, similar=set()) for word in ("film", "good")}
    missing = SimpleNamespace(direct=set(), similar=set())
    monkeypatch.setattr("pertinent.metrics.english_words.stop_words", lambda: {"the"})
    monkeypatch.setattr(results, "senses", lambda word: senses.get(word, missing))
    monkeypatch.setattr(results, "clusters", lambda words: [[word] for word in dict.fromkeys(words)])
    assert results.count_words({"words": [["The", "the", "film", "."], ["good", "film"]]}) == {
        "purity": [3 / 4, 0.0],
        "purity as published": [2 / 10, 0.0],  # "the" and ".", of ten
        "brevity": [3.0, 2.0],
        "brevity as published": [3.0, 1.0],
    }
    runs = [{"counted": {name: [0.2, 0.4] for name in results.MEASURES}}] * 2
    assert results.word_measures(runs)["purity"].mean == pytest.approx(0.3)
    assert tables.paper_words("imdb", "aim") == ("8.22", "2.48")
    assert tables.paper_words("imdb", "paper, D.1: from the selector") == ("22.72", "3.15")
    assert tables.paper_words("imdb", "lime") == ("36.55", "7.73")


# -- README.md: texts and images ----------------------------------------------------------------


def records_of(**forms):
    """Return records of IMDB's network: the runs of each form, by seed."""
    return {
        f"imdb | network | {form} | {seed}": run
        for form, runs in forms.items()
        for seed, run in enumerate(runs)
    }


def test_aim_against_lime_on_the_texts_of_both(load):
    """The mean of AIM over seeds counts, on the texts that every row has."""
    tables = load("text_tables")

    def run(values):
        return {"values": dict.fromkeys(tables.PAIRED, values), "words": [["w"]] * len(values)}

    runs = {"explainer alone": [run([0.5, 0.5, 0.0]), run([0.7, 0.7, 0.0])], "lime": [run([0.4, 0.4])]}
    records = records_of(**runs)
    assert tables.n_shared(tables.rows_of(records, "imdb")) == 2
    first, second = tables.differences(records).splitlines()[2:4]
    assert first.startswith("| imdb | class-faithfulness | 60.0 | 40.0 | 20.0 [20.0, 20.0] |")
    assert second.startswith("| imdb | positive-delta-log-odds | 0.60 | 0.40 | 0.20 [0.20, 0.20] |")


def test_shares_are_shown_in_percent(load):
    """Values are of the texts that every row has, and of all; the classes' mean is over their values."""
    tables, results = load("text_tables"), load("results")
    results.RESAMPLES = 50
    few, many = [0.5] * 2, [0.5, 0.5, 1.0, 1.0]
    metrics = (
        "faithfulness",
        "class-faithfulness",
        "class-iou",
        "class-faithfulness 0",
        "class-faithfulness 1",
    )
    metrics += ("positive-delta-log-odds", "negative-delta-log-odds")

    def run(values):
        return {"values": dict.fromkeys(metrics, values), "words": [["w"] * 11] * len(values)}

    records = records_of(**{"explainer alone": [run(many)], "lime": [run(few)]})
    cells = tables.texts(records).splitlines()[2].split(" | ")
    assert cells[2] == "99.62" and cells[3].startswith("75.0 [") and cells[4].startswith("50.0 [")
    assert cells[6].startswith("0.75 [") and cells[-2:] == ["4", "1 |"]
    cells = tables.classes(records).splitlines()[2].split(" | ")
    assert cells[2] == "98.09 / 98.96" and cells[4] == "98.5"
    assert cells[6].startswith("50.0 [") and cells[7].startswith("75.0 [")


def test_cost_and_alphas(load):
    """Two fits take 60 and 180 seconds; the α of Table 6 is the row with a selector."""
    tables = load("text_tables")
    load("results").RESAMPLES = 50
    metrics = ("faithfulness", "class-faithfulness", "positive-delta-log-odds", "negative-delta-log-odds")
    values = {"sufficiency": [0.1, 0.3], "comprehensiveness": [0.5, 0.7]}
    values |= {metric: [0.0, 1.0] for metric in metrics}
    run = {"values": values, "words": [["w"]] * 2, "evaluations": 1.0, "steps": 5}
    default = [run | {"fit seconds": seconds} for seconds in (60.0, 180.0)]
    records = records_of(**{"both, explore .5": default, "both, alpha 0.5": [run]})
    cells = tables.cost(records).splitlines()[2].strip("| ").split(" | ")
    assert cells[2].startswith("0.20 [") and cells[3].startswith("0.60 [")
    assert cells[4:] == ["1", "2.0", "11.19"]
    lines = [line.strip("| ").split(" | ") for line in tables.alphas(records).splitlines()]
    rows = {cells[1]: cells for cells in lines if cells[0] == "imdb"}
    assert rows["1.8"][2] == "99.62" and rows["1.8"][-1] == "2" and "2.0" not in rows
    assert rows["0.5"][3].startswith("50.0 [") and rows["0.5"][5].startswith("(8.83) 0.50 [")


def test_the_fastest_of_several_times(load, tmp_path):
    (tmp_path / "timings").mkdir()
    record = {"inputs": 1000, "black box": [2.0, 1.0, 3.0], "aim": [1.5, 2.5, 1.75]}
    (tmp_path / "timings" / "imdb.json").write_text(json.dumps(record))
    table = load("text_tables").seconds(SimpleNamespace(results=tmp_path))
    assert "| imdb | 1,000 | 1.00 s | 1.50 s | 1.50× |" in table


def test_faithfulness_of_images_by_size(load, tmp_path):
    (tmp_path / "images").mkdir()
    run = {"aim": {"200": [1.0, 0.0], "300": [1.0, 1.0], "400": [1.0, 1.0]}}
    (tmp_path / "images" / "mnist_pixels_aim_0.json").write_text(json.dumps(run))
    lines = load("text_tables").images(SimpleNamespace(results=tmp_path)).splitlines()
    assert len(lines) == 3 and lines[2].startswith(
        "| mnist | pixels | 200 / 300 / 400 | `aim` | 96.2 / 97.0 / 97.3 |"
    )
    assert "| 50.0 [" in lines[2] and " / 100.0 [" in lines[2]


def test_faithfulness_of_l2x_that_was_fitted_with_this_k(load):
    load("results").RESAMPLES = 50
    sizes = {f"faithfulness of {k}": [float(k > 5)] for k in (5, 10, 20)}
    words = {"words": []}
    runs = {"explainer alone": [{"values": sizes} | words], "l2x": [{"values": sizes} | words]}
    runs["l2x, K 5"] = [{"values": {"faithfulness of 5": [1.0]}} | words]
    rows = load("text_tables").by_size(records_of(**runs)).splitlines()[2:]
    fitted = [row.split(" | ")[3] for row in rows]
    assert fitted[0].startswith("(83.42) 100.0") and fitted[1].startswith("(84.8) 100.0")
    assert fitted[2] == "(84.14) –"


def test_an_image_of_its_best_patches(load):
    image, scores = np.ones((1, 28, 28)), np.zeros(16)
    scores[[0, 5]] = 1.0, 2.0
    kept = load("images").keep_patches(image, scores, k=2)[0]
    assert kept[:7, :7].all() and kept[7:14, 7:14].all() and kept.sum() == 2 * 49


# -- forms and tuned methods --------------------------------------------------------------------


def test_forms_over_seeds(load):
    tables = load("form_tables")
    runs = [{"kept": 1.0}, {"kept": 2.0}, {"kept": 3.0}, {"kept": None}, {}]
    assert tables.over_seeds(runs, "kept") == "2.000 ± 1.000"
    assert tables.over_seeds(runs[:1], "kept") == "1.000" and tables.over_seeds(runs, "true words") == "–"
    records = records_of(paper=[{"faithfulness": value, "kept": None} for value in (0.9, 0.7)])
    assert tables.form_table(records, "imdb", "network").splitlines() == [
        "| form | faithfulness | seeds |",
        "| --- | --- | --- |",
        "| `paper` | 0.800 ± 0.141 | 2 |",
    ]


def tuned(**faithfulness):
    """Return records of forms: the validation texts' faithfulness and that of two test texts, by seed."""
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


def test_the_best_form_by_validation_texts(load):
    """The best form by validation texts is shown over all its seeds, next to AIM."""
    tables = load("form_tables")
    load("results").RESAMPLES = 50
    forms = {
        "l2x, τ 0.1": [(0.7, [1.0, 1.0])],
        "l2x, τ 0.2": [(0.8, [1.0, 0.0]), (0.9, [0.0, 0.0])],
        "from probabilities": [(0.9, [1.0, 1.0])] * 2,
    }
    records = tuned(**forms)
    assert tables.best_form(records, "ag_news", "l2x") == "l2x, τ 0.2"
    assert tables.best_form(records, "ag_news", "vibi") is None
    aim, l2x = (row.strip("| ").split(" | ") for row in tables.tuned(records).splitlines()[2:])
    assert aim[1] == "`aim`" and l2x[1:4] == ["`l2x, tuned: τ 0.2`", "90.13", "85.0"]
    assert l2x[4].startswith("25.0 [") and l2x[5].startswith("0.25 [")
    assert l2x[8].startswith("75.0 [") and l2x[9] == "2"
    assert tables.grids(records).splitlines()[2:] == [
        "| ag_news | `l2x, τ 0.1` | 89.4 | 70.0 | 100.0 |  |",
        "| ag_news | `l2x, τ 0.2` | 90.1 | 80.0 | 50.0 | chosen |",
    ]


def test_how_far_aim_is_ahead_and_the_effect_of_tuning(load):
    """Of 40 texts AIM keeps all, L2X half of them, and tuned every fourth."""
    tables, runs_of = load("form_tables"), load("results").runs_of
    half, fourth = [1.0, 0.0] * 20, [1.0, 0.0, 0.0, 0.0] * 10
    records = tuned(
        **{
            "from probabilities": [(1.0, [1.0] * 40)] * 2,
            "l2x": [(0.5, half)] * 3,
            "l2x, τ 0.1": [(0.3, fourth)] * 2,
        }
    )
    gap = tables.gap(*(runs_of(records, "ag_news", form) for form in ("from probabilities", "l2x")))
    assert gap.mean == 0.5 and gap.n == 40 and gap.p_value < 0.001
    verdict = tables.tuned_verdict(records)
    assert verdict.startswith("- ag_news: AIM keeps 50.0 to 75.0 points more decisions than L2X and VIBI")
    assert "(ahead in 2 of 2 rows). Tuning changes l2x by -25.0 [" in verdict and "vibi" not in verdict


def test_seeds_are_fitted_of_the_best_form(load, tmp_path):
    stages = load("stages")
    run = load("experiments.shared.stages").Run(results=tmp_path)
    names = [job.name for job in stages.grid(run, sets=["ag_news"])]
    assert names[0].startswith("boxes/ag_news network, ") and len(names) == 1 + 3 + 4 + 9
    (tmp_path / "made.json").write_text(json.dumps(tuned(**{"vibi, τ 0.5, β 0.1": [(1.0, [1.0, 1.0])]})))
    names = [job.name for job in stages.tuned(run, sets=["ag_news"], seeds=[1])]
    forms = ("vibi_τ_0.5_β_0.1", "from_probabilities", "l2x", "vibi")
    assert names[1:] == [f"made/ag_news_network_{form}_1" for form in forms]


# -- classes, sizes and settings ----------------------------------------------------------------


def test_explanations_of_single_classes_are_joined(load):
    """With log-odds 3 and −2 the first column speaks for one class, the second for the other."""
    model = logistic([3, -2])
    by_class = [
        [
            pertinent.explain(model, row, "leave-one-out", removal="mean", target=target, progress=False)
            for row in np.ones((2, 2))
        ]
        for target in (0, 1)
    ]
    joined = load("extra").join_classes(by_class)
    assert [e.class_scores.argmax(axis=1).tolist() for e in joined] == [[1, 0]] * 2


def test_words_that_stay_for_a_larger_k(load):
    nested = load("extra").nested_share([["a", "b"], ["c"]], [["a", "x"], ["c", "d"]])
    assert nested == pytest.approx(0.75)


def test_a_method_by_its_settings(load, monkeypatch):
    """The ten largest of twelve columns decide; two settings of LIME are tried."""
    extra = load("extra")
    subject = SimpleNamespace(model=logistic(np.arange(12, 0, -1) / 20), test=np.ones((2, 12)))
    monkeypatch.setattr(extra, "load", lambda *_: subject)
    monkeypatch.setitem(extra.SETTINGS, "samples", ("lime", "samples", (100, 200), {}))
    explain = pertinent.explain
    monkeypatch.setattr(pertinent, "explain", lambda *a, **k: explain(*a, **k | {"removal": "mean"}))
    *_, result = extra.explain_settings(None, "imdb", "samples", load("fitting").Sizes())
    assert [*result] == ["100", "200"] and result["200"]["faithfulness"] == [1.0, 1.0]
    assert len(result["200"]["words"][0]) == extra.K


def test_words_of_l2x_by_k(load):
    tables = load("form_tables")
    load("results").RESAMPLES = 50
    stay = {"l2x 5": 0.5, "aim 5": 1.0}
    records = {
        "imdb sizes": {"stay": stay, "faithfulness": {f"l2x {k}": [1.0, 0.0] for k in (5, 10, 20)}},
        "imdb samples": {str(n): {"faithfulness": [1.0], "seconds": 0.5} for n in (50, 100)},
    }
    rows = [line.strip("| ").split(" | ") for line in tables.by_size(records).splitlines()[2:]]
    assert rows[0][2] == "83.42" and rows[0][3].startswith("50.0 [") and rows[0][4:] == ["50.0", "100.0"]
    assert rows[2][4:] == ["–", "–"]
    assert tables.by_samples(records).splitlines()[2].startswith("| imdb | 50 | 100.0")
    assert tables.list_words(["good", "no", "good"]) == "good ×2 · no"


def test_lime_and_functional_information_by_setting(load):
    tables, results = load("form_tables"), load("results")
    results.RESAMPLES = 50
    one = {"faithfulness": [1.0, 0.0], "counted": {name: [0.2, 0.4] for name in results.MEASURES}}
    records = {"ag_news draws": {str(n): one for n in tables.SETTINGS["draws"][2]}}
    lines = tables.by_setting(records).splitlines()[2:]
    assert len(lines) == 3
    assert lines[0].startswith("| ag_news | `functional-information, draws 50` | 75.75 | 50.0 [")
    assert " | 27.62 | 30.0 [" in lines[0] and " | 4.90 | 0.30 [" in lines[0]


def test_kept_records_have_counts_instead_of_words(load, monkeypatch):
    """The best form keeps the values of its texts, others only their means."""
    condensed_records = load("condensed")

    def count_words(record):
        return {"purity": [float(len(words)) for words in record["words"]]}

    monkeypatch.setattr(condensed_records, "count_words", count_words)
    records = tuned(**{"l2x, τ 0.1": [(0.7, [1.0, 1.0])], "l2x, τ 0.2": [(0.8, [1.0, 0.0])]})
    complete = {name: run | {"words": [["a"], ["a", "b"]]} for name, run in records.items()}
    condensed = dict(condensed_records.condensed_fits(complete))
    tried, best = (condensed[f"ag_news | network | l2x, τ {tau} | 0"] for tau in (0.1, 0.2))
    assert tried == {"dev faithfulness": 0.7, "faithfulness": 1.0}
    assert best["values"]["faithfulness"] == [1.0, 0.0] and best["counted"] == {"purity": [1.0, 2.0]}
    assert dict(condensed_records.condensed_fits(condensed)) == condensed
    words = {f"{row} {k}": [["a", "b"]] for row in ("l2x", "aim") for k in (5, 10, 20)}
    words["l2x 10"] = [["a", "c"]]
    record = {"words": words, "faithfulness": {}, "texts": ["an offence"]}
    sizes = condensed_records.condensed_part("hatexplain sizes", record)
    assert sizes["stay"] == {"l2x 5": 0.5, "l2x 10": 0.5, "aim 5": 1.0, "aim 10": 1.0}
    assert sizes["texts"] == []
    draws = {"50": {"faithfulness": [1.0], "seconds": 2.0, "words": [["a"]]}}
    condensed = {"50": {"faithfulness": [1.0], "seconds": 2.0, "counted": {"purity": [1.0]}}}
    assert condensed_records.condensed_part("imdb draws", draws | {"finished": True}) == condensed


def test_the_page_has_the_tables_of_the_kept_records(load):
    tables, pages = load("form_tables"), load("experiments.shared.pages")
    folder = ROOT / "experiments" / "vo2023"
    with pages.unpacked_records(folder, load("experiments.shared.stages").Run()) as run:
        records, extra = (load("results").read_records(run.results, name) for name in ("made", "extra"))
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert tables.grids(records) in page and tables.words_by_size(extra) in page


# -- known features, searches and table rows ----------------------------------------------------


def test_rates_of_selected_columns(load):
    truth = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1]], dtype=bool)
    chosen = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 1]], dtype=bool)
    # Half right and half wrong; nothing right and nothing wrong; all right and nothing wrong.
    assert load("known_features").rates(chosen, truth) == pytest.approx((1.5 / 3, 0.5 / 3))


def test_relevant_columns_of_a_decision(load):
    known = load("known_features")
    rng = np.random.default_rng(0)
    for task in known.TASKS:
        x = known.draw_rows(task, 200, 0)
        relevant = known.relevant(task, x)
        for column in range(known.N_COLUMNS):
            moved = x.copy()
            moved[:, column] += rng.normal(size=200) * (column != 9)  # a switch stays as it is
            changed = ~np.isclose(known.log_odds(task, x), known.log_odds(task, moved))
            assert not changed[~relevant[:, column]].any()
            assert changed[relevant[:, column]].all() or column == 9
    x = known.draw_rows("switch", 200, 0)
    flipped = x * np.where(np.arange(10) == 9, -1, 1)
    assert not np.isclose(known.log_odds("switch", x), known.log_odds("switch", flipped)).any()


def test_log_odds_of_the_tasks(load):
    known = load("known_features")
    x = np.zeros((2, 10))
    x[:, :2], x[:, 9] = (2, 3), (1, -1)
    assert known.log_odds("xor", x).tolist() == [6, 6]
    assert known.log_odds("orange skin", x).tolist() == [4 + 9 - 4] * 2
    additive = -10 * np.sin(0.4) + 3 + 0 + 1 - 2.4
    assert known.log_odds("additive", x) == pytest.approx([additive] * 2)
    # Up, a switch is orange skin of the first columns, down the additive task of columns 4 to 7, here 0.
    assert known.log_odds("switch", x) == pytest.approx([9, 1 - 2.4])
    assert known.black_box("xor")(x)[0] == pytest.approx([1 / (1 + np.exp(6)), 1 / (1 + np.exp(-6))])


def test_ranks_are_those_of_the_largest_scores(load):
    ranks = load("known_features").ranks_of(np.array([[0.1, 3.0, -1.0]]), np.random.default_rng(0))
    assert ranks.tolist() == [[2, 1, 3]]


@pytest.mark.parametrize(("task", "median"), [("xor", 1.5), ("orange skin", 2.5)])
def test_shapley_values_of_the_tasks_rank_relevant_columns_first(load, task, median):
    result = load("known_features").measure(task, "kernel-shap", 40, 0, n_test=10)
    assert result[:2] == (median, 1.0) and np.isnan(result[2:]).all()  # it selects no number of columns


def test_sufficiency_that_a_search_reaches(load):
    """One of five columns is kept, and ten evaluations try all."""
    refinement, weights = load("refinement"), np.array([0.1, 0.2, 2.0, 0.3, 0.4])
    case = refinement.Case(logistic(weights), None, None, {})
    sufficiency = refinement.reached(case, np.ones((3, 5)), "parallel-local-search", 10, 2, removal="mean")
    p = 1 / (1 + np.exp(-np.array([3.0, 2.0])))
    assert sufficiency == pytest.approx(np.full((2, 3), p[0] - p[1]))


def test_rows_in_deviations_of_others(load):
    like = pd.DataFrame({"a": [0.0, 2.0], "b": [1.0, 5.0]})
    rows = load("tabular").standardised(pd.DataFrame({"a": [3.0], "b": [3.0]}), like)
    assert rows.to_numpy().tolist() == [[2.0, 0.0]]


def test_rows_are_measured_by_the_effect_of_masking(load):
    """With log-odds 3 and 1 and K = 1 the first column decides, and masking it costs 3."""
    tabular = load("tabular")
    ones = pd.DataFrame({"a": [1.0, 1.0], "b": [1.0, 1.0]})
    rows = tabular.Rows(logistic([3, 1]), ones * 0, ones, 1, 1.0, ("mean",))
    tabular.SETS = {"admission": lambda *_: rows}
    options = {"draws": 2, "n_test": 2, "n_train": None}
    run = load("experiments.shared.stages").Run()
    values = tabular.measure(run, "admission", "kernel-shap", 0, **options)["values"]
    assert values["faithfulness, mean"] == [1.0, 1.0]
    assert values["positive-delta-log-odds, mean"] == pytest.approx([3.0, 3.0])


def test_rows_of_tables_next_to_the_papers(load, tmp_path):
    tabular = load("tabular")
    load("results").RESAMPLES = 50
    names = [f"{metric}, {masking}" for metric in tabular.METRICS for masking in tabular.MASKINGS]
    for seed, value in enumerate((0.5, 1.0)):
        run = {"values": {name: [value] * 4 for name in names}, "fit seconds": 10.0 + seed}
        run["seconds an input"] = 0.002
        path = tmp_path / f"{tabular.file_stem('admission', 'aim')}_seed{seed}.json"
        path.write_text(json.dumps(run))
    cells = tabular.tabular_table("admission", tmp_path).splitlines()[2].strip("| ").split(" | ")
    assert cells[1].startswith("(94.0) 75.0 [") and cells[3].startswith("(1.12) 0.75 [")
    assert cells[-3:] == ["10", "2.0", "2"]

"""Explainers fitted to images, tables and any model of texts: training, files and refusals."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import pertinent
from pertinent.errors import FileError, InputError, ModelError, SettingError
from pertinent.learners.networks.table_scorer import CATEGORIES, EncodedColumn
from pertinent.learners.networks.word_scorer import WordScorer
from pertinent.models.embedded import digits, tables
from pertinent.removals import FromBackground
from pertinent.stats import spearman
from tests.learners import write_digest

FAST = {"samples": 6, "epochs": 25, "progress": False}
SOME = FromBackground(rows=10)
COLOURS = ("red", "green", "blue")


pytestmark = pytest.mark.usefixtures("one_thread")


def correlation(model, fitted, inputs, exact, **options):
    found = pertinent.explain(model, inputs, fitted, progress=False, **options)
    assert not found.failures
    pairs = zip(found, exact, strict=True)
    return np.nanmean([spearman(np.stack([e.scores, t.scores]))[0, 1] for e, t in pairs])


def same(model, inputs, *fits, **options):
    """Return whether explainers give identical scores."""
    own = [pertinent.explain(model, inputs, each, progress=False, **options) for each in fits]
    return all(np.array_equal(a.scores, b.scores) for a, b in zip(*own, strict=True))


def people(n, seed):
    """Return rows of a number, a color, a number that may be missing, and one without effect."""
    rng = np.random.default_rng(seed)
    ages, colours = rng.integers(20, 60, n).tolist(), rng.choice(COLOURS, n).tolist()
    debts = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(2)).tolist()
    return [
        {"age": a, "colour": c, "debt": d, "noise": z}
        for a, c, d, z in zip(ages, colours, debts, rng.normal(size=n), strict=True)
    ]


def rated(rows):
    """Rate rows additively, so that their Shapley values are known."""
    return np.array([[worth(*row[:3])] for row in rows], dtype=float)


def worth(age, colour, debt):
    return age / 10 + 3 * COLOURS.index(colour) - (2 * debt if debt == debt else 5.0)


@pytest.fixture(scope="module")
def rater():
    background = [list(row.values()) for row in people(8, seed=9)]
    columns = ["age", "colour", "debt", "noise"]
    return pertinent.wrap(rated, kind="table", output="value", columns=columns, background=background)


@pytest.fixture(scope="module")
def fitted(rater):
    return pertinent.fit(rater, people(120, seed=0), **FAST | {"samples": 2, "epochs": 100})


# -- tables ------------------------------------------------------------------------------------


def test_numbers_categories_and_missing_values_are_learned(rater, fitted):
    new = people(20, seed=1)
    found = pertinent.explain(rater, new, fitted, progress=False)
    assert {e.evaluations for e in found} == {1}
    others = people(8, seed=9)
    parts = [
        [worth(row["age"], "red", 0), worth(0, row["colour"], 0), worth(0, "red", row["debt"]), 0]
        for row in new
    ]
    means = np.mean(
        [
            [worth(o["age"], "red", 0), worth(0, o["colour"], 0), worth(0, "red", o["debt"]), 0]
            for o in others
        ],
        0,
    )
    truth = np.array(parts) - means
    error = np.mean((np.array([e.scores for e in found]) - truth) ** 2)
    assert error < 0.05 * np.mean(truth**2)


def test_columns_are_encoded():
    numbers = EncodedColumn.from_values("n", np.array([1.0, 3.0, np.nan]))
    assert numbers.encode(np.array([4.0, np.nan])).tolist() == [[2.0, 0.0], [0.0, 1.0]]
    words = EncodedColumn.from_values("w", np.array(["b", "a", "b", np.nan], dtype=object))
    assert words.categories == ("a", "b")
    assert words.encode(np.array(["b", "never seen", np.nan], dtype=object)).tolist() == [
        [0, 1, 0], [0, 0, 1], [0, 0, 1],
    ]  # fmt: skip
    assert EncodedColumn.from_values("c", np.full(3, 7.0)).encode(np.array([7.0])).tolist() == [[0.0, 0.0]]
    assert EncodedColumn.from_values("digits", np.array(["1", "2"], dtype=object)).categories == ("1", "2")
    many = np.array([f"v{i:03}" for i in range(CATEGORIES)] * 2 + ["rare"], dtype=object)
    assert "rare" not in EncodedColumn.from_values("m", many).categories


def test_the_embedded_tables(tmp_path):
    for name, rows in (("table", tables.wine_data()), ("diabetes", tables.diabetes_data())):
        model, new = pertinent.load(name), rows.test_rows[:8]
        fit = pertinent.fit(model, rows.rows[:90], removal=SOME, out=tmp_path / name, **FAST)
        exact = pertinent.explain(model, new, "shapley-sampling", samples=60, removal=SOME, progress=False)
        assert correlation(model, fit, new, exact, removal=SOME) > 0.5
        assert same(model, new, fit, pertinent.load_explainer(tmp_path / name), removal=SOME)
        with pytest.raises(SettingError, match="must be 'background:rows=10', which the explainer"):
            pertinent.explain(model, new[0], fit)


def test_groups_of_columns_are_one_feature():
    model = pertinent.wrap(
        lambda rows: rows.sum(axis=1),
        kind="table",
        output="value",
        columns=["a", "b", "c"],
        groups={"bc": ["b", "c"]},
    )
    rows = np.random.default_rng(0).normal(size=(60, 3))
    fit = pertinent.fit(model, rows, **FAST | {"epochs": 150})
    e = pertinent.explain(model, rows[0], fit)
    assert e.features == ("a", "bc")
    np.testing.assert_allclose(e.scores, [rows[0, 0], rows[0, 1:].sum()], atol=0.3)


def test_rows_with_other_columns_are_refused():
    model = pertinent.wrap(lambda rows: rows.sum(axis=1), kind="table", output="value")
    fit = pertinent.fit(model, np.random.default_rng(0).normal(size=(8, 3)), **FAST | {"epochs": 1})
    with pytest.raises(InputError, match="reads rows with the columns"):
        pertinent.explain(model, [1.0, 2.0], fit)


# -- images ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def images():
    return digits.digits_data()


def test_digits_are_learned_for_all_classes_and_any_segments(images, tmp_path):
    model, new = pertinent.load("digits"), images.test_rows[:10]
    fit = pertinent.fit(model, images.rows[:120], features="patches:2", out=tmp_path / "f", **FAST)
    options = {"features": "patches:2", "progress": False}
    exact = pertinent.explain(model, new, "shapley-sampling", samples=60, **options)
    assert correlation(model, fit, new, exact, features="patches:2") > 0.6
    assert same(model, new, fit, pertinent.load_explainer(tmp_path / "f"), features="patches:2")
    fine, coarse = (pertinent.explain(model, new[0], fit, features=f) for f in ("pixels", "patches:2"))
    labels = coarse.input.labels.ravel()
    sums = [np.bincount(labels, row) for row in fine.class_scores]
    np.testing.assert_allclose(coarse.class_scores, sums, atol=1e-6)
    assert coarse.class_scores.shape == (10, 16)


def test_a_module_and_images_of_several_sizes(tmp_path):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = pertinent.wrap(module, kind="image", output="value", names=["x", "y", "z"])
    rng = np.random.default_rng(0)
    pictures = [rng.random((1, 4 + 2 * (i % 2), 4)).astype(np.float32) for i in range(12)]
    options = FAST | {"epochs": 3, "batch_size": 4, "features": "patches:2"}
    fits = [pertinent.fit(model, pictures, seed=seed, **options) for seed in (0, 0, 1)]
    assert same(model, pictures, *fits[:2], features="patches:2")
    assert not same(model, pictures, *fits[1:], features="patches:2")
    fits[0].save(tmp_path / "f")
    assert {p.name for p in (tmp_path / "f").iterdir()} == {
        "config.json", "model.safetensors", "pertinent.json",
    }  # fmt: skip
    assert same(model, pictures, fits[0], pertinent.load_explainer(tmp_path / "f"), features="patches:2")


# -- texts of a function -----------------------------------------------------------------------

WORDS = ("good", "fine", "bad", "poor", "the", "a", "film", "plot", "was", "and")


def sentences(n, seed):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(3, 8))) for _ in range(n)]


def liked(texts):
    """Return two classes by good and bad words."""
    points = [2.0 * (t.count("good") + t.count("fine") - t.count("bad") - t.count("poor")) for t in texts]
    p = 1 / (1 + np.exp(-np.array(points)))
    return np.column_stack([1 - p, p])


def test_a_function_of_texts(tmp_path):
    model = pertinent.wrap(liked, kind="text", classes=["no", "yes"])
    options = FAST | {"epochs": 40, "out": tmp_path / "f"}
    fit = pertinent.fit(model, sentences(150, 0), **options)
    new = sentences(15, 1)
    exact = pertinent.explain(model, new, "exact-shapley", progress=False)
    assert correlation(model, fit, new, exact) > 0.6
    assert same(model, new, fit, pertinent.load_explainer(tmp_path / "f"))
    again = pertinent.fit(model, sentences(150, 0), **options)
    assert again.network.fingerprint == fit.network.fingerprint
    alone = pertinent.explain(model, new[3], fit)
    np.testing.assert_allclose(
        alone.scores, pertinent.explain(model, new, fit, progress=False)[3].scores, atol=1e-6
    )


def test_words_belong_to_spans_and_a_fixed_text_to_none():
    model = pertinent.wrap(lambda pairs: [[0.5, 0.5]] * len(pairs), kind="text")
    inputs = [
        model.prepare({"query": "who won it", "document": "Ada won. Bob lost."}, "sentences"),
        model.prepare("good film, bad plot", [(0, 9), (11, 14)]),
    ]
    batch = WordScorer(1).read(model, inputs)
    assert batch.owners.tolist() == [[-1, -1, -1, 0, 0, 0, 1, 1, 1], [0, 0, -1, 1, -1, -1, -1, -1, -1]]
    assert batch.arrays["segments"][0].tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1]
    ids = batch.arrays["ids"]
    assert ids[0, 1] == ids[0, 4]  # won
    assert (ids[1] > 0).sum() == 5


def test_a_small_network_learns_all_classes_unless_told_otherwise():
    model = pertinent.wrap(liked, kind="text", classes=["no", "yes"])
    texts, options = sentences(6, 0), {"epochs": 1, "progress": False}

    def learned_classes(model, *args, **own):
        return pertinent.fit(model, texts, *args, **options | own).network.card["classes"]

    assert learned_classes(model) == "all"
    assert learned_classes(model, classes="predicted") == "predicted"
    assert learned_classes(model, teacher="random") == "predicted"  # it has scores for one class
    assert learned_classes(model, "fastshap") == "all"
    assert learned_classes(model, "cxplain") == "predicted"
    many = pertinent.wrap(lambda texts: np.full((len(texts), 25), 0.04), kind="text")
    assert learned_classes(many) == "predicted"


def test_kinds_are_not_mixed():
    model = pertinent.wrap(lambda x: np.full((len(x), 2), 0.5))
    with pytest.raises(InputError, match="must be of one kind, but are image and text"):
        pertinent.fit(model, ["a b", np.zeros((1, 4, 4))], progress=False)


# -- like any method ---------------------------------------------------------------------------


def test_in_compare_evaluate_stability_and_a_journal(rater, fitted, tmp_path):
    rows = people(4, seed=2)
    compared = pertinent.compare(rater, rows, [fitted, "leave-one-out"], "comprehensiveness", progress=False)
    assert [e.method for e in compared.explanations][:2] == ["amortized-shapley", "leave-one-out"]
    es = pertinent.explain(rater, rows, fitted, out=tmp_path / "run.parquet", progress=False)
    again = pertinent.explain(rater, rows, fitted, out=tmp_path / "run.parquet", progress=False)
    np.testing.assert_array_equal(es[0].scores, again[0].scores)
    measured = pertinent.evaluate(rater, pertinent.read(tmp_path / "run.parquet"), progress=False)
    assert measured.methods == ["amortized-shapley"]
    assert np.isfinite([interval.mean for *_, interval in measured.summary()]).all()
    stable = pertinent.stability(rater, rows, fitted, seeds=2, progress=False)
    assert stable.summary["spearman"].mean == 1.0
    assert stable.summary["mse"].mean < 1e-12
    sampled = pertinent.stability(rater, rows, fitted, seeds=2, refine=1, progress=False)
    assert all(row.evaluations > 5 for row in sampled.rows)


def test_refine_is_a_setting_of_explain(rater, fitted):
    row = people(1, seed=3)[0]
    by_setting = pertinent.explain(rater, row, fitted, refine=4)
    np.testing.assert_array_equal(by_setting.scores, pertinent.explain(rater, row, fitted.refined(4)).scores)
    assert by_setting.cost.budget == 1 + 2 + 4 * 3
    np.testing.assert_allclose(by_setting.base_values + by_setting.scores.sum(), by_setting.prediction.values)
    with pytest.raises(SettingError, match="refin"):
        pertinent.explain(rater, row, fitted, refines=4)


def test_a_killed_fit_goes_on_and_gives_the_same_network(rater, tmp_path):
    class Killed(BaseException):
        pass

    def kill(progress):
        if progress.total == 20 * 36 and progress.done >= 400:
            raise Killed

    rows, options = people(40, seed=4), {"samples": 2, "epochs": 20, "batch_size": 8, "patience": None}
    with pytest.raises(Killed):
        pertinent.fit(rater, rows, out=tmp_path / "f", progress=kill, **options)
    kept = (tmp_path / "f" / "checkpoints").glob("checkpoint-*")
    assert max(int(path.name.split("-")[1]) for path in kept) % 5  # in the middle of an epoch
    resumed = pertinent.fit(rater, rows, out=tmp_path / "f", progress=False, **options)
    whole = pertinent.fit(rater, rows, progress=False, **options)
    assert same(rater, rows[:5], resumed, whole)
    assert not (tmp_path / "f" / "checkpoints").exists()


def test_an_explainer_knows_its_folder_and_digest(rater, tmp_path):
    rows = people(8, seed=5)
    one, two = (pertinent.fit(rater, rows, seed=seed, **FAST | {"epochs": 1}) for seed in (0, 1))
    assert one.folder is None
    one.save(tmp_path / "f")
    assert one.folder == one.refined(2).folder == tmp_path / "f"
    loaded = pertinent.load_explainer(tmp_path / "f", digest=one.digest)
    assert (loaded.folder, loaded.digest) == (tmp_path / "f", one.digest)
    assert two.digest != one.digest
    with pytest.raises(FileError, match=f"`digest` must match .* {one.digest}, but got {two.digest}"):
        pertinent.load_explainer(tmp_path / "f", digest=two.digest)


def test_a_finished_fit_is_read_and_another_one_is_refused(rater, tmp_path):
    rows, options = people(8, seed=5), FAST | {"epochs": 1, "out": tmp_path / "f"}
    card = pertinent.fit(rater, rows, **options).network.card
    assert pertinent.fit(rater, rows, **options).network.card == card
    with pytest.raises(SettingError, match=r"different settings \(validation_fraction\)"):
        pertinent.fit(rater, rows, validation_fraction=0.2, **options)


def test_another_model_is_refused(fitted):
    other = pertinent.wrap(lambda rows: np.zeros(len(rows)), kind="table", output="value")
    with pytest.raises(ModelError, match="fitted to a different model"):
        pertinent.explain(other, [1.0, 2.0, 3.0, 4.0], fitted)


def test_a_damaged_configuration_is_refused(fitted, tmp_path):
    fitted.save(tmp_path / "f")
    config = json.loads((tmp_path / "f" / "config.json").read_text())
    for damage in ({"scorer": "graph"}, {"columns": config["columns"][:1]}, {"columns": None}):
        (tmp_path / "f" / "config.json").write_text(json.dumps(config | damage))
        write_digest(tmp_path / "f")
        with pytest.raises(FileError, match="cannot be loaded"):
            pertinent.load_explainer(tmp_path / "f")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"labels": [1, 2]}, "`labels` must be None"),
        ({"method": "cxplain", "labels": [1]}, "`labels` must be one for each of 2 inputs"),
        ({"method": "cxplain", "classes": "all"}, "`classes` must be 'predicted' for cxplain"),
        ({"method": "cxplain", "scale": "logit"}, "`scale` must be natural for cxplain"),
        ({"method": "fastshap", "teacher": "lime"}, "`teacher` must be None"),
        ({"loss": "mae"}, "mae"),
    ],
)
def test_what_a_method_cannot_learn(rater, options, said):
    with pytest.raises(SettingError, match=said):
        pertinent.fit(rater, people(2, 0), progress=False, **options)


def test_images_with_other_channels_are_refused():
    model = pertinent.wrap(lambda images: [[0.5, 0.5]] * len(images), kind="image")
    images = [np.zeros((1, 4, 4)), np.zeros((3, 4, 4)), np.zeros((1, 4, 4)), np.zeros((3, 4, 4))]
    with pytest.raises(InputError, match=r"same number of channels, but have \[1, 3\]"):
        pertinent.fit(model, images, "aim", features="pixels", epochs=1, progress=False)

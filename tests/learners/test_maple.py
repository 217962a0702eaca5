"""MAPLE: weights and coefficients compared with plain loops, local slopes, files, and kinds of rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.linear_model import Ridge

import pertinent
from pertinent.cli import main
from pertinent.errors import FileError, InputError, SettingError
from pertinent.models.embedded.tables import example_row
from tests.learners import write_digest

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-2, 2, size=(400, 4)) * [1.0, 3.0, 0.5, 1.0]


def bent(rows):
    """Return values that jump with the first column, and whose slope in the second depends on it."""
    rows = np.asarray(rows, dtype=float)
    return np.where(rows[:, 0] > 0, 20 + 2 * rows[:, 1], -20 - 3 * rows[:, 1] + 4 * rows[:, 2])


def classes(rows):
    rows = np.asarray(rows, dtype=float)
    p = 1 / (1 + np.exp(-rows[:, 0] - 0.3 * rows[:, 1] * rows[:, 2]))
    return np.column_stack([1 - p, 0.7 * p, 0.3 * p])


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(bent, kind="table", output="value", background=ROWS)


@pytest.fixture(scope="module")
def fitted(model):
    """Fit with all columns as candidates of a root, so that no tree has leaves on both sides of the jump."""
    return pertinent.fit(model, ROWS, "maple", seed=2, share=1.0)


def test_the_slopes_of_a_bent_plane_are_found(model, fitted):
    units = np.array([column.deviation for column in fitted.network.scorer.columns])
    for first, slopes in ((1.2, [0, 2, 0, 0]), (-1.2, [0, -3, 4, 0])):
        e = pertinent.explain(model, np.array([first, 1.0, 0.1, 0.5]), method=fitted)
        np.testing.assert_allclose(e.scores / units, slopes, atol=0.15)
    assert e.evaluations == 1


def test_weights_and_coefficients_are_those_of_plain_loops(model, fitted):
    """Walk the forest node by node, and fit scikit-learn's linear model."""
    scorer = fitted.network.scorer
    numbers, thresholds, branches, leaves, known, answers, used = (
        getattr(scorer, name).numpy()
        for name in ("numbers", "thresholds", "branches", "leaves", "rows", "answers", "used")
    )

    def leaf(row, tree):
        node = 0
        while branches[tree, node, 0] != node:
            node = branches[tree, node, int(row[numbers[tree, node]] > thresholds[tree, node])]
        return node

    for raw in ROWS[:3] + 0.05:
        input = model.prepare(raw)
        encoded = scorer.read(model, [input]).arrays["encoded"][0]
        weights = np.zeros(len(leaves))
        for tree in range(200):
            mates = np.flatnonzero(leaves[:, tree] == leaf(encoded, tree))
            weights[mates] += 1 / len(mates)
        assert weights.sum() == pytest.approx(200)
        ridge = Ridge(alpha=0.001).fit(known, answers[:, 0], weights)
        slopes = np.zeros(8)
        slopes[used] = ridge.coef_
        e = pertinent.explain(model, raw, method=fitted)
        np.testing.assert_allclose(e.scores, slopes[::2], rtol=1e-5, atol=1e-7)


def test_the_forest_is_scikit_learns(model, fitted):
    """Check that training rows reach the leaves that scikit-learn assigned."""
    scorer = fitted.network.scorer
    order = {row.tobytes(): i for i, row in enumerate(scorer.rows.numpy())}
    encoded = scorer.read(model, [model.prepare(row) for row in ROWS]).arrays["encoded"]
    walked = scorer.leaves_of(torch.from_numpy(encoded).double()).numpy()
    seen = 0
    for row, own in zip(encoded[:, scorer.used.numpy()].astype(np.float64), walked, strict=True):
        if row.tobytes() in order:
            np.testing.assert_array_equal(own, scorer.leaves.numpy()[order[row.tobytes()]])
            seen += 1
    assert seen == 360


def test_useless_columns_are_left_out(fitted):
    card = fitted.network.card
    assert "column 3" not in card["used"] and len(card["used"]) <= 3
    assert card["trees"] == 200 and card["examples"] == 360 and card["dev_examples"] == 40
    assert 0 < card["dev_loss"] < np.var(bent(ROWS))


def test_saved_and_loaded_it_is_the_same(model, fitted, tmp_path):
    fitted.save(tmp_path / "maple")
    assert sorted(p.name for p in (tmp_path / "maple").iterdir()) == [
        "config.json",
        "model.safetensors",
        "pertinent.json",
    ]
    again = pertinent.load_explainer(tmp_path / "maple")
    assert again.network.fingerprint == fitted.network.fingerprint
    a, b = (pertinent.explain(model, ROWS[:20], method=own) for own in (fitted, again))
    np.testing.assert_array_equal([e.scores for e in a], [e.scores for e in b])


@pytest.mark.parametrize(("name", "wrong"), [("numbers", 99), ("numbers", -1), ("branches", 10**6)])
def test_a_damaged_forest_is_noticed_when_it_is_read(fitted, tmp_path, name, wrong):
    fitted.save(tmp_path / "maple")
    (path,) = (tmp_path / "maple").glob("*.safetensors")
    weights = load_file(path)
    weights[name].view(-1)[0] = wrong
    save_file(weights, path)
    with pytest.raises(FileError, match="is damaged"):
        pertinent.load_explainer(tmp_path / "maple")
    write_digest(tmp_path / "maple")
    with pytest.raises(FileError, match=rf"cannot be loaded: its {name} must be from 0 to \d+"):
        pertinent.load_explainer(tmp_path / "maple")


def test_the_same_seed_gives_the_same_forest(model, fitted):
    same, other = (pertinent.fit(model, ROWS, "maple", seed=seed, share=1.0) for seed in (2, 3))
    assert same.network.fingerprint == fitted.network.fingerprint
    assert other.network.fingerprint != fitted.network.fingerprint


def test_all_classes_at_once_and_the_slopes_of_probabilities_cancel():
    model = pertinent.wrap(classes, kind="table", background=ROWS)
    fitted = pertinent.fit(model, ROWS, "maple", trees=30)
    e = pertinent.explain(model, ROWS[0], method=fitted)
    assert e.class_scores.shape == (3, 4)
    np.testing.assert_allclose(e.class_scores.sum(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(e.for_class(1).scores * 3, e.for_class(2).scores * 7, rtol=1e-4, atol=1e-6)
    sizes = pertinent.explain(model, ROWS[0], method=fitted, absolute=True)
    np.testing.assert_array_equal(sizes.class_scores, np.abs(e.class_scores))


def test_categories_missing_values_and_groups():
    """Use leaves so large that no tree splits: one linear model with known coefficients."""
    rng = np.random.default_rng(1)
    rows = [
        {"age": float(a) if a > 0.1 else np.nan, "job": j, "left": float(x), "right": float(y)}
        for a, j, x, y in zip(
            rng.random(300), rng.choice(["cook", "judge"], 300), *rng.normal(size=(2, 300)), strict=True
        )
    ]

    def value(table):
        return [
            (0.0 if np.isnan(float(r[0])) else 3.0 * float(r[0])) + (5.0 if r[1] == "judge" else 0.0)
            + float(r[2]) - 2 * float(r[3])
            for r in table
        ]  # fmt: skip

    model = pertinent.wrap(
        value,
        kind="table",
        output="value",
        background=rows,
        columns=["age", "job", "left", "right"],
        groups={"sides": ["left", "right"]},
    )
    fitted = pertinent.fit(model, rows, "maple", trees=5, leaf=200, alpha=1e-7)
    judge = pertinent.explain(model, {**rows[0], "age": 0.5, "job": "judge"}, method=fitted)
    cook = pertinent.explain(model, {**rows[0], "age": 0.5, "job": "cook"}, method=fitted)
    age, _, left, right = fitted.network.scorer.columns
    assert judge.features == ("age", "job", "sides")
    sides = left.deviation - 2 * right.deviation
    np.testing.assert_allclose(judge.scores, [3 * age.deviation, 2.5, sides], atol=1e-5)
    np.testing.assert_allclose(cook.scores, [3 * age.deviation, -2.5, sides], atol=1e-5)
    unknown = pertinent.explain(model, {**rows[0], "job": "pilot", "age": np.nan}, method=fitted)
    np.testing.assert_allclose(unknown.scores, [-3 * age.mean, 0, sides], atol=1e-5)


def test_few_rows_make_one_linear_model_and_a_constant_answer_has_no_slope():
    rows = np.random.default_rng(2).normal(size=(12, 2))
    options = {"kind": "table", "output": "value", "background": rows}
    model = pertinent.wrap(lambda rows: [2 * r[0] - r[1] for r in rows], **options)
    fitted = pertinent.fit(model, rows, "maple")
    units = np.array([column.deviation for column in fitted.network.scorer.columns])
    e = pertinent.explain(model, rows[0], method=fitted)
    np.testing.assert_allclose(e.scores / units, [2, -1], atol=1e-3)
    flat = pertinent.wrap(lambda rows: [7.0 for _ in rows], **options)
    e = pertinent.explain(flat, rows[0], method=pertinent.fit(flat, rows, "maple"))
    np.testing.assert_allclose(e.scores, 0, atol=1e-9)


def test_what_it_cannot_do_is_said(model):
    with pytest.raises(SettingError, match="`epochs` and `learning_rate` must be None"):
        pertinent.fit(model, ROWS, "maple", epochs=3)
    with pytest.raises(SettingError, match="`alpha` must be above 0"):
        pertinent.fit(model, ROWS, "maple", alpha=0)
    texts = pertinent.wrap(lambda texts: [[0.5, 0.5] for _ in texts], kind="text")
    with pytest.raises(InputError, match="maple explains table rows, but the inputs are texts"):
        pertinent.fit(texts, ["a b", "c d", "e f"], "maple")


def test_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    row = example_row()
    rng = np.random.default_rng(0)
    rows = [{name: float(v * rng.uniform(0.7, 1.3)) for name, v in row.items()} for _ in range(40)]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    fit = ["fit", "--file", "rows.jsonl", "--model", "table", "--method", "maple", "--out", "m"]
    assert main([*fit, "--set", "trees=20"]) == 0
    out = capsys.readouterr().out
    assert "Fitted: maple, on 36 inputs in 20 trees." in out
    assert "On 4 held-out inputs: loss " in out
    command = ["explain", "--row", json.dumps(row), "--model", "table", "--method", "m", "--json", "-"]
    assert main([*command, "--set", "absolute=true"]) == 0
    found = json.loads(capsys.readouterr().out)["explanations"][0]
    assert found["method"] == "maple"
    assert min(found["scores"]) >= 0

"""``pertinent stability`` on the command line."""

import json
from functools import partial

import numpy as np
import pytest

import pertinent


def uneven(texts):
    """Return probabilities in which words interact."""
    sums = [sum(map(ord, text)) % 17 + len(text) for text in texts]
    return [[1 - s / 100, s / 100] for s in sums]


@pytest.fixture
def run(run, use_model, monkeypatch):
    use_model(pertinent.wrap(uneven, kind="text", classes=["no", "yes"]))
    monkeypatch.setenv("COLUMNS", "100")
    return partial(run, "stability")


def test_a_table_a_plot_and_a_file(run, tmp_path):
    (tmp_path / "a.txt").write_text("not bad at all, I would say\nsuch a good thing\n")
    outputs = ["--plot", "a.png", "--json", "a.json"]
    code, out, _ = run("--file", "a.txt", "--method", "lime", "--set", "samples=9", "--seeds", "3", *outputs)
    assert code == 0
    for part in ("lime samples=9", "Spearman", "3 seeds, all pairs", "a.png", "a.json"):
        assert part in out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    result = pertinent.Stability.read(tmp_path / "a.json")
    assert (result.inputs, result.seeds, result.name) == (2, (0, 1, 2), "lime samples=9")
    again = pertinent.stability(
        pertinent.wrap(uneven, kind="text"),
        ["not bad at all, I would say", "such a good thing"],
        "lime",
        samples=9,
        seeds=3,
    )
    assert result.summary["spearman"] == again.summary["spearman"]


def test_json_alone_goes_to_stdout(run):
    code, out, _ = run("a b c d", "e f g h", "--method", "shapley-sampling", "--budget", "9", "--json", "-")
    assert code == 0
    assert json.loads(out)["seeds"] == [0, 1, 2, 3, 4]


def test_what_cannot_be_read_or_explained_is_listed(run, tmp_path):
    (tmp_path / "a.csv").write_text("text,name\nnot bad at all,one\n,two\nso very good,three\n")
    arguments = ["--file", "a.csv", "--id-column", "name", "--method", "lime", "--set", "samples=9"]
    code, out, err = run(*arguments, "--json", "a.json")
    assert code == 1
    assert err.count("failed: ") == 1
    assert "a.csv line 3" in err
    assert "Failed" not in out
    assert [row.id for row in pertinent.Stability.read(tmp_path / "a.json").rows] == ["one", "three"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a b"], "--method"),
        (["a b", "--method", "lime", "--seeds", "1"], "`--seeds` must be at least 2, but got 1"),
        (["a b", "--method", "lime", "--seeds", "5000"], "`--seeds` must be at most 1000, but got 5000"),
        (["a b", "--method", "lime", "--seed", "1"], "--seed"),
        (["a b", "--method", "limes"], "limes"),
        (["a b", "--method", "lime", "--plot", "a.txt"], "--plot must end in .png, .svg, .pdf"),
        (["--method", "lime"], "No input"),
    ],
)
def test_bad_usage(run, arguments, message):
    code, _, err = run(*arguments)
    assert code == 2
    assert message in err


def test_images_and_rows(run, monkeypatch, tmp_path):
    from PIL import Image

    def bright(images):
        p = np.asarray(images, dtype=float).reshape(len(images), -1).var(axis=1) / 2
        return np.stack([p, 1 - p], axis=1)

    rng = np.random.default_rng(0)
    for name in ("a.png", "b.png"):
        Image.fromarray(rng.integers(256, size=(8, 8), dtype=np.uint8)).save(tmp_path / name)
    own = {"image": pertinent.wrap(bright, kind="image"), "table": pertinent.wrap(bright, kind="table")}
    lime = ["--method", "lime", "--set", "samples=9", "--seeds", "2"]
    monkeypatch.setattr("pertinent.runs.model_names.load_model", lambda *_: own["image"])
    code, out, _ = run("--image", "a.png", "--image", "b.png", "--features", "patches:2", *lime)
    assert (code, "10–19" in out) == (0, True)
    monkeypatch.setattr("pertinent.runs.model_names.load_model", lambda *_: own["table"])
    code, out, _ = run("--row", "[1, 2, 3]", "--row", "[3, 1, 2]", *lime)
    assert (code, "1–9" in out) == (0, True)

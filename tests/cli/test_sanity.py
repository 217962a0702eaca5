"""``pertinent sanity`` on the command line."""

import json

import pytest
import torch

import pertinent
from tests import tiny


@pytest.fixture
def run(run, use_model, monkeypatch):
    model = pertinent.wrap(tiny.pair("bert"))
    before = {name: tensor.clone() for name, tensor in model.module.state_dict().items()}
    use_model(model)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments):
        result = run("sanity", *arguments)
        assert all(torch.equal(before[name], tensor) for name, tensor in model.module.state_dict().items())
        return result

    call.model = model
    return call


def test_a_table_a_plot_and_a_file(run, tmp_path):
    texts = [tiny.text(6), tiny.text(7, 1)]
    (tmp_path / "a.txt").write_text("\n".join(texts))
    outputs = ["--plot", "a.png", "--json", "a.json"]
    code, out, _ = run("--file", "a.txt", "--method", "lime", "--set", "samples=30", "--seed", "2", *outputs)
    assert code == 0
    for part in ("lime samples=30", "Spearman", "classifier", "a.png", "a.json"):
        assert part in out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    results = pertinent.Sanity.read(tmp_path / "a.json")
    again = pertinent.sanity(run.model, texts, "lime", samples=30, seed=2)
    assert results.stages == again.stages


@pytest.mark.parametrize(
    ("layers", "stages"),
    [
        ("last", ["classifier"]),
        ("bert.pooler,classifier", ["classifier", "bert.pooler"]),
        ("bert.encoder", ["bert.encoder"]),
    ],
)
def test_layers(run, layers, stages):
    code, out, _ = run(tiny.text(5), "--method", "leave-one-out", "--layers", layers, "--json", "-")
    assert code == 0
    assert json.loads(out)["layers"] == stages


def test_what_cannot_be_read_or_explained_is_listed(run, tmp_path):
    (tmp_path / "a.csv").write_text(f"text,name\n{tiny.text(5)},one\n,two\n{tiny.text(6)},three\n")
    arguments = ["--file", "a.csv", "--id-column", "name", "--method", "leave-one-out", "--layers", "last"]
    code, out, err = run(*arguments, "--json", "a.json")
    assert code == 1
    assert err.count("failed: ") == 1
    assert "a.csv line 3" in err
    assert "Failed" not in out
    assert [row.id for row in pertinent.Sanity.read(tmp_path / "a.json").rows] == ["one", "three"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["w1 w2"], "--method"),
        (["w1 w2", "--method", "leave-one-out", "--layers", "clasifier"], "Did you mean 'classifier'"),
        (["w1 w2", "--method", "leave-one-out", "--plot", "a.txt"], "--plot must end in .png, .svg, .pdf"),
        (["w1 w2", "--method", "limes"], "limes"),
        (["--method", "leave-one-out"], "No input"),
    ],
)
def test_bad_usage(run, arguments, message):
    code, _, err = run(*arguments)
    assert code == 2
    assert message in err


def test_a_model_without_parameters(run, monkeypatch):
    monkeypatch.setattr(
        "pertinent.runs.model_names.load_model",
        lambda *_: pertinent.wrap(lambda texts: [[0.5, 0.5] for _ in texts], kind="text"),
    )
    code, _, err = run("a b", "--method", "leave-one-out")
    assert code == 2
    assert "must be a torch module or a transformers model" in err

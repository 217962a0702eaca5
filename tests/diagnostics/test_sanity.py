"""Sanity: explanations are compared with explanations of a randomised copy; the model is not changed."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

import pertinent
from pertinent.diagnostics.sanity import Correlation, Sanity
from pertinent.errors import FileError, InputError, ModelError, SettingError
from pertinent.models.torch.randomised import RandomisedModel
from tests import tiny
from tests.stubs import printed

ROWS = np.random.default_rng(0).normal(size=(5, 12)).astype(np.float32)
INTERRUPT = {"after": None}


class Network(nn.Module):
    """Network that counts the calls of all copies, and may be interrupted."""

    def __init__(self, classes=3):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(12, 16)
        self.second = nn.Linear(16, 16)
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        if INTERRUPT["after"] is not None:
            INTERRUPT["after"] -= 1
            if INTERRUPT["after"] < 0:
                raise KeyboardInterrupt
        return self.head(torch.tanh(self.second(torch.tanh(self.first(x)))))


@pytest.fixture
def interrupted():
    yield INTERRUPT
    INTERRUPT["after"] = None


def table_model(**options):
    return pertinent.wrap(Network(**options), kind="table", output="logit")


def of_rows(*rows, layers=("c", "b"), **changes):
    """Return a result with rows of (input, stage, spearman, absolute)."""
    fields = {"settings": {}, "budget": None, "removal": "constant", "features": "columns", "n_layers": 3}
    made = tuple(Correlation(*row) for row in rows)
    return Sanity(rows=made, method="lime", layers=layers, **fields | changes)


# -- what is measured ----------------------------------------------------------------------------


def test_correlations_equal_those_of_separate_explanations():
    model = table_model()
    result = pertinent.sanity(model, ROWS, "leave-one-out", removal="constant", seed=3)
    original = pertinent.explain(model, ROWS, "leave-one-out", removal="constant", seed=3)
    copied = RandomisedModel(model, 3)
    assert result.layers == ("head", "second", "first")
    changed_mind = 0
    for stage, layer in enumerate(result.layers, start=1):
        copied.randomise(layer)
        rows = [row for row in result.rows if row.stage == stage]
        for e, row in zip(original, rows, strict=True):
            again = pertinent.explain(
                copied.model, e.input.raw, "leave-one-out", removal="constant", target=e.target, seed=3
            )
            changed_mind += again.prediction.values.argmax() != e.target
            assert row.input == e.index
            assert row.spearman == pytest.approx(spearmanr(e.scores, again.scores).statistic)
            assert row.absolute == pytest.approx(spearmanr(abs(e.scores), abs(again.scores)).statistic)
        assert result.stages[stage - 1].spearman.mean == pytest.approx(
            np.mean([row.spearman for row in rows])
        )
    assert changed_mind  # the copy predicts other classes, which are not what is explained


def test_last_is_the_first_stage_of_cascading_and_layers_may_be_named():
    model = table_model()
    options = {"removal": "constant"}
    cascading = pertinent.sanity(model, ROWS, "lime", samples=30, **options)
    last = pertinent.sanity(model, ROWS, "lime", samples=30, layers="last", **options)
    assert last.layers == ("head",)
    assert last.n_layers == cascading.n_layers == 3
    assert last.rows == tuple(row for row in cascading.rows if row.stage == 1)
    named = pertinent.sanity(model, ROWS, "lime", samples=30, layers=["first", "head"], **options)
    assert named.layers == ("head", "first")
    assert named.rows[: len(ROWS)] == last.rows
    assert named.rows[-1] != cascading.rows[-1]  # the layer between is as it was


def test_results_depend_only_on_the_seed():
    model = table_model()
    one, same, other = (
        pertinent.sanity(model, ROWS, "leave-one-out", removal="constant", seed=seed, batch_size=size)
        for seed, size in ((0, 3), (0, 1000), (1, 1000))
    )
    assert [row.spearman for row in one.rows] == pytest.approx([row.spearman for row in same.rows])
    assert one.rows != other.rows


def test_a_method_that_ignores_the_model_fails():
    result = pertinent.sanity(table_model(), ROWS, "random")
    assert not result.passed
    assert all(row.spearman == 1.0 for row in result.rows)
    assert result.stages[-1].unchanged == ("scores", "absolute scores")
    assert result.warnings[0] == (
        "the scores of random hardly change: with 3 of 3 layers randomised, down to first, their rank "
        "correlation with the original ones is 1.000 [1.000, 1.000]; below 0.7 is expected"
    )
    assert "FAILED" in repr(result)


def test_only_the_absolute_scores_may_hardly_change():
    result = of_rows((0, 1, 0.1, 0.2), (1, 1, 0.0, 0.3), (0, 2, -0.9, 0.95), (1, 2, -0.8, 0.85))
    assert [stage.unchanged for stage in result.stages] == [(), ("absolute scores",)]
    assert not result.passed
    (warning,) = result.warnings
    assert "with 2 of 3 layers randomised, down to b, their rank correlation" in warning
    assert repr(result).endswith(
        "2 inputs: FAILED, last Spearman -0.850 [-0.900, -0.800] of scores, "
        "0.900 [0.850, 0.950] of absolute scores>"
    )


def test_the_last_stage_decides():
    result = of_rows((0, 1, 0.9, 0.95), (0, 2, 0.69, 0.2))
    assert [stage.unchanged for stage in result.stages] == [("scores", "absolute scores"), ()]
    assert result.passed and not result.warnings
    assert repr(result).endswith(
        "2 of 3 layers randomised, 1 input: passed, last Spearman 0.690 of scores, 0.200 of absolute scores>"
    )
    assert "fails" not in printed(result, 300).replace("the check fails if", "")
    assert not of_rows((0, 1, 0.1, 0.1), (0, 2, 0.7, 0.2)).passed
    assert not of_rows((0, 1, 0.9, 0.1), layers=("c",)).passed


def test_undefined_correlations_fail():
    result = of_rows((0, 1, 0.1, 0.1), (1, 1, 0.1, 0.1), (0, 2, 0.1, np.nan), (1, 2, 0.1, np.nan))
    assert not result.passed
    (warning,) = result.warnings
    assert warning.startswith(
        "the absolute scores are inconclusive: with 2 of 3 layers randomised, down to b,"
    )
    assert "undefined of absolute scores" in repr(result)
    assert of_rows((0, 1, 0.1, 0.1), (0, 2, 0.1, np.nan), (1, 2, 0.1, 0.3)).passed
    unexplained = of_rows((0, 1, 0.1, 0.1))
    assert not unexplained.passed
    assert unexplained.warnings[0].endswith("down to b, no input could be explained")


def test_equal_scores_have_no_correlation():
    flat = nn.Sequential(nn.Linear(12, 2))
    flat[0].weight.data.zero_()
    result = pertinent.sanity(
        pertinent.wrap(flat, kind="table", output="logit"), ROWS, "leave-one-out", removal="constant"
    )
    assert result.stages[0].spearman.n == 0
    assert not result.passed
    assert [warning.partition(":")[0] for warning in result.warnings[:2]] == [
        "the scores are inconclusive", "the absolute scores are inconclusive",
    ]  # fmt: skip
    assert "FAILED, last Spearman undefined of scores" in repr(result)
    assert "Missing from Spearman: 5 of 5 explanations" in printed(result)
    assert "nan" not in printed(result) + result._repr_html_()
    assert result.plot().axes
    assert "NaN" not in result.to_json()


def test_texts_and_images():
    texts = pertinent.sanity(
        tiny.pair("bert"), [tiny.text(8), tiny.text(9, 1)], "gradient-x-input", layers="last"
    )
    assert (texts.features, texts.layers, texts.inputs) == ("words", ("classifier",), 2)
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
    images = np.random.default_rng(0).random((2, 1, 8, 8)).astype(np.float32)
    result = pertinent.sanity(
        pertinent.wrap(network, kind="image", output="logit"), images, "gradient", features="patches:2"
    )
    assert (result.features, result.layers) == ("patches", ("3", "0"))
    one = pertinent.sanity(pertinent.wrap(network, kind="image", output="logit"), images[0], "gradient")
    assert one.inputs == 1


# -- the model itself ----------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["well", "Ctrl-C", "Ctrl-C at first", "error"])
def test_the_model_is_never_changed(ending, interrupted, monkeypatch):
    model = table_model()
    model.module.train()
    before = {name: tensor.clone() for name, tensor in model.module.state_dict().items()}
    random_state, fingerprint = torch.get_rng_state(), model.fingerprint
    expected = {"Ctrl-C": KeyboardInterrupt, "Ctrl-C at first": KeyboardInterrupt, "error": ModelError}
    interrupted["after"] = {"Ctrl-C": 6, "Ctrl-C at first": 0}.get(ending)
    if ending == "error":

        def broken(self):
            with torch.no_grad():
                self.weight.fill_(7.0)
            raise ValueError("no")

        monkeypatch.setattr(nn.Linear, "reset_parameters", broken)
    if ending in expected:
        with pytest.raises(expected[ending]):
            pertinent.sanity(model, ROWS, "leave-one-out", removal="constant", batch_size=30)
    else:
        pertinent.sanity(model, ROWS, "leave-one-out", removal="constant")
    interrupted["after"] = None
    assert model.module.training
    assert all(torch.equal(before[name], tensor) for name, tensor in model.module.state_dict().items())
    assert torch.equal(random_state, torch.get_rng_state())
    vars(model).pop("fingerprint")
    assert model.fingerprint == fingerprint


def test_invalid_models_and_settings():
    function = pertinent.wrap(lambda rows: [[0.5, 0.5] for _ in rows], kind="table")
    with pytest.raises(ModelError, match="must be a torch module or a transformers model"):
        pertinent.sanity(function, ROWS, "leave-one-out")
    model = table_model()
    for options, error, message in (
        ({"layers": "lats"}, SettingError, "Unknown layers 'lats'. Did you mean 'last'"),
        ({"layers": ["heads"]}, SettingError, "Unknown layer 'heads'. Did you mean 'head'"),
        ({"layers": 3}, SettingError, "Unknown layers 3"),
        ({"samples": 2}, SettingError, "samples"),
        ({"seed": -1}, SettingError, "`seed` must be at least 0, but got -1"),
    ):
        with pytest.raises(error, match=message):
            pertinent.sanity(model, ROWS, "leave-one-out", **options)
    with pytest.raises(InputError, match="no inputs"):
        pertinent.sanity(model, [], "leave-one-out")


def test_failures_are_recorded():
    class Picky(Network):
        def forward(self, x):
            answer = super().forward(x)
            if not torch.equal(self.head.weight, kept["head"]) and (x == 13).any():
                raise ValueError("not this one")
            return answer

    module = Picky()
    kept = {"head": module.head.weight.detach().clone()}
    rows = ROWS.copy()
    rows[2, 3] = 13
    model = pertinent.wrap(module, kind="table", output="logit")
    result = pertinent.sanity(
        model, [*rows, "no row"], "leave-one-out", removal="constant", layers="last", ids=list("abcdef")
    )
    assert [(f.index, f.id) for f in result.failures] == [(5, "f"), (2, "c")]
    assert result.failures[1].reason.startswith("with head randomised: ")
    assert [(row.input, row.id) for row in result.rows] == [(0, "a"), (1, "b"), (3, "d"), (4, "e")]
    assert "Failed: input 2 · c" in printed(result)


# -- shown and saved -----------------------------------------------------------------------------


def test_table_plot_and_frame():
    result = pertinent.sanity(table_model(), ROWS, "random", budget=3)
    text = " ".join(printed(result, 90).split())
    for part in ("random budget=3", "second", "1.00 [1.00–1.00]", "fails", "3 of 3 layers", "fewer than 20"):
        assert part in text
    assert "Warning: the scores of random hardly change" in text
    assert "hardly change" in result._repr_html_()
    figure = result.plot(pertinent.sanity(table_model(), ROWS, "lime", samples=30))
    labels = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    assert labels == ["none", "head", "second", "first"]
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "random budget=3", "lime samples=30",
    ]  # fmt: skip
    frame = result.to_dataframe()
    assert list(frame.columns) == ["input", "stage", "spearman", "absolute", "id", "layer"]
    assert len(frame) == 15


def test_save_and_read(tmp_path):
    result = pertinent.sanity(table_model(), ROWS, "lime", samples=30, budget=30, ids=list("abcde"))
    result = replace(result, rows=(replace(result.rows[0], spearman=np.nan), *result.rows[1:]))
    path = tmp_path / "a.json"
    result.save(path)
    again = Sanity.read(path)
    assert again.to_json() == result.to_json()
    assert again.stages == result.stages
    assert again.rows[1:] == result.rows[1:]
    assert np.isnan(again.rows[0].spearman)
    assert json.loads(path.read_text())["passed"] == result.passed
    with pytest.raises(FileError, match="must end in"):
        result.save(tmp_path / "a.txt")


@pytest.mark.parametrize(
    "change",
    [{"layers": []}, {"rows": []}, {"rows": [[0, 3, 0.1, 0.1, None]]}, {"rows": [[0, 1, 2.0, 0.1, None]]},
     {"format": "pertinent stability 1"}, {"n_layers": 0}],
)  # fmt: skip
def test_a_damaged_file_is_refused(tmp_path, change):
    path = tmp_path / "a.json"
    of_rows((0, 1, 0.1, 0.2), (0, 2, 0.1, 0.2)).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(FileError, match="is damaged or contains no sanity"):
        Sanity.read(path)


def test_names_of_layers_are_escaped():
    result = of_rows((0, 1, 0.1, 0.2), layers=("[bold]a[/bold]<b>", "[/]"))
    assert "[bold]a[/bold]<b>" in printed(result)
    assert "[bold]a[/bold]&lt;b&gt;" in result._repr_html_()


def test_methods_that_attack_explain_what_each_stage_predicts():
    result = pertinent.sanity(table_model(), ROWS, "counterfactual", layers="last")
    assert result.inputs == len(ROWS) and not result.failures

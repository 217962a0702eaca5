"""A learned method that another package registers is fitted, saved and used like any other."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import pertinent
from pertinent.cli import main
from pertinent.errors import SettingError
from pertinent.learners import learned

METHOD = '''
from dataclasses import dataclass

import numpy as np

from pertinent.asks import NetworkOutputs
from pertinent.explainers import Finding
from pertinent.learners import LearnedExplainer, LearnerSpec, ScoreLearner, learned


@dataclass(frozen=True)
class OcclusionLearner(ScoreLearner):
    """Learns leave-one-out scores of the predicted class by their squared error, times a `weight`."""

    spec = LearnerSpec("leave-one-out", classes=("predicted",))
    weight: float = 1.0

    def targets(self, explanation, columns, label):
        return {"scores": explanation.scores[None]}

    def deviation(self, targets):
        return np.full(1, 0.1)

    def compute_loss(self, scores, targets, real, deviation):
        off = (scores - targets["scores"]) / deviation
        return self.weight * (off.square() * real[:, None]).sum() / real.sum()


@learned.register("my-occlusion")
@dataclass(frozen=True)
class MyOcclusion(LearnedExplainer):
    learner = OcclusionLearner
    paper = "none"
    summary = "leave-one-out scores, predicted by a network"

    def explain(self, task):
        self.columns(task)
        scores = yield NetworkOutputs(self.network)
        return Finding(scores[0])


def model(texts):
    p = np.array([0.55 + 0.08 * text.count("good") for text in texts])
    return np.column_stack([1 - p, p])
'''
WORDS = ("good", "bad", "the", "film", "was")


def sentences(n):
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, rng.integers(2, 6))) for _ in range(n)]


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Write the user's module into the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    kept = dict(learned.all())
    Path("outside_method.py").write_text(METHOD)
    yield
    learned._classes = kept
    sys.modules.pop("outside_method", None)


def test_it_is_fitted_saved_loaded_and_explains(outside):
    import outside_method

    model = pertinent.wrap(outside_method.model, kind="text", classes=["no", "yes"])
    fitted = pertinent.fit(model, sentences(60), "my-occlusion", epochs=30, weight=2.0, progress=False)
    assert isinstance(fitted, outside_method.MyOcclusion)
    assert fitted.network.card["settings"] == {"weight": 2.0}
    e = pertinent.explain(model, "the good film", fitted)
    assert (e.method, e.features[int(e.scores.argmax())]) == ("my-occlusion", "good")
    fitted.save("folder")
    again = pertinent.explain(model, "the good film", pertinent.load_explainer("folder"))
    np.testing.assert_array_equal(e.scores, again.scores)


def test_it_is_listed_and_has_to_learn_first(outside):
    import outside_method

    (entry,) = [entry for entry in pertinent.list_methods() if entry.name == "my-occlusion"]
    assert (entry.fitted_first, entry.settings) == (True, {"weight": 1.0})
    with pytest.raises(SettingError, match="'my-occlusion' must be fitted first"):
        pertinent.explain(lambda texts: [[0.5, 0.5]] * len(texts), "a b", "my-occlusion")
    with pytest.raises(SettingError, match=r"Unknown setting of my-occlusion 'wieght'\. Did you mean"):
        pertinent.fit(outside_method.model, sentences(4), "my-occlusion", wieght=1.0, progress=False)


def test_the_command_line_knows_it(outside, capsys):
    Path("texts.csv").write_text("text\n" + "\n".join(sentences(12)) + "\n")
    model = ["--model", "outside_method:model"]
    fit = ["fit", "--file", "texts.csv", "--method", "my-occlusion", "--set", "weight=2", "--epochs", "1"]
    assert main([*fit, "--out", "folder", *model]) == 0
    assert "Fitted: my-occlusion" in capsys.readouterr().out
    assert json.loads(Path("folder/pertinent.json").read_text())["settings"] == {"weight": 2.0}
    assert main(["explain", "a good film", "--method", "folder", *model, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["explanations"][0]["method"] == "my-occlusion"

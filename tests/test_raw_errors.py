"""Arguments and file names that once raised errors that are not ours."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import pertinent
from pertinent.errors import FileError, InputError, SettingError
from pertinent.files import file_exists, folder_exists
from pertinent.study.answers import Answers
from pertinent.study.create import create_study
from tests.study.people import by_the_words, explained, take_part

LONG = "a" * 300


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])


@pytest.mark.parametrize("name", ["sources", "messages"])
@pytest.mark.parametrize(
    "value", [5, None, 1.5, True, "text", b"x", {"a": "b"}, {"a"}, torch.tensor(3), np.array(3)]
)
def test_lists_of_a_prompt_must_be_lists(name, value):
    with pytest.raises(InputError, match=f"`{name}` must be a list"):
        pertinent.Prompt(**({"text": "Who?"} if name == "sources" else {}), **{name: value})


@pytest.mark.parametrize(
    "sources", [["Ann.", "Bob."], ("Ann.", "Bob."), np.array(["Ann.", "Bob."]), iter(["Ann.", "Bob."])]
)
def test_sources_may_be_any_list(sources):
    assert pertinent.Prompt("Who?", sources=sources).sources == ("Ann.", "Bob.")


@pytest.mark.parametrize("target", [np.array(["0", "1"]), np.array([0]), torch.tensor([0, 1]), [0], None, {}])
def test_a_class_is_named_by_one_value(model, target):
    explanation = pertinent.explain(model, "not bad", "leave-one-out")
    with pytest.raises(InputError, match="name or number"):
        explanation.for_class(target)


@pytest.mark.parametrize("target", [np.int64(1), np.array(1), torch.tensor(1), 1, "1", 1.0])
def test_a_class_may_be_a_number_of_numpy_or_torch(model, target):
    assert pertinent.explain(model, "not bad", "leave-one-out").for_class(target).target == 1


@pytest.mark.parametrize("features", [np.array(3), torch.tensor(3), {"a": 1}, 5])
def test_features_must_be_a_name_or_a_list(model, features):
    with pytest.raises(SettingError, match="features"):
        pertinent.explain(model, "not bad", features=features)


@pytest.mark.parametrize("labels", [torch.tensor(1), np.array(1), 1])
def test_labels_must_be_as_many_as_the_inputs(model, labels):
    with pytest.raises(SettingError, match="labels"):
        pertinent.check_removal(model, ["not bad", "good"], labels=labels)


@pytest.mark.parametrize("metrics", [torch.tensor(3), np.array(3), torch.zeros(2, 2)])
def test_several_values_must_be_a_list(model, metrics):
    with pytest.raises(SettingError, match="metrics"):
        pertinent.compare(model, "not bad", "lime", metrics)


@pytest.mark.parametrize("unit", ["", "bits"])
def test_an_output_of_an_unknown_unit_is_damaged(model, unit):
    plain = pertinent.explain(model, "not bad", "leave-one-out").to_dict()
    plain["output"] = {"name": "log-likelihood", "unit": unit}
    with pytest.raises(InputError, match="unit"):
        pertinent.Explanation.from_dict(plain)


@pytest.mark.parametrize("name", [LONG, f"{LONG}.json", f"{LONG}.parquet", "null\0character.json"])
def test_names_that_no_file_can_have(tmp_path, model, name):
    explanation = pertinent.explain(model, "not bad", "leave-one-out")
    path = tmp_path / name
    assert not file_exists(path) and not folder_exists(path)
    for call in (
        lambda: pertinent.read(path),
        lambda: pertinent.explain(model, ["not bad"], "leave-one-out", out=path),
        lambda: pertinent.load_explainer(path),
        lambda: pertinent.report_study(path),
        lambda: create_study(path, tmp_path / "study"),
    ):
        with pytest.raises(FileError):
            call()
    with pytest.raises((FileError, SettingError)):
        explanation.save(path)


def test_deep_json_in_the_answers_of_a_study(tmp_path):
    study = create_study(explained(4), tmp_path / "study", limit=4)
    take_part(study, 1, by_the_words)
    path = next((tmp_path / "study" / "answers").iterdir())
    first, *rest = path.read_text().splitlines()
    deep = json.dumps("deep")[:-1] + '": ' + "[" * 100_000
    path.write_text("\n".join([first, "{" + deep, *rest, ""]))
    answers = Answers(type(study).read(study.folder))
    assert len(answers.damaged) == 1
    (person,) = answers.people.values()
    assert len([answer for answer in person.answers if answer is not None]) == len(rest)

"""What files, folders and models bring along is data: it is shown as it is, and never run."""

import json

import numpy as np
import pytest
from rich.console import Console

import pertinent
from pertinent.errors import InputError, ModelError
from pertinent.models.embedded.load import load_transformer
from pertinent.models.tokens.masked_lm import load_filler
from tests import tiny
from tests.explanations import changed

EVIL = "<script>alert(1)</script>\x1b[31m"


@pytest.mark.parametrize("load", [load_transformer, lambda folder: load_filler(str(folder), "cpu")])
def test_code_in_a_model_folder_is_not_run(load, tmp_path, monkeypatch):
    model, tokenizer = tiny.pair("bert")
    model.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    config |= {"model_type": "evil", "architectures": ["Evil"]}
    config["auto_map"] = dict.fromkeys(
        ("AutoConfig", "AutoModelForSequenceClassification", "AutoModelForMaskedLM"), "evil.Evil"
    )
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    (tmp_path / "m" / "evil.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w').write('x')\nclass Evil: pass\n"
    )
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(tmp_path / "m")
    assert not (tmp_path / "ran").exists()


def test_keys_and_values_of_details_are_shown_as_text():
    model = pertinent.wrap(lambda texts: [[0.9, 0.1] for _ in texts])
    e = pertinent.explain(model, "not bad at all", "leave-one-out")
    e = changed(e, details={EVIL: 1.0, "size": EVIL}, settings={EVIL: EVIL}, method=EVIL)
    page = e.to_html()
    assert "<script>" not in page and page.count("&lt;script&gt;") >= 5
    console = Console(record=True, force_terminal=False, width=200)
    with console.capture() as shown:
        console.print(e)
    assert "\x1b[31m" not in shown.get()


def test_columns_of_one_name_are_refused():
    with pytest.raises(InputError, match="must differ, but these occur twice: a"):
        pertinent.wrap(lambda rows: np.full((len(rows), 2), 0.5), kind="table", columns=["a", "b", "a"])


def test_a_group_does_not_swallow_a_column_of_its_name():
    columns = {"columns": ["a", "b", "c"], "kind": "table"}
    with pytest.raises(InputError, match="The group 'c' has the name of a column"):
        pertinent.wrap(lambda rows: np.full((len(rows), 2), 0.5), **columns, groups={"c": ["a", "b"]})
    fine = pertinent.wrap(lambda rows: np.full((len(rows), 2), 0.5), **columns, groups={"a": ["a", "b"]})
    assert pertinent.explain(fine, [1.0, 2.0, 3.0], "leave-one-out").features == ("a", "c")

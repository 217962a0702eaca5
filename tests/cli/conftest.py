"""Fixtures of the tests of the command line."""

import pytest

from pertinent.cli import main


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Return a function that runs a command in an empty folder, and returns the code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert "--debug" in arguments or "Traceback" not in err
        return code, out, err

    return call


@pytest.fixture
def use_model(monkeypatch):
    """Return a function that makes every named model this one."""
    return lambda model: monkeypatch.setattr("pertinent.runs.model_names.load_model", lambda *_: model)

"""The documentation site: it builds without a warning, and the docstrings it is made from are complete."""

import inspect
import os
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import pertinent
from pertinent.diagnostics.base import diagnostics
from pertinent.explainers import explainers
from pertinent.learners import learned
from pertinent.metrics import metrics
from pertinent.removals import removals

ROOT = Path(__file__).parents[1]
REFERENCE = (ROOT / "docs" / "reference" / "api.rst").read_text(encoding="utf-8")
FUNCTIONS = [name for name in pertinent.__all__ if inspect.isfunction(getattr(pertinent, name))]
CLASSES = [name for name in pertinent.__all__ if name not in FUNCTIONS]
REGISTERED = [
    cls for registry in (explainers, metrics, removals, diagnostics) for cls in registry.all().values()
] + [cls.learner for cls in learned.all().values()]


def documented(doc, *sections):
    """Return the names in numpydoc sections of a docstring."""
    names = set()
    for section in sections:
        match = re.search(
            rf"^{section}\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", inspect.cleandoc(doc), re.MULTILINE | re.DOTALL
        )
        for line in match[1].splitlines() if match else ():
            if line and not line[0].isspace():
                names |= {name.strip(" *`") for name in line.split(":")[0].split(",")}
    return names


def test_reference_lists_every_public_name():
    listed = set(re.findall(r"^   (\w+)$", REFERENCE, re.MULTILINE))
    assert listed | {"PertinentError"} == set(pertinent.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_documented(name):
    function = getattr(pertinent, name)
    parameters = set(inspect.signature(function).parameters)
    assert documented(function.__doc__, "Parameters") == parameters


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_member_has_a_docstring(name):
    cls = getattr(pertinent, name)
    members = {
        member
        for base in cls.__mro__
        if base.__module__.startswith("pertinent.")
        for member, value in vars(base).items()
        if member[0] != "_" and (inspect.isfunction(value) or isinstance(value, property | classmethod))
    }
    assert not {member for member in members if not inspect.getdoc(getattr(cls, member))}
    own = {f.name for f in fields(cls) if f.name[0] != "_"} if is_dataclass(cls) else set()
    shown = set().union(*(documented(base.__doc__ or "", "Attributes", "Parameters") for base in cls.__mro__))
    assert own <= shown


@pytest.mark.parametrize("cls", REGISTERED, ids=lambda cls: cls.__name__)
def test_every_setting_is_documented(cls):
    settings = {f.name for f in fields(cls) if f.init and f.metadata.get("setting", True)}
    bases = [base for base in cls.__mro__ if base.__module__.startswith("pertinent.")]
    shown = set().union(*(documented(base.__doc__ or "", "Parameters", "Attributes") for base in bases))
    assert settings <= shown


def test_the_site_builds_without_warnings(tmp_path):
    pytest.importorskip("sphinx_gallery")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "docs", str(tmp_path / "site")]
    environment = os.environ | {"MPLBACKEND": "agg"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {page.name for page in (tmp_path / "site").rglob("*.html")}
    assert {"index.html", "methods.html", "pertinent.explain.html", "01_text.html"} <= pages

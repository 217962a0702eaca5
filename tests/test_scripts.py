"""The scripts of `experiments/` and `benchmarks/` fit the library, by their syntax and in miniature."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import pertinent
from pertinent.api.explain import explain
from pertinent.config.settings import setting_names
from pertinent.explainers.base import explainers, learned_methods
from tests.miniature import (
    ROOT,
)

SCRIPTS = sorted(path for folder in ("experiments", "benchmarks") for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Each module of `pertinent`, and each name that is taken from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "pertinent":
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((own.name, "") for own in node.names if own.name.partition(".")[0] == "pertinent")


def is_public(node: ast.AST) -> bool:
    """Whether this is `pertinent.NAME`."""
    return (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pertinent"
    )


def settings() -> set[str]:
    """The settings of all methods, fitted or not."""
    found = {name for cls in explainers.all().values() for name in setting_names(cls)}
    for cls in learned_methods.all().values():
        found |= {*setting_names(cls), *setting_names(cls.learner)}
    return found


def accepted(function) -> set[str] | None:
    """The keywords of a function; ``None`` if it takes any."""
    parameters = inspect.signature(function).parameters
    names = {name for name, own in parameters.items() if own.kind is not own.VAR_KEYWORD}
    rest = next((name for name, own in parameters.items() if own.kind is own.VAR_KEYWORD), None)
    if rest == "options":  # of `wrap`, which passes them on
        return None
    if rest == "words":  # those of `explain`
        names |= set(inspect.signature(explain).parameters)
    return names | settings() if rest else names


def complaints(source: str) -> list[str]:
    """What a script asks of the library that is not there."""
    tree, found = ast.parse(source), []
    for module, name in imported(tree):
        try:
            own = importlib.import_module(module)
            if name and not hasattr(own, name):
                importlib.import_module(f"{module}.{name}")
        except ModuleNotFoundError:
            found.append(f"from {module} import {name}")
    for node in ast.walk(tree):
        if is_public(node) and not hasattr(pertinent, node.attr):
            found.append(f"line {node.lineno}: pertinent.{node.attr}")
        elif isinstance(node, ast.Call) and is_public(node.func):
            known = accepted(getattr(pertinent, node.func.attr, None) or (lambda **options: options))
            given = {keyword.arg for keyword in node.keywords if keyword.arg is not None}
            wrong = sorted(given - known) if known is not None else []
            found += [f"line {node.lineno}: pertinent.{node.func.attr}({name}=)" for name in wrong]
    return found


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_a_script_asks_only_for_what_there_is(path):
    assert not complaints(path.read_text(encoding="utf-8"))


def test_what_is_not_there_is_noticed():
    assert not complaints("import pertinent\npertinent.explain(m, x, 'lime', samples=9, seed=1)")
    assert not complaints("import pertinent\npertinent.stability(m, x, 'lime', samples=9, budget=1)")
    assert complaints("def f():\n    from pertinent.nowhere import x") == ["from pertinent.nowhere import x"]
    assert complaints("from pertinent.masks import nothing") == ["from pertinent.masks import nothing"]
    assert complaints("pertinent.explane(m, x)") == ["line 1: pertinent.explane"]
    assert complaints("pertinent.fit(m, x, dev=0.1)") == ["line 1: pertinent.fit(dev=)"]
    assert complaints("pertinent.evaluate(m, x, marks=[])") == ["line 1: pertinent.evaluate(marks=)"]

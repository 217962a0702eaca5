"""Imports point one way: from the command line down to the plain types."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import pertinent

ROOT = Path(pertinent.__file__).parent
LAYERS = [
    {"array_types", "errors", "printable", "number_format"},
    {"_optional", "masks"},
    {"config"},
    {"files", "stats", "outputs"},
    {"asks"},
    {"inputs"},
    {"removals"},
    {"models"},
    {"explainers"},
    {"engine"},
    {"results"},
    {"metrics"},
    {"finetuning"},
    {"runs"},
    {"cluster"},
    {"api"},
    {"learners"},
    {"diagnostics"},
    {"rendering"},
    {"study"},
    {"app"},
    {"__init__"},
    {"cli", "testing"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
FILES = sorted(ROOT.rglob("*.py"))


HOOK = "results/base.py"
"""The only file that may import a higher layer, to show results."""


def unit(module):
    """Return the first-level package or module of a module."""
    names = module.split(".")
    return names[1] if len(names) > 1 else "__init__"


def nodes(tree):
    """Yield all nodes except for those of ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from nodes(node)


def imported(path):
    """Yield the modules of the package that a file imports, also inside functions."""
    for node in nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "pertinent":
            package = ROOT.joinpath(*node.module.split(".")[1:])
            inside = [alias.name for alias in node.names if (package / f"{alias.name}.py").is_file()]
            yield from (f"{node.module}.{name}" for name in inside)
            if node.module != "pertinent" and len(inside) < len(node.names):
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "pertinent")


def name_of(path):
    return ".".join(["pertinent", *path.relative_to(ROOT).with_suffix("").parts])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_imports_from_higher_layers(path):
    own, place = unit(name_of(path)), path.relative_to(ROOT).as_posix()
    assert own in LEVEL, f"{own} has no place in the layers"
    above = {module for module in imported(path) if LEVEL[unit(module)] > LEVEL[own]}
    assert above == ({"pertinent.rendering"} if place == HOOK else set())


def test_no_import_cycles():
    names = {name_of(path).removesuffix(".__init__"): path for path in FILES}
    needs = {}
    for name, path in names.items():
        place = path.relative_to(ROOT).as_posix()
        apart = {"pertinent.rendering"} if place == HOOK else set()
        needs[name] = {module for module in imported(path) if module in names} - apart
    done, under_way = set(), []

    def visit(name):
        assert name not in under_way, " -> ".join([*under_way[under_way.index(name) :], name])
        if name not in done:
            under_way.append(name)
            for module in sorted(needs[name]):
                visit(module)
            under_way.pop()
            done.add(name)

    for name in names:
        visit(name)
    assert len(done) > 100


def test_no_class_name_is_used_twice():
    classes = Counter(
        node.name
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert not {name for name, n in classes.items() if n > 1}


@pytest.mark.parametrize("folder", ["explainers", "metrics"])
def test_algorithms_import_only_numpy_and_core_types(folder):
    for path in (ROOT / folder).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                assert module.split(".")[0] not in ("torch", "transformers", "sklearn", "scipy"), path
                assert unit(module) not in ("engine", "models", "api", "cli") or module[:9] != "pertinent", (
                    path
                )

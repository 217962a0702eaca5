"""What the documentation shows works: its Python runs, its commands parse, its tables are complete."""

import doctest
import logging
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

import pertinent
from pertinent.app.views import views
from pertinent.cli.commands import COMMANDS
from pertinent.cli.loading import load_methods
from pertinent.cli.parser import parse
from pertinent.explainers import explainers
from pertinent.inputs.modality import modalities
from pertinent.learners import learned
from pertinent.metrics import metrics
from pertinent.models.embedded.load import NAMES
from pertinent.models.heads.base import heads
from pertinent.removals import removals
from pertinent.runs.model_names import is_own
from tests import tiny_lm

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
MEASUREMENTS = sorted([*(ROOT / "experiments").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")])
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CATALOGUES = {
    "methods": lambda: [entry for entry in pertinent.list_methods() if not entry.fitted_first],
    "metrics": pertinent.list_metrics,
    "removals": pertinent.list_removals,
}


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int


def name(page):
    return str(page.relative_to(ROOT))


def blocks(page, *languages):
    text = page.read_text(encoding="utf-8")
    found = [Block(m[1], m[2], text.count("\n", 0, m.start()) + 1) for m in FENCE.finditer(text)]
    return [block for block in found if block.language in languages]


def commands(page):
    """Every command line of our own in a shell block, as (line of the block, words)."""
    for block in blocks(page, "bash", "console", "sh"):
        for line in block.code.replace("\\\n", " ").splitlines():
            line = re.sub(r"^(\$ +)?([A-Z_]+=\S+ +)*", "", line)
            if line.startswith("pertinent "):
                lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>&;")
                lexer.whitespace_split = True
                words = list(lexer)
                stop = next((i for i, word in enumerate(words) if set(word) <= set("|<>&;")), len(words))
                yield block.line, words[1:stop]


COMMAND_LINES = [(name(page), line, words) for page in PAGES for line, words in commands(page)]


@pytest.fixture(autouse=True)
def _as_before():
    """What a page registers is forgotten, and what it does to logging undone."""
    kept = [(registry, dict(registry.all())) for registry in (explainers, learned, metrics, removals, heads)]
    level = logging.getLogger("pertinent").level
    yield
    for registry, classes in kept:
        registry._classes = classes
    logging.getLogger("pertinent").setLevel(level)


# -- what is shown runs ------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    if any("./my-language-model" in block.code for block in blocks(page, "python")):
        tiny_lm.model("llama").save_pretrained(tmp_path / "my-language-model")
        tiny_lm.tokenizer().save_pretrained(tmp_path / "my-language-model")
    namespace = {"__name__": "docs"}
    for block in blocks(page, "python"):
        where = f"{name(page)}, block at line {block.line}"
        if ">>>" in block.code:
            test = doctest.DocTestParser().get_doctest(block.code, namespace, where, str(page), block.line)
            namespace = test.globs
            complaints = []
            runner = doctest.DocTestRunner(optionflags=FLAGS)
            runner.run(test, out=complaints.append, clear_globs=False)
            assert not complaints, "".join(complaints)
        else:
            exec(compile(block.code, where, "exec", dont_inherit=True), namespace)


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_examples_run(example, tmp_path):
    environment = os.environ | {"MPLBACKEND": "agg", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-W", "error", str(example)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_excerpts_are_from_the_examples():
    examples = "\n".join(example.read_text(encoding="utf-8") for example in EXAMPLES)
    excerpts = [block.code for page in PAGES for block in blocks(page, "py")]
    assert excerpts
    assert [excerpt for excerpt in excerpts if excerpt not in examples] == []


@pytest.mark.parametrize(("page", "line", "words"), COMMAND_LINES, ids=lambda value: str(value)[:60])
def test_commands_are_understood(page, line, words):
    if {"--help", "--version"} & set(words):
        with pytest.raises(SystemExit) as stop:
            parse(words)
        assert stop.value.code == 0
        return
    args = parse(words)
    methods = getattr(args, "methods", [args.method] if getattr(args, "method", None) else [])
    if args.command == "fit":
        assert args.method in learned
    elif methods and not any(method.startswith("./") for method in methods):
        load_methods(methods, args.set)
    for model in filter(None, (getattr(args, "model", None) or "").split(",")):
        assert model in NAMES or model.startswith(("./", "/")) or is_own(model)


def test_there_are_commands_to_check():
    assert len(COMMAND_LINES) > 10
    shown = {" ".join(words[:n]) for _, _, words in COMMAND_LINES for n in (1, 2)}
    assert shown >= set(COMMANDS)


@pytest.mark.parametrize("page", [*PAGES, *MEASUREMENTS], ids=name)
def test_links_lead_somewhere(page):
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), link
        if anchor:
            titles = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}, link


# -- what is listed is all there is ------------------------------------------------------------

HOW_TO = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "how-to").glob("*.md"))


def section(title, text):
    """What stands under a heading, with its sub-headings."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#{{1,6}} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"no section {title!r}"
    start, level = found.start(), len(found[1])
    end = re.compile(rf"^#{{1,{level}}} ", re.MULTILINE).search(text, found.end(1) + 1)
    return text[start : end.start() if end else len(text)]


def rows(text):
    """Lines of tables by what stands in code in their first cell, without header lines."""
    cells = [
        [c.strip() for c in line.strip("|").split(" | ")] for line in text.splitlines() if line[:1] == "|"
    ]
    return {m[1]: row[1:] for row in cells if (m := re.match(r"`([^`]+)`$", row[0].strip("| ")))}


@pytest.mark.parametrize(
    ("title", "what"), [("Choose a removal", "removals"), ("Choose a method", "methods")]
)
def test_how_to_tables_are_complete(title, what):
    assert sorted(rows(section(title, HOW_TO))) == [entry.name for entry in CATALOGUES[what]()]


def test_entry_points_are_in_the_groups_that_are_read():
    (shown,) = blocks(ROOT / "docs" / "extend.md", "toml")
    groups = tomllib.loads(shown.code)["project"]["entry-points"]
    registries = (explainers, heads, learned, metrics, modalities, removals, views)
    assert set(groups) == {registry.group for registry in registries}

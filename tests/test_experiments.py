"""What the experiments share: their map, tables in Markdown, pages that are filled in, stages that go on."""

import json
import re
import sys
import time
from functools import partial
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "experiments"))

from shared.pages import fill_in, table
from shared.stages import Pool, is_made

MAP = (Path(__file__).parents[1] / "experiments" / "README.md").read_text(encoding="utf-8")
NUMBERED = {
    "Hase et al. 2021": (7, 3),
    "Hsieh et al. 2021": (11, 22),
    "MAGNEx": (4, 6),
    "Vo et al. 2023": (18, 5),
    "Yang et al. 2023": (6, 5),
}
"""How many tables and figures each paper has, with its appendices."""


def rows_of_the_map(paper):
    section = re.search(rf"^## {re.escape(paper)}\n(.*?)(?=^## |\Z)", MAP, re.MULTILINE | re.DOTALL)[1]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return lines[1:]


@pytest.mark.parametrize("paper", NUMBERED)
def test_the_map_has_every_table_and_figure_of_a_paper(paper):
    listed = {"Table": set(), "Figure": set()}
    for first, _, verdict, why in rows_of_the_map(paper):
        assert verdict in {"reproduced", "partly", "not reproduced", "not run"}, first
        assert why.endswith("."), first
        if found := re.match(r"(Table|Figure)s? ([\d, and]+)", first):
            listed[found[1]] |= {int(number) for number in re.findall(r"\d+", found[2])}
    tables, figures = NUMBERED[paper]
    assert listed == {"Table": set(range(1, tables + 1)), "Figure": set(range(1, figures + 1))}


def test_a_table_leaves_out_rows_without_results():
    made = table(["set", "value"], [["a", "1"], ["b", "–"], ["c", ""]])
    assert made == "| set | value |\n| --- | --- |\n| a | 1 |\n"


def test_a_page_is_filled_in_between_its_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- one -->\nold\n<!-- end -->\nbetween\n<!-- two -->\n<!-- end -->\nafter\n")
    for _ in range(2):  # again the same
        fill_in(page, {"two": "2\\1\n", "one": "1\n"})
        one, two = "<!-- one -->\n\n1\n\n<!-- end -->", "<!-- two -->\n\n2\\1\n\n<!-- end -->"
        assert page.read_text() == f"before\n{one}\nbetween\n{two}\nafter\n"
    with pytest.raises(ValueError, match="no place for three"):
        fill_in(page, {"three": "3\n"})


def counted(log: Path, name: str) -> dict[str, str]:
    """A stage that says when it was run; the one called "wrong" fails."""
    with log.open("a") as file:
        file.write(f"{name}\n")
    if name == "wrong":
        raise ValueError("as it should")
    return {"name": name}


def test_stages_are_made_once_and_failed_ones_again(tmp_path, capsys):
    log = tmp_path / "log"
    stages = {tmp_path / f"{name}.json": partial(counted, log, name) for name in ("one", "wrong", "two")}
    for _ in range(2):
        Pool(1, time.time() + 300).run(stages)
    assert log.read_text().split() == ["one", "wrong", "two", "wrong"]
    assert [is_made(path) for path in stages] == [True, False, True]
    assert "as it should" in json.loads((tmp_path / "wrong.json").read_text())["error"]
    assert capsys.readouterr().out.count("FAILED") == 2


def test_what_time_does_not_allow_is_left_out(tmp_path, capsys):
    Pool(1, time.time() - 1).run({tmp_path / "one.json": partial(counted, tmp_path / "log", "one")})
    assert "one: left out, time is up" in capsys.readouterr().out
    assert not (tmp_path / "log").exists()


def test_a_stage_waits_for_what_it_needs(tmp_path, capsys):
    """The second goes before the first, which needs it; what needs a stage that fails is left out."""
    log = tmp_path / "log"
    paths = {name: tmp_path / f"{name}.json" for name in ("fit", "box", "other", "wrong")}
    stages = {path: partial(counted, log, name) for name, path in paths.items()}
    needs = {paths["fit"]: paths["box"], paths["other"]: paths["wrong"]}
    Pool(1, time.time() + 300).run(stages, needs)
    assert log.read_text().split() == ["box", "fit", "wrong"]
    assert "other: left out, what it needs is missing" in capsys.readouterr().out

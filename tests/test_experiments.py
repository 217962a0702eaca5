"""The map of the experiments, and what they share: pages, options, jobs, and the command line."""

import json
import re
import shlex
import tarfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from experiments.shared import command_line, intervals
from experiments.shared.data import Examples, read_packed, shuffled, write_packed
from experiments.shared.options import add_options, options_for
from experiments.shared.pages import Page, fill_in, pack_records, rebuild, table, unpacked_records
from experiments.shared.pool import Pool
from experiments.shared.stages import Job, Run, Stages, write_record

MAP = (Path(__file__).parents[1] / "experiments" / "README.md").read_text(encoding="utf-8")
NUMBERED = {
    "Hase et al. 2021": (7, 3),
    "Hsieh et al. 2021": (11, 22),
    "MAGNEx": (4, 6),
    "Vo et al. 2023": (18, 5),
    "Yang et al. 2023": (6, 5),
}
"""Numbers of tables and figures of each paper, with its appendices."""


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


# -- pages --------------------------------------------------------------------------------------


def test_a_table_has_no_rows_without_results():
    text = table(["set", "value"], [["a", "1"], ["b", "–"], ["c", ""]])
    assert text == "| set | value |\n| --- | --- |\n| a | 1 |\n"
    assert table(["set", "value"], [["b", "–"]]) == ""


def test_a_page_is_filled_in_between_its_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- one -->\nold\n<!-- end -->\nbetween\n<!-- two -->\n<!-- end -->\nafter\n")
    for _ in range(2):  # the second time nothing changes
        fill_in(page, {"two": "2\\1\n", "one": "1\n"})
        one, two = "<!-- one -->\n\n1\n\n<!-- end -->", "<!-- two -->\n\n2\\1\n\n<!-- end -->"
        assert page.read_text() == f"before\n{one}\nbetween\n{two}\nafter\n"
    with pytest.raises(ValueError, match="needs the markers <!-- three -->"):
        fill_in(page, {"three": "3\n"})


def test_pages_without_records_stay_as_they_are(tmp_path, capsys):
    (tmp_path / "README.md").write_text("<!-- a -->\n<!-- end -->\n<!-- b -->\n<!-- end -->\n")
    pages = {
        "README.md": Page(lambda run: {"a": lambda: "A\n", "b": lambda: "B\n"}, not_kept=("b",)),
        "whole.md": Page(lambda run: f"{run.results.name}\n"),
        "other.md": Page(lambda run: "other\n", kept=False),
        "figure.png": Page(lambda run: None),
    }
    rebuild(pages, Run(results=Path("records")), tmp_path, from_archive=True)
    assert (
        tmp_path / "README.md"
    ).read_text() == "<!-- a -->\n\nA\n\n<!-- end -->\n<!-- b -->\n<!-- end -->\n"
    assert (tmp_path / "whole.md").read_text() == "records\n"
    assert not (tmp_path / "other.md").exists() and not (tmp_path / "figure.png").exists()
    printed = capsys.readouterr().out
    assert "README.md, unchanged without records: b\n" in printed
    assert "other.md, unchanged without records\n" in printed
    rebuild(pages, Run(), tmp_path, from_archive=False)
    assert "\nB\n" in (tmp_path / "README.md").read_text() and (tmp_path / "other.md").is_file()


def test_records_are_kept_without_logs(tmp_path):
    results, paper = tmp_path / "results", tmp_path / "paper"
    write_record(results / "sub" / "a.json", {"a": 1})
    write_record(results / "rows.jsonl", [{"b": 2}, {"b": 3}])
    (results / "logs").mkdir()
    (results / "logs" / "x.json").touch()
    paper.mkdir()
    pack_records(results, paper / "records.tar.xz")
    with tarfile.open(paper / "records.tar.xz") as archive:
        assert archive.getnames() == ["rows.jsonl", "sub/a.json"]
    with unpacked_records(paper, Run()) as run:
        assert (run.results / "rows.jsonl").read_text() == '{"b": 2}\n{"b": 3}\n'


# -- numbers and data ---------------------------------------------------------------------------


def test_intervals_in_words():
    values = np.array([0.5] * 20)
    assert intervals.show_mean(values) == "0.50 [0.50, 0.50]"
    assert intervals.show_mean(values, ".0f", 100) == "50 [50, 50]"
    assert intervals.show_mean(None) == intervals.show_mean(np.array([np.nan])) == "–"
    up, down, level = (intervals.difference(values + gap, values) for gap in (1.0, -1.0, 0.0))
    assert intervals.show(up, "+.1f") == "+1.0 [+1.0, +1.0]" and intervals.show(None) == "–"
    assert [intervals.verdict(gap) for gap in (up, down, level, None)] == ["win", "loss", "draw", "–"]
    holds = ["yes", "no, the reverse", "undecided", "–"]
    assert [intervals.holds(gap) for gap in (up, down, level, None)] == holds
    assert intervals.count_verdicts(["win", "win", "loss"]) == "2 wins, 0 draws, 1 loss"
    assert intervals.difference(np.array([3.0, 4.0, 9.0]), np.array([1.0, 2.0])).mean == 2.0
    assert intervals.difference(None, values) is None
    assert intervals.number(0.5) == "0.50" and intervals.number(None) == ""


def test_packed_rows_are_read_instead_of_the_files(tmp_path):
    rows = Examples(["a", "b"], [0, 1]).rows()
    assert read_packed(tmp_path, "set/train", lambda: rows) == rows
    write_packed(tmp_path, [("set/train", rows[:1])])
    assert read_packed(tmp_path, "set/train", lambda: rows) == [{"text": "a", "label": 0}]
    assert sorted(shuffled(list(range(20)))) == list(range(20)) != shuffled(list(range(20)))


def test_balanced_examples():
    examples = Examples(list("abcdef"), [0, 0, 0, 1, 1, 0]).balanced(3)
    assert (examples.inputs, examples.labels) == (["a", "d", "b"], [0, 1, 0])


# -- jobs ---------------------------------------------------------------------------------------


def logged(log: Path, name: str, run: Run) -> dict[str, str]:
    """Log that a job runs; the one called "wrong" fails."""
    with log.open("a") as file:
        file.write(f"{name}\n")
    if name == "wrong":
        raise ValueError("as it should")
    return {"name": name, "device": run.device}


def jobs_of(log: Path, needs: dict[str, list[str]]) -> list[Job]:
    return [
        Job(f"{name}.json", partial(logged, log, name), [f"{n}.json" for n in own])
        for name, own in needs.items()
    ]


@pytest.mark.parametrize("processes", [0, 1])
def test_jobs_run_once_and_failed_ones_again(tmp_path, capsys, processes):
    log = tmp_path / "log"
    jobs = jobs_of(log, {"one": [], "wrong": [], "two": []})
    for _ in range(2):
        assert Pool(Run(results=tmp_path), processes).carry_out(jobs) == ["wrong"]
    assert log.read_text().split() == ["one", "wrong", "two", "wrong"]
    assert json.loads((tmp_path / "two.json").read_text()) == {"name": "two", "device": "cpu"}
    printed = capsys.readouterr().out
    assert printed.count("wrong: failed") == 2 and printed.count("one: done") == 1
    logs = printed if processes == 0 else (tmp_path / "logs" / "wrong.log").read_text()
    assert logs.count("ValueError: as it should") == 2


def test_jobs_wait_for_records_that_they_need(tmp_path, capsys):
    """The second goes before the first, which needs it; what needs a record that is missing is skipped."""
    log = tmp_path / "log"
    jobs = jobs_of(log, {"fit": ["model"], "model": [], "other": ["wrong"], "wrong": []})
    assert Pool(Run(results=tmp_path), 2).carry_out(jobs) == ["other", "wrong"]
    assert sorted(log.read_text().split()) == ["fit", "model", "wrong"]
    assert log.read_text().split().index("model") < log.read_text().split().index("fit")
    assert "other: skipped, a record that it needs is missing" in capsys.readouterr().out


def test_jobs_are_distributed_over_devices(tmp_path):
    jobs = jobs_of(tmp_path / "log", {"one": [], "two": []})
    Pool(Run(results=tmp_path), 2, ["first", "second"]).carry_out(jobs)
    devices = {json.loads((tmp_path / job.record).read_text())["device"] for job in jobs}
    assert devices == {"first", "second"}


def slow(run: Run) -> None:
    time.sleep(300)


def test_jobs_stop_at_the_deadline(tmp_path, capsys):
    jobs = [Job("one.json", slow), Job("two.json", slow)]
    left = Pool(Run(results=tmp_path, end=time.time() + 1), 1).carry_out(jobs)
    printed = capsys.readouterr().out
    assert left == ["one", "two"] and "one: stopped, time is up" in printed
    assert "two: skipped, time is up" in printed


def test_a_record_is_written_after_each_value(tmp_path):
    def values(run):
        for n in (1, 2):
            yield {"n": n}
            assert json.loads((tmp_path / "a.json").read_text()) == {"n": n, "finished": False}

    assert Pool(Run(results=tmp_path), 0).carry_out([Job("a.json", values)]) == []
    assert json.loads((tmp_path / "a.json").read_text()) == {"n": 2, "finished": True}


@pytest.mark.parametrize(
    ("content", "done"),
    [
        ({"finished": False, "wanted": 40}, False),
        ({"finished": True, "wanted": 20}, False),
        ({"finished": True, "wanted": 40}, True),
        ({"loss": 1.0}, True),
    ],
)
def test_a_record_of_fewer_inputs_is_continued(tmp_path, content, done):
    job = Job("a.json", slow, inputs=40)
    assert not job.is_done(tmp_path)
    write_record(tmp_path / "a.json", content)
    assert job.is_done(tmp_path) is done


# -- the command line ---------------------------------------------------------------------------


def stage(
    run,
    *,
    out: Path,
    n: int = 3,
    share: float | None = None,
    names: Annotated[Sequence[str], ("a", "b")] = ("a",),
    fast: bool = False,
    plain: bool = True,
):
    """Do something.

    Parameters
    ----------
    n, share
        Two numbers in %.
    names
        Names.
    """


def test_options_are_the_keyword_parameters(capsys):
    import argparse

    parser = argparse.ArgumentParser()
    add_options(parser, [stage])
    words = ["--out", "x", "--n", "4", "--names", "a", "b", "--fast", "--no-plain"]
    options = {"out": Path("x"), "n": 4, "names": ["a", "b"], "fast": True, "plain": False}
    assert options_for(stage, parser.parse_args(words)) == options
    assert options_for(stage, parser.parse_args(["--out", "x"])) == {"out": Path("x")}
    for wrong in ([], ["--out", "x", "--names", "c"], ["--out", "x", "--n", "many"]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)
    help = " ".join(parser.format_help().split())
    assert "Two numbers in %. Default: 3." in help and "Names. Of a, b. Default: a." in help


def test_stages_wait_for_those_whose_records_they_read():
    stages = Stages()
    for name, options in {
        "one": {},
        "two": {},
        "three": {"after": ["one"]},
        "timed": {"alone": True},
    }.items():
        function = partial(stage)
        function.__name__ = name
        stages.add(**options)(function)
    every = list(stages.by_name.values())
    names = [[own.name for own in batch] for batch in command_line.batches(every)]
    assert names == [["one", "two"], ["three"], ["timed"]]
    assert len(list(command_line.batches(every[1:3]))) == 1
    with pytest.raises(ValueError, match="two stages called"):
        stages.add()(every[0].function)


def test_the_command_line_lists_papers_and_stages(capsys):
    assert command_line.main([]) == 0 and command_line.main(["nobody2020"]) == 2
    assert "hase2021" in capsys.readouterr().out
    assert command_line.main(["hase2021"]) == 0 and command_line.main(["hase2021", "trian"]) == 2
    printed = capsys.readouterr().out
    assert "  train             Train all models" in printed and "  tables            Rebuild" in printed
    with pytest.raises(SystemExit, match="--pages must be of"):
        command_line.main(["hase2021", "tables", "--pages", "table99.md"])


def commands():
    """The commands of the experiments in all pages, with their page and paper."""
    root = Path(__file__).parents[1]
    for page in sorted((root / "experiments").rglob("*.md")):
        for block in re.findall(
            r"^```bash\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            for line in block.replace("\\\n", " ").splitlines():
                if "-m experiments " in line:
                    yield pytest.param(
                        shlex.split(line.split("-m experiments ")[1], comments=True), id=line[:80]
                    )


@pytest.mark.parametrize("words", list(commands()))
def test_commands_of_pages_are_understood(words):
    assert command_line.parse(words) is not None

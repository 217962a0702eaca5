"""The command line: what it reads, writes and answers to mistakes."""

import io
import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import pertinent
from pertinent.cli import main
from pertinent.cli.commands import COMMANDS
from pertinent.cli.parser import command_parser, parse
from pertinent.learners.base import learned
from pertinent.models.embedded import load as embedded
from pertinent.models.embedded.digits import example_digit
from pertinent.models.embedded.tables import example_row
from tests import tiny

TEXT = "w1 w2 w3 w4 w5 w6"
ROW = json.dumps(example_row())
FAST = ["--method", "leave-one-out", "--metrics", "none"]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Return a folder with a transformers model."""
    where = tmp_path_factory.mktemp("bert")
    for part in tiny.pair("bert"):
        part.save_pretrained(where)
    return str(where)


@pytest.fixture
def run(run, folder, monkeypatch):
    """Run a command in an empty folder; a tiny model replaces the embedded transformers."""
    load_transformer = embedded.load_transformer
    monkeypatch.setattr(
        embedded,
        "load_transformer",
        lambda path, **options: load_transformer(folder if "assets" in str(path) else path, **options),
    )
    return run


@pytest.fixture
def explained(run):
    """Run `explain` with JSON to stdout; return the code, the inputs and stderr."""

    def go(*arguments):
        code, out, err = run("explain", *arguments, *FAST, "--json", "-")
        return code, [e["input"] for e in json.loads(out)["explanations"]], err

    return go


def image(path, pixels):
    Image.fromarray((pixels * 255).astype(np.uint8)).save(path)
    return path


# -- help and usage ----------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_nothing_heavy(command):
    code = f"import sys; from pertinent.cli import main\ntry: main(['{command}', '--help'])\n"
    code += "finally: assert not {'torch', 'transformers', 'pandas', 'sklearn', 'rich'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "examples:" in done.stdout


def test_module_runs_as_a_program():
    command = [sys.executable, "-m", "pertinent", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"pertinent {pertinent.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_teaches(command):
    page = command_parser(command).format_help()
    assert page.count(f"  pertinent {command}") + page.count("NO_COLOR=1 pertinent") >= 2
    assert "exit codes:" in page
    assert max(map(len, page.splitlines())) < 110


def test_examples_in_the_help_can_be_parsed():
    for command in COMMANDS:
        page = command_parser(command).epilog
        lines = [line for line in page.splitlines() if line.startswith("  pertinent ")]
        parsed = [parse(shlex.split(line.split(" | ")[0])[1:]).command for line in lines]
        assert command in parsed
        assert set(parsed) <= set(COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explian", "x"], "Did you mean 'explain'?"),
        (["explain", "x", "--methd", "lime"], "Did you mean '--method'?"),
        (["--wrong"], "--help"),
        (["explain"], "No input"),
        (["explain", TEXT, "--limit", "0"], "at least 1"),
        (["explain", TEXT, "--seed", "-1"], "--seed"),
        (["explain", TEXT, "--sparsity", "a"], "a number"),
        (["explain", TEXT, "--sparsity", "2"], "at most 1"),
        (["explain", TEXT, "--method", "kernel-shp"], "Did you mean 'kernel-shap'?"),
        (["explain", TEXT, "--removal", "mask-tokn"], "Did you mean 'mask-token'?"),
        (["explain", TEXT, "--model", "sentimnt"], "Did you mean 'sentiment'?"),
        (["explain", TEXT, "--model", "digits"], "reads images: pass --image"),
        (["explain", TEXT, "--row", ROW], "must be of one kind"),
        (["explain", TEXT, "--method", "lime", "--set", "samplse=3"], "Did you mean 'samples'?"),
        (["explain", TEXT, "--method", "lime", "--set", "samples=many"], "a whole number"),
        (["explain", TEXT, "--method", "lime", "--set", "samples"], "SETTING=VALUE"),
        (["explain", TEXT, "--html", "no/such/folder.html"], "no folder"),
        (["compare", TEXT, "--methods", "lime", "--out", "."], "is a folder"),
        (["explain", TEXT, "--out", "run", "--html", "a.html"], "needs all explanations in memory"),
        (["explain", TEXT, "--target", "LABEL_9"], "Did you mean 'LABEL_"),
        (["explain", TEXT, "--features", "wrds"], "Did you mean 'words'?"),
        (["explain", TEXT, "--budget", "1"], "`budget` must be at least"),
        (["compare", TEXT, "--methods", "lime,random", "--set", "samples=3"], "lime.samples=3"),
        (["compare", TEXT, "--methods", "lime", "--set", "lyme.samples=3"], "Did you mean 'lime'?"),
        (["compare", TEXT, "--methods", ","], "at least one"),
        (["compare", TEXT], "--methods"),
        (["compare", TEXT, "--methods", "lime", "--metrics", "suficiency"], "Did you mean 'sufficiency'?"),
        (["methods", "lime"], "Unknown argument of methods"),
        (["evaluate", "none.parquet"], "no file 'none.parquet'"),
        (["evaluate"], "FILE"),
    ],
)
def test_mistakes_are_explained_in_a_line(run, arguments, message):
    code, out, err = run(*arguments)
    assert code == 2
    assert message in err
    assert not out
    assert all(line.startswith("pertinent: ") for line in err.splitlines())


def test_no_arguments_show_the_help(run):
    code, out, _ = run()
    assert code == 2
    assert "pertinent demo" in out


def test_debug_shows_where_it_happened(capsys):
    assert main(["explain", TEXT, "--method", "wrong", "--debug"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert "pertinent: error: Unknown method 'wrong'" in err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [(KeyboardInterrupt(), 130, "interrupted"), (RuntimeError("odd"), 2, "unexpected RuntimeError: odd")],
)
def test_the_unexpected_is_no_traceback_either(run, monkeypatch, error, code, message):
    def fail(args):
        raise error

    monkeypatch.setattr("pertinent.cli.verbs.explain", fail)
    result, _, err = run("explain", TEXT)
    assert result == code
    assert message in err


# -- reading -----------------------------------------------------------------------------------


def test_texts_may_stand_before_and_after_options(run):
    code, out, _ = run("explain", "w1 w2", "--json", "-", "w3 w4", *FAST, "--", "-w5", "--w6")
    assert code == 0
    texts = [e["input"]["text"]["first"] for e in json.loads(out)["explanations"]]
    assert texts == ["w1 w2", "w3 w4", "-w5", "--w6"]


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("a.txt", "w1 w2\n\n  \nw3, w4\r\n", []),
        ("a.csv", 'id,text\n1,w1 w2\n\n2,"w3, w4"\n', []),
        ("a.csv", 'words\nw1 w2\n"w3, w4"\n', []),
        ("a.csv", 'id,review\n1,w1 w2\n2,"w3, w4"\n', ["--column", "review"]),
        ("a.TSV", "id\ttext\n1\tw1 w2\n2\tw3, w4\n", []),
        ("a.jsonl", '"w1 w2"\n{"text": "w3, w4", "label": 1}\n', []),
        ("a.jsonl", '{"a": "w1 w2", "b": 1}\n\n{"a": "w3, w4", "b": 2}\n', ["--column", "a"]),
        ("a.csv", '\ufefftext\nw1 w2\n"w3, w4"\n', []),
    ],
)
def test_texts_are_read_from_files(explained, tmp_path, name, content, options):
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    code, inputs, err = explained("--file", name, *options)
    assert code == 0
    assert [i["text"]["first"] for i in inputs] == ["w1 w2", "w3, w4"]
    assert "failed" not in err


def test_texts_are_read_from_parquet(explained, tmp_path):
    """Check that only the record without a text fails."""
    table = pa.table({"id": [1, 2, 3], "text": ["w1 w2", None, "w3, w4"]})
    pq.write_table(table, tmp_path / "a.parquet")
    code, inputs, err = explained("--file", "a.parquet")
    assert code == 1
    assert [i["text"]["first"] for i in inputs] == ["w1 w2", "w3, w4"]
    assert "a.parquet row 2: The column 'text' must contain text, but contains None" in err


@pytest.mark.parametrize(
    ("content", "options", "fixed"),
    [
        ("premise,hypothesis,label\nw1 w2,w3,0\n", [], "none"),
        ("a,b\nw1 w2,w3\n", ["--column", "a", "--pair-column", "b"], "none"),
        ("query,document\nw1 w2,w3\n", [], "first"),
    ],
)
def test_pairs_are_read(explained, tmp_path, content, options, fixed):
    (tmp_path / "a.csv").write_text(content)
    _, [pair], _ = explained("--file", "a.csv", *options)
    assert (pair["text"]["first"], pair["text"]["second"], pair["text"]["fixed"]) == ("w1 w2", "w3", fixed)


def test_lines_come_from_stdin_and_stop_at_the_limit(explained, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("w1\nw2\nw3\n"))
    code, inputs, _ = explained("--file", "-", "--limit", "2")
    assert code == 0
    assert [i["text"]["first"] for i in inputs] == ["w1", "w2"]


def test_blank_lines_are_counted(run, tmp_path):
    (tmp_path / "a.txt").write_text("w1 w2\n\n\nw3\n")
    _, _, err = run("explain", "--file", "a.txt", *FAST)
    assert "2 blank lines were skipped" in err


@pytest.mark.parametrize(
    ("name", "content", "failed"),
    [
        ("a.jsonl", b'"w1 w2"\n{"text": 3}\n{"text": "w3', ["a.jsonl line 2: ", "a.jsonl line 3: "]),
        ("a.jsonl", b'"w1 w2"\n{"text": " "}\n7\n', ["line 2: The text is empty", "line 3: A text must be"]),
        (
            "a.csv",
            b"id,text\n1,w1 w2\n2,w3,w4\n3\n",
            ["line 3: the record has 3", "line 4: the record has 1"],
        ),
        ("a.csv", b'id,text\n1,w1 w2\n2,"w3 w', ["line 3: the rest is unreadable"]),
        ("a.txt", b"w1 w2\nzzz\n", ["a.txt line 2: Every token of the text is unknown"]),
    ],
)
def test_bad_records_fail_alone(explained, tmp_path, name, content, failed):
    (tmp_path / name).write_bytes(content)
    code, inputs, err = explained("--file", name)
    assert code == 1
    assert [i["text"]["first"] for i in inputs] == ["w1 w2"]
    assert err.count("failed") == len(failed)
    assert all(f in err for f in failed)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", None, "no file 'a.txt'"),
        ("a.doc", b"w1", "must end in .txt, .csv, .tsv, .jsonl or .parquet"),
        ("a.txt", b"\n \n", "nothing to explain"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"text\n", "nothing to explain"),
        ("a.csv", b"id,txt\n1,w1\n", "Did you mean 'txt'? Known: id, txt. Say which with --column."),
        ("a.txt", b"\xff\xfew1", "not UTF-8"),
        ("a.csv", b'"text', "damaged or not a table"),
        ("a.jsonl", b'{"a": "w1", "b": "w2"}\n', "Unknown column 'text'"),
        ("a.parquet", None, "no file 'a.parquet'"),
        ("a.parquet", b"PAR1", "damaged or not a Parquet file"),
    ],
)
def test_useless_files_end_the_run(run, tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    code, _, err = run("explain", "--file", name)
    assert code == 2
    assert message in err


def test_folder_for_a_file(run, tmp_path):
    (tmp_path / "a.txt").mkdir()
    code, _, err = run("explain", "--file", "a.txt")
    assert code == 2
    assert "There are no files .txt, .csv, .tsv, .jsonl, .parquet at 'a.txt'" in err


def test_a_text_that_names_a_file_is_said(run, tmp_path):
    (tmp_path / "w1.w2").write_text("w3")
    code, _, err = run("explain", "w1.w2", *FAST)
    assert code == 0
    assert "use --file" in err


def test_many_failures_are_cut_short(run, tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(f"{{{i}\n" for i in range(30)))
    code, _, err = run("explain", "--file", "a.jsonl")
    assert code == 2
    assert "… and 10 more" in err
    (tmp_path / "a.jsonl").write_text("{\n" * 30)
    code, _, err = run("explain", "--file", "a.jsonl")
    assert code == 2
    assert err.count("failed: ") == 1
    assert "failed: 30 inputs (a.jsonl line 1, a.jsonl line 2, a.jsonl line 3, …): This is not JSON" in err
    assert "nothing could be explained" in err


def test_where_all_inputs_fail_every_reason_is_told(run):
    code, out, err = run("explain", "zzz", " ", *FAST)
    assert (code, out) == (2, "")
    assert "failed: text 0: Every token" in err
    assert "failed: text 1: The text is empty" in err
    assert err.endswith("error: nothing could be explained\n")


# -- images and rows ---------------------------------------------------------------------------


def test_images(run, tmp_path):
    good = image(tmp_path / "good.png", example_digit()[0])
    (tmp_path / "bad.png").write_bytes(b"no image")
    arguments = ["--image", good, "--image", "bad.png", "--image", "none.png", "--json", "out.json"]
    code, out, err = run("explain", *arguments, "--method", "leave-one-out")
    assert code == 1
    assert "patch" in out
    assert "bad.png: 'bad.png' cannot be read as an image" in err
    assert "There is no image file 'none.png'" in err
    result = json.loads((tmp_path / "out.json").read_text())
    assert [f["index"] for f in result["failures"]] == [1, 2]
    assert set(result["explanations"][0]["measures"]) == {"sufficiency", "comprehensiveness"}


def test_target_is_a_name_before_a_number(run, tmp_path):
    image(tmp_path / "a.png", example_digit()[0])
    _, out, _ = run("explain", "--image", "a.png", "--target", "3", *FAST, "--json", "-")
    assert json.loads(out)["explanations"][0]["target"] == 3
    _, out, _ = run("explain", TEXT, "--target", "2", *FAST, "--json", "-")
    assert json.loads(out)["explanations"][0]["target"] == 2


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "not JSON"),
        ("3", "must be a JSON object or array"),
        ("[1, 2]", "13 columns"),
        ('{"alcohol": 13}', "lacks the columns"),
        (ROW.replace("}", ', "alcohol": null}'), "no value (NaN) in: alcohol"),
    ],
)
def test_bad_rows(run, row, message):
    code, _, err = run("explain", "--row", row)
    assert code == 2
    assert message in err


def test_rows_from_the_command_line(run):
    values = json.dumps(list(example_row().values()))
    code, out, err = run("explain", "--row", ROW, "--row", values, *FAST)
    assert code == 0
    assert "alcohol" in out
    assert not err
    code, _, err = run("explain", "--row", ROW.replace("}", ', "year": 1}'), *FAST)
    assert code == 0
    assert "so they are ignored: year" in err


def test_rows_from_files(run, tmp_path):
    row = example_row()
    names, values = ",".join(["id", *row]), ",".join(["7", *map(str, row.values())])
    gap = values.replace(str(row["hue"]), "", 1)
    (tmp_path / "a.csv").write_text(f"{names}\n{values}\n{gap}\n")
    (tmp_path / "a.jsonl").write_text(ROW)
    code, out, err = run("explain", "--file", "a.csv", "--model", "table", *FAST, "--json", "-")
    assert code == 1
    assert "so they are ignored: id" in err
    assert "a.csv line 3: The row has no value (NaN) in: hue" in err
    from_csv = json.loads(out)["explanations"][0]["scores"]
    _, out, _ = run("explain", "--file", "a.jsonl", "--model", "table", *FAST, "--json", "-")
    assert json.loads(out)["explanations"][0]["scores"] == from_csv
    pq.write_table(pa.Table.from_pylist([{"id": 7, **row}]), tmp_path / "a.parquet")
    _, out, _ = run("explain", "--file", "a.parquet", "--model", "table", *FAST, "--json", "-")
    assert json.loads(out)["explanations"][0]["scores"] == from_csv
    (tmp_path / "a.txt").write_text(ROW)
    assert run("explain", "--file", "a.txt", "--model", "table")[0] == 2


# -- what comes out ----------------------------------------------------------------------------


def test_explanations_are_printed_measured_and_written(run, tmp_path, folder):
    outputs = ["--html", "out.html", "--out", "out.parquet"]
    settings = ["--method", "lime", "--set", "samples=40", "--sparsity", ".5"]
    code, out, err = run("explain", TEXT, "w7 w8 w9", "--model", folder, *settings, *outputs)
    assert code == 0
    assert not err
    assert "w7" in out
    assert str(tmp_path / "out.html") in out.replace("\n", "")
    assert "\x1b[" not in out
    page = (tmp_path / "out.html").read_text()
    assert "w8" in page
    first, second = pertinent.read("out.parquet")
    assert first.settings == {"samples": 40}
    assert list(second.measures["sufficiency"]) == [0.5]


def test_a_finished_run_is_read_and_no_other_takes_its_place(run, tmp_path):
    command = ["explain", TEXT, "w7 w8 w9", *FAST, "--out", "out.parquet", "--json", "-"]
    code, out, err = run(*command)
    assert (code, err) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]
    written = (tmp_path / "out.parquet").read_bytes()
    assert run(*command) == (0, out, "")  # to the second that the model took
    for other, reason in (
        (["explain", TEXT, *FAST], "was started with other inputs"),
        (["explain", TEXT, "w7 w8 w8", *FAST], "was started with other inputs"),
        (["explain", TEXT, "w7 w8 w9", *FAST, "--seed", "1"], "contains another run"),
        (["explain", TEXT, "w7 w8 w9", *FAST, "--removal", "mask-token"], "contains another run"),
        (["compare", TEXT, "w7 w8 w9", "--methods", "leave-one-out,random"], "contains another run"),
    ):
        code, out, err = run(*other, "--out", "out.parquet")
        assert (code, out) == (2, "")
        assert reason in err
    assert (tmp_path / "out.parquet").read_bytes() == written
    pertinent.read("out.parquet").save("saved.parquet")
    code, _, err = run("explain", TEXT, *FAST, "--out", "saved.parquet")
    assert code == 2
    assert "is not a run that can be resumed" in err


def test_same_as_the_library(run, folder):
    model = embedded.load_transformer(folder)
    library = pertinent.explain(model, TEXT, method="shapley-sampling", samples=20, seed=3)
    settings = ["--method", "shapley-sampling", "--set", "samples=20", "--seed", "3", "--batch-size", "64"]
    _, out, _ = run("explain", TEXT, *settings, "--json", "-")
    assert np.allclose(json.loads(out)["explanations"][0]["scores"], library.scores, atol=1e-6)


def test_quiet_prints_nothing(run):
    assert run("explain", TEXT, *FAST, "--quiet") == (0, "", "")


def test_markup_in_texts_is_text(run):
    _, out, _ = run("explain", "w1 [bold]w2[/bold] [/red]", *FAST)
    assert "[bold]" in out
    assert "[/red]" in out


def test_colour_only_where_it_is_wanted(run, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" in run("explain", TEXT, *FAST)[1]


def test_precision_reaches_the_model(run, monkeypatch):
    asked = {}
    monkeypatch.setattr(embedded, "load", lambda name, **options: asked.update(options) or tiny_function())
    run("explain", TEXT, *FAST, "--dtype", "bfloat16", "--quiet")
    assert asked == {"device": "cpu", "dtype": "bfloat16", "long_texts": "truncate"}


def tiny_function():
    return pertinent.wrap(lambda texts: [[0.2, 0.8] for _ in texts], kind="text", classes=["no", "yes"])


def test_saved_explanations_are_evaluated(run, tmp_path):
    run("explain", TEXT, *FAST, "--out", "out.parquet")
    arguments = ["evaluate", "out.parquet", "--metrics", "insertion,deletion", "--out", "more.parquet"]
    code, out, err = run(*arguments, "--html", "out.html", "--removal", "mask-token")
    assert code == 0
    assert not err
    assert "insertion" in out
    assert set(pertinent.read("more.parquet")[0].measures) == {"insertion", "deletion"}
    assert (tmp_path / "out.html").exists()


def test_evaluation_needs_the_same_model(run, tmp_path):
    run("explain", "--row", ROW, *FAST, "--out", "row.parquet")
    code, _, err = run("evaluate", "row.parquet", "--model", "sentiment")
    assert code == 2
    assert "pass their model with --model" in err
    (tmp_path / "half.parquet").write_bytes((tmp_path / "row.parquet").read_bytes()[:100])
    code, _, err = run("evaluate", "half.parquet")
    assert code == 2
    assert "damaged" in err
    assert run("evaluate", "row.parquet")[0] == 0


def test_methods_are_compared(run):
    methods = ["--methods", "lime,random,leave-one-out", "--set", "lime.samples=30"]
    code, out, _ = run("compare", TEXT, "w7 w8", *methods, "--metrics", "insertion")
    assert code == 0
    assert all(name in out for name in ("lime", "random", "leave-one-out", "insertion"))
    assert "w7" not in out
    _, out, _ = run("compare", TEXT, "w7 w8", *methods, "--show")
    assert "w7" in out
    code, out, err = run("compare", TEXT, "zzz", "w7 w8", *methods, "--json", "-")
    assert code == 1
    assert err.count("failed: text 1: Every token") == 1
    result = [(e["input"]["text"]["first"], e["method"]) for e in json.loads(out)["explanations"]]
    names = ["lime", "random", "leave-one-out"]
    assert result == [(text, name) for text in (TEXT, "w7 w8") for name in names]


@pytest.mark.parametrize("what", ["methods", "metrics", "removals"])
def test_catalogues(run, what, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = run(what)
    assert code == 0
    assert all(entry.name in out for entry in getattr(pertinent, f"list_{what}")())


def test_methods_to_fit_are_listed_apart(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    ready, learning = run("methods")[1].split("Trained first, by pertinent.fit")
    for name in learned.all():
        assert f"\n {name} " in learning
        assert f"\n {name} " not in ready
    words = " ".join(learning.split())
    assert learned.get("l2x").summary[:40] in words
    assert "explore=0.5" in words


def test_demo(run, tmp_path):
    code, out, err = run("demo", "--html", "demo.html")
    assert not err
    assert code == 0
    assert not err
    assert str(tmp_path / "demo.html") in out.replace("\n", "")
    page = (tmp_path / "demo.html").read_text()
    assert set(re.findall(r"according to ([\w-]+)", page)) == {"shapley"}  # all models are a tiny classifier
    assert re.findall("<h2>(Input .) ", page) == [f"Input {i}" for i in range(8)]
    assert "cultivar" in page
    assert all(name in out for name in ("sentiment", "topics", "recall", "digits", "table", "diabetes"))


def test_a_removal_takes_settings():
    from pertinent.errors import SettingError
    from pertinent.runs.request import make_removal

    assert make_removal("uniform-noise:samples=5,low=0").samples == 5
    assert make_removal("uniform-noise:low=0.5,high=1").low == 0.5
    assert make_removal("marginalize:filler=a-folder,samples=3").filler == "a-folder"
    assert make_removal("mask-token").name == "mask-token"
    with pytest.raises(SettingError, match="sampels"):
        make_removal("uniform-noise:sampels=5")
    with pytest.raises(SettingError, match="must be written as uniform-noise:setting=value"):
        make_removal("uniform-noise:samples")
    with pytest.raises(SettingError, match="a whole number"):
        make_removal("uniform-noise:samples=many")


def test_long_texts_are_read_in_windows(run, folder):
    text = tiny.text(300)
    flags = ["explain", text, "--model", folder, "--method", "leave-one-out"]
    code, _, err = run(*flags)
    assert code == 0
    assert "long_texts='windows'" in err
    code, out, _ = run(*flags, "--long-texts", "windows", "--json", "-")
    assert code == 0
    (result,) = json.loads(out)["explanations"]
    model = embedded.load_transformer(folder, long_texts="windows")
    expected = pertinent.explain(model, text, method="leave-one-out")
    assert len(expected.features) == 300
    np.testing.assert_allclose(result["scores"], expected.scores)
    code, _, err = run(*flags, "--long-texts", "window")
    assert code == 2
    assert "windows" in err


@pytest.mark.parametrize(("before", "after"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_waiting_threads_are_passive_unless_the_user_decides(run, monkeypatch, before, after):
    monkeypatch.setenv("OMP_WAIT_POLICY", before or "")
    if before is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    run("methods")
    assert os.environ["OMP_WAIT_POLICY"] == after

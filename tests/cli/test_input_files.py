"""Files of inputs as people have them: other separators, long values, odd headers."""

import csv
import io
import json
import time
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pertinent.cli.input_files import FileColumns, read_file
from pertinent.errors import FileError, InputError, SettingError
from pertinent.inputs.modality import TextColumns
from pertinent.inputs.prompt import Prompt


def read(tmp_path, content, columns=None, name="a.csv"):
    (tmp_path / name).write_bytes(content)
    return read_file(str(tmp_path / name), columns or FileColumns("table"))


def rows(items):
    assert not [item.error for item in items if item.error]
    return [item.raw for item in items]


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,x\n2,y\n",
        b"a;b\n1;x\n2;y\n",
        b"a\tb\n1\tx\n2\ty\n",
        b"\xef\xbb\xbfa,b\r\n1,x\r\n2,y\r\n",
        b"a,b\r1,x\r2,y\r",
        b"a,b\r1,x\r2,y",
        b'"a";"b"\n"1";x\n2;y\n',
    ],
)
def test_separators_and_line_ends(tmp_path, content):
    assert rows(read(tmp_path, content)) == [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}]


def test_a_comma_in_the_header_is_the_separator(tmp_path):
    assert rows(read(tmp_path, b"a;b,c\n1,x;y\n")) == [{"a;b": 1.0, "c": "x;y"}]
    items = read(tmp_path, b"a;b\n1;2;3\n4;5\n")
    assert "3 values for 2 columns; quote values with semicolons" in str(items[0].error)
    assert items[1].raw == {"a": 4.0, "b": 5.0}


def test_long_values_are_read(tmp_path):
    long = b"word " * 100_000
    [item] = read(tmp_path, b'text,id\n"' + long + b'",1\n', FileColumns("text"))
    assert len(item.raw["text"]) == len(long)


def test_a_value_that_is_too_long_is_said(tmp_path):
    items = read(tmp_path, b"text,id\nfine,0\n" + b"x" * 16_000_001 + b",1\n", FileColumns("text"))
    assert items[0].raw == {"text": "fine"}
    assert "a.csv line 3" in items[1].where
    assert "field larger than field limit" in str(items[1].error)


@pytest.mark.parametrize("end", [b"\n1\n", b""])
def test_a_million_columns_end_at_once(tmp_path, end):
    (tmp_path / "a.csv").write_bytes(b",".join(b"%d" % i for i in range(10**6)) + end)
    tracemalloc.start()
    start = time.perf_counter()
    with pytest.raises(FileError, match=r"too long to name columns|1,000,000 columns, but at most"):
        read_file(str(tmp_path / "a.csv"), FileColumns("table"))
    assert time.perf_counter() - start < 2
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()


def test_many_columns_with_short_names_too(tmp_path):
    with pytest.raises(FileError, match="30,000 columns, but at most 20,000 are read"):
        read(tmp_path, b",".join([b"a"] * 30_000) + b"\n")


def test_columns_that_occur_twice_are_named(tmp_path):
    with pytest.raises(InputError, match=r"a\.csv': Column names must differ, but these occur twice: a, c"):
        read(tmp_path, b"a,b,a,c,c\n1,2,3,4,5\n")
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises((InputError, FileError), match="x"):
        read_file(str(tmp_path / "a.parquet"), FileColumns("table"))


def test_columns_without_a_name_are_left_out(tmp_path, caplog):
    assert rows(read(tmp_path, b",a, ,b\n0,1,2,x\n")) == [{"a": 1.0, "b": "x"}]
    assert "2 columns without a name are ignored" in caplog.text
    with pytest.raises(FileError, match="must name the columns"):
        read(tmp_path, b",,\n1,2,3\n")


def test_null_characters_fail_alone(tmp_path):
    items = read(tmp_path, b"text\nfine\nb\0ad\n", FileColumns("text"))
    assert items[0].raw == {"text": "fine"}
    assert items[1].error is not None
    items = read(tmp_path, b"fine\nb\0ad\nalso fine\n", FileColumns("text"), "a.txt")
    assert [item.raw for item in items] == ["fine", None, "also fine"]
    with pytest.raises(FileError, match=r"a\.csv"):
        read(tmp_path, "text\nfine\n".encode("utf-16-le"), FileColumns("text"))


def test_ids_and_labels_are_taken_out_of_the_record(tmp_path):
    columns = FileColumns("table", label="y", id="name")
    for name, content in (
        ("a.csv", b"name,a,y\n007,1.5,yes\n"),
        ("a.jsonl", b'{"name": "007", "a": 1.5, "y": "yes"}\n'),
    ):
        [item] = read(tmp_path, content, columns, name)
        assert (item.id, item.label, item.raw) == ("007", "yes", {"a": 1.5})
    [item] = read(tmp_path, b"name,text\n7,words\n", FileColumns("text", id="name"))
    assert (item.id, item.raw) == ("7", {"text": "words"})
    with pytest.raises(SettingError, match=r"Did you mean 'name'.*--id-column"):
        read(tmp_path, b"name,text\n7,words\n", FileColumns("text", id="nam"))
    with pytest.raises(FileError, match="Ids can only be read from"):
        read(tmp_path, b"words\n", FileColumns("text", id="name"), "a.txt")
    [item] = read(tmp_path, b'"words"\n', FileColumns("text", id="name"), "a.jsonl")
    assert "must have named columns" in str(item.error)


def test_a_file_of_prompts_has_columns_of_answers(tmp_path):
    items = read(tmp_path, b"text,answer,year\nWho won?, Ada,1843\n", FileColumns("prompt"))
    assert items[0].raw == {"text": "Who won?", "answer": " Ada"}
    assert Prompt.from_input(items[0].raw) == Prompt("Who won?", answer=" Ada")
    [item] = read(tmp_path, b"Who won?\n", FileColumns("prompt"), "a.txt")
    assert item.raw == "Who won?"


MESSAGES = [
    {"role": "user", "content": "Find the map."},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "find"}}]},
    {"role": "tool", "content": "Bob has it."},
]


def test_prompts_with_lists(tmp_path):
    lines = [
        {"text": "Who won?", "sources": ["Ada won.", "Bob lost."], "answer": " Ada", "rather_than": " Bob"},
        {"messages": MESSAGES, "fixed": ["Bob"], "note": 5},
        {"text": "Who won?", "answer": None, "sources": []},
        {"text": 5},
        {"answer": "Ada"},
        {"messages": "hello"},
        {"text": "Who won?", "messages": MESSAGES},
    ]
    content = "\n".join(map(json.dumps, lines)).encode()
    items = read(tmp_path, content, FileColumns("prompt"), "a.jsonl")
    assert items[0].raw == lines[0]
    assert Prompt.from_input(items[1].raw).messages[2]["content"] == "Bob has it."
    assert items[2].raw == {"text": "Who won?"}
    messages = ("must contain text", "Unknown column 'text'", "JSON list")
    for item, message in zip(items[3:6], messages, strict=True):
        assert message in str(item.error)
    with pytest.raises(InputError, match="exactly one of them"):
        Prompt.from_input(items[6].raw)


def test_lists_in_a_csv_are_json_or_paragraphs(tmp_path):
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(["question", "sources", "messages"])
    writer.writerow(["Who won?", '["Ada won.", "Bob lost."]', ""])
    writer.writerow(["Who won?", "Ada won.\n\nBob lost.", ""])
    writer.writerow(["", "", json.dumps(MESSAGES)])
    writer.writerow(["Who won?", "[Ada", ""])
    columns = FileColumns("prompt", TextColumns("question"))
    items = read(tmp_path, file.getvalue().encode(), columns)
    assert [item.raw["sources"] for item in items[:2]] == [["Ada won.", "Bob lost."]] * 2
    assert Prompt.from_input(items[2].raw).messages[1]["tool_calls"]
    assert "must contain a JSON list" in str(items[3].error)


def test_parquet_fills_messages_with_missing_keys(tmp_path):
    pq.write_table(pa.Table.from_pylist([{"messages": MESSAGES}]), tmp_path / "a.parquet")
    [item] = read_file(str(tmp_path / "a.parquet"), FileColumns("prompt"))
    assert item.raw["messages"][0] == MESSAGES[0]
    assert item.raw["messages"][1]["tool_calls"] == MESSAGES[1]["tool_calls"]

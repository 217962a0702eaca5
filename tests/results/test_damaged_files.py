"""Reading a damaged file gives usable explanations or an error with the reason."""

import copy
import json
import random
import zlib
from contextlib import suppress
from io import BytesIO, TextIOWrapper

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import pertinent
from pertinent.errors import FileError, InputError
from pertinent.results.explanation_files import _NESTED, _VERSION, _Content, _schema, _to_row, journal_of
from pertinent.results.journal import Journal, journal_line
from tests.stubs import sentiment

JUNK = [None, True, -1, 10**9, 2**70, 0.5, float("nan"), float("inf"), "", "x", "\x1b[2J", [], [[]], {}]
JUNK += [[None], [1, [2]], ["a"], {"a": None}, [[0.5, 3]], [["a", "b", "c"]], [-1], [10**6]]


def explained():
    """Return explanations of texts, a pair, an image, rows and a value, with all kinds of fields."""
    texts = pertinent.wrap(lambda given: [[0.9, 0.1] if "bad" in str(t) else [0.2, 0.8] for t in given])
    images = pertinent.wrap(lambda x: [[0.3, 0.7] for _ in x], kind="image", classes=["no", "yes"])
    people = {"kind": "table", "columns": ["age", "job"], "background": [[3.0, "clerk"], [5.5, "cook"]]}
    rows = pertinent.wrap(lambda x: [[0.3, 0.7] for _ in x], **people)
    values = pertinent.wrap(lambda x: [len(str(t)) for t in x], output="value", unit="m", kind="text")
    quick = {"sparsity": (0.2, 0.5), "metrics": ["sufficiency"]}
    return [
        *pertinent.compare(texts, ["not bad at all", "good"], ["kernel-shap", "lime"], **quick).explanations,
        pertinent.explain(texts, {"query": "how", "document": "bad and good"}, "random-search", budget=9),
        pertinent.explain(images, np.eye(8)[None], "leave-one-out", features="patches:4"),
        pertinent.explain(rows, {"age": 3.5, "job": "clerk"}, "leave-one-out"),
        pertinent.explain(values, "one two three", "shapley-sampling", samples=4),
    ]


@pytest.fixture(scope="module")
def good():
    return explained()


@pytest.fixture(scope="module")
def good_bytes(good, tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "good.parquet"
    pertinent.Explanations(good, [pertinent.Failure(7, "empty")]).save(path)
    return path.read_bytes()


def use(explanations):
    """Convert and show explanations in all ways."""
    console = Console(file=TextIOWrapper(BytesIO(), "utf-8"), width=80)
    console.print(explanations)
    explanations.to_dataframe()
    explanations.to_json()
    for e in explanations:
        e.to_html()
        repr(e)
        e.mask(0.5)
        if zlib.crc32(repr(e).encode("utf-8", "replace")) % 8 == 0:
            e.plot()


def outcome(path):
    """Return whether the file was refused; use its content otherwise."""
    try:
        result = pertinent.read(path)
    except FileError:
        return True
    use(result)
    return False


def test_an_undamaged_file_is_read(good, good_bytes, tmp_path):
    (tmp_path / "a.parquet").write_bytes(good_bytes)
    assert not outcome(tmp_path / "a.parquet")
    assert [e.to_dict() for e in pertinent.read(tmp_path / "a.parquet")] == [e.to_dict() for e in good]


@pytest.mark.parametrize("seed", range(3))
def test_damaged_bytes(good_bytes, tmp_path, seed):
    draw, refused, path = random.Random(seed), 0, tmp_path / "a.parquet"
    for _ in range(120):
        data = bytearray(good_bytes)
        for _ in range(draw.choice((1, 1, 2, 8, 64))):
            data[draw.randrange(len(data))] = draw.randrange(256)
        if draw.random() < 0.3:
            data = data[: draw.randrange(len(data))]
        path.write_bytes(data)
        refused += outcome(path)
    assert refused > 100


def test_a_flipped_bit_changes_nothing_silently(good_bytes, tmp_path):
    """Flip bits, also of the metadata, which has no checksums of Parquet."""
    path, draw = tmp_path / "a.parquet", random.Random(0)
    path.write_bytes(good_bytes)
    good = pertinent.read(path).to_json()
    start = len(good_bytes) - int.from_bytes(good_bytes[-8:-4], "little")
    refused = 0
    for _ in range(800):
        data = bytearray(good_bytes)
        data[draw.randrange(start, len(data))] ^= 1 << draw.randrange(8)
        path.write_bytes(data)
        try:
            assert pertinent.read(path).to_json() == good
        except FileError:
            refused += 1
    assert refused > 100


def damaged(plain, draw):
    """Return a copy with a junk value, a missing entry or a repeated entry."""
    plain = copy.deepcopy(plain)
    here = plain
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = draw.choice(keys)
        inside = here[key]
        if not isinstance(inside, dict | list) or not inside or draw.random() < 0.3:
            break
        here = inside
    change = draw.random()
    if change < 0.2:
        del here[key]
    elif change < 0.35 and isinstance(inside, list) and inside:
        inside.append(inside[0])
    elif change < 0.5 and isinstance(inside, list) and inside:
        inside.pop()
    elif change < 0.7 and isinstance(inside, int | float):
        here[key] = draw.choice((-inside - 1, inside * 1000 + 1, float("nan"), float("inf"), -float("inf")))
    else:
        here[key] = draw.choice(JUNK)
    return plain


def write_table(path, table, **metadata):
    """Write a table with the format version and the digest of its content, so that its rows are looked at."""
    metadata = {b"pertinent": _VERSION, **{name.encode(): value for name, value in metadata.items()}}
    content = _Content(metadata)
    content.add(table.to_pylist())
    pq.write_table(table.replace_schema_metadata({**metadata, b"digest": content.digest()}), path)


def write_plain(path, rows):
    """Write rows as they are, with the types they should have if that is possible."""
    made = []
    for row in rows:
        missing = [name for name in _NESTED if name not in row]
        encoded = _to_row({**row, **dict.fromkeys(missing)})
        made.append({name: value for name, value in encoded.items() if name not in missing})
    try:
        table = pa.Table.from_pylist(made, schema=_schema(pa))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        table = pa.Table.from_pylist(made)
    write_table(path, table, failures=b"[]")


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # a plot of infinity
@pytest.mark.parametrize("seed", range(4))
def test_altered_rows(good, tmp_path, seed):
    draw, refused, written, path = random.Random(seed), 0, 0, tmp_path / "a.parquet"
    for _ in range(150):
        row = damaged(draw.choice(good).to_dict(), draw)
        with suppress(InputError):
            use(pertinent.Explanations([pertinent.Explanation.from_dict(row)]))
        try:
            write_plain(path, [row])
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            continue  # Parquet cannot hold it either
        written += 1
        refused += outcome(path)
    assert written > 100
    assert refused > 60


def changed(place, value):
    """Return a function that sets a value at a path such as ``input.spans.0``."""

    def change(plain):
        *way, last = [int(part) if part.isdecimal() else part for part in place.split(".")]
        for part in way:
            plain = plain[part]
        plain[last] = value

    return change


@pytest.mark.parametrize(
    ("which", "place", "value", "message"),
    [
        (0, "scores", [0.1], "`scores` must have shape 4, but has 1"),
        (0, "scores", None, "`scores` must have shape 4"),
        (0, "standard_errors", [0.1], "`standard_errors` must have shape 4"),
        (0, "standard_errors", [0.1, 0.2, -0.1, 0.1], "`standard_errors` must be at least 0"),
        (0, "class_scores", [[0.1, 0.2]], "`class_scores` must have shape 2 × 4"),
        (0, "base_values", [0.1], "`base_values` must have shape 2"),
        (0, "prediction", [0.1], "`prediction` must have shape 2"),
        (0, "prediction", [0.1, float("nan")], "`prediction` must be finite"),
        (0, "target", 2, "`target` must be from 0 to 1, but got 2"),
        (0, "target", None, "`target` must be a whole number"),
        (0, "seed", -1, "`seed` must be at least 0, but got -1"),
        (0, "features", ["a", "b"], "`scores` must have shape 2, but has 4"),
        (0, "features", None, "`features` must be a list"),
        (0, "method", None, "`method` must be a string"),
        (0, "sparsities", [], "`sparsities` must be at least one"),
        (0, "sparsities", [float("nan")], "`sparsities` must be a number, but got nan"),
        (0, "sparsities", [1.5], "`sparsities` must be above 0 and at most 1"),
        (
            0,
            "measures",
            {"sufficiency": [[2.0, 1.0]]},
            "`measures.sufficiency` must be above 0",
        ),
        (0, "measures", [1], "`measures` must be an object with named fields"),
        (0, "settings", "x", "`settings` must be an object with named fields, but got 'x'"),
        (0, "output", {"name": "odds"}, "`name` must be one of probability"),
        (0, "input.spans.0", [0, 0, 99], "`spans` must be inside the text"),
        (0, "input.spans.0", [1, 0, 1], "`spans` must be inside the text"),
        (0, "input.spans", [[0, 0, 1]], "`spans` must have shape 4 × 3"),
        (0, "input.kind", "sound", "`kind` must be one of image, prompt, table, text"),
        (0, "input.fingerprint", "xyz", "`fingerprint` must be hexadecimal"),
        (0, "input", None, "`input` must be an object with named fields"),
        (4, "chosen.0", [0.5, [9]], "`chosen` must be from 0 to 2"),
        (5, "input.labels.0.0", 9, "`labels` must be from 0 to 3"),
        (5, "input.pixels.0.0.0", float("inf"), "`pixels` must be finite"),
        (5, "input.labels", [[0, 1]], "`labels` must have shape 8 × 8"),
        (6, "input.columns", [[0], [0]], "`columns` must be 2 groups of the 2 columns"),
        (6, "input.names", ["age", "age"], "`names` must be different"),
        (6, "input.values", [[1], 2], "`values` must be numbers or texts"),
    ],
)
def test_errors_of_invalid_fields(good, tmp_path, which, place, value, message):
    plain = [good[which].to_dict(), good[which].to_dict()]
    changed(place, value)(plain[1])
    with pytest.raises(InputError) as alone:
        pertinent.Explanation.from_dict(plain[1])
    assert message in str(alone.value)
    write_plain(tmp_path / "a.parquet", plain)
    with pytest.raises(FileError) as read:
        pertinent.read(tmp_path / "a.parquet")
    assert f"a.parquet' is damaged: row 2: {message}" in str(read.value)


def test_a_file_of_another_format_version_is_refused(good_bytes, tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(good_bytes)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"pertinent": b"3"}), path)
    with pytest.raises(FileError, match="format version '3'"):
        pertinent.read(path)


def test_other_invalid_parquet_files(good, good_bytes, tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(good_bytes)
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    for name in table.column_names:
        pq.write_table(table.drop_columns([name]), path)
        outcome(path)
        place = table.column_names.index(name)
        for column in (
            pa.array([b"\xff"] * len(table)),
            pa.nulls(len(table)),
            pa.array([{"a": 1}] * len(table)),
        ):
            pq.write_table(table.set_column(place, name, column).replace_schema_metadata(metadata), path)
            outcome(path)
    for failures in (b"", b"{", b"[1]", b'[["a", "b"]]', b"[[0, null]]", b"\xff", b"[" * 100_000):
        write_table(path, table, failures=failures)
        assert outcome(path)
    write_table(path, table)
    assert outcome(path)
    write_table(path, table, failures=b"[]")
    assert not outcome(path)
    pq.write_table(pa.table({"x": [1, 2]}).replace_schema_metadata(metadata), path)
    assert outcome(path)


# -- journals ----------------------------------------------------------------------------------


@pytest.fixture
def journal(good, tmp_path):
    """Return a journal of three explanations and a failure, and its lines."""
    path = journal_of(tmp_path / "run.parquet")
    failures = [{"index": 3, "reason": "empty", "id": "x", "method": None, "metric": None}]
    with Journal(path, {"seed": 0}) as journal:
        for number, e in enumerate(good[:3]):
            journal.add((number, 0), "name", {"explanation": e.to_dict(), "failures": []})
        journal.add((3, 0), "name", {"explanation": None, "failures": failures})
    return path, path.read_bytes().splitlines(keepends=True)


def test_an_undamaged_journal_is_read(journal, tmp_path):
    result = pertinent.read(tmp_path / "run.parquet")
    assert len(result) == 3
    assert result.failures == [pertinent.Failure(3, "empty", id="x")]


def test_damaged_journals(journal, tmp_path):
    path, lines = journal
    draw, whole = random.Random(0), b"".join(lines)
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(draw.choice((1, 2, 8))):
            data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(data[: draw.choice((len(data), draw.randrange(len(data))))])
        outcome(tmp_path / "run.parquet")
    for _ in range(60):
        record = damaged(json.loads(draw.choice(lines[1:])[9:]), draw)
        path.write_bytes(lines[0] + journal_line(record))
        outcome(tmp_path / "run.parquet")


@pytest.mark.parametrize("line", [b"{]\n", b"3\n", b'{"key": 3, "name": null}\n', b"[" * 100_000 + b"\n"])
def test_a_journal_damaged_in_the_middle_is_not_cut(journal, line):
    """Check that records after the damage are not deleted."""
    path, lines = journal
    data = lines[0] + lines[1] + line + lines[2]
    path.write_bytes(data)
    with pytest.raises(FileError, match="is damaged"):
        Journal(path, {"seed": 0})
    assert path.read_bytes() == data


def test_other_files_are_not_overwritten_by_journals(tmp_path):
    (tmp_path / "j").write_bytes(b"my notes")
    with pytest.raises(FileError, match="not a journal"):
        Journal(tmp_path / "j", {})
    assert (tmp_path / "j").read_bytes() == b"my notes"


# -- removal checks ----------------------------------------------------------------------------


def test_damaged_removal_checks(tmp_path):
    model = pertinent.wrap(sentiment)
    check = pertinent.check_removal(model, ["not bad", "good thing"], shares=(0.5,), draws=2)
    whole = json.loads(check.to_json())
    draw, refused, path = random.Random(0), 0, tmp_path / "check.json"
    variants = [json.dumps(damaged(whole, draw)) for _ in range(150)]
    for text in [*variants, "", "[]", "null", "[" * 100_000, check.to_json()[:-9], "\ufeff{}"]:
        path.write_text(text)
        try:
            result = pertinent.RemovalCheck.read(path)
        except FileError:
            refused += 1
        else:
            repr(result), result.to_json(), result.to_dataframe(), result._repr_html_(), result.__rich__()
    assert refused > 80

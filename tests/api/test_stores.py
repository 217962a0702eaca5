"""Files and folders of runs: another model, power failures, damaged parts and leftovers are noticed."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pertinent
import pertinent.runs.folder_store
from pertinent.errors import FileError
from pertinent.files import atomic_write, remove_leftovers, write_text
from pertinent.results.journal import journal_line, read_journal

ROWS = np.random.default_rng(0).normal(size=(10, 4))
WORDS = {"method": "leave-one-out", "removal": "constant", "progress": False}
NOISE = np.random.default_rng(1)
STORES = ["run.parquet", "run"]


class Scaled:
    """A model with a class attribute that no fingerprint sees."""

    factor = 1.0

    def __call__(self, rows):
        p = [1 / (1 + np.exp(-Scaled.factor * sum(row.tolist()))) for row in rows]
        return [[1 - q, q] for q in p]


class Noisy:
    """A model with random answers."""

    def __call__(self, rows):
        return [[q, 1 - q] for q in NOISE.uniform(0.2, 0.8, len(rows))]


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr(Scaled, "factor", 1.0)
    monkeypatch.setattr(pertinent.runs.folder_store, "LARGEST_BLOCK", 3)
    return pertinent.wrap(Scaled(), kind="table")


def plain(explanations):
    return [{**e.to_dict(), "seconds": 0.0} for e in explanations]


def interrupt(model, out, after=5):
    """Leave an unfinished run with at least three explanations."""

    def stream():
        yield from ROWS[:after]
        raise RuntimeError("the line is cut")

    with pytest.raises(RuntimeError, match="cut"):
        pertinent.explain(model, stream(), out=out, batch_size=4, **WORDS)
    assert 3 <= len(pertinent.read(out)) <= after


# -- another model --------------------------------------------------------------------------------


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("store", STORES)
def test_a_changed_model_is_noticed(tmp_path, model, store, finished):
    out = tmp_path / store
    if finished:
        pertinent.explain(model, ROWS, out=out, **WORDS)
    else:
        interrupt(model, out)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    Scaled.factor = 1.5
    with pytest.raises(FileError, match="The model has changed"):
        pertinent.explain(model, ROWS, out=out, **WORDS)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    Scaled.factor = 1.0
    found = pertinent.explain(model, ROWS, out=out, **WORDS)
    assert plain(found) == plain(pertinent.explain(model, ROWS, **WORDS))


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("store", STORES)
def test_a_random_model_is_resumed(tmp_path, model, store, finished, caplog):
    noisy = pertinent.wrap(Noisy(), kind="table")
    out = tmp_path / store
    if finished:
        pertinent.explain(noisy, ROWS, out=out, **WORDS)
    else:
        interrupt(noisy, out)
    assert len(pertinent.explain(noisy, ROWS, out=out, **WORDS)) == 10
    assert "it is random" in caplog.text


@pytest.mark.parametrize("store", STORES)
def test_a_model_that_fails_now_is_an_error(tmp_path, model, store):
    out = tmp_path / store
    pertinent.explain(model, ROWS, out=out, **WORDS)
    Scaled.factor = "no number"
    with pytest.raises(FileError, match="fails for input 0"):
        pertinent.explain(model, ROWS, out=out, **WORDS)


# -- power failures -------------------------------------------------------------------------------


@pytest.fixture
def recorded(monkeypatch):
    """The calls that write to the disk, with the names of their files."""
    calls = []
    fsync, replace, unlink = os.fsync, os.replace, os.unlink

    def path_of(file):
        return Path(f"/proc/self/fd/{file}").readlink()

    def record_fsync(file):
        calls.append(("fsync", path_of(file)))
        fsync(file)

    def record_replace(source, target):
        calls.append(("replace", Path(source), Path(target)))
        replace(source, target)

    def record_unlink(path, **options):
        calls.append(("unlink", Path(path)))
        unlink(path, **options)

    for function in (record_fsync, record_replace, record_unlink):
        monkeypatch.setattr(os, function.__name__.removeprefix("record_"), function)
    return calls


def in_order(calls, *expected):
    """Return whether the expected calls are among the calls, in this order."""
    places = [calls.index(each) for each in expected]
    return places == sorted(places)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_file_is_synced_then_renamed_then_its_folder_is_synced(tmp_path, recorded):
    path = tmp_path / "a.txt"
    write_text(path, "text")
    (temporary,) = [call[1] for call in recorded if call[0] == "replace"]
    assert recorded[:3] == [("fsync", temporary), ("replace", temporary, path), ("fsync", tmp_path)]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_journal_is_removed_after_its_file_is_on_the_disk(tmp_path, model, recorded):
    out, journal = tmp_path / "run.parquet", tmp_path / "run.parquet.journal"
    pertinent.explain(model, ROWS, out=out, **WORDS)
    (temporary,) = [call[1] for call in recorded if call[0] == "replace"]
    recorded.remove(("fsync", tmp_path))  # when the journal was created
    steps = [("fsync", temporary), ("replace", temporary, out), ("fsync", tmp_path), ("unlink", journal)]
    assert in_order(recorded, *steps)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_part_is_on_the_disk_before_its_record_is_written(tmp_path, model, recorded, monkeypatch):
    out = tmp_path / "run"
    write = os.write

    def record_write(file, data):
        recorded.append(("write", Path(f"/proc/self/fd/{file}").readlink(), data))
        return write(file, data)

    monkeypatch.setattr(os, "write", record_write)
    pertinent.explain(model, ROWS, out=out, **WORDS)
    index = out / "index.journal"
    for number in range(4):
        part = out / f"part-{number:08}.parquet"
        place, temporary = next(
            (i, c[1]) for i, c in enumerate(recorded) if c[0] == "replace" and c[2] == part
        )
        assert recorded.index(("fsync", temporary)) < place
        assert recorded[place + 1] == ("fsync", out)
        key = b'"key":[%d,0]' % number
        (line,) = [i for i, c in enumerate(recorded) if c[:2] == ("write", index) and key in c[2]]
        assert line > place + 1


def test_folders_that_cannot_be_synced_are_no_error(tmp_path, monkeypatch):
    fsync = os.fsync

    def refuse_folders(file):
        if os.path.isdir(f"/proc/self/fd/{file}"):  # noqa: PTH112
            raise OSError(22, "Invalid argument")
        fsync(file)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    write_text(tmp_path / "a.txt", "text")
    assert (tmp_path / "a.txt").read_text() == "text"


# -- parts and the index --------------------------------------------------------------------------


def part(out, number):
    return out / f"part-{number:08}.parquet"


def swap(out):
    first, second = part(out, 0).read_bytes(), part(out, 1).read_bytes()
    part(out, 0).write_bytes(second)
    part(out, 1).write_bytes(first)


def flip(out):
    data = bytearray(part(out, 1).read_bytes())
    data[len(data) // 2] ^= 4
    part(out, 1).write_bytes(data)


def delete_line(out):
    lines = (out / "index.journal").read_bytes().splitlines(keepends=True)
    (out / "index.journal").write_bytes(b"".join(line for line in lines if b'"key":[1,0]' not in line))


def drop_digests(out):
    header, *records = read_journal(out / "index.journal")
    records = [{name: value for name, value in r.items() if name != "digest"} for r in records]
    (out / "index.journal").write_bytes(b"".join(map(journal_line, [header, *records])))


DAMAGES = {
    "swapped": swap,
    "copied": lambda out: shutil.copy(part(out, 0), part(out, 1)),
    "emptied": lambda out: part(out, 1).write_bytes(b""),
    "missing": lambda out: part(out, 1).unlink(),
    "damaged": flip,
    "line deleted": delete_line,
    "no digests": drop_digests,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_is_not_read_and_recomputed_on_resume(tmp_path, model, damage, caplog):
    out = tmp_path / "run"
    whole = plain(pertinent.explain(model, ROWS, out=out, **WORDS))
    intact = part(out, 3).read_bytes()
    DAMAGES[damage](out)
    with pytest.raises(FileError, match="damaged"):
        list(pertinent.read(out))
    caplog.clear()
    found = pertinent.explain(model, ROWS, out=out, **WORDS)
    assert "recomputed" in caplog.text and "1" in caplog.text
    assert plain(found) == plain(pertinent.read(out)) == whole
    assert found.is_finished and len(found.files) == 4
    assert (part(out, 3).read_bytes() == intact) == (damage != "no digests")


def test_the_records_of_a_resumed_folder_replace_the_earlier_ones(tmp_path, model):
    out = tmp_path / "run"
    pertinent.explain(model, ROWS, out=out, **WORDS)
    part(out, 1).unlink()
    pertinent.explain(model, ROWS, out=out, **WORDS)
    records = [r["key"] for r in read_journal(out / "index.journal") if "key" in r]
    assert records.count([1, 0]) == 2
    assert len(pertinent.read(out)) == 10


def test_failures_of_a_damaged_part_are_an_error(tmp_path, model):
    out = tmp_path / "run"
    found = pertinent.explain(model, [*ROWS.tolist(), [1j, 0.0, 0.0, 0.0]], out=out, **WORDS)
    part(out, 3).write_bytes(b"")
    with pytest.raises(FileError, match="part-00000003"):
        list(found.failures)


# -- leftovers of killed processes ----------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from pertinent.files import atomic_write
with atomic_write(Path(sys.argv[1])) as unfinished:
    unfinished.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("store", "names"),
    [("run.parquet", ["run.parquet", "run.parquet.journal"]), ("run", ["run/part-00000000.parquet"])],
)
def test_leftovers_of_killed_processes_are_removed_by_the_next_run(tmp_path, model, store, names):
    out = tmp_path / store
    if store == "run":
        out.mkdir()
    for name in names:
        assert (
            subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / name)], check=False).returncode == -9
        )
    assert len(list(tmp_path.rglob(".*"))) == len(names)
    (tmp_path / ".run.parquet.notes").write_text("mine")
    (tmp_path / ".other.parquet.0123456789abcdef").write_text("of another output")
    pertinent.explain(model, ROWS, out=out, **WORDS)
    left = {path.name for path in tmp_path.rglob(".*")}
    assert left == {".run.parquet.notes", ".other.parquet.0123456789abcdef"}


def test_files_that_are_being_written_are_kept(tmp_path):
    path = tmp_path / "run.parquet"
    with atomic_write(path) as unfinished:
        unfinished.write_text("new")
        remove_leftovers(tmp_path, "run.parquet")
        remove_leftovers(tmp_path)
        assert unfinished.read_text() == "new"
    assert path.read_text() == "new"
    remove_leftovers(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["run.parquet"]


def test_a_file_that_is_removed_before_it_is_locked_is_created_again(tmp_path, monkeypatch):
    flock, seen = fcntl.flock, []

    def remove_first(file, operation):
        if not seen:
            seen.append(file)
            next(tmp_path.glob(".*")).unlink()
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    write_text(tmp_path / "a.txt", "text")
    assert seen and (tmp_path / "a.txt").read_text() == "text"

"""Files are written atomically, also by several processes."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import pertinent
import pertinent.files
from pertinent.errors import FileError
from pertinent.files import check_writable, write_text
from tests.stubs import sentiment


def test_threads_save_one_path_at_the_same_time(tmp_path):
    model = pertinent.wrap(sentiment)
    found = pertinent.explain(model, ["not bad", "good"], "leave-one-out")
    path, before = tmp_path / "a.parquet", os.umask(0o027)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: found.save(path), range(40)))
        assert os.umask(0o027) == 0o027  # unchanged by threads
    finally:
        os.umask(before)
    assert len(pertinent.read(path)) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_processes_save_one_path_at_the_same_time(tmp_path):
    code = "import sys; from pathlib import Path; from pertinent.files import write_text\n"
    code += "for i in range(200): write_text(Path(sys.argv[1]), sys.argv[2] * 1000)"
    path = tmp_path / "a.txt"
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), letter]) for letter in "ab"]
    assert [process.wait() for process in running] == [0, 0]
    assert path.read_text() in ("a" * 1000, "b" * 1000)
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "none/a.txt", "."])
def test_check_writable_refuses_invalid_paths(tmp_path, name):
    with pytest.raises(FileError):
        check_writable(tmp_path / name)
    with pytest.raises(FileError):
        write_text(tmp_path / name, "text")
    assert not list(tmp_path.iterdir())


def test_check_writable_refuses_folders_without_permission(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(FileError, match="cannot be written: Permission denied"):
        check_writable(tmp_path / "a.txt")


def test_check_writable_changes_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("mine")
    check_writable(tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


def test_devices_are_not_replaced_by_files():
    with pytest.raises(FileError, match="is not a regular file"):
        check_writable(Path("/dev/null"))


def test_names_with_lone_surrogates_are_saved(tmp_path):
    model = pertinent.wrap(lambda rows: [[0.2, 0.8] for _ in rows], kind="table", classes=["no", "\ud800"])
    found = pertinent.explain(model, {"a": 1.0, "b\udcff": 2.0}, "leave-one-out")
    for name in ("a.parquet", "a.json"):
        found.save(tmp_path / name)
    [again] = pertinent.read(tmp_path / "a.parquet")
    assert again.input.names == ("a", "b\udcff")
    assert (again.features, again.classes) == (("a", "b?"), ("no", "?"))


@pytest.mark.parametrize("write", [lambda path: write_text(path, "new"), check_writable])
def test_an_interrupt_leaves_no_temporary_file(tmp_path, write):
    """Interrupt before each line of the module, one after the other."""
    path, here = tmp_path / "a.txt", pertinent.files.__file__
    write(path)
    for place in range(1000):
        left = place

        def interrupt(frame, event, _):
            nonlocal left
            if frame.f_code.co_filename != here:
                return None
            if event == "line":
                left -= 1
                if left < 0:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return interrupt

        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            write(path)
        except KeyboardInterrupt:
            pass
        else:
            break
        finally:
            sys.settrace(before)
        assert {file.name for file in tmp_path.iterdir()} <= {"a.txt"}
    assert 10 < place < 1000

"""A journal keeps what is finished, whatever becomes of the process that writes it."""

import json
import os
import resource
import signal
import subprocess
import sys
import textwrap

import pytest

from pertinent.errors import FileError
from pertinent.results.journal import Journal, differences


def keys(journal):
    return [tuple(record["key"]) for record in journal.records()]


def test_records_come_back_in_the_order_of_their_keys(tmp_path):
    with Journal(tmp_path / "j", {"seed": 0}) as journal:
        for key in ((2, 0), (0, 1), (0, 0)):
            journal.add(key, f"input {key[0]}", {"found": sum(key)})
    with Journal(tmp_path / "j", {"seed": 0}) as journal:
        assert keys(journal) == [(0, 0), (0, 1), (2, 0)]
        assert [record["found"] for record in journal.records()] == [0, 1, 2]
        assert journal.finished[2, 0][1] == "input 2"


@pytest.mark.parametrize("left", range(1, 60, 7))
def test_a_truncated_last_line_is_removed(tmp_path, left):
    path = tmp_path / "j"
    with Journal(path, {}) as journal:
        journal.add((0,), "a", {"found": "x" * 50})
        whole = path.stat().st_size
        journal.add((1,), "b", {"found": "y" * 50})
    os.truncate(path, whole + left)
    with Journal(path, {}) as journal:
        assert keys(journal) == [(0,)]
        journal.add((1,), "b", {"found": "again"})
    assert [json.loads(line[9:])["key"] for line in path.read_text().splitlines()[1:]] == [[0], [1]]


def test_a_truncated_header_is_refused(tmp_path):
    (tmp_path / "j").write_bytes(b'01234567 {"seed"')
    with Journal(tmp_path / "j", {"seed": 1}) as journal:
        assert not journal.finished
        journal.add((0,), None, {})
    with Journal(tmp_path / "j", {"seed": 1}) as journal:
        assert list(journal.finished) == [(0,)]


def test_another_run_is_refused_with_what_differs(tmp_path):
    with Journal(tmp_path / "j", {"requests": [{"budget": 100, "seed": 0}]}) as journal:
        journal.add((0,), None, {})
    with pytest.raises(FileError, match=r"differs in requests\[0\].budget \(100, now 200\)\. Use the same"):
        Journal(tmp_path / "j", {"requests": [{"budget": 200, "seed": 0}]})
    assert len((tmp_path / "j").read_text().splitlines()) == 2


def test_differences_of_lists_and_missing_names():
    assert differences({"a": [1, 2]}, {"a": [1]}) == ["a ([1, 2], now [1])"]
    assert differences({"a": None}, {"b": 1}) == ["b (null, now 1)"]
    assert differences({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 2}]}}) == []


def test_two_processes_do_not_write_one_journal(tmp_path):
    with Journal(tmp_path / "j", {}), pytest.raises(FileError, match="Another process is writing"):
        Journal(tmp_path / "j", {})


def test_missing_folders_and_permissions(tmp_path):
    with pytest.raises(FileError, match="no folder"):
        Journal(tmp_path / "none" / "j", {})
    with pytest.raises(FileError, match="is a folder"):
        Journal(tmp_path, {})


def test_a_full_disk_keeps_finished_records(tmp_path):
    """Simulate a full disk by a limit on the size of files."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Journal(tmp_path / "j", {}) as journal:
        journal.add((0,), "a", {"found": 1})
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
        try:
            with pytest.raises(FileError, match=r"File too large\. The 1 results in it are kept"):
                journal.add((1,), "b", {"found": "x" * 10_000})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)
        journal.add((2,), "c", {"found": 3})
    with Journal(tmp_path / "j", {}) as journal:
        assert keys(journal) == [(0,), (2,)]


def test_a_kill_between_two_records_loses_neither(tmp_path):
    code = f"""
        import os, signal
        from pathlib import Path
        from pertinent.results.journal import Journal
        journal = Journal(Path({str(tmp_path / "j")!r}), {{}})
        for i in range(50):
            journal.add((i,), None, {{}})
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert done.returncode == -signal.SIGKILL
    with Journal(tmp_path / "j", {}) as journal:
        assert len(journal.finished) == 50

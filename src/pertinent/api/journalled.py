"""Long runs that survive: finished explanations go to a journal, and at the end to a Parquet file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence, Sized
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pertinent._optional import optional
from pertinent.api.explain_run import id_of, merged, run_tasks, tasks
from pertinent.api.request import Request
from pertinent.api.runner import Runner, Task
from pertinent.decoding import encode
from pertinent.digests import digest
from pertinent.engine.journal import Journal, differences
from pertinent.errors import FileError
from pertinent.files import check_writable
from pertinent.inputs.base import Input
from pertinent.results.explanation import Explanations
from pertinent.results.explanation_files import failures_in, journal_of, read_run, write_rows


def explain_journalled(
    runner: Runner,
    inputs: Iterable[Any],
    requests: Sequence[Request],
    out: Path,
    ids: Sequence[str] | None = None,
) -> Explanations:
    """Explain every input by every request, but what an earlier run of the same has finished."""
    check_writable(out)
    if out.suffix.lower() != ".parquet":
        raise FileError(f"`out` must end in .parquet, but got {str(out)!r}; save() writes other files.")
    optional("pyarrow.parquet")  # better missed now than at the end
    run = {
        "model": runner.model.fingerprint.hex(),
        "requests": [request.to_dict() for request in requests],
    }
    if ids is not None:
        run["ids"] = digest(json.dumps([str(each) for each in ids])).hex()
    if out.exists():
        _check_same(out, run, runner, inputs, requests)
        journal_of(out).unlink(missing_ok=True)
        return Explanations.read(out)
    with Journal(journal_of(out), run) as journal:
        total = len(inputs) * len(requests) - len(journal.finished) if isinstance(inputs, Sized) else None
        names = _Names()
        todo = _unfinished(runner, inputs, requests, journal, names)
        for found in run_tasks(runner, todo, requests, total, ids):
            explanation = found.explanation
            content = {
                "explanation": None if explanation is None else explanation.to_dict(),
                "failures": encode(found.failures),
                "id": id_of(ids, found.input_index),
            }
            key = found.input_index, found.request_index
            journal.add(key, names.of.pop(key), content)
        run["inputs"] = names.digest()
        failures = [failure for record in journal.records() for failure in failures_in(record)]
        rows = (r["explanation"] for r in journal.records() if r["explanation"] is not None)
        write_rows(out, rows, merged(failures, requests), run)
        explanations = Explanations.read(out)
        journal.path.unlink()
    return explanations


class _Names:
    """What the inputs of a run are called: by their content, so that another input is noticed."""

    def __init__(self) -> None:
        self.of: dict[tuple[int, ...], str] = {}
        self._all = blake2b(digest_size=16)

    def add(self, key: tuple[int, ...], name: str) -> None:
        """The name of the input of a task."""
        self.of[key] = name
        self._all.update(f"{name}\n".encode())

    def digest(self) -> str:
        """All names, in their order."""
        return self._all.hexdigest()


def _unfinished(
    runner: Runner, inputs: Iterable[Any], requests: Sequence[Request], journal: Journal, names: _Names
) -> Iterator[Task]:
    """The tasks that are left; the input of one that is finished must be the same as it was."""
    for task in tasks(runner, inputs, requests):
        name = _name(task)
        names.add(task.key, name)
        if task.key not in journal.finished:
            yield task
            continue
        del names.of[task.key]
        if journal.finished[task.key][1] != name:
            raise FileError(
                f"{str(journal.path)!r} was begun with other inputs: input {task.key[0]} is not what it was. "
                "Give the same inputs in the same order to continue, or choose another file."
            )


def _name(task: Task) -> str:
    return task.raw.fingerprint.hex() if isinstance(task.raw, Input) else f"unusable: {task.raw}"


def _check_same(
    out: Path, run: dict[str, Any], runner: Runner, inputs: Iterable[Any], requests: Sequence[Request]
) -> None:
    """A file that is finished must be of this very run."""
    before = read_run(out)
    if before is None:
        raise FileError(f"{str(out)!r} exists and is not a run that could be continued: choose another file.")
    names = _Names()
    for task in tasks(runner, inputs, requests):
        names.add(task.key, _name(task))
    changed = differences(before, run | {"inputs": names.digest()})
    if changed:
        raise FileError(
            f"{str(out)!r} holds another run, which differs in {'; '.join(changed)}: choose another file."
        )

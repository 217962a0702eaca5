"""Long runs that survive: finished explanations go to a journal, and at the end to a Parquet file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pertinent._optional import optional
from pertinent.api.explain_run import carry_out, merged, works
from pertinent.api.request import Request
from pertinent.api.run import Run, Work
from pertinent.decoding import encode
from pertinent.digests import digest
from pertinent.engine.job import Done
from pertinent.engine.journal import Journal, differences
from pertinent.errors import FileError
from pertinent.files import check_writable
from pertinent.results.explanation import Explanations
from pertinent.results.explanation_files import failures_in, journal_of, read_run, write_rows


def explain_journalled(run: Run, requests: Sequence[Request], out: Path) -> Explanations:
    """Explain every input by every request, except what an earlier run of the same has finished."""
    check_writable(out)
    if out.suffix.lower() != ".parquet":
        raise FileError(f"`out` must end in .parquet, but got {str(out)!r}; save() writes other files.")
    optional("pyarrow.parquet")  # better missed now than at the end
    header = {
        "model": run.model.fingerprint.hex(),
        "requests": [request.to_dict() for request in requests],
    }
    if run.ids is not None:
        header["ids"] = digest(json.dumps([str(each) for each in run.ids])).hex()
    if out.exists():
        _check_same(out, header, run, requests)
        journal_of(out).unlink(missing_ok=True)
        return Explanations.read(out)
    with Journal(journal_of(out), header) as journal:
        total = None if run.n_inputs is None else run.n_inputs * len(requests) - len(journal.finished)
        names = _Names()
        todo = _unfinished(run, requests, journal, names)
        for found in carry_out(run, todo, requests, total):
            explanation = found.explanation
            content = {
                "explanation": None if explanation is None else explanation.to_dict(),
                "failures": encode(found.failures),
                "id": run.id_of(found.input_index),
            }
            key = found.input_index, found.request_index
            journal.add(key, names.of.pop(key), content)
        header["inputs"] = names.digest()
        failures = [failure for record in journal.records() for failure in failures_in(record)]
        rows = (r["explanation"] for r in journal.records() if r["explanation"] is not None)
        write_rows(out, rows, merged(failures, requests), header)
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
    run: Run, requests: Sequence[Request], journal: Journal, names: _Names
) -> Iterator[Work | Done]:
    """The work that is left; the input of what is finished must be the same as it was."""
    for work in works(run, requests):
        name = _name(work)
        names.add(work.key, name)
        if work.key not in journal.finished:
            yield work
            continue
        del names.of[work.key]
        if journal.finished[work.key][1] != name:
            raise FileError(
                f"{str(journal.path)!r} was begun with other inputs: input {work.key[0]} is not what it was. "
                "Give the same inputs in the same order to continue, or choose another file."
            )


def _name(work: Work | Done) -> str:
    return f"unusable: {work.error}" if isinstance(work, Done) else work.input.fingerprint.hex()


def _check_same(out: Path, header: dict[str, Any], run: Run, requests: Sequence[Request]) -> None:
    """A file that is finished must be of this very run."""
    before = read_run(out)
    if before is None:
        raise FileError(f"{str(out)!r} exists and is not a run that could be continued: choose another file.")
    names = _Names()
    for work in works(run, requests):
        names.add(work.key, _name(work))
    changed = differences(before, header | {"inputs": names.digest()})
    if changed:
        raise FileError(
            f"{str(out)!r} holds another run, which differs in {'; '.join(changed)}: choose another file."
        )

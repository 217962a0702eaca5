"""The files of a long run: what identifies it, which earlier results belong to it, and merging its shards."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pertinent.config.fingerprints import digest
from pertinent.config.settings import checked
from pertinent.engine.journal import Journal, differences, read_journal, write_journal
from pertinent.errors import FileError, PertinentError, require
from pertinent.files import file_exists
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.explanation_files import journal_of, read_record, read_run, write_rows
from pertinent.runs.request import Request
from pertinent.runs.run import Run, Shard

Key = tuple[int, ...]
"""The positions of an input and of a request."""

_MODULUS = 2**128


class InputNames:
    """The names of a run's inputs, which are digests of their content, so that a changed input is noticed.

    `of` maps the keys of tasks to names, `n` is how many were added. The digest of all names is a sum over
    tasks, so those of shards add up to that of the whole run.
    """

    def __init__(self) -> None:
        self.of: dict[Key, str] = {}
        self.n = 0
        self._sum = 0

    def add(self, key: Key, name: str) -> None:
        """Add the name of the input of a task."""
        self.of[key] = name
        self.n += 1
        self._sum += int.from_bytes(digest(list(key), name), "little")

    def digest(self) -> str:
        """Return a digest of all names."""
        return _sum_text(self._sum)


def run_header(run: Run, requests: Sequence[Request]) -> dict[str, Any]:
    """Return everything that identifies a run besides its inputs."""
    header: dict[str, Any] = {
        "model": run.model.fingerprint.hex(),
        "requests": [request.to_dict() for request in requests],
    }
    if run.ids is not None:
        header["ids"] = digest(json.dumps([str(each) for each in run.ids])).hex()
    if run.shard is not None:
        header["shard"] = str(run.shard)
    plain: dict[str, Any] = json.loads(json.dumps(header))
    return plain


def with_requests_kept(out: Path, requests: Sequence[Request]) -> list[Request]:
    """These requests and those of the run in a file that differ from them in the method alone, in its order.

    What the file holds by such methods stays there. A run that is not finished has to be finished with them.
    """
    journal = journal_of(out)
    before = (
        read_run(out) if file_exists(out) else next(read_journal(journal), {}) if file_exists(journal) else {}
    )
    then = (before or {}).get("requests")
    if not isinstance(then, list) or not all(isinstance(each, dict) for each in then):
        return list(requests)
    now = json.loads(json.dumps([request.to_dict() for request in requests]))
    more = [each for each in then if each not in now]
    is_alike = all(_but_method(each) in map(_but_method, now) for each in more)
    if not more or not is_alike or not any(each in then for each in now):
        return list(requests)
    names = ", ".join(dict.fromkeys(str(each.get("method")) for each in more))
    advice = f"name {'it' if len(more) == 1 else 'them'}, too, or choose another file."
    if not file_exists(out):
        raise FileError(f"{str(out)!r} was begun with {names}, too, and is not finished: {advice}")
    unmade = f"{str(out)!r} also holds explanations by {names}, which cannot be made from a file: {advice}"
    if any("fitted" in each for each in more):  # no folder is opened because a file names it
        raise FileError(unmade)
    try:
        found = [requests[now.index(each)] if each in now else Request.from_dict(each) for each in then]
    except PertinentError as error:
        raise FileError(unmade) from error
    return [*found, *(own for own, plain in zip(requests, now, strict=True) if plain not in then)]


def _but_method(request: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name not in ("method", "settings", "fitted")}


def is_finished(out: Path, header: Mapping[str, Any], names: Iterable[tuple[Key, str]]) -> bool:
    """Whether a file holds this very run, or if not, only some of its requests.

    Those go to a journal, to be continued from; inputs of which something failed are left out, and tried
    again. Raise an error if the file holds anything else.
    """
    before = read_run(out)
    if before is None:
        raise FileError(f"{str(out)!r} exists and is not a run that could be continued: choose another file.")
    places = _places(before, header)
    named, known = InputNames(), dict(names)
    for (index, number), name in known.items():
        if number in places:
            named.add((index, places.index(number)), name)
    changed = differences(before, {**header, "inputs": named.digest()})
    if not changed:
        return True
    if not places or _others(before) != _others(header) or before.get("inputs") != named.digest():
        raise FileError(
            f"{str(out)!r} holds another run, which differs in {'; '.join(changed)}: choose another file."
        )
    if not _has_header(journal_of(out), header):
        found = Explanations.read(out)
        failed = {failure.index for failure in found.failures}
        whole = {index for index, n in Counter(e.index for e in found).items() if n == len(places)} - failed
        write_journal(journal_of(out), header, _records(found, whole, places, known))
    return False


def _records(
    found: Explanations, whole: set[int], places: Sequence[int], names: Mapping[Key, str]
) -> Iterator[dict[str, Any]]:
    """The records of those inputs that every request has explained."""
    seen: Counter[int] = Counter()
    for e in found:
        if e.index in whole:
            key = e.index, places[seen[e.index]]
            seen[e.index] += 1
            yield {
                "key": list(key),
                "name": names[key],
                "explanation": e.to_dict(),
                "failures": [],
            }


def with_further_requests(path: Path, header: Mapping[str, Any]) -> None:
    """Number the records of a journal as this run does, if it was begun with some of the same requests."""
    before = next(read_journal(path), None) if file_exists(path) else None
    places = [] if before is None else _places(before, header)
    if before is None or before == header or not places or _others(before) != _others(header):
        return
    with Journal(path, before):
        records = islice(read_journal(path), 1, None)
        write_journal(path, header, ({**each, "key": _moved(path, each["key"], places)} for each in records))


def _moved(path: Path, key: Sequence[int], places: Sequence[int]) -> list[int]:
    if len(key) != 2 or key[1] >= len(places):
        raise FileError(f"{str(path)!r} is damaged: the record {list(key)} belongs to no request.")
    return [key[0], places[key[1]]]


def _has_header(path: Path, header: Mapping[str, Any]) -> bool:
    return file_exists(path) and next(read_journal(path), None) == header


def _places(before: Mapping[str, Any], header: Mapping[str, Any]) -> list[int]:
    """The positions in this run of an earlier run's requests; none if one of them is not wanted now."""
    then, now = before.get("requests"), header["requests"]
    if not isinstance(then, list) or any(request not in now for request in then):
        return []
    return [now.index(request) for request in then]


def _others(header: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in header.items() if name not in ("requests", "inputs")}


def check_records(journal: Journal, run: Run, n_requests: int) -> None:
    """Raise an error unless every record of a journal is whole and belongs to a task of this run."""
    for record in journal.records():
        key = record["key"]
        explanation, _ = read_record(journal.path, record, Explanation.from_dict)
        if (
            len(key) != 2
            or key[1] >= n_requests
            or (explanation is not None and explanation.index != key[0])
            or (run.shard is not None and key[0] not in run.shard)
        ):
            raise FileError(f"{str(journal.path)!r} is damaged: the record {key} is of no task of this run.")
        if run.n_inputs is not None and key[0] >= run.n_inputs:
            raise fewer_inputs(journal.path, run.n_inputs)


def fewer_inputs(path: Path, n_inputs: int | None) -> FileError:
    """The error for a journal with results of inputs that were not given."""
    number = "fewer" if n_inputs is None else f"only {n_inputs}"
    return FileError(
        f"{str(path)!r} was begun with more inputs: it has results of some that are not among those given "
        f"now, which are {number}. Give the same inputs to continue, or choose another file."
    )


@checked
def merge(files: Sequence[str | Path], out: str | Path) -> Explanations:
    """Put the files of all shards of a run together, as if one run had written them.

    The same call as for the shards, without `shard`, then finds its results in the merged file.

    Parameters
    ----------
    files
        The files that `explain` or `compare` wrote, one for each shard, in any order.
    out
        The Parquet file to write.
    """
    require(len(files) > 0, "files", "at least one", files)
    paths = [Path(each) for each in files]
    headers = [_shard_header(path) for path in paths]
    first, total = headers[0], 0
    shards: dict[Shard, Path] = {}
    for path, header in zip(paths, headers, strict=True):
        shard = _shard_of(path, header)
        changed = differences(_whole(first), _whole(header))
        if changed:
            raise FileError(
                f"{str(path)!r} is a shard of another run than {str(paths[0])!r}: it differs in "
                f"{'; '.join(changed)}."
            )
        if shard in shards:
            raise FileError(f"{str(shards[shard])!r} and {str(path)!r} are both shard {shard}: name one.")
        shards[shard] = path
        total += _sum_in(path, header)
    of = next(iter(shards)).of
    missing = [str(each) for n in range(1, of + 1) if (each := Shard(n, of)) not in shards]
    if missing:
        raise FileError(
            f"Shard{'s' * (len(missing) > 1)} {', '.join(missing)} of the run must be merged, too."
        )
    found = [Explanations.read(path) for path in paths]
    every = sorted((e for each in found for e in each), key=lambda e: e.index)
    failures = sorted((f for each in found for f in each.failures), key=lambda failure: failure.index)
    whole = _whole(first) | {"inputs": _sum_text(total)}
    del whole["shard"]
    write_rows(Path(out), (e.to_dict() for e in every), failures, whole)
    return Explanations(every, failures)


def _shard_header(path: Path) -> dict[str, Any]:
    if not file_exists(path) and file_exists(journal_of(path)):
        raise FileError(f"The run {str(path)!r} is not finished: continue it by the same call first.")
    header = read_run(path)
    if header is None or "shard" not in header:
        raise FileError(f"{str(path)!r} was not written by a run with `shard`.")
    return header


def _shard_of(path: Path, header: Mapping[str, Any]) -> Shard:
    try:
        return Shard.parse(str(header["shard"]))
    except ValueError as error:
        raise FileError(f"{str(path)!r} is damaged: {error}") from error


def _whole(header: Mapping[str, Any]) -> dict[str, Any]:
    """The header of the whole run that a shard belongs to, with the number of shards."""
    of = str(header["shard"]).partition("/")[2]
    return {name: value for name, value in header.items() if name != "inputs"} | {"shard": of}


def _sum_in(path: Path, header: Mapping[str, Any]) -> int:
    found = re.fullmatch("[0-9a-f]{32}", str(header.get("inputs")))
    if found is None:
        raise FileError(f"{str(path)!r} is damaged: it does not name its inputs.")
    return int(found[0], 16)


def _sum_text(total: int) -> str:
    return f"{total % _MODULUS:032x}"

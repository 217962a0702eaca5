"""Merging the files of a run's shards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pertinent.config.settings import checked
from pertinent.errors import FileError, require
from pertinent.files import file_exists
from pertinent.results.explanation import Explanations
from pertinent.results.explanation_files import StoredExplanations, journal_of, read_stored, write_rows
from pertinent.results.journal import differences
from pertinent.runs.run import Shard


@checked
def merge(files: Sequence[str | Path], out: str | Path) -> Explanations:
    """Merge the files of all shards of a run into the file that one run would have written.

    The same call as for the shards, without `shard`, then finds its results in the merged file.

    Parameters
    ----------
    files
        The files that `explain` or `compare` wrote, one for each shard, in any order.
    out
        The Parquet file to write.
    """
    require(len(files) > 0, "files", "at least one", files)
    shards: dict[Shard, StoredExplanations] = {}
    for path in map(Path, files):
        stored, header = _read_shard(path)
        shard = Shard.parse(header.pop("shard"))
        if not shards:
            first, whole, of = path, header, shard.of
        changed = differences({**whole, "shards": of}, {**header, "shards": shard.of})
        if changed:
            raise FileError(
                f"{str(path)!r} is a shard of another run than {str(first)!r}: it differs in "
                f"{'; '.join(changed)}."
            )
        if shard in shards:
            raise FileError(
                f"{str(shards[shard].path)!r} and {str(path)!r} are both shard {shard}: name one."
            )
        shards[shard] = stored
    missing = [str(shard) for n in range(1, of + 1) if (shard := Shard(n, of)) not in shards]
    if missing:
        raise FileError(
            f"Shard{'s' * (len(missing) > 1)} {', '.join(missing)} of the run must be merged, too."
        )
    every = shards.values()
    rows = sorted(
        (row for each in every for row in each.rows), key=lambda row: (row["index"], row["request_index"])
    )
    failures = sorted((f for each in every for f in each.failures), key=lambda failure: failure.index)
    inputs = {index: name for each in every for index, name in each.inputs.items()}
    write_rows(Path(out), rows, failures, {**whole, "inputs": inputs})
    return Explanations.read(out)


def _read_shard(path: Path) -> tuple[StoredExplanations, dict[str, Any]]:
    """Return the content of a shard's file, and the header of its run."""
    if not file_exists(path) and file_exists(journal_of(path)):
        raise FileError(f"The run {str(path)!r} is not finished: continue it by the same call first.")
    stored = read_stored(path)
    if stored.header is None or "shard" not in stored.header:
        raise FileError(f"{str(path)!r} was not written by a run with `shard`.")
    return stored, dict(stored.header)

"""Questions about a model or a method over many inputs: removal check, stability, sanity, sensitivity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pertinent.config.settings import checked
from pertinent.errors import FileError, shown
from pertinent.files import folder_exists, read_json
from pertinent.printable import shortened
from pertinent.results.base import KINDS
from pertinent.results.explanation import Explanations
from pertinent.results.explanation_folder import ExplanationFolder


@checked
def read(path: str | Path) -> Any:
    """Read what `save` wrote: explanations, an evaluation, attacks, or the result of a diagnostic.

    Of a run with ``out="run.parquet"`` that is still running or was killed, it reads the explanations that
    are finished. Of a folder it gives an `ExplanationFolder`, which is read file by file.
    `Explanations.read`, `Evaluation.read` and so on read results of one kind.
    """
    if folder_exists(Path(path)):
        return ExplanationFolder(path)
    if Path(path).suffix.lower() != ".json":
        return Explanations.read(path)
    # These modules register the kinds of results that they define; for a Parquet file none is needed.
    from pertinent.diagnostics import (  # noqa: F401
        neighbour_stability,
        perplexity_check,
        removal_check,
        sanity,
        sensitivity,
        stability,
    )
    from pertinent.results import attack_results, evaluation, importance  # noqa: F401

    plain = read_json(Path(path))
    said = plain if isinstance(plain, dict) else {}
    for kind, cls in KINDS.items():
        if said.get("format") == cls.file_format() and said.get("kind", kind) == kind:
            return cls.read(path)
    raise FileError(
        f"{str(path)!r} holds no result that this version of pertinent reads: its `format` is "
        f"{shortened(shown(said.get('format')), 60)}."
    )

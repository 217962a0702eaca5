"""Diagnostics of a model or method over many inputs, and the function that reads saved results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pertinent.config.settings import checked
from pertinent.diagnostics.base import Diagnostic, diagnostics
from pertinent.errors import FileError, safe_repr
from pertinent.files import folder_exists, read_json
from pertinent.printable import shorten
from pertinent.results.attack_results import Attacks
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanations
from pertinent.results.explanation_folder import ExplanationFolder
from pertinent.results.hops import Hops
from pertinent.results.importance import Importance

__all__ = ["Diagnostic", "diagnostics", "read"]


@checked
def read(path: str | Path) -> Any:
    """Read a saved result: explanations, an evaluation, attacks, or a diagnostic.

    For an unfinished run with ``out="run.parquet"``, return the explanations finished so far. For a folder,
    return an `ExplanationFolder`, which reads file by file. `Explanations.read`, `Evaluation.read` and so on
    read results of one kind.

    Parameters
    ----------
    path
        A file, or a folder of explanations.
    """
    if folder_exists(Path(path)):
        return ExplanationFolder(path)
    if Path(path).suffix.lower() != ".json":
        return Explanations.read(path)
    plain = read_json(Path(path))
    plain = plain if isinstance(plain, dict) else {}
    file_format, kind = plain.get("format"), plain.get("kind")
    if file_format == Diagnostic.file_format() and kind in diagnostics:
        return diagnostics.get(str(kind)).read(path)
    for cls in (Attacks, Evaluation, Explanations, Hops, Importance):
        if file_format == cls.file_format():
            return cls.read(path)
    raise FileError(
        f"{str(path)!r} contains no result that this version of pertinent can read: its `format` is "
        f"{shorten(safe_repr(file_format), 60)}."
    )

"""Reading any result that was saved."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from pertinent.errors import FileError
from pertinent.files import read_json
from pertinent.results.explanation import Explanations
from pertinent.settings import checked

_HOMES = {
    "explanations": "pertinent.results.explanation.Explanations",
    "evaluation": "pertinent.results.evaluation.Evaluation",
    "attacks": "pertinent.results.attack_results.Attacks",
    "removal check": "pertinent.diagnostics.removal_check.RemovalCheck",
    "sanity": "pertinent.diagnostics.sanity_result.Sanity",
    "stability": "pertinent.diagnostics.stability_result.Stability",
}
"""The class of each kind of result; it is imported when a file of that kind is read."""


@checked
def read(path: str | Path) -> Any:
    """Read what `save` wrote: explanations, an evaluation, attacks, or the result of a diagnostic.

    Of a run with ``out="run.parquet"`` that is still running or was killed, it reads the explanations that
    are finished. `Explanations.read`, `Evaluation.read` and so on read results of one kind.
    """
    if Path(path).suffix.lower() != ".json":
        return Explanations.read(path)
    plain = read_json(Path(path))
    said = plain.get("format") if isinstance(plain, dict) else None
    for kind, home in _HOMES.items():
        if isinstance(said, str) and said.startswith(f"pertinent {kind} "):
            module, name = home.rsplit(".", 1)
            return getattr(import_module(module), name).read(path)
    raise FileError(f"{str(path)!r} holds no result of pertinent.")

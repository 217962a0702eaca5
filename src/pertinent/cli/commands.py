"""The commands: the public function behind each, and what the terminal adds or leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pertinent.api.evaluate import DEFAULT_METRICS

ELSEWHERE = {
    "model": "--model, --device and --dtype",
    "inputs": "TEXT, --file, --image and --row",
    "explanations": "FILE, which `pertinent explain --out` wrote",
    "files": "FILE, one for each shard, which `pertinent explain --shard --out` wrote",
    "ids": "--id-column",
    "labels": "--label-column",
    "settings": "--set",
    "cluster": "--ray, --workers, --cpus-per-worker, --gpus-per-worker and --block-size",
    "words": "the flags of `pertinent explain`, and --set",
    "study": "FOLDER, which `pertinent study create` made",
    "progress": "a callback is Python's; --quiet switches the bar off",
}
"""Parameters that are no flag of the same name, and how they are given instead."""

READERS = {
    "annotations": ("FILE.json|FILE:COLUMN", "pertinent.cli.input_files:read_annotations"),
    "answers": ("FILE:COLUMN", "pertinent.cli.input_files:read_answers"),
    "check": ("FILE.json", "pertinent.diagnostics:read"),
    "embed": ("MODULE:NAME", "pertinent.runs.model_names:load_own"),
}
"""Parameters that are given by the name of a file or of a Python object: the metavar, and what reads it."""


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes
    ----------
    function
        The name of the public function in `pertinent`; ``None`` if there is none.
    runs
        The function in this package that runs it, as ``module:name``; its keyword arguments are flags that
        only the terminal has.
    outputs
        Which of the files in `Output` it can write.
    titles
        The titles of the groups of flags for the inputs and for the parameters.
    elsewhere
        Parameters beside those in `ELSEWHERE` that are no flag, and how they are given instead.
    required
        Flags that must be given though the parameter has a default.
    without
        Flags for inputs that it does not have.
    defaults
        Defaults of flags that only the terminal has.
    """

    function: str | None
    runs: str
    outputs: tuple[str, ...] = ()
    titles: tuple[str, str] = ("what to explain", "how to explain")
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


_REPORT = ("html", "json", "quiet")
_TABLE = ("html", "out", "json", "quiet")
_RESULT = ("plot", "json", "quiet")
_ANSWERS = ("answer", "rather_than", "source")
"""Flags for language models, which have no decision to attack, and nothing to learn from."""

COMMANDS = {
    "explain": Command("explain", "verbs:explain", _REPORT, defaults={"metrics": DEFAULT_METRICS}),
    "compare": Command("compare", "verbs:compare", _REPORT, ("what to explain", "how to compare")),
    "evaluate": Command("evaluate", "verbs:evaluate", _TABLE, ("", "how to measure")),
    "merge": Command("merge", "verbs:merge", ("quiet",), ("", "what to write"), required=("out",)),
    "check": Command("check_removal", "verbs:diagnose", _RESULT, ("what to check it on", "how to check")),
    "stability": Command(
        "stability", "verbs:diagnose", _RESULT, elsewhere={"seed": "--seeds says how many there are"}
    ),
    "neighbour-stability": Command(
        "neighbour_stability", "verbs:neighbour_stability", _RESULT, ("", "how to measure")
    ),
    "sanity": Command("sanity", "verbs:diagnose", _RESULT),
    "sensitivity": Command("sensitivity", "verbs:diagnose", _RESULT),
    "attack": Command(
        "attack_radius",
        "verbs:attack",
        ("json", "quiet"),
        ("what to attack", "how to attack"),
        elsewhere={"sets": "--only, or --top and --method"},
        without=_ANSWERS,
    ),
    "train": Command(
        "train",
        "learning:train",
        ("quiet",),
        ("what to learn from", "how to train"),
        elsewhere={"validation": "--validation, a file with the columns of --file"},
        required=("file",),
        without=("inputs", "image", "row", *_ANSWERS),
        defaults={"label_column": "label"},
    ),
    "fit": Command(
        "fit",
        "learning:fit",
        ("quiet",),
        ("what to learn from", "how to fit"),
        required=("out",),
        without=_ANSWERS,
    ),
    "benchmark": Command(
        None, "benchmark_files:benchmark", ("quiet",), ("", "what to run, and where to keep it")
    ),
    "serve": Command(
        "serve",
        "verbs:serve",
        titles=("", "what it allows"),
        elsewhere={"started": "the address is printed"},
    ),
    "study create": Command(
        "create_study",
        "studies:create",
        ("quiet",),
        ("", "what to ask"),
        elsewhere={"files": "FILE, one for each method, or one that `pertinent compare --out` wrote"},
    ),
    "study serve": Command(
        "serve_study",
        "studies:serve",
        titles=("", "who can take part"),
        elsewhere={"started": "the address is printed"},
    ),
    "study report": Command("report_study", "studies:report", _RESULT, ("", "whose answers count")),
    "demo": Command(None, "verbs:demo", ("html", "quiet"), defaults={"html": Path("pertinent-report.html")}),
    "methods": Command("list_methods", "verbs:catalogue"),
    "metrics": Command("list_metrics", "verbs:catalogue"),
    "removals": Command("list_removals", "verbs:catalogue"),
}

"""Commands: the public function behind each command, and how the command differs from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pertinent.api.evaluate import DEFAULT_METRICS

POSITIONAL = {
    "inputs": ("[TEXT …]", ""),
    "explanations": ("FILE", "a file written by `pertinent explain --out`"),
    "files": ("FILE …", "the files of all shards, written by `pertinent explain --shard --out`"),
    "trace": ("FILE", "a trace: messages with tool calls, or an export of spans, in JSON or JSON lines"),
    "study": ("FOLDER", "a folder written by `pertinent study create`"),
}
"""Parameters that are positional arguments, with metavar and help."""

ELSEWHERE = {
    **{name: metavar for name, (metavar, _) in POSITIONAL.items()},
    "model": "--model, --device and --dtype",
    "ids": "--id-column",
    "labels": "--label-column",
    "settings": "--set",
    "cluster": "--ray, --workers, --cpus-per-worker, --gpus-per-worker and --block-size",
    "words": "the flags of `pertinent explain`, and --set",
    "progress": "only in Python; --quiet disables the bar",
}
"""Parameters without a flag of the same name, and the arguments that replace them."""

READERS = {
    "annotations": ("FILE.json|FILE:COLUMN", "pertinent.cli.input_files:read_annotations"),
    "answers": ("FILE:COLUMN", "pertinent.cli.input_files:read_answers"),
    "check": ("FILE.json", "pertinent.diagnostics:read"),
    "embed": ("MODULE:NAME", "pertinent.runs.model_names:load_own"),
}
"""Parameters passed as the name of a file or a Python object, with metavar and reading function."""


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes
    ----------
    function
        Name of the public function in `pertinent`, if there is one.
    runs
        Function in this package that runs the command, as ``module:name``; its keyword arguments are
        additional flags.
    outputs
        The flags of `CommandOutput` that the command has.
    titles
        Titles of the flag groups for the inputs and for the parameters.
    elsewhere
        Additional parameters without a flag, as in `ELSEWHERE`.
    required
        Flags that are required although the parameter has a default.
    without
        The flags of `InputFlags` that the command lacks.
    defaults
        Defaults of additional flags.
    files
        Help of the positional argument `files`.
    """

    function: str | None
    runs: str
    outputs: tuple[str, ...] = ()
    titles: tuple[str, str] = ("what to explain", "how to explain")
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    files: str = POSITIONAL["files"][1]


_REPORT = ("html", "json", "quiet")
_TABLE = ("html", "out", "json", "quiet")
_RESULT = ("plot", "json", "quiet")
_ANSWERS = ("answer", "rather_than", "source", "fixed", "chat")
"""Flags for language models, which can be neither attacked nor fitted to."""

COMMANDS = {
    "explain": Command("explain", "verbs:explain", _REPORT, defaults={"metrics": DEFAULT_METRICS}),
    "trace": Command("explain_hops", "traces:trace", _TABLE, ("", "how to explain")),
    "compare": Command("compare", "verbs:compare", _REPORT, ("what to explain", "how to compare")),
    "evaluate": Command("evaluate", "verbs:evaluate", _TABLE, ("", "how to measure")),
    "merge": Command("merge", "verbs:merge", ("quiet",), ("", "what to write"), required=("out",)),
    "check": Command("check_removal", "verbs:diagnose", _RESULT, ("what to check it on", "how to check")),
    "stability": Command(
        "stability", "verbs:diagnose", _RESULT, elsewhere={"seed": "--seeds sets their number"}
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
    "benchmark": Command(None, "benchmark_files:benchmark", ("quiet",), ("", "description and results")),
    "serve": Command(
        "serve",
        "verbs:serve",
        titles=("", "page and limits"),
        elsewhere={"started": "the address is printed"},
    ),
    "study create": Command(
        "create_study",
        "studies:create",
        ("quiet",),
        ("", "what to ask"),
        files="one file for each method, or one file written by `pertinent compare --out`",
    ),
    "study serve": Command(
        "serve_study",
        "studies:serve",
        titles=("", "address"),
        elsewhere={"started": "the address is printed"},
    ),
    "study report": Command("report_study", "studies:report", _RESULT, ("", "participants")),
    "demo": Command(None, "verbs:demo", ("html", "quiet"), defaults={"html": Path("pertinent-report.html")}),
    "methods": Command("list_methods", "verbs:catalogue"),
    "metrics": Command("list_metrics", "verbs:catalogue"),
    "removals": Command("list_removals", "verbs:catalogue"),
}

"""`pertinent benchmark`: a benchmark described by a YAML or JSON file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pertinent
from pertinent.cli.command_output import CommandOutput
from pertinent.cli.input_files import FileColumns, read_file
from pertinent.cli.input_flags import as_inputs
from pertinent.cli.loading import load_methods
from pertinent.config.serialization import decode
from pertinent.config.settings import Count
from pertinent.engine.progress import Callback
from pertinent.errors import FileError, InputError, SettingError, unknown
from pertinent.inputs.modality import TextColumns
from pertinent.runs.model_names import is_own, load_model, load_own


@dataclass(frozen=True)
class DataFile:
    """A data set: a file and its columns, as in the flags of `pertinent explain`.

    The file may also be ``package.module:name``: the inputs, or a function that returns them.
    """

    file: str
    column: str | None = None
    pair_column: str | None = None
    query_column: str | None = None
    label_column: str | None = None
    limit: Count | None = None


@dataclass(frozen=True)
class BenchmarkFile:
    """A benchmark: data sets and models by name, methods, metrics, seeds, and arguments of `compare`."""

    data: Mapping[str, DataFile]
    models: Mapping[str, str]
    methods: tuple[str, ...]
    metrics: tuple[str, ...] = ("sufficiency", "comprehensiveness")
    seeds: Count = 1
    device: str = "cpu"
    dtype: str = "float32"
    words: Mapping[str, Any] = field(default_factory=dict)


_RESERVED = {*BenchmarkFile.__dataclass_fields__, "model", "inputs", "out", "progress"}
"""Arguments of `compare` that the `words` of a description must not contain."""


def benchmark(args: Namespace, *, file: Annotated[Path, "FILE.yaml"], out: Annotated[Path, "FOLDER"]) -> int:
    """Run a benchmark described by a file and save it in a folder.

    The same command resumes an interrupted benchmark, and runs only what was added to its description.

    Parameters
    ----------
    file
        The description as YAML or JSON: data, models, methods, metrics, seeds and words.
    out
        The folder to write: explanations and a summary as Parquet, a table with p-values, and figures.
    """
    output = CommandOutput(quiet=args.quiet)
    for evaluation in run_description(file, out, output.progress).evaluations.values():
        output.show(evaluation)
    return 0


def run_description(file: Path, out: Path, progress: Callback | bool | None = None) -> pertinent.Benchmark:
    """Run the benchmark described by a file."""
    b = read_description(file)
    data = {name: _inputs(data_file, file.parent) for name, data_file in b.data.items()}
    models = {name: load_model(model, b.device, b.dtype) for name, model in b.models.items()}
    words = {"seeds": b.seeds, "progress": progress, **b.words}
    return pertinent.benchmark(data, models, load_methods(b.methods, ()), b.metrics, out=out, **words)


def read_description(file: Path) -> BenchmarkFile:
    """Read the description of a benchmark; an error names the invalid field."""
    import yaml  # a dependency of transformers; it also reads JSON

    try:
        plain = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise FileError(f"{str(file)!r} cannot be read: {error}") from error
    if not isinstance(plain, dict):
        raise FileError(f"{str(file)!r} must define the fields of a benchmark: data, models and methods.")
    _check_names(plain, BenchmarkFile, file.name)
    data = plain.get("data")
    for name, fields in data.items() if isinstance(data, dict) else ():
        if isinstance(fields, dict):
            _check_names(fields, DataFile, f"data.{name} in {file.name}")
    try:
        description = decode(BenchmarkFile, plain)
    except InputError as error:
        raise SettingError(f"{file.name}: {error}") from error
    reserved = [name for name in description.words if name in _RESERVED]
    if reserved:
        raise SettingError(
            f"{file.name}: `words` must not contain {', '.join(map(repr, reserved))}: set them by other "
            "fields or on the command line."
        )
    return description


def _check_names(plain: Mapping[Any, Any], kind: type[BenchmarkFile | DataFile], where: str) -> None:
    """Raise a `SettingError` for a name that is no field of `kind`."""
    for name in plain:
        if name not in kind.__dataclass_fields__:
            raise unknown(f"field of {where}", name, kind.__dataclass_fields__)


def _inputs(data: DataFile, folder: Path) -> Any:
    if is_own(data.file):
        inputs = load_own(data.file, "the file of a data set")
        return list(inputs() if callable(inputs) else inputs)[: data.limit]
    texts = TextColumns(data.column, data.pair_column, data.query_column)
    records = read_file(str(folder / data.file), FileColumns(None, texts, data.label_column), data.limit)
    return as_inputs(records)

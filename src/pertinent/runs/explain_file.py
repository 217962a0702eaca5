"""Explaining to a Parquet file: finished explanations go to a journal, and at the end to the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pertinent._optional import optional
from pertinent.config.serialization import encode
from pertinent.config.settings import changed_settings
from pertinent.engine.job import JobResult
from pertinent.engine.journal import Journal
from pertinent.errors import FileError
from pertinent.files import check_writable, remove_leftovers, sync
from pertinent.results.explanation import Explanations
from pertinent.results.explanation_files import failures_in, journal_of, write_rows
from pertinent.runs.block_worker import ThisProcess
from pertinent.runs.explain_run import (
    carry_out,
    check_lengths,
    item_of,
    items_of,
    merge_warnings,
    merged,
    works,
)
from pertinent.runs.explanation_steps import REPEATED
from pertinent.runs.model_check import check_predictions, first_predictions
from pertinent.runs.request import Request
from pertinent.runs.run import Run, Work
from pertinent.runs.run_files import (
    InputNames,
    check_records,
    fewer_inputs,
    is_finished,
    run_header,
    with_further_requests,
    with_requests_kept,
)


def explain_to_file(run: Run, requests: Sequence[Request], out: Path) -> Explanations:
    """Explain every input by every request, except what an earlier run of the same has finished."""
    check_lengths(run, requests)
    check_writable(out)
    if out.suffix.lower() != ".parquet":
        raise FileError(f"`out` must end in .parquet, but got {str(out)!r}; save() writes other files.")
    optional("pyarrow.parquet")  # better missed now than at the end
    for path in (out, journal_of(out)):
        remove_leftovers(path.parent, path.name)
    run.model.forget()  # it may have changed since it was wrapped
    every = with_requests_kept(out, requests)
    found = _journalled(run, every, out)
    return found if len(every) == len(requests) else _made_by(requests, found)


def _journalled(run: Run, requests: Sequence[Request], out: Path) -> Explanations:
    """The explanations in the file, once all are there."""
    header = run_header(run, requests)
    if out.exists():
        run = replace(run, inputs=run.inputs if run.n_inputs is not None else list(run.inputs))
        if is_finished(out, header, ((work.key, _name(work)) for work in works(run, requests))):
            explanations = Explanations.read(out)
            _check_model(run, requests, explanations, out)
            if journal_of(out).exists():  # the earlier run was killed before it was removed
                sync(out)
                sync(out.parent)
                journal_of(out).unlink()
            return explanations
    else:
        with_further_requests(journal_of(out), header)
    with Journal(journal_of(out), header) as journal:
        check_records(journal, run, len(requests))
        n_before = len(journal.finished)
        total = None if run.n_tasks is None else run.n_tasks * len(requests) - n_before
        names = InputNames()
        todo = _unfinished(run, requests, journal, names)
        for found in carry_out(run, todo, requests, total):
            explanation = found.explanation
            content = {
                "explanation": None if explanation is None else explanation.to_dict(),
                "failures": encode(found.failures),
            }
            key = found.input_index, found.request_index
            journal.add(key, names.of.pop(key), content)
        if names.n < len(journal.finished):
            raise fewer_inputs(journal.path, run.n_inputs)
        header["inputs"] = names.digest()
        failures = [failure for record in journal.records() for failure in failures_in(record)]
        rows = (r["explanation"] for r in journal.records() if r["explanation"] is not None)
        if run.warnings:  # noticed late
            rows = ({**row, "warnings": merge_warnings(row["warnings"], run.warnings)} for row in rows)
        write_rows(out, rows, merged(failures, requests), header)
        explanations = Explanations.read(out)
        journal.path.unlink()
    return explanations


def _made_by(requests: Sequence[Request], found: Explanations) -> Explanations:
    """The explanations by the methods of these requests."""
    methods = [(request.method.name, changed_settings(request.method)) for request in requests]
    named = {None, *(name for name, _ in methods)}
    return Explanations(
        [e for e in found if (e.method, e.settings) in methods],
        [failure for failure in found.failures if failure.method in named],
    )


def _unfinished(
    run: Run, requests: Sequence[Request], journal: Journal, names: InputNames
) -> Iterator[Work | JobResult]:
    """The work that is left; raise an error if the input of finished work or the model has changed."""
    checked: set[int] = set()
    for work in works(run, requests):
        name = _name(work)
        names.add(work.key, name)
        if work.key not in journal.finished:
            yield work
            continue
        del names.of[work.key]
        index = work.key[0]
        if journal.finished[work.key][1] != name:
            raise FileError(
                f"{str(journal.path)!r} was begun with other inputs: input {index} is not what it was. "
                "Give the same inputs in the same order to continue, or choose another file."
            )
        if isinstance(work, Work) and index not in checked and len(checked) < REPEATED:
            explanation = journal.record(work.key)["explanation"]
            if explanation is not None:
                checked.add(index)
                before = {index: np.array(explanation["prediction"], dtype=np.float64)}
                check_predictions(ThisProcess(run), requests, [item_of(run, work)], before, journal.path)


def _check_model(run: Run, requests: Sequence[Request], explanations: Explanations, out: Path) -> None:
    """Raise a `FileError` if the model predicts something else for the first inputs of a finished run."""
    predictions = first_predictions(explanations)
    items = (replace(item, request_indexes=(0,)) for item in items_of(run, len(requests)))
    chosen = [item for item in items if item.index in predictions]
    check_predictions(ThisProcess(run), requests, chosen, predictions, out)


def _name(work: Work | JobResult) -> str:
    return f"unusable: {work.error}" if isinstance(work, JobResult) else work.input.fingerprint.hex()

"""Folders of runs and studies for the fuzz of damaged files."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np

import pertinent
from pertinent.config.serialization import encode
from pertinent.runs import folder_store
from pertinent.study.answers import Answers
from pertinent.study.design import Study
from tests.study.people import by_the_words, explained, take_part

ROWS = np.random.default_rng(0).normal(size=(12, 4))


def of_rows(rows):
    p = 1 / (1 + np.exp(-np.asarray(rows).sum(axis=1)))
    return np.stack([p, 1 - p], axis=1)


def store_files(folder):
    """Yield a file of every kind with the function that reads it, and ``True``: all have checksums."""
    run, study = folder / "run", folder / "study"
    _explain(run)
    take_part(pertinent.create_study(explained(8), study, limit=8), 2, by_the_words)
    answers, file = _answered(study)[0], study / "answers" / "00001.jsonl"
    data = file.read_bytes()
    for name in ("part-00000001.parquet", "index.journal"):
        yield run / name, _read_run, True
        yield run / name, _resume_run, True
    yield study / "study.json", lambda path: encode(Study.read(path.parent).description), True
    yield study / "explanations.parquet", _read_study, True
    yield file, lambda path: _check_answers(path, answers, data), True


def _explain(out):
    model = pertinent.wrap(of_rows, kind="table")
    with patch.object(folder_store, "LARGEST_BLOCK", 4):
        return pertinent.explain(
            model, ROWS, "leave-one-out", removal="constant", out=out, progress=False, ids=range(12)
        )


def _plain(explanations):
    return [{**e.to_dict(), "seconds": 0} for e in explanations]


def _read_run(path):
    """Return the explanations of a folder, which are all unless it says that the run is not finished."""
    found = pertinent.read(path.parent)
    explanations = _plain(found)
    assert len(explanations) == len(ROWS) or not found.is_finished, "explanations are missing without a word"
    return explanations


def _resume_run(path):
    """Return all explanations of a copy of the folder after the run was resumed."""
    with TemporaryDirectory() as name:
        copy = Path(name, "run")
        shutil.copytree(path.parent, copy)
        explanations = _plain(_explain(copy))
    assert len(explanations) == len(ROWS), "explanations are missing after the run was resumed"
    return explanations


def _read_study(path):
    return [_plain(each) for each in Study.read(path.parent).explanations]


def _answered(folder):
    """Return the answers of each person by the number of the question, and the damaged lines."""
    answers = Answers(Study.read(folder))
    people = {
        name: {number: answer for number, answer in enumerate(person.answers) if number not in person.damaged}
        for name, person in answers.people.items()
    }
    return people, answers.damaged


def _check_answers(path, written, data):
    """Raise an `AssertionError` if an answer has changed, or is missing although no line is reported.

    A file that is cut at the end of a line is the file before the next answer.
    """
    people, damaged = _answered(path.parents[1])
    for name, answers in people.items():
        assert answers.items() <= written[name].items(), f"an answer of {name} changed without a word"
    changed = path.read_bytes()
    is_earlier = data.startswith(changed) and changed.endswith(b"\n")
    assert people == written or damaged or is_earlier, "answers are missing without a word"
    assert people["person 0"] == written["person 0"], "the answers of another person are lost"

"""A resumed run has the results of the inputs, methods and model that it is given, and of no others."""

import math
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import pertinent
from pertinent.errors import FileError
from pertinent.results.journal import journal_line, read_journal

ROWS = np.random.default_rng(0).normal(size=(10, 4))
WORDS = {"removal": "constant", "budget": 30, "batch_size": 8}


class Scaled:
    """A model that can be changed in place, in a way that no fingerprint sees."""

    __slots__ = ("rows",)
    factor = 1.0

    def __init__(self):
        self.rows = 0

    def __reduce_ex__(self, protocol):
        raise TypeError("not to be seen")

    def __call__(self, rows):
        self.rows += len(rows)
        p = [1 / (1 + math.exp(-Scaled.factor * sum(row.tolist()))) for row in rows]
        return [[1 - q, q] for q in p]


@pytest.fixture
def scaled(monkeypatch):
    monkeypatch.setattr(Scaled, "factor", 1.0)
    return Scaled()


def interrupted(model, inputs, out, after, methods="lime"):
    def stop(progress):
        if progress.done >= after:
            raise KeyboardInterrupt

    call = pertinent.explain if isinstance(methods, str) else pertinent.compare
    with pytest.raises(KeyboardInterrupt):
        call(model, inputs, methods, out=out, progress=stop, **WORDS)


def plain(explanations):
    return [{**e.to_dict(), "seconds": 0.0} for e in explanations]


@pytest.mark.parametrize("stream", [False, True])
def test_fewer_inputs_are_refused(tmp_path, scaled, stream):
    out = tmp_path / "run.parquet"
    model = pertinent.wrap(scaled, kind="table")
    interrupted(model, ROWS, out, after=6)
    fewer = (row for row in ROWS[:4]) if stream else ROWS[:4]
    with pytest.raises(FileError, match="other inputs: there are fewer inputs"):
        pertinent.explain(model, fewer, "lime", out=out, **WORDS)
    found = pertinent.explain(model, ROWS, "lime", out=out, **WORDS)
    assert [e.index for e in found] == list(range(10))


def test_a_model_that_answers_otherwise_is_noticed(tmp_path, scaled):
    out = tmp_path / "run.parquet"
    model = pertinent.wrap(scaled, kind="table")
    interrupted(model, ROWS, out, after=4)
    before = Path(f"{out}.journal").read_bytes()
    Scaled.factor = 1.5
    with pytest.raises(FileError, match="The model has changed"):
        pertinent.explain(model, ROWS, "lime", out=out, **WORDS)
    assert Path(f"{out}.journal").read_bytes() == before
    Scaled.factor = 1.0
    found = pertinent.explain(model, ROWS, "lime", out=out, **WORDS)
    assert plain(found) == plain(pertinent.explain(model, ROWS, "lime", **WORDS))


def test_an_estimator_that_is_fitted_again_is_noticed_even_where_the_run_is_finished(tmp_path):
    from sklearn.linear_model import LogisticRegression

    estimator = LogisticRegression().fit(ROWS, ROWS[:, 0] > 0)
    model = pertinent.wrap(estimator, background=ROWS)
    out = tmp_path / "run.parquet"
    pertinent.explain(model, ROWS, "lime", out=out, **WORDS)
    estimator.fit(ROWS, ROWS[:, 1] > 0)
    with pytest.raises(FileError, match="differs in model"):
        pertinent.explain(model, ROWS, "lime", out=out, **WORDS)


def test_a_random_model_may_go_on_with_a_warning(tmp_path):
    rng = np.random.default_rng(0)

    class Noisy(Scaled):
        __slots__ = ()

        def __call__(self, rows):
            p = rng.uniform(0.2, 0.8, len(rows))
            return np.stack([p, 1 - p], axis=1)

    out = tmp_path / "run.parquet"
    model = pertinent.wrap(Noisy(), kind="table")
    interrupted(model, ROWS, out, after=4)
    found = pertinent.explain(model, ROWS, "lime", out=out, **WORDS)
    assert len(found) == 10
    assert all("it is random" in e.warnings[0] for e in found)


def test_answers_about_masks_that_drift_are_noticed(scaled):
    """Only the answers about masks drift, and not before the end of the first inputs' explanations."""

    class Drifting(Scaled):
        __slots__ = ()

        def __call__(self, rows):
            self.rows += len(rows)
            p = [0.7 if row.all() else 0.5 + min(self.rows, 400) / 1000 for row in rows]
            return [[1 - q, q] for q in p]

    for method in ("lime", "parallel-local-search"):
        model = pertinent.wrap(Drifting(), kind="table")
        found = pertinent.explain(model, ROWS, method, **WORDS)
        assert all("drifts" in e.warnings[0] for e in found)
        steady = pertinent.explain(pertinent.wrap(scaled, kind="table"), ROWS, method, **WORDS)
        assert not any(e.warnings for e in steady)


def test_late_warnings_are_in_the_file(tmp_path):
    asked = []

    def drifting(rows):
        asked.extend(rows)
        p = [0.7 if row.all() else 0.5 + min(len(asked), 400) / 1000 for row in rows]
        return [[1 - q, q] for q in p]

    out = tmp_path / "run.parquet"
    pertinent.explain(pertinent.wrap(drifting, kind="table"), ROWS, "lime", out=out, **WORDS)
    assert all("drifts" in e.warnings[0] for e in pertinent.read(out))


# -- one more method ------------------------------------------------------------------------------


@pytest.mark.parametrize("finished", [True, False])
def test_compare_with_one_more_method_runs_only_what_is_new(tmp_path, scaled, finished):
    out = tmp_path / "run.parquet"
    model = pertinent.wrap(scaled, kind="table")
    if finished:
        pertinent.compare(model, ROWS, ["lime", "random"], out=out, **WORDS)
    else:
        interrupted(model, ROWS, out, 15, ["lime", "random"])
    scaled.rows = 0
    found = pertinent.compare(model, ROWS, ["leave-one-out", "random", "lime"], out=out, **WORDS)
    asked, scaled.rows = scaled.rows, 0
    fresh = pertinent.compare(model, ROWS, ["leave-one-out", "random", "lime"], **WORDS)
    assert plain(found.explanations) == plain(fresh.explanations)
    assert found.rows == fresh.rows
    assert asked < 0.75 * scaled.rows
    scaled.rows = 0
    again = pertinent.compare(model, ROWS, ["leave-one-out", "random", "lime"], out=out, **WORDS)
    assert again.rows == found.rows
    assert scaled.rows == 3  # predicted again, to notice another model
    assert [path.name for path in tmp_path.iterdir()] == ["run.parquet"]


def test_inputs_that_failed_are_tried_again_with_the_further_method(tmp_path, scaled):
    rows = [[1.0, 2.0], [1.0, 2.0j], [3.0, 4.0]]
    out = tmp_path / "run.parquet"
    model = pertinent.wrap(scaled, kind="table")
    pertinent.compare(model, rows, ["lime"], out=out, **WORDS)
    found = pertinent.compare(model, rows, ["lime", "random"], out=out, **WORDS)
    fresh = pertinent.compare(model, rows, ["lime", "random"], **WORDS)
    assert plain(found.explanations) == plain(fresh.explanations)
    assert found.failures == fresh.failures


def test_fewer_methods_leave_the_others_in_the_file(tmp_path, scaled):
    out = tmp_path / "run.parquet"
    model = pertinent.wrap(scaled, kind="table")
    rows = [*ROWS.tolist(), [1.0, 2.0j, 0.0, 0.0]]
    whole = pertinent.compare(model, rows, ["lime", "random"], out=out, **WORDS)
    found = pertinent.compare(model, rows, ["random"], out=out, **WORDS)
    assert plain(found.explanations) == plain(e for e in whole.explanations if e.method == "random")
    assert [failure.index for failure in found.failures] == [10]
    found = pertinent.compare(model, rows, ["lime", "leave-one-out", "kernel-shap"], out=out, **WORDS)
    fresh = pertinent.compare(model, rows, ["lime", "leave-one-out", "kernel-shap"], **WORDS)
    assert plain(found.explanations) == plain(fresh.explanations)
    assert {e.method for e in pertinent.read(out)} == {"lime", "random", "leave-one-out", "kernel-shap"}


def test_no_fitted_method_is_loaded_because_a_file_names_its_folder(tmp_path, scaled, monkeypatch):
    out, words = tmp_path / "run.parquet", {**WORDS, "features": "columns"}
    model = pertinent.wrap(scaled, kind="table")
    fitted = pertinent.fit(model, ROWS, removal="constant", epochs=1, progress=False)
    fitted.save(tmp_path / "fitted")
    pertinent.compare(model, ROWS, ["lime", fitted], out=out, **words)
    monkeypatch.setattr(type(fitted), "from_folder", Mock(side_effect=AssertionError))
    with pytest.raises(
        FileError, match="amortized-shapley, which cannot be recreated from a file: pass the method as well"
    ):
        pertinent.compare(model, ROWS, ["lime"], out=out, **words)
    assert len(pertinent.compare(model, ROWS, ["lime", fitted], out=out, **words).explanations) == 20


def test_other_words_are_refused_and_the_message_shows_what_differs(tmp_path, scaled):
    out = tmp_path / "run.parquet"
    model = pertinent.wrap(scaled, kind="table")
    pertinent.compare(model, ROWS, ["lime", "random"], out=out, **WORDS)
    for methods in (["lime"], ["lime", "leave-one-out", "kernel-shap"]):
        with pytest.raises(FileError, match="differs in requests") as error:
            pertinent.compare(model, ROWS, methods, out=out, **WORDS, seed=1)
        then, now = str(error.value).partition("(")[2].split(", now ", 1)
        assert then != now.partition(")")[0]
    with pytest.raises(FileError, match="differs in requests"):  # nothing of it is there
        pertinent.compare(model, ROWS, ["leave-one-out"], out=out, **WORDS)
    with pytest.raises(FileError, match="inputs"):
        pertinent.compare(model, ROWS[1:], ["lime", "random", "leave-one-out"], out=out, **WORDS)


# -- shards ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("methods", [["lime"], ["lime", "random"]])
def test_shards_are_merged_to_what_one_run_gives(tmp_path, scaled, methods):
    model = pertinent.wrap(scaled, kind="table")
    rows = [*ROWS.tolist(), [1.0, 2.0j, 0.0, 0.0]]
    whole = pertinent.compare(model, rows, methods, **WORDS, ids=range(11))
    options = WORDS | {"ids": range(11)}
    files = [tmp_path / f"{i}.parquet" for i in (1, 2, 3)]
    for i, file in enumerate(files, start=1):
        found = pertinent.compare(model, rows, methods, out=file, shard=f"{i}/3", **options)
        assert {e.index for e in found.explanations} == set(range(i - 1, 10, 3))
    merged = pertinent.merge(files[::-1], tmp_path / "all.parquet")
    assert plain(merged) == plain(whole.explanations) == plain(pertinent.read(tmp_path / "all.parquet"))
    assert merged.failures == whole.failures
    scaled.rows = 0
    again = pertinent.compare(model, rows, methods, out=tmp_path / "all.parquet", **options)
    assert scaled.rows == 3  # predicted again, to notice another model
    assert again.rows == whole.rows


def test_what_is_not_all_shards_of_one_run_is_refused(tmp_path, scaled):
    model = pertinent.wrap(scaled, kind="table")
    for name, seed, shard in (("a", 0, "1/3"), ("b", 0, "2/3"), ("c", 1, "3/3"), ("d", 0, "1/3")):
        pertinent.explain(
            model, ROWS, "lime", seed=seed, out=tmp_path / f"{name}.parquet", shard=shard, **WORDS
        )
    pertinent.explain(model, ROWS, "lime", out=tmp_path / "whole.parquet", **WORDS)
    for names, message in (
        ("ab", "Shard 3/3 of the run must also be merged"),
        ("abc", "a different run than .*seed"),
        ("abd", "are both shard 1/3"),
        (("a", "whole"), "not written by a run with `shard`"),
    ):
        with pytest.raises(FileError, match=message):
            pertinent.merge([tmp_path / f"{name}.parquet" for name in names], tmp_path / "out.parquet")
    for shard in ("0/3", "4/3", "x", "1/11", "1/0"):
        with pytest.raises(pertinent.PertinentError, match="`shard` must be"):
            pertinent.explain(model, ROWS, "lime", shard=shard, **WORDS)


def test_shards_on_the_command_line(tmp_path):
    from pertinent.cli import main

    texts = tmp_path / "texts.txt"
    texts.write_text("so good\nnot bad at all\nslow and dull\n")
    files = [str(tmp_path / f"{i}.parquet") for i in (1, 2)]
    for i, file in enumerate(files, start=1):
        line = ["explain", "--file", str(texts), "--method", "leave-one-out", "--shard", f"{i}/2"]
        assert main([*line, "--out", file, "--quiet"]) == 0
    assert main(["merge", *files, "--out", str(tmp_path / "all.parquet")]) == 0
    assert [e.index for e in pertinent.read(tmp_path / "all.parquet")] == [0, 1, 2]


# -- sources that raise ---------------------------------------------------------------------------


def test_what_was_read_ahead_is_given_before_the_source_raises(scaled):
    def stream(n):
        yield from ROWS[np.arange(n) % 10]
        raise OSError("the network is gone")

    model = pertinent.wrap(scaled, kind="table")
    seen = []
    with pytest.raises(OSError, match="network"):
        seen.extend(e.index for e in pertinent.explain_iter(model, stream(15), "leave-one-out"))
    assert sorted(seen) == list(range(15))
    with pytest.raises(OSError, match="network") as error:
        pertinent.explain(model, stream(15), "leave-one-out")
    assert [e.index for e in error.value.finished] == list(range(15))


# -- records with good checksums ------------------------------------------------------------------


def hostile(record, name):
    explanation = record["explanation"]
    return {
        "no explanation": {k: v for k, v in record.items() if k != "explanation"},
        "text": record | {"explanation": "yes"},
        "no scores": record | {"explanation": {k: v for k, v in explanation.items() if k != "scores"}},
        "scores": record | {"explanation": explanation | {"scores": [1.0]}},
        "prediction": record | {"explanation": explanation | {"prediction": "high"}},
        "index": record | {"explanation": explanation | {"index": explanation["index"] + 1}},
        "failures": record | {"failures": {"a": 1}},
        "no failures": {k: v for k, v in record.items() if k != "failures"},
        "long key": record | {"key": [0, 0, 0]},
        "short key": record | {"key": [0]},
        "request": record | {"key": [0, 5]},
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        *("no explanation", "text", "no scores", "scores", "prediction", "index"),
        *("failures", "no failures", "long key", "short key", "request"),
    ],
)
def test_a_hostile_record_is_refused(tmp_path, scaled, name):
    out = tmp_path / "run.parquet"
    model = pertinent.wrap(scaled, kind="table")
    interrupted(model, ROWS, out, after=4)
    journal = Path(f"{out}.journal")
    header, *records = read_journal(journal)
    records[0] = hostile(records[0], name)
    journal.write_bytes(b"".join(map(journal_line, [header, *records])))
    with pytest.raises(FileError, match="is damaged"):
        pertinent.explain(model, ROWS, "lime", out=out, **WORDS)
    assert not out.exists()


# -- SIGTERM --------------------------------------------------------------------------------------


def test_sigterm_keeps_what_is_done_and_says_how_to_go_on(tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(f"number {i} of many slow and wonderful films" for i in range(3000)))
    out = tmp_path / "run.parquet"
    line = [sys.executable, "-m", "pertinent", "explain", "--file", str(texts), "--method", "kernel-shap"]
    process = subprocess.Popen(
        [*line, "--budget", "100", "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    journal = Path(f"{out}.journal")
    while process.poll() is None and (not journal.is_file() or journal.read_bytes().count(b"\n") < 4):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    try:
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 143
    assert f"To resume: pertinent explain --file {texts}" in err
    assert len(pertinent.read(out)) >= 3
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_late_warnings_do_not_replace_an_explanations_own(tmp_path):
    """A file lost the warnings of each explanation when the run itself had something to warn of."""
    rng = np.random.default_rng(0)
    random = pertinent.wrap(lambda rows: rng.uniform(size=(len(rows), 1)), kind="table", output="value")
    rows = np.ones((2, 4))
    kept = pertinent.explain(random, rows, "kernel-shap", out=tmp_path / "run.parquet")
    alone = pertinent.explain(random, rows, "kernel-shap")
    for found in (kept, alone):
        for e in found:
            assert sum("background" in said for said in e.warnings) == 1  # removed columns become 0
            assert sum("it is random" in said for said in e.warnings) == 1

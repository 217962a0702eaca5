"""One file format for every diagnostic."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

import pertinent
from pertinent.diagnostics.base import (
    Chart,
    Diagnostic,
    DiagnosticTable,
    Line,
    TableRow,
    diagnostics,
    interval,
)
from pertinent.diagnostics.removal_check import AblatedInput
from pertinent.diagnostics.stability import SeedAgreement
from pertinent.errors import FileError

SHARED = {
    "format": "pertinent diagnostic 3",
    "features": "columns",
    "run_warnings": ["careful"],
    "failures": [{"index": 2, "reason": "empty", "id": "c", "method": None, "metric": None}],
}
FILES = {
    "removal-check": {
        "kind": "removal-check",
        "best": "slice-out",
        "verdicts": {"slice-out": "too few inputs"},
        "measure": "agreement",
        "default": "slice-out",
        "classes": ["no", "yes"],
        "draws": 2,
        "seed": 3,
        "skipped": {"pad-token": "no tokens"},
        "trainable": True,
        "columns": [*AblatedInput.__dataclass_fields__],
        "rows": [
            [0, "slice-out", 0.0, 1, True, 1.0, 0.9, 0.3],
            [0, "slice-out", 0.5, 0, False, 0.5, 0.7, 0.6],
        ],
        **SHARED,
    },
    "stability": {
        "kind": "stability",
        "method": "lime",
        "budget": 40,
        "removal": "constant",
        "seeds": [0, 1],
        "scale": "logit",
        "settings": {"samples": 9},
        "columns": [*SeedAgreement.__dataclass_fields__],
        "rows": [[0, 12, 0.5, 0.4, None, 0.1, 20.0, 0.2, "a"], [1, 3, None, None, None, 0.1, 20.0, 0.2, "b"]],
        **SHARED,
    },
    "sanity": {
        "kind": "sanity",
        "method": "lime",
        "budget": None,
        "removal": "constant",
        "layers": ["c", "b"],
        "n_layers": 3,
        "seed": 0,
        "passed": True,
        "scale": "natural",
        "settings": {},
        "columns": ["input", "stage", "spearman", "absolute", "id"],
        "rows": [[0, 1, 0.1, None, None], [0, 2, 0.1, 0.2, None]],
        **SHARED,
    },
}


@pytest.fixture
def saved(tmp_path):
    def save(content):
        path = tmp_path / "saved.json"
        path.write_text(json.dumps(content))
        return path

    return save


@pytest.mark.parametrize("kind", FILES)
def test_a_file_is_the_same_after_reading(saved, kind):
    result = pertinent.read(saved(FILES[kind]))
    assert result.kind == kind
    assert result.failures == (pertinent.Failure(2, "empty", id="c"),)
    assert result.run_warnings == ("careful",)
    plain = json.loads(result.to_json())
    assert {name: plain[name] for name in FILES[kind]} == FILES[kind]
    again = type(result).read(saved(plain))
    assert again.to_json() == result.to_json()


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_another_kind_is_refused(saved, kind):
    for other in FILES.keys() - {kind}:
        with pytest.raises(
            FileError, match=f"contains no {other}: `kind` must be '{other}', but got '{kind}'"
        ):
            diagnostics.get(other).read(saved(FILES[kind]))


@pytest.mark.parametrize("kind", FILES)
def test_no_field_may_be_missing(saved, kind):
    for name in FILES[kind].keys() - {"best", "verdicts", "passed"}:  # conclusions, which are not read
        with pytest.raises(FileError, match=f"`{name}` is missing"):
            diagnostics.get(kind).read(
                saved({key: value for key, value in FILES[kind].items() if key != name})
            )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "pertinent stability 1"}, "`format` is 'pertinent stability 1'"),
        ({"kind": "diagnostic"}, "contains no result that this version"),
        ({"kind": []}, "contains no result that this version"),
        ({"columns": [["input"]]}, "`columns` must be a list of strings"),
        ({"rows": [3]}, "`rows` must be a list, but got 3"),
        ({"rows": []}, "`rows` must be at least one"),
        ({"seeds": [0, 0]}, "`seeds` must be at least 2, all different"),
        ({"scale": "log"}, "Unknown scale 'log'"),
    ],
)
def test_errors_of_invalid_fields(saved, change, message):
    with pytest.raises(FileError, match=message):
        pertinent.read(saved(FILES["stability"] | change))


@dataclass(frozen=True)
class Length:
    input: int
    length: float


@diagnostics.register("input-lengths")
@dataclass(frozen=True, kw_only=True)
class Lengths(Diagnostic):
    """Diagnostic of a third party."""

    rows: tuple[Length, ...]

    def table(self):
        result = interval([row.length for row in self.rows])
        row = TableRow("<b>", ((f"{result.mean:g}", ""),))
        return DiagnosticTable("How long?", ("unit", "mean"), (row,), ())

    def chart(self):
        line = Line("$x$", {0.0: interval([row.length for row in self.rows])})
        return Chart({"lengths": (line,)}, "x", "y", {0.0: "all"})


def test_a_third_party_diagnostic_is_saved_read_and_drawn(tmp_path):
    result = Lengths(rows=(Length(0, 3.0), Length(1, 5.0)), features="words", run_warnings=("[red]odd",))
    result.save(tmp_path / "a.json")
    assert pertinent.read(tmp_path / "a.json") == result
    assert result.inputs == 2
    assert "&lt;b&gt;" in result._repr_html_() and "Warning: [red]odd" in result._repr_html_()
    assert list(result.to_dataframe().columns) == ["input", "length"]
    (axes,) = result.plot(result).axes
    np.testing.assert_allclose([line.get_ydata()[0] for line in axes.lines[::3]], 4.0)

"""Removed columns that become 0 for want of a background are said so in the explanation."""

import numpy as np
import pytest
import torch

import pertinent

ROW = np.array([39.0, 50_000.0])


def income(rows):
    return np.asarray(rows) @ [2.0, 0.001]


@pytest.mark.parametrize("method", ["shapley", "leave-one-out", "lime"])
def test_zeros_that_nobody_chose(method, tmp_path):
    model = pertinent.wrap(income, output="value", columns=["age", "income"])
    e = pertinent.explain(model, ROW, method, progress=False)
    assert e.removal == "constant"
    assert e.warnings[0].startswith("Removed columns became 0, because the model was wrapped without a back")
    several = pertinent.explain(model, [ROW, ROW + 1], method, progress=False, out=tmp_path / "e.parquet")
    assert {own.warnings for own in several} == {e.warnings}
    assert "Removed columns became 0" in e._repr_html_()


@pytest.mark.parametrize(
    ("wrap", "options"),
    [
        ({}, {"removal": "constant"}),
        ({"background": np.stack([ROW, ROW + 1])}, {}),
        ({}, {"method": "random"}),
    ],
    ids=["chosen", "background", "nothing removed"],
)
def test_no_warning_where_it_is_no_guess(wrap, options):
    model = pertinent.wrap(income, output="value", kind="table", **wrap)
    assert pertinent.explain(model, ROW, **options, progress=False).warnings == ()


def test_gradients_remove_nothing():
    model = pertinent.wrap(torch.nn.Linear(2, 2), kind="table")
    assert pertinent.explain(model, ROW, "gradient", progress=False).warnings == ()
    assert pertinent.explain(model, ROW, "leave-one-out", progress=False).warnings

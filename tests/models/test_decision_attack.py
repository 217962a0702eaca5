"""Attacks by decisions alone: on modules, and where they start."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.api.attack_radius import attack_radius
from pertinent.errors import ModelError, SettingError
from pertinent.models.attacks.decision_attack import MAX_BACKGROUND, STARTS
from pertinent.rendering.tables import attack_notes
from pertinent.results.attack_results import Attacks, unattacked_note

QUIET = {"progress": False}


class Threshold(torch.nn.Module):
    """Decides by a comparison of the mean of the first two values, which has no gradient."""

    def forward(self, batch):
        side = (batch.flatten(1)[:, :2].mean(dim=1, keepdim=True) > 0.5).float()
        return torch.cat([side, 1 - side], dim=1)


@pytest.mark.parametrize("algorithm", ["auto", "projection", "pgd"])
def test_missing_gradients_name_the_attack_that_needs_none(algorithm):
    model = pertinent.wrap(Threshold(), kind="table", output="probability")
    with pytest.raises(ModelError, match=r"no gradients.*algorithm='decision'"):
        attack_radius(model, np.ones(4), algorithm=algorithm, **QUIET)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_modules_are_attacked_by_decisions(norm):
    """Both values go from 1 to 1/2, in standard deviations of their columns."""
    background = np.random.default_rng(0).uniform(0, 1, size=(60, 4)) * [1, 1, 5, 9]
    model = pertinent.wrap(Threshold(), kind="table", output="probability", background=background)
    x, slope = np.array([1.0, 1.0, 2.0, 3.0]), background[:, :2].std(axis=0)
    found = attack_radius(model, x, algorithm="decision", norm=norm, **QUIET)
    exact = 1 / (np.linalg.norm(slope) if norm == "l2" else np.abs(slope).sum())
    assert exact * 0.999 <= found.radii[0] <= exact * 1.1
    assert Threshold()(torch.tensor(found.perturbed).float())[0].argmax() == 1


def test_images_under_modules_are_attacked_by_decisions():
    model = pertinent.wrap(Threshold(), kind="image", output="probability")
    image = np.full((1, 4, 4), 0.8, dtype=np.float32)
    sets = np.zeros((2, 16), dtype=bool)
    sets[0, :2] = sets[1, 5:] = True
    found = attack_radius(model, image, sets, algorithm="decision", features="pixels", **QUIET)
    assert found.succeeded.tolist() == [True, False]
    assert found.radii[0] == pytest.approx(0.3 * np.sqrt(2), rel=0.05)
    assert Threshold()(torch.tensor(found.perturbed).float())[0].argmax() == 1


def test_texts_are_not_attacked_by_decisions():
    with pytest.raises(SettingError, match="'projection' or 'pgd' for a text"):
        attack_radius(pertinent.load("sentiment"), "slow but good", algorithm="decision", **QUIET)


D = 10


def rare(rows):
    """Another class only near ten points on a diagonal, where random values never come."""
    rows = np.asarray(rows)
    near = np.abs(rows - rows[:, :1]).max(axis=1) < 0.01
    p = np.where(near & (rows[:, 0] > 0.2), 1.0, 0.0)
    return np.stack([1 - p, p], axis=1)


def spread(n, n_rare):
    """Rows, of which those of the other class are the last."""
    rows = np.random.default_rng(1).uniform(0, 1, size=(n, D))
    rows[n - n_rare :] = np.linspace(0.3, 0.9, n_rare)[:, None]
    return rows


@pytest.mark.parametrize(("n", "n_rare"), [(50, 1), (150, 10), (2000, 20)])
def test_tables_start_at_rows_of_the_background_where_nothing_else_is_found(n, n_rare):
    background, x = spread(n, n_rare), np.zeros(D)
    found = attack_radius(pertinent.wrap(rare, background=background), x, **QUIET)
    assert found.succeeded[0]
    assert rare(found.perturbed)[0].argmax() == 1
    farthest = np.linalg.norm(background[n - n_rare] / background.std(axis=0))
    if n <= MAX_BACKGROUND:  # the nearest of them is the first
        assert found.radii[0] <= farthest


def test_columns_that_may_not_change_stay_as_they_are_at_the_start():
    sets = np.ones((2, D), dtype=bool)
    sets[1, 0] = False
    found = attack_radius(pertinent.wrap(rare, background=spread(50, 5)), np.zeros(D), sets, **QUIET)
    assert found.succeeded.tolist() == [True, False]
    assert (found.changes[1] == 0).all()


def test_each_row_of_the_background_counts_as_a_pass():
    calls = []

    def constant(rows):
        calls.append(len(rows))
        return np.tile([0.2, 0.8], (len(rows), 1))

    for n in (30, 250, 3000):
        calls.clear()
        found = attack_radius(pertinent.wrap(constant, background=spread(n, 1)), np.zeros(D), **QUIET)
        assert found.passes.tolist() == [STARTS + min(n, MAX_BACKGROUND)]
        assert sum(calls[1:]) == found.passes[0]  # after the prediction


# -- rows with missing values ------------------------------------------------------------------------

RNG = np.random.default_rng(0)
COLUMNS = ["a", "gone", "b"]
BACKGROUND = np.where([False, True, False] & (RNG.random((60, 3)) < 0.5), np.nan, RNG.uniform(0, 1, (60, 3)))


def above(rows):
    """The second class where the mean of `a` and `b` is above 1/2, whatever is missing."""
    rows = np.asarray(rows)
    side = (rows[:, [0, 2]].mean(axis=1) > 0.5).astype(float)
    return np.c_[1 - side, side]


@pytest.fixture
def holed():
    return pertinent.wrap(above, background=BACKGROUND, columns=COLUMNS)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_missing_values_stay_as_they_are_and_the_others_are_attacked(holed, norm):
    found = attack_radius(holed, [1.0, np.nan, 1.0], norm=norm, **QUIET)
    slope = BACKGROUND[:, [0, 2]].std(axis=0)
    exact = 1 / (np.linalg.norm(slope) if norm == "l2" else np.abs(slope).sum())
    assert exact * 0.999 <= found.radii[0] <= exact * 1.1
    assert above(found.perturbed)[0].argmax() == 0
    assert np.isnan(found.perturbed[0, 1])
    assert found.unattacked == ("gone",)
    assert "because they have no value (NaN): gone." in attack_notes(Attacks([found]))[1]


@pytest.mark.parametrize("method", ["counterfactual", "greedy-as"])
def test_explanations_by_attacks_note_features_without_value(holed, method):
    e = pertinent.explain(holed, [0.7, np.nan, 0.7], method, **QUIET)
    assert set(e.ranking[:2].tolist()) == {0, 2}
    assert e.notes == (unattacked_note(["gone"]),)
    assert pertinent.explain(holed, [0.7, 0.5, 0.7], method, **QUIET).notes == ()


@pytest.mark.parametrize("method", ["counterfactual", "greedy-as"])
def test_where_no_attack_is_found_missing_values_are_named(method):
    model = pertinent.wrap(
        lambda rows: np.tile([0.3, 0.7], (len(rows), 1)), background=BACKGROUND, columns=COLUMNS
    )
    with pytest.raises(ModelError, match=r"1 values? .* missing \(NaN\)"):
        pertinent.explain(model, [1.0, np.nan, 1.0], method, **QUIET)


def test_a_column_of_the_background_without_any_value(holed):
    background = BACKGROUND.copy()
    background[:, 1] = np.nan
    model = pertinent.wrap(above, background=background, columns=COLUMNS)
    found = attack_radius(model, [1.0, 0.3, 1.0], **QUIET)
    assert np.isfinite(found.radii[0])
    assert found.changes[0, 1] == 0

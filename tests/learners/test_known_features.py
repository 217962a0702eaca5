"""Methods that learn to select, with known relevant features (Chen et al. 2018, Section 4.1)."""

import numpy as np
import pytest

import pertinent

N_FEATURES = 10
FITTING = {
    "epochs": 20,
    "batch_size": 256,
    "learning_rate": 3e-3,
    "validation_fraction": 0.05,
    "patience": None,
}
COLD = {"temperature": 0.1}  # as in the paper's synthetic experiments
SELECTED = {"subsets": "selected"}


pytestmark = pytest.mark.usefixtures("one_thread")


def two_classes(log_odds):
    p = 1 / (1 + np.exp(-np.clip(log_odds, -50, 50)))
    return np.column_stack([1 - p, p])


def xor(x):
    return two_classes(x[:, 0] * x[:, 1])


def orange_skin(x):
    return two_classes((x[:, :4] ** 2).sum(1) - 4)


def additive(x):
    return two_classes(-10 * np.sin(0.2 * x[:, 0]) + np.abs(x[:, 1]) + x[:, 2] + np.exp(-x[:, 3]) - 2.4)


def switch(x):
    return np.where(x[:, 9:] > 0, orange_skin(x), additive(x[:, 4:]))


def rows(task, n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, N_FEATURES))
    if task is switch:
        x[:, 9] += rng.choice([-3, 3], n)
    return x


def relevant(task, x):
    """Return the features that the answer to each row depends on."""
    found = np.zeros(x.shape, dtype=bool)
    if task is switch:
        up = x[:, 9] > 0
        found[up, :4] = found[~up, 4:8] = found[:, 9] = True
    else:
        found[:, : 2 if task is xor else 4] = True
    return found


def share_found(task, method, n=2000, decided=None, **settings):
    """Return the share of relevant features among the k best, of rows with a decision; by chance k / 10."""
    model, new = pertinent.wrap(task, kind="table"), rows(task, 200, 1)
    truth = relevant(task, new)
    k = int(truth[0].sum())
    fitted = pertinent.fit(model, rows(task, n, 0), method, k=k, progress=False, **FITTING | settings)
    if decided is not None:
        few = task(new).argmax(1) == decided
        new, truth = new[few], truth[few]
    found = pertinent.explain(model, new, fitted, progress=False)
    best = np.argsort([-e.scores for e in found], axis=1)[:, :k]
    return np.take_along_axis(truth, best, axis=1).mean()


@pytest.mark.parametrize(
    ("task", "method", "settings", "least"),
    [
        (xor, "l2x", COLD, 0.97),
        (xor, "vibi", COLD, 0.97),
        (xor, "invase", {"epochs": 28}, 0.97),
        (orange_skin, "l2x", COLD, 0.95),
        (orange_skin, "vibi", COLD, 0.95),
        (orange_skin, "invase", {"epochs": 28}, 0.95),
        (switch, "l2x", COLD | {"n": 4000}, 0.8),
        (switch, "vibi", {"n": 4000}, 0.8),
        (switch, "invase", {"epochs": 28}, 0.9),
    ],
)
def test_the_relevant_features_are_found(task, method, settings, least):
    assert share_found(task, method, **settings) > least


@pytest.mark.parametrize("method", ["l2x", "vibi", "invase"])
def test_from_selected_features_a_code_is_learned_instead(method):
    """Check the paper's setting, in which the selection itself encodes the answer."""
    settings = COLD if method != "invase" else {"epochs": 28}
    assert share_found(xor, method, **settings | SELECTED) < 0.8


@pytest.mark.parametrize(
    ("task", "settings", "least"),
    [(xor, {}, 0.8), (orange_skin, {"trained": "explainer", "epochs": 12}, 0.8)],
)
def test_aim_finds_them_where_a_decision_can_be_undone(task, settings, least):
    # Rows of the other class are decided alike whatever is set to zero: every feature may have any weight.
    settings = {"epochs": 24, "batch_size": 128, "beta": 0.01} | settings
    assert share_found(task, "aim", decided=1, **settings) > least

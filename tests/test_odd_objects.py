"""Objects that misbehave and numbers that are too large: an error that says so, never a raw one or a NaN."""

import numpy as np
import pandas as pd
import pytest

import pertinent
from pertinent.asks import Values
from pertinent.errors import InputError, ModelError, PertinentError, SettingError
from pertinent.explainers.search.ordered_search import MOST_SAMPLES
from pertinent.inputs.image import image_input


class Mute:
    """Its own `__repr__` raises."""

    def __repr__(self):
        raise RuntimeError("no words")


def half(rows):
    return np.full((len(rows), 2), 0.5)


MODEL = pertinent.wrap(half)


@pytest.mark.parametrize(
    "call",
    [
        lambda odd: pertinent.explain(MODEL, odd),
        lambda odd: pertinent.explain(MODEL, "so good", odd),
        lambda odd: pertinent.explain(MODEL, "so good", target=odd),
        lambda odd: pertinent.explain(MODEL, "so good", features=odd),
        lambda odd: pertinent.explain(MODEL, "so good", budget=odd),
        lambda odd: pertinent.explain(MODEL, "so good", removal=odd),
        lambda odd: pertinent.explain(MODEL, "so good", scale=odd),
        lambda odd: pertinent.compare(MODEL, "so good", ["lime"], [odd]),
        pertinent.wrap,
        lambda odd: pertinent.wrap(half, classes=[odd]),
        lambda odd: pertinent.wrap(half, columns=[odd]),
        pertinent.read,
        lambda odd: pertinent.Request.from_dict({"method": odd}),
        lambda odd: pertinent.Explanation.from_dict(
            pertinent.explain(MODEL, "so good").to_dict() | {"scores": odd}
        ),
    ],
)
def test_an_object_that_cannot_be_shown(call):
    with pytest.raises(PertinentError):
        call(Mute())


@pytest.mark.parametrize("output", ["value", "probability", "label-probability", "logit"])
def test_a_model_without_columns(output):
    model = pertinent.wrap(lambda rows: np.zeros((len(rows), 0)), kind="table", output=output)
    with pytest.raises(ModelError, match="at least one number for each input"):
        pertinent.explain(model, np.ones(3))


def test_columns_may_be_named_by_numbers():
    frame = pd.DataFrame({1: [1.0, 2.0], 2: [3.0, 4.0], 3: [0.0, 0.0]})
    model = pertinent.wrap(half, columns=[1, 2], background=frame)
    assert pertinent.explain(model, frame, "leave-one-out")[0].features == ("1", "2")
    with pytest.raises(InputError, match="lacks the columns: 7"):
        pertinent.wrap(half, columns=[7], background=frame)


@pytest.mark.parametrize("words", [[5], "the", [None, "a"]])
def test_stop_words_are_words(words):
    found = pertinent.explain(MODEL, ["a bad film", "so bad"], "leave-one-out")
    with pytest.raises(SettingError, match="`stop_words` must be a list of words"):
        pertinent.neighbour_stability(found, semantic=0, stop_words=words)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize("method", ["shapley", "lime", "kernel-shap", "leave-one-out", "banzhaf"])
def test_values_that_overflow_are_an_error_and_no_nan(method):
    rows = np.random.default_rng(0).normal(size=(20, 4))
    model = pertinent.wrap(
        lambda rows: 1.7e308 * np.tanh(rows.sum(axis=1)), output="value", kind="table", background=rows
    )
    for found in pertinent.explain_iter(model, rows[:5], method, removal="background:rows=20"):
        if isinstance(found, pertinent.Failure):
            assert "too large to compute with" in found.reason
        else:
            assert np.isfinite(found.scores).all()


def test_an_image_of_too_many_pixels_is_refused_before_anything_is_made_of_them():
    """A view of one number, so that the test takes no memory; what is refused would take gigabytes."""
    large = np.broadcast_to(np.float32(0.5), (1, 4000, 3000))
    with pytest.raises(InputError, match="12,000,000 features, but at most 1,048,576"):
        image_input(large, "pixels")
    with pytest.raises(InputError, match="3,000,000 features"):
        image_input(large, "patches:2")
    assert image_input(large[:, :1024, :1024], "pixels").n_features == 1024**2


def test_ordered_search_with_a_huge_budget_asks_for_a_few_thousand_masks_at_a_time():

    def classify(rows):
        p = 1 / (1 + np.exp(-rows @ np.linspace(-1, 1, 18)))
        return np.stack([1 - p, p], axis=1)

    asked = []
    check = Values.check

    def counted(self, input):
        asked.append(len(self.masks))
        return check(self, input)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Values, "check", counted)
        model = pertinent.wrap(classify, kind="table")
        words = {"sparsity": 0.3, "budget": 1_000_000, "removal": "constant"}
        found = pertinent.explain(model, np.ones(18), "ordered-search", **words)
    assert max(asked) <= MOST_SAMPLES
    best = np.zeros(18, dtype=bool)
    best[-6:] = True
    target = best if found.target == 1 else best[::-1]
    np.testing.assert_array_equal(found.chosen[0.3], target)

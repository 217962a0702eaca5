"""Random tokens: what is drawn, by what it is fixed, and how it is averaged."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.asks import Values
from pertinent.engine.engine import Engine
from pertinent.engine.job import Job
from pertinent.errors import SettingError
from pertinent.removals import RandomToken
from tests import tiny

SPECIAL = [tiny.VOCABULARY[name] for name in tiny.SPECIAL]
MASKS = np.array([[1, 0, 1, 0, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], dtype=bool)
TEXT = "w1 w2 w3 w4 w5"


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(tiny.pair("bert", initializer_range=0.06))


def made(model, samples=10):
    return RandomToken(samples=samples).bind(model)


def test_kept_tokens_stay_and_removed_ones_are_words(model):
    given = model.prepare(TEXT)
    rows = made(model, 400)(given, MASKS, 0)
    assert rows.attend.all()
    assert not rows.renumber
    ids = rows.ids.reshape(3, 400, 7)
    own = given.tokens.ids
    kept = np.concatenate([MASKS, np.ones((3, 1), dtype=bool)], axis=1)[:, given.tokens.feature]
    for mask, drawn in zip(kept, ids, strict=True):
        assert (drawn[:, mask] == own[mask]).all()
        assert not np.isin(drawn[:, ~mask], SPECIAL).any()
    everywhere = ids[1][:, 1:-1]
    assert set(everywhere.ravel()) == set(tiny.VOCABULARY.values()) - set(SPECIAL)
    counts = np.bincount(everywhere.ravel(), minlength=len(tiny.VOCABULARY))[len(SPECIAL) :]
    expected = everywhere.size / len(counts)
    assert ((counts - expected) ** 2 / expected).sum() < 2 * len(counts)
    assert len({tuple(row) for row in everywhere}) == 400


def test_draws_are_fixed_by_seed_text_and_mask(model):
    given, removal = model.prepare(TEXT), made(model, 3)
    rows = removal(given, MASKS, 0).ids
    again = made(model, 3)(given, MASKS[::-1], 0).ids
    np.testing.assert_array_equal(rows[:3], again[-3:])
    np.testing.assert_array_equal(rows[3:6], again[3:6])
    assert (removal(given, MASKS, 1).ids[3:6] != rows[3:6]).any()
    other = removal(model.prepare("w1 w2 w3 w4 w6"), MASKS, 0).ids
    assert (other[3:6] != rows[3:6]).any()


def test_probabilities_are_averaged_over_the_draws(model):
    given, removal = model.prepare(TEXT), made(model, 7)

    def ask():
        return (yield Values(MASKS))

    (done,) = Engine(model).run([Job(0, given, removal, ask(), 3)])
    with torch.no_grad():
        logits = model.model(input_ids=torch.tensor(removal(given, MASKS, 3).ids)).logits
    expected = logits.softmax(dim=-1).reshape(3, 7, -1).mean(dim=1)
    np.testing.assert_allclose(done.result, expected, atol=1e-5)


def test_it_is_bound_to_the_model_by_explain(model):
    by_name = pertinent.explain(model, TEXT, method="leave-one-out", removal="random-token")
    instance = pertinent.explain(model, TEXT, method="leave-one-out", removal=RandomToken())
    np.testing.assert_array_equal(by_name.scores, instance.scores)
    assert by_name.removal == "random-token"
    few = pertinent.explain(model, TEXT, method="leave-one-out", removal=RandomToken(samples=1))
    assert dict(few.request.removal_settings) == {"samples": 1}
    assert (few.scores != by_name.scores).any()


@pytest.mark.parametrize("batch_size", [1, 40, 10_000])
def test_the_company_changes_nothing(model, batch_size):
    texts = [tiny.text(n, seed=n) for n in (6, 3, 9)]
    together = pertinent.explain(
        model, texts, method="leave-one-out", removal="random-token", batch_size=batch_size
    )
    for text, e in zip(texts, together, strict=True):
        alone = pertinent.explain(model, text, method="leave-one-out", removal="random-token")
        np.testing.assert_allclose(e.scores, alone.scores, atol=1e-5)


def test_the_query_is_never_replaced(model):
    given = model.prepare(pertinent.Text("w1 w2", "w3 w4", fixed="first"))
    ids = made(model)(given, np.zeros((1, 2), dtype=bool), 0).ids
    fixed = given.tokens.feature < 0
    assert (ids[:, fixed] == given.tokens.ids[fixed]).all()
    assert fixed.sum() == 5


def test_what_it_cannot_do(model):
    with pytest.raises(SettingError, match="must be bound to a transformer"):
        RandomToken()(model.prepare(TEXT), MASKS, 0)
    with pytest.raises(SettingError, match="`samples` must be at least 1"):
        RandomToken(samples=0)
    with pytest.raises(SettingError, match="reads strings"):
        pertinent.explain(lambda texts: [[0.5, 0.5]] * len(texts), TEXT, removal="random-token")

"""The best span and the overlap of two, beside plain loops."""

import numpy as np
import pytest
import torch

from pertinent.models.heads.question_answering import Candidates, best_spans, log_probabilities, overlaps


def candidates(places, slots=None, unchanged=None):
    """Rows of places, −1 where there are fewer; by default each is in the slot of its place."""
    places = torch.tensor(places)
    slots = places.clamp_min(0) if slots is None else torch.tensor(slots)
    unchanged = torch.ones_like(places) if unchanged is None else torch.tensor(unchanged)
    return Candidates(slots, places, unchanged)


def best_by_loop(start, end, longest):
    """The candidate numbers of the best span; the first of those with the same sum."""
    best, found = -np.inf, None
    for i in range(len(start)):
        for j in range(i, min(i + longest, len(end))):
            if start[i] + end[j] > best:
                best, found = start[i] + end[j], (i, j)
    return found, best


@pytest.mark.parametrize("longest", [1, 2, 5, 100])
def test_the_best_span_is_that_of_a_plain_loop(longest):
    rng = np.random.default_rng(longest)
    logits = rng.integers(-9, 10, size=(60, 12, 2)).astype(np.float32)  # some sums are equal
    places = np.full((60, 9), -1)
    for row in places:
        n = rng.integers(1, 10)
        row[:n] = np.sort(rng.choice(12, n, replace=False))
    own = candidates(places)
    for no_answer in (False, True):
        found = best_spans(torch.tensor(logits), own, longest, no_answer=no_answer).numpy()
        for row, (first, last) in enumerate(found):
            at = places[row][places[row] >= 0]
            span, score = best_by_loop(logits[row, at, 0], logits[row, at, 1], longest)
            if no_answer and logits[row, 0].sum() > score:
                assert last == first - 1
            else:
                assert (first, last) == span
        assert not no_answer or (found[:, 1] < found[:, 0]).any()


def test_no_candidate_is_no_answer_and_nan_stays_nan():
    logits = torch.zeros(3, 4, 2)
    logits[1, 2, 0] = torch.nan
    own = candidates([[-1, -1], [2, 3], [2, 3]])
    spans = best_spans(logits, own, 30, no_answer=False)
    assert spans[0, 1] == spans[0, 0] - 1
    assert spans[1].isnan().all()
    answer = torch.tensor([[2.0, 3.0]] * 3)
    found = overlaps(spans, own, answer)
    assert found[0] == 0
    assert found[1].isnan()
    assert found[2] == 0.5  # the first of equal spans is one token
    assert overlaps(spans, own, torch.full((3, 2), torch.nan)).isnan().all()


@pytest.mark.parametrize(
    ("span", "reference", "expected"),
    [
        ((0, 2), (5, 7), 1.0),  # places 5, 6, 7
        ((0, 1), (5, 7), 2 / 3),
        ((1, 3), (5, 7), 2 / 4),  # 6, 7, 9: 8 was removed
        ((3, 3), (5, 7), 0.0),
        ((0, 3), (8, 8), 0.0),
        ((0, -1), (5, 7), 0.0),
        ((0, 0), (5, 4), 0.0),
        ((2, 1), (5, 4), 1.0),  # neither has an answer
    ],
)
def test_overlap_of_two_spans(span, reference, expected):
    own = candidates([[5, 6, 7, 9, -1]])
    found = overlaps(torch.tensor([span]).float(), own, torch.tensor([reference]).float())
    assert found.tolist() == pytest.approx([expected])


def test_a_replaced_token_is_not_shared():
    own = candidates([[5, 6, 7]], unchanged=[[1, 0, 1]])
    found = overlaps(torch.tensor([[0.0, 2.0]]), own, torch.tensor([[5.0, 7.0]]))
    assert found.tolist() == pytest.approx([2 / 4])  # each has a token of its own at place 6


@pytest.mark.parametrize("no_answer", [False, True])
def test_log_probabilities_by_hand(no_answer):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 6, 2)).astype(np.float32)
    own = candidates([[2, 3, 4], [3, 4, -1]])
    references = torch.tensor([[3.0, 4.0], [4.0, 4.0]])
    found = log_probabilities(torch.tensor(logits), own, references, no_answer=no_answer)
    for row, (context, (first, last)) in enumerate([([2, 3, 4], (3, 4)), ([3, 4], (4, 4))]):
        over = [0, *context] if no_answer else context
        chances = np.exp(logits[row]) / np.exp(logits[row][over]).sum(axis=0)
        assert found[row].item() == pytest.approx(np.log(chances[first, 0] * chances[last, 1]), abs=1e-5)
    if no_answer:
        chances = np.exp(logits[0]) / np.exp(logits[0][[0, 2, 3, 4]]).sum(axis=0)
        empty = torch.tensor([[2.0, 1.0]] * 2)
        none = log_probabilities(torch.tensor(logits), own, empty, no_answer=True)
        assert none[0].item() == pytest.approx(np.log(chances[0].prod()), abs=1e-5)

"""Numbers of `experiments/hsieh2021` on cases with a known answer."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.miniature import scripts


@pytest.fixture
def load():
    with scripts("experiments/hsieh2021") as found:
        yield found


def test_relevant_sets_are_those_of_the_largest_scores(load):
    sets = load("criteria").relevant_sets(np.array([[0.0, 5.0, -9.0, *np.linspace(1, 2, 17)]]))
    assert sets.shape == (1, 9, 20)
    assert sets.sum(axis=2).tolist() == [list(range(1, 10))]  # 5% to 45% of 20
    assert np.flatnonzero(sets[0, 0]).tolist() == [1]
    assert np.flatnonzero(sets[0, 2]).tolist() == [1, 18, 19]
    assert (sets[0, 1:] >= sets[0, :-1]).all()


def test_areas_are_over_percent(load):
    """Section 3.2: from 5% to 45%, so that a radius of 1 throughout has an area of 40."""
    area = load("criteria").area
    assert area(np.ones((2, 9))) == pytest.approx([40, 40])
    assert area(np.arange(9.0)) == pytest.approx(5 * (0.5 * 0 + sum(range(1, 8)) + 0.5 * 8))


def test_logits_of_kept_pixels(load):
    """A linear network: the logit of the predicted class is the sum of what is kept and what replaces it."""
    criteria = load("criteria")
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 2))
    with torch.no_grad():
        module[1].weight.copy_(torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]]))
        module[1].bias.zero_()
    image = np.array([[[[0.5, 1.0], [0.0, 0.25]]]], dtype=np.float32)
    judge = criteria.Judge(None, module, image, None)
    kept = np.array([[[True, False, False, False], [False, True, True, True]]])
    assert judge.predicted.tolist() == [0]
    assert judge.logits(kept, 0.0)[0] == pytest.approx([0.5, 2 + 1])
    assert judge.logits(kept, 1.0)[0] == pytest.approx([0.5 + 9, 1 + 2 + 1])
    assert judge.logits(kept, "uniform")[0, 1] == pytest.approx(3 + 0.5, abs=0.5)


def test_who_wins(load, tmp_path):
    """More is better of robustness of irrelevant pixels and of insertion, less of the others."""
    own, records = load("conclusions"), load("records")
    writer = records.Writer(tmp_path / "own.jsonl", "mnist")
    for method, level in (("greedy-as", 3.0), ("random", 1.0), ("leave-one-out", 2.0)):
        spread = np.linspace(0, 0.1, 20)
        for metric in (own.IRRELEVANT, own.RELEVANT):
            writer.write(method, metric, np.repeat((level + spread)[:, None], 9, axis=1))
        for kind in ("insertion logit", "deletion logit"):
            writer.write(method, kind, level + spread, reference=0.0)
    found = records.Records(tmp_path)
    assert own.measured(found, "mnist", "random", own.RELEVANT)[0] == pytest.approx(40.0)
    assert own.verdict(own.ahead(found, "mnist", "greedy-as", "random", own.IRRELEVANT)) == "win"
    assert own.verdict(own.ahead(found, "mnist", "greedy-as", "random", own.RELEVANT)) == "loss"
    assert own.place(found, "mnist", "greedy-as", "insertion logit", reference=0.0) == (1, 3)
    assert own.place(found, "mnist", "greedy-as", "deletion logit", reference=0.0) == (3, 3)
    assert own.place(found, "mnist", "random", "deletion logit", reference=0.0) == (1, 2)
    assert own.best(found, "mnist", ["random", "leave-one-out"], own.RELEVANT) == "random"
    assert own.verdict(own.ahead(found, "mnist", "greedy-as", "lime", own.RELEVANT)) == "–"
    assert own.counted({"a": "win", "b": "win", "c": "loss"}) == "2 wins, 0 draws, 1 loss"


def test_places_of_the_paper(load):
    own, paper = load("conclusions"), load("paper")
    assert own.paper_place(paper.INSERTION["uniform"], "insertion") == 1
    assert own.paper_place(paper.DELETION["uniform"], "deletion") == 1
    assert own.paper_place(paper.INSERTION[0.0], "insertion") == 4
    assert own.paper_place(paper.DELETION[0.0], "deletion") == 6


def test_missing_values_of_records(load, tmp_path):
    own = load("records")
    own.Writer(tmp_path / "own.jsonl", "e").write("m", "x", [1.0, np.inf, 1 / 3])
    found = own.Records(tmp_path).values("e", "m", "x")
    np.testing.assert_array_equal(found, [1.0, np.nan, 0.333333])
    assert own.interval(found).mean == pytest.approx(0.6666665)


def test_first_words(load):
    """Where a search chose as many words, its choice; else those of the largest scores."""
    chosen = {0.5: np.array([True, False, False, True, False, False])}
    e = SimpleNamespace(features=list("abcdef"), chosen=chosen, ranking=np.array([4, 2, 0, 1, 3, 5]))
    top = load("text_criteria").top_words(e)
    assert [np.flatnonzero(row).tolist() for row in top] == [
        [4],
        [0, 3],
        [0, 2, 4],
        [0, 1, 2, 4],
        [0, 1, 2, 3, 4],
    ]


def test_areas_of_texts(load, tmp_path):
    """Over one to five words; a radius counts for the norm of the text at most, also if there is none."""
    records, report = load("records"), load("text_report")
    writer = records.Writer(tmp_path / "text.jsonl", "AG News, BiLSTM")
    writer.write("–", "norm", [3.0])
    writer.write("random", "robustness of relevant", np.array([[np.inf, 9.0, 2.0, 2.0, 1.0]]))
    writer.write("random", "insertion", np.full((1, 5), 0.5))
    results = report.Results(records.Records(tmp_path), {}, {})
    assert results.areas("BiLSTM", "random", "insertion", "") == pytest.approx([2.0])
    assert results.areas("BiLSTM", "random", "robustness of relevant", "") == pytest.approx(
        [3 + 2.5 + 2 + 1.5]
    )
    assert results.capped("BiLSTM", "random") == pytest.approx(2 / 5)
    assert results.areas("BiLSTM", "lime", "insertion", "") is None

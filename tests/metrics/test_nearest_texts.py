"""Nearest texts by words and by embedding, compared with a slow plain version."""

import numpy as np
import pytest

from pertinent.metrics.nearest_texts import Neighbourhood, WordOverlap, mean_overlap


def cosine(a, b):
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def ratio(a, b):
    return len(a & b) / len(a | b)


def slow_neighbours(words, labels, vectors, i, lexical, semantic):
    others = [j for j in range(len(words)) if j != i and labels[j] == labels[i]]
    near = sorted(others, key=lambda j: (-cosine(vectors[i], vectors[j]), j))[:semantic]
    rest = [j for j in others if j not in near]
    return near + sorted(rest, key=lambda j: (-ratio(words[i], words[j]), j))[:lexical]


@pytest.mark.parametrize(("lexical", "semantic"), [(3, 2), (0, 4), (10, 10), (30, 30)])
def test_neighbours_against_loops(lexical, semantic):
    rng = np.random.default_rng(0)
    words = [{f"w{i}" for i in rng.integers(0, 15, size=rng.integers(1, 9))} for _ in range(40)]
    labels = rng.integers(0, 2, size=40).tolist()
    vectors = rng.normal(size=(40, 6))
    found = Neighbourhood(words, labels, range(40), vectors).find(lexical, semantic)
    for i in range(40):
        assert found[i].tolist() == slow_neighbours(words, labels, vectors, i, lexical, semantic)
        assert len({*found[i].tolist()}) == min(lexical + semantic, labels.count(labels[i]) - 1)


def test_the_same_text_is_no_neighbour():
    words = [{"a"}, {"a"}, {"b"}]
    found = Neighbourhood(words, [0, 0, 0], ["x", "x", "y"]).find(2, 0)
    assert [f.tolist() for f in found] == [[2], [2], [0, 1]]


def test_a_vector_of_zeros_is_near_to_nothing():
    found = Neighbourhood([{"a"}] * 3, [0] * 3, range(3), np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]))
    assert found.find(0, 1)[1].tolist() == [2]


def test_overlaps_by_hand():
    assert mean_overlap(set(), [set(), {"a"}]) == 0.0
    assert mean_overlap({"a", "b"}, [{"a", "b"}, {"b", "c"}]) == pytest.approx((1 + 1 / 3) / 2)
    assert WordOverlap([set(), {"a"}]).with_all(0).tolist() == [0.0, 0.0]

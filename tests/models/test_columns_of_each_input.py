"""Columns may have other names, and be more or fewer, for every input."""

from typing import ClassVar

import numpy as np
import pytest

import pertinent
from pertinent.asks import Values
from pertinent.errors import InputError, ModelError
from pertinent.inputs.segmentation import cut
from pertinent.inputs.text import Text, text_input
from pertinent.models.base import Handlers, Model, answer_now
from pertinent.outputs import Classes, PlainValues

TEXTS = ["a b a c", "b b", "d a d a d", "c"]


def counts(model, parts):
    """How often each distinct word of the whole text is left; NaN in columns that an input does not have."""
    width = max(len(model.columns_of(part.input)) for part in parts)
    model.batches.append({len(model.columns_of(part.input)) for part in parts})
    rows = []
    for part in parts:
        for text in part.removal(part.input, part.question.masks[part.rows], part.seed):
            found = [text.first.split().count(word) for word in model.columns_of(part.input)]
            total = max(1, sum(found)) if model.output.kind == "class" else 1
            shares = [n / total for n in found] if sum(found) else [1 / len(found)] * len(found)
            own = shares if model.output.kind == "class" else found
            rows.append([*own, *[np.nan] * (width - len(found))])
    return answer_now(lambda: np.array(rows, dtype=float))


class WordCounts(Model):
    """Counts the words of a text, each in a column of its own; or says which share of all words each is."""

    handlers: ClassVar[Handlers] = {Values: counts}
    columns_differ = True

    def __init__(self, output=None):
        self.output = output or PlainValues()
        self.batches = []

    def columns_of(self, input):
        return tuple(sorted(set(input.text.first.split())))

    def prepare(self, raw, features=None):
        text = Text.from_input(raw)
        return text_input(text, "words", cut(text, "words"))

    def split(self, raw):
        return None if isinstance(raw, (str, Text)) else raw

    def default_removal(self, input):
        return "slice-out"

    def submit(self, rows):
        raise AssertionError("answered by a handler")


class Apart(WordCounts):
    """Keeps inputs of different widths in different batches."""

    def group_of(self, input):
        return len(self.columns_of(input))


@pytest.mark.parametrize("model", [WordCounts(), Apart()], ids=["mixed", "apart"])
def test_an_explanation_has_the_columns_of_its_input(model):
    found = pertinent.explain(model, TEXTS, "leave-one-out")
    assert [e.classes for e in found] == [("a", "b", "c"), ("b",), ("a", "d"), ("c",)]
    assert [e.prediction.values.tolist() for e in found] == [[2, 1, 1], [2], [2, 3], [1]]
    assert [e.target_name for e in found] == ["a", "b", "a", "c"]
    assert found[0].scores.tolist() == [1, 0, 1, 0]
    assert found[2].class_scores.tolist() == [[0, 1, 0, 1, 0], [1, 0, 1, 0, 1]]
    assert any(len(widths) > 1 for widths in model.batches) is not isinstance(model, Apart)


def test_a_target_is_one_of_the_inputs_own_columns():
    found = pertinent.explain(WordCounts(), TEXTS, "leave-one-out", target="c")
    assert [(e.index, e.target) for e in found] == [(0, 2), (3, 0)]
    assert [failure.index for failure in found.failures] == [1, 2]
    assert "Unknown target 'c'. Known: b." in found.failures[0].reason


@pytest.mark.parametrize("method", ["kernel-shap", "shapley", "parallel-local-search", "lime"])
def test_each_input_is_answered_as_if_it_were_alone(method):
    together = pertinent.explain(WordCounts(), TEXTS[:3], method, seed=1)
    for text, e in zip(TEXTS, together, strict=False):
        alone = pertinent.explain(WordCounts(), text, method, seed=1)
        np.testing.assert_array_equal(e.scores, alone.scores)


def test_probabilities_are_checked_in_the_columns_of_the_input():
    e, *_ = pertinent.explain(WordCounts(Classes()), TEXTS, "leave-one-out")
    np.testing.assert_allclose(e.prediction.values, [0.5, 0.25, 0.25])
    assert e.target_name == "a"


def test_an_answer_with_too_few_columns_is_refused():
    def shortened(model, parts):
        rows = counts(model, parts).outputs()
        return answer_now(lambda: rows[:, :-1])

    model = WordCounts()
    model.handlers = {Values: shortened}
    with pytest.raises(ModelError, match="The input has 3 values, but the model returned 2"):
        pertinent.explain(model, TEXTS[0], "leave-one-out")


def test_a_question_of_no_rows_has_the_width_of_the_input():
    model = WordCounts()
    for text, width in zip(TEXTS, (3, 1, 2, 1), strict=True):
        empty = Values(np.zeros((0, 2), dtype=bool)).assemble(model, model.prepare(text), [])
        assert empty.shape == (0, width)


def test_they_are_measured_saved_read_and_shown(tmp_path):
    model = WordCounts()
    found = pertinent.explain(model, TEXTS, "leave-one-out", metrics=["sufficiency"])
    found.save(tmp_path / "found.parquet")
    again = pertinent.read(tmp_path / "found.parquet")
    assert [e.classes for e in again] == [e.classes for e in found]
    measured = pertinent.evaluate(model, again, metrics=["comprehensiveness"])
    assert len(measured.explanations) == len(TEXTS)
    assert all(name in found[2].to_html() for name in ("a", "d"))


def test_an_explanation_of_other_columns_is_not_evaluated():
    class Renamed(WordCounts):
        def columns_of(self, input):
            return tuple(name.upper() for name in super().columns_of(input))

    found = pertinent.explain(WordCounts(), TEXTS[0], "leave-one-out")
    with pytest.raises(
        InputError, match="The explanation has the columns a, b, c, but this model has A, B, C"
    ):
        pertinent.evaluate(Renamed(), found, metrics=["comprehensiveness"])


def test_what_needs_common_columns_says_so():
    model = WordCounts(Classes())
    with pytest.raises(ModelError, match="A check needs a model with the same classes for every input"):
        pertinent.check_removal(model, TEXTS)
    with pytest.raises(ModelError, match="differ between inputs"):
        pertinent.fit(model, TEXTS, method="amortized-shapley", progress=False)


def test_a_model_says_that_its_columns_differ():
    assert repr(WordCounts()) == "<WordCounts: values of each input>"

"""Evaluations pair methods by input and seed, and their tables say which differ."""

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import pertinent
from pertinent.errors import FileError, SettingError
from pertinent.rendering.html.tables import show as html_table
from pertinent.rendering.tables import summarize, tables_of
from pertinent.rendering.terminal.tables import show as evaluation_table
from pertinent.results.evaluation import Evaluation, EvaluationRow
from pertinent.results.explanation import Explanations
from pertinent.stats import Difference, holm, paired_difference
from tests.explanations import changed
from tests.stubs import sentiment

ONE = pertinent.explain(sentiment, "not bad", "leave-one-out")


def explanation(name, seed=0):
    return changed(ONE, input=replace(ONE.input, fingerprint=name), seed=seed)


def evaluation(values, better="lower"):
    """Return an evaluation of values by (method, input, seed)."""
    explanations = [explanation(bytes([name]), seed) for _, name, seed in values]
    rows = [EvaluationRow(i, method, "m", 0.2, v) for i, ((method, _, _), v) in enumerate(values.items())]
    return Evaluation(rows, Explanations(explanations), {"m": better})


def competition(n, gap, better="lower"):
    rng = np.random.default_rng(0)
    hard = rng.normal(size=n)
    methods = {"one": hard, "two": hard + gap + 0.1 * rng.normal(size=n), "three": hard + 5}
    values = {(m, i, 0): float(v[i]) for m, v in methods.items() for i in range(n)}
    return evaluation(values, better), methods


def printed(result):
    console = Console(width=200, file=StringIO())
    console.print(evaluation_table(result))
    return " ".join(console.file.getvalue().split())


def test_differences_are_paired_by_input():
    result, methods = competition(30, 0.3)
    shuffled = Evaluation(result.rows[::-1], result.explanations, result.better)
    for each in (result, shuffled):
        pairs = {(a, b): d for a, b, _, d in each.differences(correction=None)}
        assert len(pairs) == 3
        for (a, b), difference in pairs.items():
            apart = methods[a] - methods[b]
            assert difference.mean == pytest.approx(apart.mean())
            half = 1.96 * apart.std() / np.sqrt(30)
            assert difference.high - difference.low == pytest.approx(2 * half, rel=0.1, abs=1e-9)
            assert difference == paired_difference(methods[a], methods[b], resamples=10_000)
    assert [(a, b) for a, b, _, _ in result.differences()] == [
        ("two", "one"), ("three", "one"), ("three", "two")
    ]  # fmt: skip


def test_differences_from_a_baseline():
    result, _ = competition(30, 0.3)
    assert [(a, b) for a, b, _, _ in result.differences("two")] == [("one", "two"), ("three", "two")]
    with pytest.raises(SettingError, match="Did you mean 'three'"):
        next(result.differences("thre"))


def test_differences_ignore_inputs_without_both_methods():
    values = {("a", i, 0): float(i) for i in range(6)} | {("b", i, 0): i - 1.0 for i in range(3, 9)}
    result = evaluation(values).difference("a", "b", "m")
    assert (result.mean, result.n) == (1.0, 3)
    apart = {("a", 0, 0): 1.0, ("b", 1, 0): 1.0}
    assert evaluation(apart).difference("a", "b", "m").n == 0


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("c", "b", "m"), "metric 'm' for the method 'c'"),
        (("a", "c", "m"), "metric 'm' for the method 'c'"),
        (("a", "b", "n"), "metric 'n' for the method 'a'"),
    ],
)
def test_difference_without_values_raises(names, message):
    result = evaluation({("a", 0, 0): 1.0, ("b", 0, 0): 2.0})
    with pytest.raises(SettingError, match=message):
        result.difference(*names)


def test_differences_of_metrics_with_one_method_are_nan():
    rows = [
        EvaluationRow(0, "a", "m", None, 3.0),
        EvaluationRow(1, "b", "m", None, 1.0),
        EvaluationRow(0, "a", "n", None, 5.0),
    ]
    of = Explanations([explanation(b"x"), explanation(b"x")])
    result = Evaluation(rows, of, {"m": "lower", "n": "lower"})
    assert [(metric, d.n) for *_, metric, d in result.differences()] == [("m", 1), ("n", 0)]


def test_seeds_are_resampled_as_blocks():
    rng = np.random.default_rng(1)
    of_seed = rng.normal(size=5)
    values = {("a", i, s): of_seed[s] + 0.01 * rng.normal() for s in range(5) for i in range(40)}
    ((*_, result),) = evaluation(values).summary()
    assert result.n == 40
    assert result.high - result.low > 0.5 * of_seed.std()


def test_an_input_given_twice_counts_twice():
    result = pertinent.compare(sentiment, ["not bad", "not bad", "so so"], ["leave-one-out", "random"])
    assert {i.n for *_, i in result.summary()} == {3}
    assert {d.n for *_, d in result.differences()} == {3}
    for method, metric, _, interval in result.summary():
        own = [e.measures[metric] for e in result.explanations if e.method == method]
        by_hand = np.mean([list(values.values()) for values in own])
        assert len(own) == 3
        assert result.mean(method, metric) == interval.mean == pytest.approx(by_hand)


def test_values_are_means_over_sparsities():
    rows = [EvaluationRow(0, "a", "m", s, v) for s, v in ((0.1, 1.0), (0.2, 3.0))]
    rows += [EvaluationRow(1, "b", "m", s, v) for s, v in ((0.1, 0.0), (0.2, 1.0))]
    result = Evaluation(rows, Explanations([explanation(b"x"), explanation(b"x")]), {"m": "lower"})
    assert result.difference("a", "b", "m").mean == 1.5


@pytest.mark.parametrize(
    ("better", "gap", "said"),
    [
        (
            "lower",
            0.3,
            "m: one differs from two, the next best (p < 0.001, Holm-corrected for 2 comparisons)",
        ),
        ("lower", -0.02, "m: one may not differ from two, the next best (p = "),
        ("higher", 0.3, "m: three differs from two, the next best (p < 0.001, Holm-corrected for 2 comp"),
    ],
)
def test_tables_note_whether_the_next_best_differs(better, gap, said):
    result, _ = competition(30, gap, better)
    assert said in printed(result)
    assert said.replace("<", "&lt;") in html_table(result)
    assert [method for (method, _), cell in summarize(result)[0].items() if cell.is_best] == [said.split()[1]]


def test_p_values_are_corrected_for_their_number():
    """Multiply each p-value by the number of p-values that are not smaller (Holm)."""
    result, _ = competition(40, -0.03)
    plain = [d for *_, d in result.differences(correction=None)]
    corrected = [d for *_, d in result.differences()]
    order = np.argsort([d.p_value for d in plain])
    expected = np.maximum.accumulate([plain[i].p_value * (3 - k) for k, i in enumerate(order)]).clip(max=1)
    np.testing.assert_allclose([corrected[i].p_value for i in order], expected)
    assert [d.comparisons for d in corrected] == [3, 3, 3]
    assert [(d.mean, d.low, d.high) for d in corrected] == [(d.mean, d.low, d.high) for d in plain]
    with pytest.raises(SettingError, match="`correction` must be 'holm' or None"):
        next(result.differences(correction="bonferroni"))


def test_differences_without_p_value_are_not_corrected_for():
    some = [Difference(1.0, 0.0, 2.0, n, p) for n, p in ((30, 0.02), (1, np.nan), (30, 0.5))]
    p_values = [each.p_value for each in holm(some)]
    np.testing.assert_allclose(p_values, [0.04, np.nan, 0.5])
    assert holm(some)[0].p_text == "p = 0.040, Holm-corrected for 2 comparisons"
    assert holm(some[:1]) == some[:1]
    assert holm([]) == []


def test_tables_correct_for_all_methods_and_metrics():
    """Among ten methods that are all the same, the best of each metric differs from the next by chance."""
    rng = np.random.default_rng(3)
    values = {(f"m{m}", i, 0): float(rng.normal()) for m in range(10) for i in range(30)}
    result = evaluation(values)
    raw = [d.p_value for *_, d in result.differences(correction=None)]
    assert min(raw) < 0.05
    assert "Holm-corrected for 9 comparisons" in printed(result)
    assert "may not differ" in printed(result)


def test_each_method_runs_with_all_seeds():
    texts = ["not bad at all", "bad, so bad", "all is well"]
    options = {"sparsity": 0.5, "budget": 5, "progress": False}
    result = pertinent.compare(
        sentiment, texts, ["random-search", "leave-one-out"], seeds=3, seed=4, **options
    )
    assert len(result.explanations) == 3 * 2 * 3
    assert sorted({e.seed for e in result.explanations}) == [4, 5, 6]
    assert result.methods == ["random-search", "leave-one-out"]
    assert "Mean over 3 inputs and 3 seeds" in printed(result)
    alone = pertinent.compare(sentiment, texts, "random-search", seed=5, **options)
    again = [e for e in result.explanations if (e.seed, e.method) == (5, "random-search")]
    for mine, other in zip(again, alone.explanations, strict=True):
        np.testing.assert_array_equal(mine.scores, other.scores)
    single = pertinent.compare(sentiment, texts, "random-search", **options)
    assert {e.seed for e in single.explanations} == {0}


def test_tables_for_papers(tmp_path):
    result, _ = competition(30, 0.3)
    result = Evaluation(
        [replace(row, method=row.method.replace("one", "a_b|c")) for row in result.rows],
        result.explanations,
        result.better,
    )
    mean = f"{result.mean('a_b|c', 'm'):.3f}"
    text = result.to_markdown().splitlines()
    assert text[0] == "| method | m ↓ |"
    assert text[1] == "| --- | ---: |"
    assert text[2].startswith(f"| a\\_b\\|c | **{mean}** [")
    assert not text[3].count("**")
    assert "Mean over 30 inputs" in text[6]
    assert "Holm-corrected for 2 comparisons" in text[8]
    lines = result.to_latex().splitlines()
    start = lines.index(r"\begin{tabular}{lr}")
    assert lines[start + 1 : start + 4] == [r"\toprule", r"method & m $\downarrow$ \\", r"\midrule"]
    assert lines[start + 4].startswith(rf"a\_b|c & \textbf{{{mean}}} [")
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    assert all(line.startswith("%") for line in lines[:start])
    for name, written in (("t.md", result.to_markdown()), ("t.tex", result.to_latex())):
        result.save(tmp_path / name)
        assert (tmp_path / name).read_text() == written + "\n"
    with pytest.raises(FileError, match=r"must end in \.json, \.csv, \.md or \.tex"):
        result.save(tmp_path / "t.txt")


def test_few_inputs_allow_no_conclusion():
    assert "20 inputs are needed" in printed(competition(19, 0.3)[0])
    assert "p <" not in printed(competition(19, 0.3)[0])
    assert "needed" not in printed(competition(1, 0.3)[0])
    (table,) = tables_of(evaluation({("a", i, 0): 1.0 for i in range(30)}))
    assert len(table.notes) == 1


def test_shares_of_one_have_an_interval():
    """Check that a share of 1 in 20 texts has an interval below 1."""
    texts = [f"not bad {'so ' * i}" for i in range(20)]
    es = pertinent.explain(sentiment, texts, "leave-one-out", progress=False)
    result = pertinent.evaluate(sentiment, es, ["faithfulness:k=1", "sufficiency"], progress=False)
    intervals = {metric: interval for _, metric, _, interval in result.summary()}
    kept = intervals["faithfulness"]
    assert (kept.mean, kept.high) == (1.0, 1.0)
    assert kept.low == pytest.approx(0.025 ** (1 / 20))
    assert intervals["sufficiency"].low == intervals["sufficiency"].high  # not a share

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from tests.explanations import changed

import pertinent
from pertinent.inputs.text import Text, text_input
from pertinent.rendering.colours import DARK, LIGHT, shade, shares
from pertinent.rendering.drawings.text import spans_of
from pertinent.rendering.html.explanation import show as fragment
from pertinent.rendering.terminal.explanation import show as rendered
from pertinent.rendering.terminal.explanation import show_all as rendered_all
from pertinent.rendering.terminal.tables import show as evaluation_table
from pertinent.rendering.wording import facts, measures, score_text, strongest
from pertinent.results.explanation import Explanations
from pertinent.results.failures import Failure

from .contrast import contrast


def printed(thing, **options):
    console = Console(width=140, file=StringIO(), force_terminal=True, color_system=None, **options)
    console.print(thing)
    return console.file.getvalue()


@pytest.mark.parametrize("surface", [LIGHT, DARK])
def test_ink_is_readable_on_the_whole_scale(surface):
    assert min(contrast(shade(s, surface), surface.ink) for s in np.linspace(-1, 1, 401)) >= 4.5


def test_the_two_sides_of_the_scale_differ_and_grow():
    for sign in (1, -1):
        steps = [contrast(shade(sign * s), LIGHT.ground) for s in np.linspace(0, 1, 20)]
        assert steps == sorted(steps)
    assert shade(1) != shade(-1)


@pytest.mark.parametrize("scores", [np.zeros(3), np.array([np.nan, 0.0]), np.array([])])
def test_shares_of_nothing_are_zero(scores):
    assert not shares(scores).any()


@pytest.mark.parametrize("fixture", ["text", "pair", "search"])
def test_pieces_reassemble_to_the_text(fixture, request):
    given = request.getfixturevalue(fixture).input
    for number, segment in enumerate(given.text.segments):
        assert "".join(p.text for p in spans_of(given) if p.segment == number) == segment
    assert sorted(i for p in spans_of(given) for i in p.features) == list(range(given.n_features))


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 0, 1), (0, 0, 1), (0, 2, 4)],  # bytes of one character
        [(0, 0, 0), (0, 0, 1), (0, 1, 1)],  # tokens without characters
        [(0, 1, 3), (0, 2, 5), (0, 4, 6)],  # a chain
        [],
    ],
)
def test_pieces_of_overlapping_tokens(spans):
    given = text_input(Text("a bcdef"), "tokens", np.array(spans, dtype=np.int64).reshape(-1, 3))
    found = list(spans_of(given))
    assert "".join(p.text for p in found) == "a bcdef"
    assert sorted(i for p in found for i in p.features) == list(range(len(spans)))


def test_markup_in_texts_is_shown_as_written(text, row):
    output = printed(rendered(text))
    assert "[bold]wonderful[/bold] <script>" in output
    assert "[red]good" in output
    assert "$x_1$ [b]" in printed(rendered(row))


def test_escape_sequences_do_not_reach_the_terminal(text_model):
    e = pertinent.explain(text_model, "wonderful \x1b[2J\x9b2J \x07 film", "leave-one-out")
    console = Console(width=100, file=StringIO(), color_system=None)
    console.print(rendered(e))
    output = console.file.getvalue()
    assert "␛[2J" in output
    assert not set("\x1b\x9b\x07") & set(output)


def test_the_facts_are_those_of_the_explanation(text, row, search):
    assert {**facts(changed(text, seconds=0.0125)), "features": ""} == {
        "method": "shapley-sampling",
        "settings": "samples=8",
        "removal": "slice-out",
        "features": "",
        "budget": f"{8 * (len(text.features) - 1) + 2}",
        "evaluations": f"{text.evaluations}",
        "model time": "12.5 ms",
        "seed": "0",
    }
    assert facts(text)["features"] == f"{len(text.features)} (words)"
    assert (
        facts(changed(row, evaluations=12345, seconds=1234.5, seed=7)).items()
        >= {
            "removal": "background",
            "features": "3 (columns)",
            "evaluations": "12,345",
            "model time": "1,234.5 s",
            "seed": "7",
        }.items()
    )
    assert facts(search)["settings"] == "defaults"


def test_scores_are_shown_with_three_digits(text, search):
    e = replace(text, scores=np.linspace(-1.2344, 0.5, len(text.features)))
    assert (score_text(e, 0), score_text(e, len(e.features) - 1)) == ("-1.23", "+0.50")
    assert score_text(replace(e, scores=e.scores / 100), 0) == "-0.0123"
    assert score_text(search, int(search.ranking[0])) == "in 2 of 2 sets"
    assert score_text(search, int(search.ranking[-1])) == "in 0 of 2 sets"


def test_large_scores_and_measures_are_written_as_people_write_them(row):
    scores = np.zeros(len(row.features))
    scores[:3] = 50410.2, -123456.7, 0.4
    e = replace(row, scores=scores, standard_errors=None, measures={"sufficiency": {0.1: 54321.9}})
    assert [score_text(e, i) for i in range(3)] == ["+50,410", "-123,457", "+0"]
    for shown in (printed(rendered(e)), fragment(e)):
        assert "-123,457" in shown
        assert "54,322" in shown
        assert "e+0" not in shown


def test_everything_is_said(explanation):
    output = " ".join(printed(rendered(explanation)).split())
    for label, value in facts(explanation).items():
        assert value in output, label
    assert score_text(explanation, int(explanation.ranking[0])) in output


def test_every_word_is_shaded_or_plain(text):
    console = Console(width=200, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(rendered(text))
    rgb = ";".join(str(v) for v in bytes.fromhex(shade(1, DARK)[1:]))
    assert f"48;2;{rgb}mwonderful" in console.file.getvalue()


def test_every_column_has_a_line(row):
    output = printed(rendered(row))
    assert all(name in output for name in row.features)


def test_both_segments_are_shown(pair):
    output = printed(rendered(pair))
    assert "Who wrote <it>?" in output
    assert "Ada wrote it in 1843." in output


def test_chosen_sets_are_listed(search):
    output = printed(rendered(search))
    assert "best at 5%" in output
    assert "best at 20%" in output


def test_sampling_errors_are_shown_and_nan_is_not(text):
    assert "±" in printed(rendered(text))
    unknown = replace(text, standard_errors=np.full(len(text.features), np.nan))
    output = printed(rendered(unknown))
    assert "±" not in output
    assert "nan" not in output


def test_notes_are_shown(text):
    noted = replace(text, input=replace(text.input, notes=("truncated to [b]8[/b] tokens",)))
    assert "⚠ truncated to [b]8[/b] tokens" in printed(rendered(noted))


def test_another_target_is_named(text):
    assert "explained: <b>bad</b>" in printed(rendered(text.for_class(0)))


def test_measures_are_shown_with_their_direction(evaluation):
    e = evaluation.explanations[0]
    output = printed(rendered(e))
    arrows = {"sufficiency": "↓", "comprehensiveness": "↑"}
    assert set(e.measures) == set(arrows)
    for name, values in e.measures.items():
        assert f"{name} {arrows[name]} {np.mean(list(values.values())):.3f}" in output


def test_an_unregistered_metric_has_no_arrow(text):
    assert measures(replace(text, measures={"my-own": {None: 0.5}}))[0].arrow == ""


def test_failures_are_listed(text):
    output = printed(rendered_all(Explanations([text], [Failure(3, "the [i]text[/i] is blank")])))
    assert "input 3: the [i]text[/i] is blank" in output


def test_evaluation_table_has_means_and_intervals(evaluation):
    output = " ".join(printed(evaluation_table(evaluation)).split())
    summary = list(evaluation.summary())
    assert len(summary) == 4
    for method, metric, _, interval in summary:
        own = [e.measures[metric][0.2] for e in evaluation.explanations if e.method == method]
        assert method in output
        assert f"{np.mean(own):.3f} [{interval.low:.3f}, {interval.high:.3f}]" in output
    assert "1 failed" in output


def test_one_input_has_no_interval(text_model):
    one = pertinent.compare(text_model, ["not wonderful"], ["leave-one-out"])
    assert "nan" not in printed(evaluation_table(one))


def test_catalogue_lists_every_method():
    output = printed(evaluation_table(pertinent.list_methods()))
    assert all(entry.name in output for entry in pertinent.list_methods())


def test_strongest_are_by_magnitude_and_in_ranking_order(text):
    e = replace(text, scores=np.linspace(-3, 2, len(text.features)))
    shown = strongest(e, 4)
    assert (np.diff(e.scores[shown]) < 0).all()
    assert np.abs(e.scores[shown]).min() >= np.sort(np.abs(e.scores))[-4]


@pytest.mark.parametrize("scale", [0.0, 1e-9, 1e-3, 1.0, 1e6])
def test_scores_of_any_size_can_be_shown(text, scale):
    e = replace(text, scores=scale * np.linspace(-1, 1, len(text.features)))
    assert len(score_text(e, 0)) <= 12
    printed(rendered(e))


def test_the_budget_is_said_to_be_for_each_sparsity_where_it_is():
    from pertinent.rendering.wording import facts

    model = pertinent.wrap(lambda texts: [[0.3, 0.7] if "fir" in t else [0.6, 0.4] for t in texts])

    def budget(method, **settings):
        e = pertinent.explain(model, "ash elm fir oak", method, budget=60, **settings)
        return facts(e)["budget"]

    assert budget("random-search") == "60 per sparsity"
    assert budget("random-search", spread=True) == budget("anchors") == budget("lime") == "60"

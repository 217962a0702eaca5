"""Local searches that start at the result of another explainer: their cost and their gain."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from math import comb

import numpy as np
import pytest

import pertinent
from pertinent import Request
from pertinent.cli import main
from pertinent.errors import BudgetError, SettingError
from pertinent.explainers.base import Explainer, Finding
from pertinent.explainers.search.local import LocalSearch
from pertinent.explainers.search.parallel_local_search import ParallelLocalSearch
from pertinent.explainers.search.thompson_search import ThompsonSearch
from pertinent.testing.games import Smooth, as_model, play

SEARCHES = (ParallelLocalSearch, ThompsonSearch)
every_search = pytest.mark.parametrize("kind", SEARCHES, ids=lambda c: c.name)
SPARSITIES = (0.1, 0.2, 0.5)


@dataclass(frozen=True)
class Guess(Explainer):
    """A method with fixed scores, for one evaluation."""

    name = "guess"
    paper = "–"
    summary = "scores that are given"
    scores: tuple[float, ...] = ()

    def evaluations(self, n_features):
        return 1

    def explain(self, task):
        yield from ()
        return Finding(np.array(self.scores))


def game_and_guess(d, seed, noise, strength=1.0):
    """Return a game with interactions, and its weights with errors of this size."""
    smooth = Smooth(d, seed, strength)
    scores = smooth.parameters[1] + noise * np.random.default_rng(seed).normal(size=d)
    return smooth.game(), Guess(tuple(scores.tolist()))


def sufficiency(game, finding, target=1):
    full = game.values(np.ones((1, game.d), dtype=bool))[0, target]
    return full - game.values(np.array(list(finding.chosen.values())))[:, target]


@every_search
@pytest.mark.parametrize("budget", [10, 30, 100, 300])
def test_a_fair_guess_helps_most_when_there_is_little_budget_and_never_hurts(kind, budget):
    """Check games of 40 features, with errors of the guess as large as the weights."""
    gains = []
    for seed in range(24 if budget < 300 else 8):
        game, guess = game_and_guess(40, seed, noise=0.3, strength=0.3)
        options = {"budget": budget, "target": 1, "sparsities": SPARSITIES, "seed": seed}
        alone, started = (
            sufficiency(game, play(search, game, **options)).mean() for search in (kind(), kind(start=guess))
        )
        gains.append(alone - started)
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    assert np.mean(gains) >= (2 * error if budget <= 30 else -2 * error)


@every_search
@pytest.mark.parametrize("budget", [30, 100])
def test_a_guess_that_knows_nothing_costs_little(kind, budget):
    """Check that it costs one evaluation and one of the first sets."""
    losses = []
    for seed in range(30):
        game, guess = game_and_guess(30, seed, noise=100.0, strength=0.3)
        options = {"budget": budget, "target": 1, "sparsities": (0.2,), "seed": seed}
        alone, started = (
            sufficiency(game, play(search, game, **options)).mean() for search in (kind(), kind(start=guess))
        )
        losses.append(started - alone)
    assert np.mean(losses) <= 2 * np.std(losses, ddof=1) / np.sqrt(len(losses))


@every_search
@pytest.mark.parametrize("objective", ["sufficiency", "comprehensiveness"])
@pytest.mark.parametrize("budget", [2, 3, 40])
def test_what_is_found_is_no_worse_than_the_start(kind, objective, budget):
    game, guess = game_and_guess(20, 3, noise=0.3)
    order = np.argsort(-np.array(guess.scores))
    finding = play(
        kind(objective=objective, start=guess), game, budget=budget, target=1, sparsities=SPARSITIES
    )
    for sparsity, mask in finding.chosen.items():
        start = np.isin(np.arange(20), order[: mask.sum()])
        kept = np.array([mask, start]) ^ (objective == "comprehensiveness")
        found, begun = game.values(kept)[:, 1]
        assert found >= begun if objective == "sufficiency" else found <= begun
        if budget == 2:
            np.testing.assert_array_equal(mask, start)
        assert mask.sum() == np.ceil(sparsity * 20)


@every_search
def test_the_start_is_paid_for(kind):
    """Check that the meter counts it once, and that every sparsity has that much less."""
    game = Smooth(14, 0).game()
    options = {"removal": "constant", "sparsity": (0.2, 0.5), "budget": 60}
    alone = pertinent.explain(as_model(game), np.ones(14), method=kind(), **options)
    lone = pertinent.explain(as_model(game), np.ones(14), method=kind(start="leave-one-out"), **options)
    assert alone.evaluations == 120
    assert lone.evaluations == 15 + 2 * (60 - 15)
    spread = kind(start="leave-one-out", spread=True)
    assert pertinent.explain(as_model(game), np.ones(14), method=spread, **options).evaluations <= 60
    lime = pertinent.explain(as_model(game), np.ones(14), method=kind(start="lime"), **options)
    assert lime.evaluations <= 15 + 2 * 45
    with pytest.raises(BudgetError, match=r"at least 16 for .* with 14 features, but got 15"):
        pertinent.explain(
            as_model(game), np.ones(14), method=kind(start="leave-one-out"), budget=15, removal="constant"
        )


@every_search
def test_a_search_of_all_sets_needs_no_start(kind):
    """Check that the start is not run if the budget covers all sets."""
    game = Smooth(8, 1).game()
    guess = Guess(tuple(range(8)))
    budget = comb(8, 4)
    alone, started = (
        play(s, game, budget=budget, target=1, sparsities=SPARSITIES) for s in (kind(), kind(start=guess))
    )
    for sparsity in SPARSITIES:
        np.testing.assert_array_equal(alone.chosen[sparsity], started.chosen[sparsity])
    game.questions.clear()
    play(kind(start="leave-one-out"), game, budget=budget, target=1, sparsities=(0.5,))
    assert len(game.masks) == budget


@every_search
def test_the_course_of_a_search_counts_the_start(kind):
    game, guess = game_and_guess(20, 5, noise=0.1)
    finding = play(kind(start=guess, trajectory=True), game, budget=30, target=1, sparsities=(0.2, 0.5))
    for log in finding.details["trajectory"].values():
        assert log[0][0] == 2
        assert log[-1][0] <= 30


def test_a_search_may_start_another_and_a_class_has_scores_of_its_own():
    game = Smooth(16, 2).game()
    chained = ParallelLocalSearch(start=ThompsonSearch())
    finding = play(chained, game, budget=40, target=1, sparsities=(0.2,))
    first = play(ThompsonSearch(), game, budget=10, target=1, sparsities=(0.2,))
    assert finding.chosen[0.2].sum() == first.chosen[0.2].sum() == 4
    columns = Guess(tuple(range(16)))
    two = np.stack([np.arange(16.0), -np.arange(16.0)])

    class Both(Guess):
        def explain(self, task):
            yield from ()
            return Finding(two)

    for target, wanted in ((0, [12, 13, 14, 15]), (1, [0, 1, 2, 3])):
        found = play(
            ParallelLocalSearch(start=Both(columns.scores)), game, budget=2, target=target, sparsities=(0.25,)
        )
        assert np.flatnonzero(found.chosen[0.25]).tolist() == wanted


def test_a_start_is_known_to_requests_by_name_or_digest():
    named = Request.from_method("thompson-search", {"start": "lime"})
    assert Request.from_dict(json.loads(json.dumps(named.to_dict()))) == named
    one, same, other = (
        Request.from_method("thompson-search", {"start": Guess(scores)})
        for scores in ((1.0, 2.0), (1.0, 2.0), (2.0, 1.0))
    )
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert Request.from_method("thompson-search").fingerprint not in (named.fingerprint, one.fingerprint)
    with pytest.raises(SettingError, match="`start` was not saved with the request"):
        Request.from_dict(one.to_dict())


@every_search
def test_an_unknown_start_is_refused(kind):
    with pytest.raises(SettingError, match=r"Unknown method 'lyme'\. Did you mean 'lime'"):
        kind(start="lyme")
    with pytest.raises(SettingError, match="`start` must be a string, an Explainer or None"):
        kind(start=20)
    assert issubclass(kind, LocalSearch)


@every_search
def test_a_start_gets_what_it_would_get_alone(kind):
    seen = []

    @dataclass(frozen=True)
    class Reads(Guess):
        name = "reads"
        traits = replace(Guess.traits, reads_numbers=True, any_target=False)

        def explain(self, task):
            seen.append(task.numbers)
            return (yield from super().explain(task))

    model = pertinent.wrap(product, kind="table", background=ROWS)
    search = kind(start=Reads(tuple(range(12))))
    pertinent.explain(model, ROWS[0], search, sparsity=0.25, budget=40)
    np.testing.assert_array_equal(seen[0].values, ROWS[0])
    assert (search.traits.reads_numbers, search.traits.any_target) == (True, False)
    assert (kind().traits.reads_numbers, kind().traits.any_target) == (False, True)


ROWS = np.random.default_rng(0).normal(size=(60, 12))


def product(rows):
    rows = np.asarray(rows, dtype=float)
    p = 1 / (1 + np.exp(-2 * rows[:, 0] - rows[:, 3] * rows[:, 5] - rows[:, 7]))
    return np.column_stack([1 - p, p])


def test_a_fitted_explainer_starts_and_is_written_down(tmp_path):
    model = pertinent.wrap(product, kind="table", background=ROWS)
    fitted = pertinent.fit(model, ROWS, "maple", trees=10)
    options = {"method": "parallel-local-search", "sparsity": 0.25, "budget": 40, "seed": 1}
    es = pertinent.explain(model, ROWS[:4], start=fitted, out=tmp_path / "run.parquet", **options)
    again = pertinent.explain(model, ROWS[:4], start=fitted, out=tmp_path / "run.parquet", **options)
    for e, read in zip(es, again, strict=True):
        np.testing.assert_array_equal(e.chosen[0.25], read.chosen[0.25])
        assert (e.evaluations, read.evaluations) == (40, 40)
    assert "ForestScorer" in es[0].to_dict()["settings"]["start"]


def test_the_command_line_names_a_folder_or_a_method(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "start_rows.py").write_text(
        "import numpy as np, pertinent\n"
        "def product(rows):\n"
        "    p = 1 / (1 + np.exp(-np.asarray(rows, dtype=float).sum(axis=1)))\n"
        "    return np.column_stack([1 - p, p])\n"
        "rows = np.random.default_rng(0).normal(size=(30, 9))\n"
        "model = pertinent.wrap(product, kind='table', background=rows)\n"
    )
    import start_rows

    pertinent.fit(start_rows.model, ROWS[:, :9], "maple", trees=5).save("m")
    row = json.dumps(ROWS[0, :9].tolist())
    command = ["explain", "--model", "start_rows:model", "--row", row, "--method", "parallel-local-search"]
    command += ["--budget", "30", "--metrics", "none", "--json", "-"]
    for start, shown in (("m", "ForestScorer"), ("lime", "lime")):
        assert main([*command, "--set", f"start={start}"]) == 0
        (found,) = json.loads(capsys.readouterr().out)["explanations"]
        assert shown in found["settings"]["start"]
    assert main([*command, "--set", "start=aim"]) == 2
    assert "'aim' must be fitted first: pertinent fit" in capsys.readouterr().err


def test_a_method_that_learns_must_be_fitted_before_it_is_a_start():
    with pytest.raises(SettingError, match="'aim' must be fitted first"):
        ParallelLocalSearch(start="aim")

"""Numbers of `experiments/hsieh2021` on cases with a known answer."""

import gzip
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pertinent
from pertinent.stats import spearman
from tests.miniature import scripts, write_frame


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
    judge = criteria.Judge(None, module, image)
    kept = np.array([[[True, False, False, False], [False, True, True, True]]])
    assert judge.predicted.tolist() == [0]
    assert judge.logits(kept, 0.0)[" logit"][0] == pytest.approx([0.5, 2 + 1])
    assert judge.logits(kept, 1.0)[" logit"][0] == pytest.approx([0.5 + 9, 1 + 2 + 1])
    assert judge.logits(kept, "uniform")[" logit"][0, 1] == pytest.approx(3 + 0.5, abs=0.5)
    with torch.no_grad():
        module[1].bias.copy_(torch.tensor([0.0, 2.9]))
    assert judge.logits(kept, 0.0)[" maximum logit"][0] == pytest.approx([2.9, 3.0])


def test_records_keep_curves(load, tmp_path):
    """Of a network that sums pixels: 5% to 45% of twenty ones are kept, or all others."""
    criteria, records, own = (load(name) for name in ("criteria", "records", "conclusions"))
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(20, 2, bias=False))
    with torch.no_grad():
        module[1].weight.copy_(torch.stack([torch.ones(20), torch.zeros(20)]))
    judge = criteria.Judge(None, module, np.ones((1, 1, 4, 5), dtype=np.float32), probabilities=False)
    object.__setattr__(judge, "radii", lambda relevant: {})
    judge.measure("random", np.arange(20.0)[None], records.Writer(tmp_path / "own.jsonl", "mnist"))
    found = records.Records(tmp_path)
    kept = np.arange(1.0, 10)
    for kind, curve in (("insertion logit", kept), ("deletion logit", 20 - kept)):
        assert found.values("mnist", "random", kind, reference=0.0)[0] == pytest.approx(curve)
        assert found.values("mnist", "random", kind, reference=1.0)[0] == pytest.approx(np.full(9, 20.0))
    assert own.measured(found, "mnist", "random", "insertion logit", reference=0.0) == pytest.approx([40 * 5])


def test_connected_pieces(load, tmp_path):
    own = load("criteria")
    diagonal = np.eye(4, dtype=bool)
    corners = np.zeros((4, 4), dtype=bool)
    corners[[0, 0, 3, 3], [0, 3, 0, 3]] = True
    assert own.pieces(np.array([diagonal.ravel(), corners.ravel()]), (4, 4)).tolist() == [1, 4]
    records = load("records")
    writer = records.Writer(tmp_path / "own.jsonl", "mnist")
    writer.write("greedy-as", "pieces", [1, 2, 1])
    writer.write("greedy", "pieces", [4, 5, 4])
    greedy, banzhaf, *_ = load("conclusions").scattered(records.Records(tmp_path), "mnist")
    assert greedy == ["`greedy-as`", "`greedy`", "3", "1.3", "4.3", "+3.0 [+3.0, +3.0]", "yes"]
    assert banzhaf[2:] == ["–", "1.3", "–", "–", "–"]


def test_curves_are_drawn_as_means(load, tmp_path):
    figures, records = load("curve_figures"), load("records")
    writer = records.Writer(tmp_path / "own.jsonl", "mnist")
    writer.write("random", "insertion logit", [[1.0] * 9, [3.0] * 9, [50.0] * 9], reference=0.5)
    writer.write("counterfactual", "insertion logit", [[4.0] * 9, [6.0] * 9], reference=0.5)
    writer.write("greedy-as", "insertion logit", [1.0, 2.0], reference=0.5)  # areas alone
    found = figures.curves_of(records.Records(tmp_path), "mnist", "insertion logit", reference=0.5)
    assert {name: len(own) for name, own in found.items()} == {"random": 2, "counterfactual": 2}
    axes = figures.new_figure(2, 2).subplots()
    figures.draw(axes, found)
    means = {drawn.get_label(): drawn.lines[0].get_ydata().tolist() for drawn in axes.containers}
    assert means == {"random": [2.0] * 9, "counterfactual": [5.0] * 9}


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


def test_the_authors_orders(load, tmp_path):
    """Magnitudes of SHAP, and gradients not multiplied by the input for IG, if they were measured."""
    own, records = load("conclusions"), load("records")
    writer = records.Writer(tmp_path / "own.jsonl", "mnist")
    levels = {"greedy-as": 3.0, "shapley-sampling": 4.0, "shapley-sampling, magnitude": 2.0}
    levels |= {"integrated-gradients": 2.0, "integrated-gradients, magnitude": 5.0}
    for method, level in levels.items():
        writer.write(method, "insertion maximum logit", [level], reference=0.0)
    asked = ("mnist", "greedy-as", "insertion maximum logit")
    assert own.place(records.Records(tmp_path), *asked, reference=0.0) == (3, 3)
    assert own.place(records.Records(tmp_path), *asked, as_authors=True, reference=0.0) == (2, 3)
    writer.write("mean-gradient, magnitude", asked[-1], [1.0], reference=0.0)
    assert own.place(records.Records(tmp_path), *asked, as_authors=True, reference=0.0) == (1, 3)


def test_mean_gradients_are_not_multiplied_by_the_input(load):
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 2, bias=False))
    with torch.no_grad():
        module[1].weight.copy_(torch.tensor([[1.0, -2.0, 4.0, 0.5], [0.0, 0.0, 0.0, 0.0]]))
    image = np.array([[[[1.0, 0.0], [0.5, 0.0]]]], dtype=np.float32)
    found = load("run").mean_gradients(module, image, points=3)
    assert found["scores"].dtype == np.float16
    assert found["scores"][0] == pytest.approx([0.25, -0.5, 1.0, 0.125])


def test_a_stopped_row_is_resumed(load, tmp_path):
    run = load("run")
    images, asked = np.zeros((5, 1, 2, 2), dtype=np.float32), []

    def explain(images, seed):
        asked.append((len(images), seed))
        if seed == 4:
            asked.append("stopped")
            raise KeyboardInterrupt
        n = len(images)
        return {"scores": np.full((n, 4), seed), "passes": np.ones(n), "seconds": 2.0, "failed": 0}

    path = tmp_path / "row.part.npz"
    with pytest.raises(KeyboardInterrupt):
        run.explain_in_parts(path, images, 2, explain)
    assert np.load(path)["scores"][:, 0].tolist() == [0, 0, 2, 2]
    found = run.explain_in_parts(path, images, 2, lambda images, seed: explain(images, seed + 1))
    assert found["scores"][:, 0].tolist() == [0, 0, 2, 2, 5]
    assert asked == [(2, 0), (2, 2), (1, 4), "stopped", (1, 5)]


def test_places_of_the_paper(load):
    own, paper = load("conclusions"), load("paper")
    for published, places in ((paper.MNIST, (1, 1, 4, 6)), (paper.IMAGENET, (1, 2, 3, 2))):
        found = [
            own.paper_place(getattr(published, kind)[reference], kind)
            for reference in ("uniform", 0.0)
            for kind in ("insertion", "deletion")
        ]
        assert tuple(found) == places


def test_missing_values_of_records(load, tmp_path):
    own = load("records")
    own.Writer(tmp_path / "own.jsonl", "e").write("m", "x", [1.0, np.inf, 1 / 3])
    found = own.Records(tmp_path).values("e", "m", "x")
    np.testing.assert_array_equal(found, [1.0, np.nan, 0.333333])
    own.Writer(tmp_path / "own.jsonl", "e").write("m", "curve", [[1 / 3, np.nan]])
    np.testing.assert_array_equal(own.Records(tmp_path).values("e", "m", "curve"), [[0.3333, np.nan]])
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


def attacked(radii):
    """Stands in for `attack_radius`: the same radii of every input."""
    return lambda model, inputs, sets, **options: [SimpleNamespace(radii=np.array(radii)) for _ in inputs]


def test_sets_without_an_attack_on_a_table(load, monkeypatch):
    """They count as the row's distance from the mean row, and their share is told."""
    own = load("forest")
    monkeypatch.setattr(own.pertinent, "attack_radius", attacked([np.inf] + [1.0] * 8 + [2.0] * 9))
    found = own.radii(None, [0], np.arange(20.0)[None], reach=np.array([7.0]))
    assert found["robustness of relevant"] == pytest.approx(5 * (7 + 1) / 2 + 35)
    assert found["robustness of irrelevant"] == pytest.approx(80)
    assert found["relevant without attack"] == pytest.approx(1 / 9)
    assert found["irrelevant without attack"] == pytest.approx(0)


def test_sets_without_an_attack_on_an_image(load, monkeypatch):
    """They count as 1.5 times the largest radius that was found."""
    own = load("criteria")
    monkeypatch.setattr(own.pertinent, "attack_radius", attacked([np.inf, 1.0, 4.0, 2.0]))
    judge = own.Judge(None, None, np.zeros((1, 1, 2, 2)))
    found = judge.radii(np.zeros((1, 2, 4), dtype=bool))
    assert found["relevant"].tolist() == [[6.0, 1.0]] and found["irrelevant"].tolist() == [[4.0, 2.0]]


def test_differences_are_over_the_inputs_of_both(load):
    own = load("records")
    assert own.difference(np.array([3.0, 4.0, 9.0]), np.array([1.0, 2.0])).mean == pytest.approx(2.0)
    assert own.difference(None, np.ones(2)) is None
    assert own.shown(np.full(4, 0.5)) == "0.50 [0.50, 0.50]" and own.shown(np.array([np.nan])) == "–"
    assert load("tables")._mean_and_half(np.full(4, 3.4)) == "3 ± 0"


def test_verdicts_in_words(load):
    own = load("conclusions")
    up, down, open = (SimpleNamespace(mean=m, low=m - 1, high=m + 1) for m in (2.0, -2.0, 0.5))
    assert [own.holds(each) for each in (up, down, open, None)] == [
        "yes",
        "no, the reverse",
        "undecided",
        "–",
    ]
    assert own.signed(up) == "+2.0 [+1.0, +3.0]" and own.signed(down) == "-2.0 [-3.0, -1.0]"


def written(records, folder, which, **levels):
    """Records of both criteria by attack, the same radius at every size, and of insertion and deletion."""
    writer = records.Writer(folder / f"{which}.jsonl", which)
    for name, level in levels.items():
        method = name.replace("__", ", ").replace("_", "-")
        values = level + np.linspace(0, 0.01, 12)
        for metric in ("robustness of irrelevant", "robustness of relevant"):
            writer.write(method, metric, np.repeat(values[:, None], 9, axis=1))
        for reference in (0.0, 0.5, 1.0, "uniform"):
            writer.write(method, "insertion logit", values, reference=reference)
            writer.write(method, "deletion logit", -values, reference=reference)
    return records.Records(folder)


def test_greedy_as_against_the_papers_methods(load, tmp_path):
    own = load("conclusions")
    levels = {"greedy_as": 3.0, "greedy_as__relevant": 1.0, "gradient": 2.0, "gradient__magnitude": 4.0}
    found = written(load("records"), tmp_path, "mnist", **levels, random=2.5, shapley=5.0)
    wins = own.against(found, "mnist", "greedy-as", own.IRRELEVANT)
    assert wins == {"gradient": "win", "gradient, magnitude": "loss", "random": "win"}
    first = own.own_criteria(found, "mnist")[0]
    assert first[1:3] == ["irrelevant, its own", "2 wins, 0 draws, 1 loss"]
    assert first[3] == first[4] == "`gradient, magnitude`"  # it loses to it, which is the best of the others
    assert first[5:] == ["-40.0 [-40.0, -40.0]", "no, the reverse"]
    last = own.own_criteria(found, "mnist")[3]
    assert last[1:3] == ["relevant, its own", "3 wins, 0 draws, 0 losses"] and last[-1] == "yes"
    # By the better of its orders, or in that of the authors: gradients are ahead of Greedy-AS in both.
    for as_authors in (False, True):
        at = own.place(found, "mnist", "greedy-as", "insertion logit", as_authors=as_authors, reference=0.0)
        assert at == (2, 3)
    (shapley, *_) = own.standing(found, "mnist")
    assert shapley[1] == "win, 1 of 3" and shapley[2] == "loss, 3 of 3"
    (gradients,) = [row for row in own.farther(found, "mnist") if row[0] == "`gradient, magnitude`"]
    assert gradients[1:] == ["1 of 2"] * 6
    assert own.reference_name("uniform") == "uniform noise" and own.reference_name(0.5) == "0.5"


def test_variants_by_the_criterion_that_they_optimise(load, tmp_path):
    own = load("conclusions")
    levels = {"greedy_as": 3.0, "one_step_banzhaf": 2.0, "greedy": 4.0}
    levels |= {"greedy_as__relevant": 3.0, "one_step_banzhaf__relevant": 2.0, "greedy__relevant": 4.0}
    rows = own.variants(written(load("records"), tmp_path, "mnist", **levels), "mnist")
    assert [row[1] for row in rows] == ["irrelevant"] * 2 + ["relevant"] * 2
    assert [row[-1] for row in rows] == ["yes", "no, the reverse", "no, the reverse", "yes"]
    on_forest = own.on_forest(
        written(load("records"), tmp_path, "forest", greedy_as=3.0, lime=2.0, random=1.0), ["lime", "random"]
    )
    assert on_forest[0][1:3] == ["irrelevant", "`lime`"] and on_forest[0][-1] == "yes"


def test_orders_of_signed_scores(load):
    own = load("rows")
    assert own.lines(["gradient", "random"]) == ["gradient", "gradient, magnitude", "random"]
    assert own.authors_lines("gradient")[0] == "gradient, magnitude"
    assert own.authors_lines("leave-one-out")[0] == "leave-one-out, magnitude"
    assert own.authors_lines("counterfactual") == ("counterfactual",)


def test_curves_of_first_words(load):
    """With logits 6, 5, … 1 of six words: the first n alone, and all but these."""
    own = load("text_criteria")
    weights = np.arange(6.0, 0, -1) / 4
    module = torch.nn.Linear(6, 2, bias=False)
    with torch.no_grad():
        module.weight.copy_(torch.tensor(np.stack([np.zeros(6), weights])))
    model = pertinent.wrap(module, kind="table", output="logit", background=np.zeros((1, 6)))
    found = pertinent.explain(model, np.ones((1, 6)), "leave-one-out", removal="mean", progress=False)
    judged = pertinent.evaluate(model, found, [own.TopInsertion(), own.TopDeletion()], progress=False)
    sums = np.cumsum(weights)[:5]
    for name, logits in (("insertion", sums), ("deletion", weights.sum() - sums)):
        values = [row.value for row in judged.rows if row.metric == name]
        assert values == pytest.approx(logits.tolist())


def test_wins_on_texts(load, tmp_path):
    """Greedy-AS has larger radii and probabilities: better by the criteria of which more is better."""
    records, report = load("records"), load("text_report")
    writer = records.Writer(tmp_path / "text.jsonl", "AG News, BiLSTM")
    writer.write("–", "norm", np.full(8, 100.0))
    writer.write("–", "accuracy", [0.75])
    for row, level in (("greedy-as", 2.0), ("random", 1.0), ("gradient", 3.0)):
        for metric, removal in report.CRITERIA:
            curves = np.repeat((level + np.linspace(0, 0.1, 8))[:, None], 5, axis=1)
            writer.write(row, metric, curves, **({"removal": removal} if removal else {}))
    results = report.Results(records.Records(tmp_path), {}, {})
    found = report.verdicts(results, "BiLSTM", "greedy-as")
    assert [found["random"][own] for own in report.CRITERIA] == ["win", "loss"] * 3
    assert [found["gradient"][own] for own in report.CRITERIA] == ["loss", "win"] * 3
    assert report.counted(found, ("insertion", "")) == "1 win, 0 draws, 1 loss"
    assert report.counted(found, ("insertion", ""), ["random"]) == "1 win, 0 draws, 0 losses"
    more, less = report.ranks(results).splitlines()[2:4]  # of the criteria of which more, or less, is better
    assert "| `gradient`, `greedy-as`, `random`; last `random` |" in more
    assert "| `random`, `greedy-as`, `gradient`; last `gradient` |" in less
    (own,) = [line for line in report.conclusions(results).splitlines() if "its own" in line]
    assert own == "| BiLSTM | greedy-as | Robustness-S̄r, its own |" + 3 * " 1 win, 0 draws, 1 loss |"
    writer.write("greedy", "robustness of irrelevant", np.full((8, 5), 2.5))
    results = report.Results(records.Records(tmp_path), {}, {})
    (line,) = [own for own in report.ablation(results).splitlines() if own.startswith("| BiLSTM")]
    assert "`greedy-as` is better than `greedy` | Robustness-S̄r | -1.8" in line  # 4 × (2.05 − 2.5)
    assert line.endswith("| no, the reverse |")
    assert results.number("BiLSTM", "–", "accuracy") == 0.75
    assert np.isnan(results.number("MiniLM", "–", "accuracy"))
    assert report._ends(["a", "b", "c", "d"]) == "`a`, `b`, `c`; last `d`"


def test_explained_texts_are_balanced_and_of_a_length(load):
    own = load("text_models")
    words = " ".join(["word"] * own.WORDS[0])
    labels = [0, 0, 0, 1, 2, 3, 1, 2, 3]
    texts = ["too short", *[f"{words} {i}"[: -1 - len(str(i))] for i in range(1, 9)]]
    found = own.explained_texts(own.Texts(texts, labels), 6)
    assert found.labels == [0, 1, 2, 3, 0, 1] and "too short" not in found.texts


def test_logits_of_kept_squares(load):
    """A photograph of two squares, three colours: each square is kept or replaced as a whole."""
    criteria = load("criteria")
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(24, 2, bias=False))
    with torch.no_grad():
        module[1].weight.copy_(torch.stack([torch.ones(24), torch.zeros(24)]))
    images = np.full((3, 3, 2, 4), 0.5, dtype=np.float32)
    images[1] = 1.0
    judge = criteria.Judge(None, module, images, features="patches:2", batch=2)
    kept = np.tile(np.array([[True, False], [True, True]]), (3, 1, 1))
    found = judge.logits(kept, 0.25)[" logit"]
    assert found[0] == pytest.approx([12 * 0.5 + 12 * 0.25, 24 * 0.5])
    assert found[1] == pytest.approx([12 * 1.0 + 12 * 0.25, 24 * 1.0])
    assert judge.logits(kept, "uniform")[" logit"][2, 0] == pytest.approx(12 * 0.5 + 12 * 0.5, abs=1.0)


def test_photographs_that_are_classified_rightly(load, tmp_path):
    own = load("photo")
    (tmp_path / "imagenet_synsets.txt").write_text("n01\nn02\nn03\n")
    assert load("photo_model").true_class(tmp_path, "n02_great_grey_owl") == 1
    answers = np.array([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.0, 0.1, 0.9]])
    every = {"n02_owl": None, "n03_newt": None, "n03_eft": None}
    found = own.rightly_classified(answers, ["a", "b", "c"], every, tmp_path)
    assert found == [("n02_owl", "b", 0.7), ("n03_eft", "c", 0.9)]


def test_top_squares(load):
    labels = np.repeat(np.repeat(np.arange(6).reshape(2, 3), 2, axis=0), 2, axis=1)
    top = load("photo_figure").top_squares(np.array([0.0, 3.0, 1.0, -5.0, 2.0, 0.5]), labels)
    assert set(labels[top]) == {1, 4} and top.sum() == 8  # a fifth of six, rounded up


def test_rows_of_photographs(load):
    rows = load("rows").photo_rows(6)
    assert rows["greedy-as"].settings["attack_steps"] == 6 and not rows["gradient"].signed
    assert rows["shapley-sampling"].settings["budget"] == 10 * 49 + 1
    assert rows["thompson-search"].settings["sparsity"] == list(load("rows").SIZES)


def test_images_that_cannot_be_explained_have_no_order(load, monkeypatch, capsys):
    own = load("run")

    class Found(list):
        failures = (SimpleNamespace(index=0, reason="no attack"),)

    found = Found([SimpleNamespace(index=1, scores=np.array([1.0, 2.0]), evaluations=7)])
    monkeypatch.setattr(own.pertinent, "explain", lambda *_, **options: found)
    measured = own.explained(None, np.zeros((2, 1, 1, 2)), load("rows").ROWS["greedy-as"], subsets=5)
    assert measured["scores"].tolist() == [[0.0, 0.0], [0.5, 1.0]]  # of the largest
    assert measured["passes"].tolist() == [7] and measured["failed"] == 1
    assert "image 0: no attack" in capsys.readouterr().out


def test_pictures_take_magnitudes_and_colour_what_is_relevant(load, tmp_path):
    own = load("figures")
    np.savez(tmp_path / "gradient.npz", scores=np.array([[-2.0, 1.0]]))
    assert own.scores_of(tmp_path, "gradient").tolist() == [[-2.0, 1.0]]
    assert own.scores_of(tmp_path, "gradient, magnitude").tolist() == [[2.0, 1.0]]
    relevant = np.arange(784) < 2
    found = own.coloured(np.ones(784), relevant, np.arange(784) < 1).reshape(784, 3)
    assert found[0] == pytest.approx(0.25 * 0.75 + 0.75 * np.array(own.LIGHTER))
    assert found[1] == pytest.approx(0.25 * 0.75 + 0.75 * np.array(own.DARKER))
    assert found[2] == pytest.approx([0.75] * 3)


def test_sanity_of_attacks_and_of_other_methods(load):
    """The nearest other decision of a linear network changes each pixel by the size of its weight."""
    own = load("checks")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(9, 2))
    model = pertinent.wrap(module.eval(), kind="image", output="logit", classes=["no", "yes"])
    copied = own.RandomisedModel(model, 0)
    copied.randomise(own.layers_of(model)[0])
    sizes = [
        np.abs(np.diff(each[1].weight.detach().numpy(), axis=0)[0]) for each in (module, copied.model.module)
    ]
    images, options = [np.full((1, 3, 3), 0.5, dtype=np.float32)], {"features": "pixels", "progress": False}
    attack = own.explainers.get("counterfactual")()
    (found,) = own.correlations(model, images, attack, options | {"removal": "constant"})
    assert found.spearman == pytest.approx(spearman(np.stack(sizes))[0, 1])
    random = own.explainers.get("random")()
    (found,) = own.correlations(model, images, random, options | {"removal": "constant"})
    assert found.spearman == 1.0


def test_marked_words_become_spans(load):
    own = load("marked_sets").of_words(["a", "slow", "film"], 1, [False, True, True])
    assert own.text == "a slow film" and own.spans == [(2, 6), (7, 11)] and own.label == 1
    assert [own.text[start:end] for start, end in own.spans] == ["slow", "film"]


def test_passages_are_whole_sentences(load, monkeypatch):
    own = load("marked_sets")
    monkeypatch.setattr(own, "LONGEST", 5)
    words = ["a", "b", ".", "c", "d", ".", "e", "f", "g", "h", "i", "j", ".", "k", "."]
    assert [words[part] for part in own.passages(words)] == [
        ["a", "b", "."],
        ["c", "d", "."],
        ["k", "."],  # the sentence before is longer than a passage may be
    ]
    words = ["a", "b", ".", "c", "d"]  # the end is an end, too
    assert [words[part] for part in own.passages(words)] == [words]


def test_words_that_most_people_marked(load):
    own = load("marked_sets")
    assert own.majority([[1, 0, 1], [1, 0, 0], [1, 0, 0]], 3) == [True, False, False]
    assert own.majority([[1, 0], [0, 1]], 2) == [True, True]  # half of them
    assert own.majority([[1, 0]], 3) == [False] * 3  # of another length than the words
    marked = [True] + [False] * 9
    assert own.is_telling(marked) and not own.is_telling(marked[:9]) and not own.is_telling([True] * 10)


def test_precision_of_marked_words(load, tmp_path):
    """The paper's mAP is the mean of its precisions; average precision is over the whole ranking."""
    records, report, paper = load("records"), load("marks_report"), load("text_paper")
    for numbers in paper.TABLE_10.values():
        assert len(numbers) == 1 or np.mean(numbers[:5]) == pytest.approx(numbers[5], abs=0.012)
    writer = records.Writer(tmp_path / "marks.jsonl", report.HATE)
    for row, level in (("greedy-as", 0.5), ("random", 0.25), ("gradient", 0.75)):
        writer.write(row, "precision", np.tile([level, 0.5, 0.5, 0.5, level], (4, 1)))
        writer.write(row, "average precision", np.full(4, level))
    found = records.Records(tmp_path, "**/marks.jsonl")
    assert report.values(found, report.HATE, "random", report.PAPERS_MEAN) == pytest.approx(np.full(4, 0.4))
    gap = report.ahead(found, report.HATE, "greedy-as", "gradient", report.AVERAGE)
    assert gap.mean == pytest.approx(-0.25) and report.signed(gap) == "-0.25 [-0.25, -0.25]"
    lines = report.findings(found).splitlines()
    assert "ahead of `gradient`, the best of the paper's others | -0.10" in lines[2]
    assert lines[2].endswith("no, the reverse |") and lines[3].endswith("yes |")


def test_more_subsets_beside_the_default_and_the_best(load, tmp_path):
    records, report = load("records"), load("marks_report")
    writer = records.Writer(tmp_path / "marks.jsonl", report.MORE)
    for row, level in (("greedy-as", 0.5), (report.MANY, 0.6), ("random", 0.2), ("gradient", 0.7)):
        writer.write(row, "precision", np.full((4, 5), level))
        writer.write(row, "average precision", np.full(4, level))
    found = records.Records(tmp_path, "**/marks.jsonl")
    assert report.best_of_the_others(found, report.MORE) == "gradient"
    assert report.best_of_the_others(found, report.HATE) is None
    *_, default, best = report.more_subsets(found).splitlines()
    assert default.startswith(f"| `{report.MANY}` | `greedy-as` | +0.10 [+0.10, +0.10] | win | +0.10")
    assert best.startswith(f"| `{report.MANY}` | `gradient` | -0.10 [-0.10, -0.10] | loss | -0.10")


def test_explained_are_texts_whose_class_is_predicted(load, monkeypatch):
    own = load("marks")
    marked = [load("marked_sets").Marked(str(i), label, []) for i, label in enumerate((0, 1, 1, 0))]
    found = [SimpleNamespace(index=i, target=1) for i in (2, 0, 1, 3)]
    monkeypatch.setattr(own.pertinent, "explain", lambda *_, **options: found)
    assert [one.text for one in own.rightly_classified(None, marked, 5)] == ["1", "2"]
    assert [one.text for one in own.rightly_classified(None, marked, 1)] == ["1"]


def test_what_equals_the_reference_counts_for_nothing(load):
    """Theorems A.1 to A.4: log-odds 8 (0.5 − x₀) + 2 (x₁ − 0.5) at x = (0, 1, 1, 0.5)."""
    own = load("reference_bias")
    found = own.scores(own.model())
    for method, (theorem, _) in own.METHODS.items():
        if theorem != "–":  # x₁ alone, by 2
            assert found[method] == pytest.approx([0.0, 2.0, 0.0, 0.0], abs=1e-5), method
        else:
            assert np.abs(found[method]).argmax() == own.DECISIVE, method
    assert found["gradient"] == pytest.approx(own.WEIGHTS, abs=1e-5)
    assert pytest.approx(8 * 0.5 + 2 * 0.5) == own.WEIGHTS @ own.INPUT + own.BIAS
    # The nearest other decision is along the weights, 5 / 68 of each; in standard deviations, which are 0.5.
    assert found["counterfactual"] == pytest.approx(np.abs(own.WEIGHTS) * 5 / 68 / 0.5, rel=1e-2)
    curves = own.curves(own.model(), [0, 1, 2, 3])
    for kind, (before, after) in {"insertion": (3, 5), "deletion": (5, 3)}.items():
        logits = np.array([before, before, after, after, after])
        assert curves[kind] == pytest.approx(1 / (1 + np.exp(-logits)), abs=1e-5)


def test_averages_over_references(load):
    own = load("reference_bias")
    references = np.array([[0.0, 0.0], [2.0, 4.0]])
    found = own.averaged_reference(np.array([1.0, 1.0]), references, np.array([3.0, 5.0]))
    assert found.tolist() == [0.0, -5.0]


def test_gains_of_a_scale(load, tmp_path):
    """Less is better of sufficiency and deletion; bold where the interval is on one side of 0."""
    own, records = load("scales"), load("records")
    assert own.gain("insertion", np.full(5, 0.5), np.full(5, 0.4)) == "**+10.0 [+10.0, +10.0]**"
    assert own.gain("deletion", np.full(5, 0.5), np.full(5, 0.4)) == "**-10.0 [-10.0, -10.0]**"
    assert own.gain("deletion", np.array([0.5, 0.3]), np.array([0.4, 0.4])).startswith("+0.0 [")
    writer = records.Writer(tmp_path / "scales.jsonl", "m")
    writer.write("–", "probability", [0.5] * 5 + [0.999] * 20)
    for method in own.METHODS:
        for metric in own.METRICS:
            for scale, level in (("natural", 0.4), ("logit", 0.4), ("raw", 0.5)):
                writer.write(method, metric, [level] * 25, scale=scale)
    rows = own.verdict_rows(records.Records(tmp_path, "scales.jsonl"), "m")
    assert {row[0] for row in rows} == {"m (80% with p > 0.99)"} and len(rows) == 6
    assert rows[1][2:4] == ["`raw`", "**-10.0 [-10.0, -10.0]**"] and rows[0][3] == "+0.0 [+0.0, +0.0]"


def test_checks_beside_the_papers(load, tmp_path):
    """Greedy-AS minus the other; "agrees" if the sign is the paper's."""
    own, records = load("conclusions"), load("records")
    writer = records.Writer(tmp_path / "checks.jsonl", "mnist")
    for row, level in (("greedy-as", 0.3), ("gradient", 0.5), ("expected-gradients", 0.4)):
        writer.write(row, "sanity", np.full(9, level / 3))
        writer.write(row, "sanity of magnitudes", level + np.linspace(0, 0.01, 9))
        writer.write(row, "sensitivity", level + np.linspace(0, 0.01, 9))
    rows = own.checks(records.Records(tmp_path), "mnist", ["gradient", "expected-gradients", "leave-one-out"])
    assert rows[0][1:4] == ["-0.12", "-0.20 [-0.20, -0.20]", "yes"]
    assert rows[0][4:] == ["+0.16", "-0.20 [-0.20, -0.20]", "no, the reverse"]
    assert rows[1][1:4] == ["", "-0.10 [-0.10, -0.10]", ""]  # Table 7 has no expected gradients
    assert rows[2][2] == "–" and rows[2][3] == ""
    lines = load("tables").checked(records.Records(tmp_path)).splitlines()
    line = "| `greedy-as` | 0.18 | 0.10 [0.10, 0.10] | 0.30 [0.30, 0.31] | 0.61 | 0.30 [0.30, 0.31] |"
    assert line in lines
    both = SimpleNamespace(mean=0.1, low=-0.1, high=0.3)
    assert own.agrees(0.2, both) == "undecided" and own.agrees(None, both) == ""


def test_an_lstm_with_pretrained_vectors_learns_none_of_them(load, tmp_path):
    from transformers import BertConfig, BertModel

    from tests import tiny

    own = load("text_models")
    torch.manual_seed(0)
    tokenizer = tiny.tokenizer()
    tokenizer.save_pretrained(tmp_path)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
    )
    encoder = BertModel(config)
    encoder.save_pretrained(tmp_path)
    texts = own.Texts(["w1 w2", "w3 w4"] * 4, [0, 1] * 4)
    model = own.bilstm(texts, epochs=1, device="cpu", encoder=tmp_path, width=4)
    found = model.model.get_input_embeddings().weight
    torch.testing.assert_close(found.detach(), encoder.get_input_embeddings().weight.detach())
    assert not found.requires_grad and model.model.lstm.input_size == 8


def test_images_are_read_as_they_were_written(load, tmp_path):
    own = load("mnist")
    images = np.arange(2 * 28 * 28, dtype=np.int64).reshape(2, 28, 28) % 256
    for kind, values in (("images-idx3", images), ("labels-idx1", np.array([7, 2]))):
        head = bytes([0, 0, 8, values.ndim]) + b"".join(n.to_bytes(4, "big") for n in values.shape)
        with gzip.open(tmp_path / f"t10k-{kind}-ubyte.gz", "wb") as file:
            file.write(head + values.astype(np.uint8).tobytes())
    found, labels = own.read_set(tmp_path, "t10k")
    assert found.shape == (2, 1, 28, 28) and labels.tolist() == [7, 2]
    np.testing.assert_allclose(255 * found[:, 0], images, atol=1e-4)
    order = np.random.default_rng(0).permutation(2)
    np.testing.assert_array_equal(load("run").chosen_images(tmp_path, 2), found[order])


def test_the_authors_network_normalises(load):
    own = load("mnist")
    module = own.authors_network()
    assert module[0](torch.tensor([0.1307, 0.4388])).tolist() == pytest.approx([0.0, 1.0])
    assert sum(p.numel() for p in module.parameters()) == 520 + 25_050 + 400_500 + 5010


def test_photographs_are_normalised(load):
    pixels = torch.tensor([127 / 255, 1.0, 0.0])
    assert load("photo_model").Normalized()(pixels).tolist() == pytest.approx([0.0, 1.0, -127 / 128])


def test_settings_of_a_run(load):
    """Greedy-AS draws subsets and has no scale; baselines have a scale, and draw none."""
    own, rows = load("run"), load("rows").ROWS
    assert own.settings_of(rows["greedy-as"], 7, "raw") == {"chosen": 0.45, "subsets": 7}
    assert own.settings_of(rows["integrated-gradients"], 7, "raw") == {"points": 100, "scale": "raw"}
    assert own.settings_of(rows["greedy"], 7, "raw") == {"chosen": 0.45, "step": 0.05}
    assert own.file_name("counterfactual, 20% of pixels") == "counterfactual-20-percent-of-pixels"


def test_a_row_is_carried_out_once_and_measured_in_both_orders(load, tmp_path):
    own, records = load("run"), load("records")
    asked = []

    def explain(images, seed):
        asked.append(1)
        scores = np.array([[-2.0, 1.0]])
        return {"scores": scores, "seconds": np.array(0.5), "passes": np.array([3]), "failed": np.array(0)}

    class Sum:
        images = np.zeros((1, 1, 1, 2))

        def measure(self, name, scores, writer):
            writer.write(name, "sum", scores.sum(axis=1))

    results = tmp_path / "mnist"
    results.mkdir()
    for _ in range(2):
        own.carry_out("gradient", load("rows").ROWS["gradient"], explain, Sum(), results=results)
    found = records.Records(results)
    assert len(asked) == 1 and found.values("mnist", "gradient", "passes").tolist() == [3]
    assert found.values("mnist", "gradient", "sum").tolist() == [-1.0]
    assert found.values("mnist", "gradient, magnitude", "sum").tolist() == [3.0]


def test_places_by_reference_value(load, tmp_path):
    own = load("conclusions")
    levels = {"greedy_as": 3.0, "gradient": 2.0, "gradient__magnitude": 1.0, "random": 4.0}
    found = written(load("records"), tmp_path, "mnist", **levels)
    rows = own.by_reference(found, "mnist", " logit")
    (first,) = [row for row in rows if row[:2] == ["insertion", "uniform noise"]]
    assert first[2:6] == ["1 of 9", "2 wins, 0 draws, 1 loss", "2 of 3", "2 of 3"] and first[-1] == "`random`"
    rows = own.by_reference(
        written(load("records"), tmp_path, "fashion-mnist", **levels), "fashion-mnist", " logit"
    )
    (first,) = [row for row in rows if row[:2] == ["deletion", "0.5"]]
    assert first[2:4] == ["2 wins, 0 draws, 1 loss", "2 of 3"]  # the paper has no Fashion-MNIST


def test_tables_beside_the_papers(load, tmp_path):
    tables, records = load("tables"), load("records")
    writer = records.Writer(tmp_path / "own.jsonl", "photographs")
    for metric, level in (("robustness of irrelevant", 1.0), ("robustness of relevant", 2.0)):
        writer.write("greedy-as", metric, np.full((4, 9), level))
    writer.write("greedy-as", "insertion logit", np.full(4, 7.0), reference=0.5)
    writer.write("greedy-as", "passes", [10, 20])
    writer.write("greedy-as", "seconds", [0.5])
    found = records.Records(tmp_path)
    line = tables.robustness("photographs", ["greedy-as", "random"], found).splitlines()[-1]
    assert line == "| `greedy-as` | 4 | 31.62 | 40.0 [40.0, 40.0] | 43.97 | 80.0 [80.0, 80.0] | 15 | 0.500 |"
    assert "| 7 ± 0 (306) |" in tables.insertion_and_deletion("photographs", " logit", ["greedy-as"], found)


def test_reviews_are_cut_where_they_are_marked(load, tmp_path):
    own = load("marked_sets")
    words = ["w"] * 11 + ["."] + ["v"] * 13 + ["."]
    rows = {"document": [" ".join(words)] * 8, "label": np.zeros(8, dtype=np.int8)}
    rows["evidence_spans"] = [[[2, 4]], [[14, 15]], *[[[0, 1]]] * 6]
    own.LONGEST = 15
    for split in ("train", "val"):
        write_frame(tmp_path / "eraser_movies" / f"{split}.parquet", **rows)
    training, explained = own.film_reviews(tmp_path)
    assert len(training) == 6 and len(explained) == 2 + 8  # a quarter of the training reviews, and all others
    assert training[0].text == " ".join(words[:12]) and training[0].spans == [(4, 5), (6, 7)]
    assert training[1].text == " ".join(words[12:]) and training[1].spans == [(4, 5)]


def test_claims_stand_before_their_evidence(load, tmp_path):
    own = load("marked_sets")
    own.LONGEST = 16
    words = ["w"] * 9 + ["."] + ["v"] * 6 + ["."]
    rows = {
        "query": ["a claim"] * 3,
        "document": [" ".join(words)] * 3,
        "label": np.array([0, 1, 1], np.int8),
    }
    rows["evidence_spans"] = [[[10, 17]], [[0, 1]], [[0, 10]]]  # the last: most words are marked
    for split in ("val", "test"):
        write_frame(tmp_path / "eraser_fever" / f"{split}.parquet", **rows)
    training, explained = own.claims(tmp_path)
    assert [one.label for one in training] == [0, 1, 1] and [one.label for one in explained] == [1]
    assert training[0].text == "a claim " + " ".join(words[10:]) and training[0].spans[0] == (8, 9)
    assert explained[0].text == "a claim " + " ".join(words[:10]) and explained[0].spans == [(8, 9)]


def test_words_of_one_text_are_unknown_to_the_lstm(load):
    tokenizer = load("text_models").word_tokenizer(["a cat, a dog", "A cat"])
    assert tokenizer.convert_ids_to_tokens(tokenizer("a cat dog")["input_ids"]) == ["a", "cat", "[UNK]"]


def test_methods_without_the_decisive_feature(load):
    rows = load("reference_bias").theorem_rows({"shapley": np.array([0.0, 2.0, 0.0, 0.0])})
    assert rows == [["`shapley`", "A.3", "+0.00", "+2.00", "+0.00", "+0.00", "yes", "2 of 4"]]

"""Numbers of `experiments/hsieh2021` on cases with a known answer."""

import gzip
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pertinent
from pertinent.stats import spearman
from tests.miniature import experiment, write_frame

REFERENCES = (0.0, 0.5, 1.0, "uniform")


@pytest.fixture
def load():
    with experiment("hsieh2021") as importer:
        yield importer


def written(load, folder, rows):
    """Records of the rows, which are written to a file."""
    load("experiments.shared.stages").write_record(folder / f"{rows.experiment}.jsonl", rows.rows)
    return load("records").Records(folder)


def by_levels(load, folder, name, **levels):
    """Criteria of rows: the same radius at every size, and insertion and deletion; larger is better."""
    rows = load("records").Rows(name)
    for row, level in levels.items():
        method = row.replace("__", ", ").replace("_", "-")
        values = level + np.linspace(0, 0.01, 12)
        for metric in ("robustness of irrelevant", "robustness of relevant"):
            rows.add(method, metric, np.repeat(values[:, None], 9, axis=1))
        for reference in REFERENCES:
            rows.add(method, "insertion logit", values, reference=reference)
            rows.add(method, "deletion logit", -values, reference=reference)
    return load("comparisons").Experiment(written(load, folder, rows), name)


def cells(line):
    return line.strip("| ").split(" | ")


# -- criteria and records -----------------------------------------------------------------------


def test_relevant_sets_have_the_largest_scores(load):
    sets = load("criteria").relevant_sets(np.array([[0.0, 5.0, -9.0, *np.linspace(1, 2, 17)]]))
    assert sets.shape == (1, 9, 20)
    assert sets.sum(axis=2).tolist() == [list(range(1, 10))]  # 5% to 45% of 20
    assert np.flatnonzero(sets[0, 0]).tolist() == [1]
    assert np.flatnonzero(sets[0, 2]).tolist() == [1, 18, 19]
    assert (sets[0, 1:] >= sets[0, :-1]).all()


def test_areas_are_over_percent(load):
    """A constant radius of 1 from 5% to 45% has an area of 40 (Section 3.2)."""
    area = load("criteria").area
    assert area(np.ones((2, 9))) == pytest.approx([40, 40])
    assert area(np.arange(9.0)) == pytest.approx(5 * (0.5 * 0 + sum(range(1, 8)) + 0.5 * 8))


def test_logits_of_kept_pixels(load):
    """Of a linear network the logit is the sum of the kept pixels and of the reference values."""
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
    """A network sums twenty ones, of which 5% to 45% are kept, or all others."""
    criteria, rows = load("criteria"), load("records").Rows("mnist")
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(20, 2, bias=False))
    with torch.no_grad():
        module[1].weight.copy_(torch.stack([torch.ones(20), torch.zeros(20)]))
    judge = criteria.Judge(None, module, np.ones((1, 1, 4, 5), dtype=np.float32), probabilities=False)
    object.__setattr__(judge, "radii", lambda relevant: {})
    judge.measure("random", np.arange(20.0)[None], rows)
    own = load("comparisons").Experiment(written(load, tmp_path, rows), "mnist")
    kept = np.arange(1.0, 10)
    for kind, curve in (("insertion logit", kept), ("deletion logit", 20 - kept)):
        assert own.values("random", kind, reference=0.0)[0] == pytest.approx(curve)
        assert own.values("random", kind, reference=1.0)[0] == pytest.approx(np.full(9, 20.0))
    assert own.areas("random", "insertion logit", reference=0.0) == pytest.approx([40 * 5])


def test_missing_values_of_records(load, tmp_path):
    rows = load("records").Rows("e")
    rows.add("m", "x", [1.0, np.inf, 1 / 3])
    rows.add("m", "curve", [[1 / 3, np.nan]])
    records = written(load, tmp_path, rows)
    np.testing.assert_array_equal(records.values("e", "m", "x"), [1.0, np.nan, 0.333333])
    np.testing.assert_array_equal(records.values("e", "m", "curve"), [[0.3333, np.nan]])
    assert records.values("e", "m", "y") is None and records.raw("e", "m", "x") == {
        0: 1.0,
        1: None,
        2: 0.333333,
    }
    assert load("tables").mean_and_half(np.full(4, 3.4)) == "3 ± 0"


def attacks(radii):
    """A function in the place of `attack_radius`: the same radii for every input."""
    return lambda model, inputs, sets, **options: [SimpleNamespace(radii=np.array(radii)) for _ in inputs]


def test_sets_without_an_attack_on_an_image(load, monkeypatch):
    """They count as 1.5 times the largest radius."""
    criteria = load("criteria")
    monkeypatch.setattr(criteria.pertinent, "attack_radius", attacks([np.inf, 1.0, 4.0, 2.0]))
    radii = criteria.Judge(None, None, np.zeros((1, 1, 2, 2))).radii(np.zeros((1, 2, 4), dtype=bool))
    assert radii["relevant"].tolist() == [[6.0, 1.0]] and radii["irrelevant"].tolist() == [[4.0, 2.0]]


def test_sets_without_an_attack_on_a_table(load, monkeypatch):
    """They count as the row's distance from the mean row, and their share is recorded."""
    forest = load("forest")
    monkeypatch.setattr(forest.pertinent, "attack_radius", attacks([np.inf] + [1.0] * 8 + [2.0] * 9))
    areas = forest.areas_of_radii(None, [0], np.arange(20.0)[None], reach=np.array([7.0]))
    assert areas["robustness of relevant"] == pytest.approx(5 * (7 + 1) / 2 + 35)
    assert areas["robustness of irrelevant"] == pytest.approx(80)
    assert areas["relevant without attack"] == pytest.approx(1 / 9)
    assert areas["irrelevant without attack"] == pytest.approx(0)


# -- explaining ---------------------------------------------------------------------------------


def test_mean_gradients_are_not_multiplied_by_the_input(load):
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 2, bias=False))
    with torch.no_grad():
        module[1].weight.copy_(torch.tensor([[1.0, -2.0, 4.0, 0.5], [0.0, 0.0, 0.0, 0.0]]))
    image = np.array([[[[1.0, 0.0], [0.5, 0.0]]]], dtype=np.float32)
    scores = load("images").mean_gradients(module, image, points=3)["scores"]
    assert scores.dtype == np.float16 and scores[0] == pytest.approx([0.25, -0.5, 1.0, 0.125])


def test_a_stopped_row_is_resumed(load, tmp_path):
    images, calls = np.zeros((5, 1, 2, 2), dtype=np.float32), []
    explain_in_parts = load("images").explain_in_parts

    def explain(images, seed):
        calls.append((len(images), seed))
        if seed == 4:
            raise KeyboardInterrupt
        n = len(images)
        return {"scores": np.full((n, 4), seed), "passes": np.ones(n), "seconds": 2.0, "failed": 0}

    path = tmp_path / "row.part.npz"
    with pytest.raises(KeyboardInterrupt):
        explain_in_parts(path, images, 2, explain)
    assert np.load(path)["scores"][:, 0].tolist() == [0, 0, 2, 2]
    joined = explain_in_parts(path, images, 2, lambda images, seed: explain(images, seed + 1))
    assert joined["scores"][:, 0].tolist() == [0, 0, 2, 2, 5]
    assert calls == [(2, 0), (2, 2), (1, 4), (1, 5)]


def test_images_that_cannot_be_explained_have_no_order(load, monkeypatch, capsys):
    images = load("images")

    class Explanations(list):
        failures = (SimpleNamespace(index=0, reason="no attack"),)

    explanations = Explanations([SimpleNamespace(index=1, scores=np.array([1.0, 2.0]), evaluations=7)])
    monkeypatch.setattr(images.pertinent, "explain", lambda *_, **options: explanations)
    own, row = images.ImageSet(None, None, np.zeros((2, 1, 1, 2))), load("rows").ROWS["greedy-as"]
    options = {"subsets": 5, "scale": "raw", "features": "pixels", "seed": 0}
    result = images.explain_images(own, own.images, row, **options)
    assert result["scores"].tolist() == [[0.0, 0.0], [0.5, 1.0]]  # multiples of the largest
    assert result["passes"].tolist() == [7] and result["failed"] == 1
    assert "image 0: no attack" in capsys.readouterr().out


def test_signed_rows_are_measured_in_both_orders(load, tmp_path, monkeypatch):
    images = load("images")
    (tmp_path / "mnist").mkdir()
    stored = {"scores": [[-2.0, 1.0]], "seconds": 0.5, "passes": [3], "failed": 0}
    np.savez(tmp_path / "mnist" / "gradient.npz", **stored)

    class Sum(SimpleNamespace):
        def measure(self, name, scores, rows):
            rows.add(name, "sum", scores.sum(axis=1))

    monkeypatch.setattr(images, "Judge", lambda *_, **options: Sum())
    own, run = images.ImageSet(None, None, None), load("experiments.shared.stages").Run(results=tmp_path)
    rows = images.measure_row(
        run, lambda run: own, "mnist", "gradient", load("rows").ROWS["gradient"], judge={}
    )
    values = {(row["method"], row["metric"]): row["value"] for row in rows}
    assert values["gradient", "passes"] == 3 and values["gradient", "sum"] == -1
    assert values["gradient, magnitude", "sum"] == 3


def test_settings_of_rows(load):
    """Greedy-AS draws subsets and has no scale; baselines have a scale, and draw none."""
    images, rows = load("images"), load("rows")
    assert images.settings_of(rows.ROWS["greedy-as"], 7, "raw") == {"chosen": 0.45, "subsets": 7}
    assert images.settings_of(rows.ROWS["integrated-gradients"], 7, "raw") == {"points": 100, "scale": "raw"}
    assert images.settings_of(rows.ROWS["greedy"], 7, "raw") == {"chosen": 0.45, "step": 0.05}
    assert images.file_name("counterfactual, 20% of pixels") == "counterfactual-20-percent-of-pixels"
    photographs = rows.photo_rows(6)
    assert photographs["greedy-as"].settings["attack_steps"] == 6 and not photographs["gradient"].signed
    assert photographs["shapley-sampling"].settings["budget"] == 10 * 49 + 1
    assert photographs["thompson-search"].settings["sparsity"] == list(rows.SIZES)
    assert rows.lines(["gradient", "random"]) == ["gradient", "gradient, magnitude", "random"]
    assert rows.authors_lines("gradient")[0] == "gradient, magnitude"
    assert rows.authors_lines("counterfactual") == ("counterfactual",)


def test_sanity_of_attacks_and_of_other_methods(load):
    """The nearest other decision of a linear network changes each pixel by the magnitude of its weight."""
    checks = load("checks")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(9, 2))
    model = pertinent.wrap(module.eval(), kind="image", output="logit", classes=["no", "yes"])
    copied = checks.RandomisedModel(model, 0)
    copied.randomise(checks.layers_of(model)[0])
    sizes = [
        np.abs(np.diff(own[1].weight.detach().numpy(), axis=0)[0]) for own in (module, copied.model.module)
    ]
    images = load("images").ImageSet(module, model, np.full((1, 1, 3, 3), 0.5, dtype=np.float32))
    options = {"features": "pixels", "removal": "constant", "progress": False}
    (attack,) = checks.correlations(images, checks.explainers.get("counterfactual")(), options)
    assert attack.spearman == pytest.approx(spearman(np.stack(sizes))[0, 1])
    (random,) = checks.correlations(images, checks.explainers.get("random")(), options)
    assert random.spearman == 1.0


def test_images_and_networks(load, tmp_path):
    mnist, images = load("mnist"), np.arange(2 * 28 * 28, dtype=np.int64).reshape(2, 28, 28) % 256
    for kind, values in (("images-idx3", images), ("labels-idx1", np.array([7, 2]))):
        head = bytes([0, 0, 8, values.ndim]) + b"".join(n.to_bytes(4, "big") for n in values.shape)
        with gzip.open(tmp_path / f"t10k-{kind}-ubyte.gz", "wb") as file:
            file.write(head + values.astype(np.uint8).tobytes())
    pixels, labels = mnist.read_images(tmp_path, "t10k")
    assert pixels.shape == (2, 1, 28, 28) and labels.tolist() == [7, 2]
    np.testing.assert_allclose(255 * pixels[:, 0], images, atol=1e-4)
    order = np.random.default_rng(0).permutation(2)
    np.testing.assert_array_equal(mnist.random_test_images(tmp_path, 2), pixels[order])
    module = mnist.authors_network()
    assert module[0](torch.tensor([0.1307, 0.4388])).tolist() == pytest.approx([0.0, 1.0])
    assert sum(p.numel() for p in module.parameters()) == 520 + 25_050 + 400_500 + 5010
    photographs = load("photographs")
    own = mnist.Normalized(photographs.MEAN, photographs.DEVIATION)
    assert own(torch.tensor([127 / 255, 1.0, 0.0])).tolist() == pytest.approx([0.0, 1.0, -127 / 128])


# -- comparisons and tables ---------------------------------------------------------------------


def test_verdicts_and_places(load, tmp_path):
    """Larger is better of robustness of irrelevant pixels and of insertion, smaller of the others."""
    comparisons, rows = load("comparisons"), load("records").Rows("mnist")
    for method, level in (("greedy-as", 3.0), ("random", 1.0), ("leave-one-out", 2.0)):
        spread = np.linspace(0, 0.1, 20)
        for metric in (comparisons.IRRELEVANT, comparisons.RELEVANT):
            rows.add(method, metric, np.repeat((level + spread)[:, None], 9, axis=1))
        for kind in ("insertion logit", "deletion logit"):
            rows.add(method, kind, level + spread, reference=0.0)
    own = comparisons.Experiment(written(load, tmp_path, rows), "mnist")
    assert own.areas("random", comparisons.RELEVANT)[0] == pytest.approx(40.0)
    assert own.against("greedy-as", comparisons.IRRELEVANT) == {"random": "win", "leave-one-out": "win"}
    assert own.against("greedy-as", comparisons.RELEVANT) == {"random": "loss", "leave-one-out": "loss"}
    assert own.place("greedy-as", "insertion logit", reference=0.0) == "1 of 3"
    assert own.place("greedy-as", "deletion logit", reference=0.0) == "3 of 3"
    assert own.place("random", "deletion logit", reference=0.0) == "1 of 2"
    assert own.place("lime", "deletion logit", reference=0.0) == "–"
    assert own.best(["random", "leave-one-out"], comparisons.RELEVANT) == "random"
    assert own.ahead("greedy-as", "lime", comparisons.RELEVANT) is None


def test_orders_of_the_authors(load, tmp_path):
    """Magnitudes of SHAP, and gradients not multiplied by the input for IG, if they were measured."""
    rows, metric = load("records").Rows("mnist"), "insertion maximum logit"
    levels = {"greedy-as": 3.0, "shapley-sampling": 4.0, "shapley-sampling, magnitude": 2.0}
    levels |= {"integrated-gradients": 2.0, "integrated-gradients, magnitude": 5.0}
    for method, level in levels.items():
        rows.add(method, metric, [level], reference=0.0)

    def place(**options):
        own = load("comparisons").Experiment(written(load, tmp_path, rows), "mnist")
        return own.place("greedy-as", metric, reference=0.0, **options)

    assert place() == "3 of 3" and place(as_authors=True) == "2 of 3"
    rows.add("mean-gradient, magnitude", metric, [1.0], reference=0.0)
    assert place(as_authors=True) == "1 of 3"


def test_places_of_the_paper(load):
    comparisons, paper = load("comparisons"), load("paper")
    for name, places in (("mnist", (1, 1, 4, 6)), ("photographs", (1, 2, 3, 2))):
        assert places == tuple(
            comparisons.paper_place(paper.BY_DATA[name][kind][paper.reference_key(reference)], kind)
            for reference in ("uniform", 0.0)
            for kind in ("insertion", "deletion")
        )


def test_greedy_as_against_the_papers_methods(load, tmp_path):
    tables = load("tables")
    levels = {"greedy_as": 3.0, "greedy_as__relevant": 1.0, "gradient": 2.0, "gradient__magnitude": 4.0}
    own = by_levels(load, tmp_path, "mnist", **levels, random=2.5, shapley=5.0)
    wins = own.against("greedy-as", tables.IRRELEVANT)
    assert wins == {"gradient": "win", "gradient, magnitude": "loss", "random": "win"}
    first, *_, last = map(cells, tables.own_criteria("mnist", own.records).splitlines()[2:])
    assert first[1:3] == ["irrelevant, its own", "2 wins, 0 draws, 1 loss"]
    assert first[3] == first[4] == "`gradient, magnitude`"  # it loses to the best of the others
    assert first[5:] == ["-40.0 [-40.0, -40.0]", "no, the reverse"]
    assert last[1:3] == ["relevant, its own", "3 wins, 0 draws, 0 losses"] and last[-1] == "yes"
    # Gradients are ahead of Greedy-AS in the better of their orders, and in that of the authors.
    for as_authors in (False, True):
        assert own.place("greedy-as", "insertion logit", as_authors=as_authors, reference=0.0) == "2 of 3"
    shapley = cells(tables.standing(own.records).splitlines()[2])
    assert shapley[1] == "win, 1 of 3" and shapley[2] == "loss, 3 of 3"
    (gradients,) = [line for line in tables.farther(own.records).splitlines() if "`gradient, mag" in line]
    assert cells(gradients)[1:] == ["1 of 2"] * 6


def test_variants_by_the_criterion_that_they_optimize(load, tmp_path):
    tables = load("tables")
    levels = {"greedy_as": 3.0, "one_step_banzhaf": 2.0, "greedy": 4.0}
    levels |= {f"{name}__relevant": level for name, level in levels.items()}
    own = by_levels(load, tmp_path, "mnist", **levels)
    rows = [cells(line) for line in tables.variants("mnist", own.records).splitlines()[2:]]
    assert [row[1] for row in rows] == ["irrelevant"] * 2 + ["relevant"] * 2
    assert [row[-1] for row in rows] == ["yes", "no, the reverse", "no, the reverse", "yes"]
    own = by_levels(load, tmp_path, "forest", greedy_as=3.0, lime=2.0, random=1.0)
    first = cells(tables.forest_verdicts(own.records).splitlines()[2])
    assert first[1:3] == ["irrelevant", "`lime`"] and first[-1] == "yes"


def test_places_by_reference_value(load, tmp_path):
    levels = {"greedy_as": 3.0, "gradient": 2.0, "gradient__magnitude": 1.0, "random": 4.0}

    def row(name, *start):
        own = by_levels(load, tmp_path, name, **levels)
        lines = load("tables").by_reference(name, " logit", own.records).splitlines()
        (line,) = [cells(line) for line in lines if cells(line)[:2] == list(start)]
        return line

    first = row("mnist", "insertion", "uniform noise")
    assert first[2:6] == ["1 of 9", "2 wins, 0 draws, 1 loss", "2 of 3", "2 of 3"] and first[-1] == "`random`"
    first = row("fashion-mnist", "deletion", "0.5")  # the paper has no Fashion-MNIST
    assert first[2:4] == ["2 wins, 0 draws, 1 loss", "2 of 3"]


def test_components_of_pixels(load, tmp_path):
    diagonal, corners = np.eye(4, dtype=bool), np.zeros((4, 4), dtype=bool)
    corners[[0, 0, 3, 3], [0, 3, 0, 3]] = True
    sets = np.array([diagonal.ravel(), corners.ravel()])
    assert load("criteria").count_components(sets, (4, 4)).tolist() == [1, 4]
    rows = load("records").Rows("mnist")
    rows.add("greedy-as", "pieces", [1, 2, 1])
    rows.add("greedy", "pieces", [4, 5, 4])
    (line,) = load("tables").scattered(written(load, tmp_path, rows)).splitlines()[2:]
    assert cells(line)[1:] == ["`greedy-as`", "`greedy`", "3", "1.3", "4.3", "+3.0 [+3.0, +3.0]", "yes"]


def test_tables_with_the_papers_numbers(load, tmp_path):
    tables, rows = load("tables"), load("records").Rows("photographs")
    for metric, level in (("robustness of irrelevant", 1.0), ("robustness of relevant", 2.0)):
        rows.add("greedy-as", metric, np.full((4, 9), level))
    rows.add("greedy-as", "insertion logit", np.full(4, 7.0), reference=0.5)
    rows.add("greedy-as", "passes", [10, 20])
    rows.add("greedy-as", "seconds", [0.5])
    records = written(load, tmp_path, rows)
    line = tables.robustness("photographs", ["greedy-as", "random"], records).splitlines()[-1]
    assert line == "| `greedy-as` | 4 | 31.62 | 40.0 [40.0, 40.0] | 43.97 | 80.0 [80.0, 80.0] | 15 | 0.500 |"
    assert "| 7 ± 0 (306) |" in tables.references("photographs", " logit", ["greedy-as"], records)


def test_checks_and_the_papers(load, tmp_path):
    """Greedy-AS minus the other; "agrees" if the sign is the paper's."""
    tables, rows = load("tables"), load("records").Rows("mnist")
    for row, level in (("greedy-as", 0.3), ("gradient", 0.5), ("expected-gradients", 0.4)):
        rows.add(row, "sanity", np.full(9, level / 3))
        rows.add(row, "sanity of magnitudes", level + np.linspace(0, 0.01, 9))
        rows.add(row, "sensitivity", level + np.linspace(0, 0.01, 9))
    records = written(load, tmp_path, rows)
    gradient, expected = map(cells, tables.check_verdicts(records).splitlines()[2:])
    assert gradient[1:4] == ["-0.12", "-0.20 [-0.20, -0.20]", "yes"]
    assert gradient[4:] == ["+0.16", "-0.20 [-0.20, -0.20]", "no, the reverse"]
    assert expected[1:4] == ["", "-0.10 [-0.10, -0.10]", ""]  # Table 7 has no expected gradients
    line = "| `greedy-as` | 0.18 | 0.10 [0.10, 0.10] | 0.30 [0.30, 0.31] | 0.61 | 0.30 [0.30, 0.31] |"
    assert line in tables.checks(records).splitlines()
    undecided = SimpleNamespace(mean=0.1, low=-0.1, high=0.3)
    assert tables.agrees(0.2, undecided) == "undecided" and tables.agrees(None, undecided) == ""


def test_curves_are_means_of_the_images_that_all_rows_have(load, tmp_path):
    figures, rows = load("figures"), load("records").Rows("mnist")
    rows.add("random", "insertion logit", [[1.0] * 9, [3.0] * 9, [50.0] * 9], reference=0.5)
    rows.add("counterfactual", "insertion logit", [[4.0] * 9, [6.0] * 9], reference=0.5)
    rows.add("greedy-as", "insertion logit", [1.0, 2.0], reference=0.5)  # only areas
    records = written(load, tmp_path, rows)
    curves = figures.curves_of(records, "mnist", "insertion logit", reference=0.5)
    assert {name: len(values) for name, values in curves.items()} == {"random": 2, "counterfactual": 2}
    axes = figures.new_figure(2, 2).subplots()
    figures.draw_curves(axes, curves)
    means = {drawn.get_label(): drawn.lines[0].get_ydata().tolist() for drawn in axes.containers}
    assert means == {"random": [2.0] * 9, "counterfactual": [5.0] * 9}


def test_pictures_take_magnitudes_and_colour_relevant_pixels(load, tmp_path):
    figures = load("figures")
    np.savez(tmp_path / "gradient.npz", scores=np.array([[-2.0, 1.0]]))
    assert figures.scores_of(tmp_path, "gradient").tolist() == [[-2.0, 1.0]]
    assert figures.scores_of(tmp_path, "gradient, magnitude").tolist() == [[2.0, 1.0]]
    picture = figures.coloured(np.ones(784), np.arange(784) < 2, np.arange(784) < 1).reshape(784, 3)
    assert picture[0] == pytest.approx(0.25 * 0.75 + 0.75 * np.array(figures.LIGHTER))
    assert picture[1] == pytest.approx(0.25 * 0.75 + 0.75 * np.array(figures.DARKER))
    assert picture[2] == pytest.approx([0.75] * 3)
    labels = np.repeat(np.repeat(np.arange(6).reshape(2, 3), 2, axis=0), 2, axis=1)
    top = load("photographs").top_squares(np.array([0.0, 3.0, 1.0, -5.0, 2.0, 0.5]), labels)
    assert set(labels[top]) == {1, 4} and top.sum() == 8  # a fifth of six, rounded up


def test_gains_of_a_scale(load, tmp_path):
    """Smaller is better of sufficiency and deletion; bold where the interval excludes 0."""
    scales = load("scales")
    name, metrics = next(iter(scales.MODELS)), ("insertion", "deletion", "sufficiency")
    rows = load("records").Rows(name)
    rows.add("–", "probability", [0.5] * 5 + [0.999] * 20)
    for metric in metrics:
        for scale, level in (("natural", 0.4), ("logit", 0.4), ("raw", 0.5)):
            rows.add("gradient", metric, [level] * 25, scale=scale)
    records = written(load, tmp_path, rows)
    gains = [scales.gain(records, name, "gradient", metric, "raw") for metric in metrics]
    assert gains == ["**+10.0 [+10.0, +10.0]**", "**-10.0 [-10.0, -10.0]**", "**-10.0 [-10.0, -10.0]**"]
    first = cells(scales.scales_table(records).splitlines()[2])
    assert first[0] == f"{name} (80% with p > 0.99)" and first[3:5] == ["+0.0 [+0.0, +0.0]", "–"]


# -- texts --------------------------------------------------------------------------------------


def test_first_words(load):
    """A search's choice of that number of words, or the words of the largest scores."""
    chosen = {0.5: np.array([True, False, False, True, False, False])}
    e = SimpleNamespace(features=list("abcdef"), chosen=chosen, ranking=np.array([4, 2, 0, 1, 3, 5]))
    masks = load("text_criteria").top_words(e)
    words = [[4], [0, 3], [0, 2, 4], [0, 1, 2, 4], [0, 1, 2, 3, 4]]
    assert [np.flatnonzero(mask).tolist() for mask in masks] == words


def test_curves_of_first_words(load):
    """With logits 6, 5, … 1 of six words: only the first n, and all others."""
    criteria = load("text_criteria")
    weights = np.arange(6.0, 0, -1) / 4
    module = torch.nn.Linear(6, 2, bias=False)
    with torch.no_grad():
        module.weight.copy_(torch.tensor(np.stack([np.zeros(6), weights])))
    model = pertinent.wrap(module, kind="table", output="logit", background=np.zeros((1, 6)))
    explanations = pertinent.explain(model, np.ones((1, 6)), "leave-one-out", removal="mean", progress=False)
    metrics = [criteria.TopInsertion(), criteria.TopDeletion()]
    rows = pertinent.evaluate(model, explanations, metrics, progress=False).rows
    sums = np.cumsum(weights)[:5]
    for name, logits in (("insertion", sums), ("deletion", weights.sum() - sums)):
        assert [row.value for row in rows if row.metric == name] == pytest.approx(logits.tolist())


def test_areas_of_texts(load, tmp_path):
    """Over one to five words; a radius, also a missing one, counts for at most the norm of the text."""
    rows = load("records").Rows("AG News, BiLSTM")
    rows.add("–", "norm", [3.0])
    rows.add("random", "robustness of relevant", np.array([[np.inf, 9.0, 2.0, 2.0, 1.0]]))
    rows.add("random", "insertion", np.full((1, 5), 0.5))
    own = load("text_tables").Results(written(load, tmp_path, rows), "lstm")
    assert own.areas("random", ("insertion", "")) == pytest.approx([2.0])
    assert own.areas("random", ("robustness of relevant", "")) == pytest.approx([3 + 2.5 + 2 + 1.5])
    assert own.limited_share("random") == pytest.approx(2 / 5)
    assert own.areas("lime", ("insertion", "")) is None


def test_verdicts_on_texts(load, tmp_path):
    """Greedy-AS has larger values: it is better by the criteria of which more is better."""
    tables, rows = load("text_tables"), load("records").Rows("AG News, BiLSTM")
    rows.add("–", "norm", np.full(8, 100.0))
    rows.add("–", "accuracy", [0.75])
    for row, level in (("greedy-as", 2.0), ("random", 1.0), ("gradient", 3.0)):
        for metric, removal in tables.CRITERIA:
            curves = np.repeat((level + np.linspace(0, 0.1, 8))[:, None], 5, axis=1)
            rows.add(row, metric, curves, **({"removal": removal} if removal else {}))
    rows.add("greedy", "robustness of irrelevant", np.full((8, 5), 2.5))
    records = written(load, tmp_path, rows)
    own = tables.Results(records, "lstm")
    verdicts = own.verdicts("greedy-as")
    assert list(verdicts["random"].values()) == ["win", "loss"] * 3
    assert list(verdicts["gradient"].values()) == ["loss", "win"] * 3
    assert tables.count(verdicts, ("insertion", "")) == "1 win, 0 draws, 1 loss"
    assert tables.count(verdicts, ("insertion", ""), ["random"]) == "1 win, 0 draws, 0 losses"
    more, less = tables.ranks(records).splitlines()[2:4]  # criteria of which more, or less, is better
    assert "| `gradient`, `greedy-as`, `random`; last `random` |" in more
    assert "| `random`, `greedy-as`, `gradient`; last `gradient` |" in less
    (line,) = [line for line in tables.conclusions(records).splitlines() if "its own" in line]
    assert line == "| BiLSTM | greedy-as | Robustness-S̄r, its own |" + 3 * " 1 win, 0 draws, 1 loss |"
    (line,) = [line for line in tables.ablation(records).splitlines() if line.startswith("| BiLSTM")]
    assert "`greedy-as` is better than `greedy` | Robustness-S̄r | -1.8" in line  # 4 × (2.05 − 2.5)
    assert line.endswith("| no, the reverse |") and own.number("–", "accuracy") == 0.75
    assert np.isnan(tables.Results(records, "minilm").number("–", "accuracy"))
    assert tables.ends(["a", "b", "c", "d"]) == "`a`, `b`, `c`; last `d`"


def test_explained_texts_are_balanced_and_of_a_length(load):
    texts = ["w " * n for n in (3, 5, 5, 5, 9, 5)]
    data = load("experiments.shared.data").Examples(texts, [0, 0, 0, 1, 1, 1])
    chosen = load("texts").explained_texts(data, 3, (4, 6))
    assert chosen.labels == [0, 1, 0] and {len(text.split()) for text in chosen.inputs} == {5}


@pytest.mark.parametrize("kind", ["lstm", "vectors"])
def test_an_lstm_is_saved_and_does_not_train_pretrained_vectors(load, tmp_path, kind):
    from transformers import BertConfig, BertModel

    from tests import tiny

    torch.manual_seed(0)
    tokenizer = tiny.tokenizer()
    tokenizer.save_pretrained(tmp_path / "encoder")
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    encoder = BertModel(BertConfig(vocab_size=len(tokenizer), **sizes))
    encoder.save_pretrained(tmp_path / "encoder")
    run = load("experiments.shared.stages").Run(encoder=tmp_path / "encoder", work=tmp_path)
    data = load("experiments.shared.data").Examples(["w1 w2", "w3 w4"] * 4, [0, 1] * 4)
    own = load("text_models").TextClassifier("name", kind, ("a", "b"), 8, epochs=1, width=4)
    model = own.train(run, data)
    if kind == "vectors":
        vectors = model.model.get_input_embeddings().weight
        torch.testing.assert_close(vectors.detach(), encoder.get_input_embeddings().weight.detach())
        assert not vectors.requires_grad and model.model.lstm.input_size == 8
    both = [pertinent.explain(m, "w1 w4", "random").prediction.values for m in (model, own.load(run))]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-6)


def test_words_of_one_text_are_unknown_to_the_lstm(load):
    networks = load("experiments.shared.networks")
    tokenizer = networks.word_tokenizer(["a cat, a dog", "A cat"], networks.words_of_two_texts, 9)
    assert tokenizer.convert_ids_to_tokens(tokenizer("a cat dog")["input_ids"]) == ["a", "cat", "[UNK]"]


# -- marked words -------------------------------------------------------------------------------


def test_marked_words_become_spans(load):
    text = load("marked_sets").join_words(["a", "slow", "film"], 1, [False, True, True])
    assert text.text == "a slow film" and text.spans == [(2, 6), (7, 11)] and text.label == 1
    assert [text.text[start:end] for start, end in text.spans] == ["slow", "film"]


def test_passages_are_whole_sentences(load, monkeypatch):
    sets = load("marked_sets")
    monkeypatch.setattr(sets, "LONGEST", 5)
    words = ["a", "b", ".", "c", "d", ".", "e", "f", "g", "h", "i", "j", ".", "k", "."]
    # The sentence before the last is too long.
    parts = [["a", "b", "."], ["c", "d", "."], ["k", "."]]
    assert [words[part] for part in sets.passages(words)] == parts
    words = ["a", "b", ".", "c", "d"]  # the end of the text ends a sentence
    assert [words[part] for part in sets.passages(words)] == [words]


def test_words_that_most_people_marked(load):
    sets = load("marked_sets")
    assert sets.majority([[1, 0, 1], [1, 0, 0], [1, 0, 0]], 3) == [True, False, False]
    assert sets.majority([[1, 0], [0, 1]], 2) == [True, True]  # half of them
    assert sets.majority([[1, 0]], 3) == [False] * 3  # another number of words
    marked = [True] + [False] * 9
    assert sets.is_explained(marked)
    assert not sets.is_explained(marked[:9]) and not sets.is_explained([True] * 10)


def test_reviews_are_cut_into_marked_passages(load, tmp_path):
    sets = load("marked_sets")
    words = ["w"] * 11 + ["."] + ["v"] * 13 + ["."]
    rows = {"document": [" ".join(words)] * 8, "label": np.zeros(8, dtype=np.int8)}
    rows["evidence_spans"] = [[[2, 4]], [[14, 15]], *[[[0, 1]]] * 6]
    sets.LONGEST = 15
    for split in ("train", "val"):
        write_frame(tmp_path / "eraser_movies" / f"{split}.parquet", **rows)
    training, explained = sets.read_films(tmp_path)
    assert len(training) == 6 and len(explained) == 2 + 8  # a quarter of the training reviews, and all others
    assert training[0].text == " ".join(words[:12]) and training[0].spans == [(4, 5), (6, 7)]
    assert training[1].text == " ".join(words[12:]) and training[1].spans == [(4, 5)]


def test_claims_are_followed_by_their_evidence(load, tmp_path):
    sets = load("marked_sets")
    sets.LONGEST = 16
    words = ["w"] * 9 + ["."] + ["v"] * 6 + ["."]
    rows = {
        "query": ["a claim"] * 3,
        "document": [" ".join(words)] * 3,
        "label": np.array([0, 1, 1], np.int8),
    }
    rows["evidence_spans"] = [[[10, 17]], [[0, 1]], [[0, 10]]]  # in the last, most words are marked
    for split in ("val", "test"):
        write_frame(tmp_path / "eraser_fever" / f"{split}.parquet", **rows)
    training, explained = sets.read_claims(tmp_path)
    assert [text.label for text in training] == [0, 1, 1] and [text.label for text in explained] == [1]
    assert training[0].text == "a claim " + " ".join(words[10:]) and training[0].spans[0] == (8, 9)
    assert explained[0].text == "a claim " + " ".join(words[:10]) and explained[0].spans == [(8, 9)]


def test_explained_texts_are_correctly_classified(load, monkeypatch):
    marks = load("marks")
    texts = [load("marked_sets").Marked(str(i), label, []) for i, label in enumerate((0, 1, 1, 0))]
    explanations = [SimpleNamespace(index=i, target=1) for i in (2, 0, 1, 3)]
    monkeypatch.setattr(marks.pertinent, "explain", lambda *_, **options: explanations)
    assert [text.text for text in marks.correctly_classified(None, texts, 5)] == ["1", "2"]
    assert [text.text for text in marks.correctly_classified(None, texts, 1)] == ["1"]


def test_precision_of_marked_words(load, tmp_path):
    """The paper's mAP is the mean of its precisions; average precision is over the whole ranking."""
    tables = load("marks_tables")
    for numbers in load("paper").MARKS.values():
        assert len(numbers) == 1 or np.mean(numbers[:5]) == pytest.approx(numbers[5], abs=0.012)
    rows = load("records").Rows(tables.HATE)
    for row, level in (("greedy-as", 0.5), ("random", 0.25), ("gradient", 0.75)):
        rows.add(row, "precision", np.tile([level, 0.5, 0.5, 0.5, level], (4, 1)))
        rows.add(row, "average precision", np.full(4, level))
    records = written(load, tmp_path, rows)
    assert tables.values(records, tables.HATE, "random", tables.PAPERS_MEAN) == pytest.approx(np.full(4, 0.4))
    assert tables.gaps(records, tables.HATE, "greedy-as", "gradient")[2:] == ["-0.25 [-0.25, -0.25]", "loss"]
    lines = tables.findings(records).splitlines()
    assert "ahead of `gradient`, the best of the paper's others | -0.10" in lines[2]
    assert lines[2].endswith("no, the reverse |") and lines[3].endswith("yes |")


def test_more_subsets_compared_with_the_default_and_the_best(load, tmp_path):
    tables = load("marks_tables")
    rows = load("records").Rows(tables.MORE)
    for row, level in (("greedy-as", 0.5), (tables.MANY, 0.6), ("random", 0.2), ("gradient", 0.7)):
        rows.add(row, "precision", np.full((4, 5), level))
        rows.add(row, "average precision", np.full(4, level))
    records = written(load, tmp_path, rows)
    assert tables.best_other(records, tables.MORE) == "gradient"
    assert tables.best_other(records, tables.HATE) == ""
    *_, default, best = tables.more_subsets(records).splitlines()
    assert default.startswith(f"| `{tables.MANY}` | `greedy-as` | +0.10 [+0.10, +0.10] | win | +0.10")
    assert best.startswith(f"| `{tables.MANY}` | `gradient` | -0.10 [-0.10, -0.10] | loss | -0.10")


# -- theorems -----------------------------------------------------------------------------------


def test_a_feature_equal_to_the_reference_counts_for_nothing(load):
    """Theorems A.1 to A.4: log-odds 8 (0.5 − x₀) + 2 (x₁ − 0.5) at x = (0, 1, 1, 0.5)."""
    bias = load("reference_bias")
    scores = bias.scores(bias.model())
    for method, (theorem, _) in bias.METHODS.items():
        if theorem != "–":  # only x₁, by 2
            assert scores[method] == pytest.approx([0.0, 2.0, 0.0, 0.0], abs=1e-5), method
        else:
            assert np.abs(scores[method]).argmax() == bias.DECISIVE, method
    assert scores["gradient"] == pytest.approx(bias.WEIGHTS, abs=1e-5)
    assert pytest.approx(8 * 0.5 + 2 * 0.5) == bias.WEIGHTS @ bias.INPUT + bias.BIAS
    # The nearest other decision is along the weights, 5 / 68 of each; in standard deviations, which are 0.5.
    assert scores["counterfactual"] == pytest.approx(np.abs(bias.WEIGHTS) * 5 / 68 / 0.5, rel=1e-2)
    curves = bias.curves(bias.model(), [0, 1, 2, 3])
    for kind, (before, after) in {"insertion": (3, 5), "deletion": (5, 3)}.items():
        logits = np.array([before, before, after, after, after])
        assert curves[kind] == pytest.approx(1 / (1 + np.exp(-logits)), abs=1e-5)
    (row,) = bias.theorem_rows({"shapley": np.array([0.0, 2.0, 0.0, 0.0])})
    assert row == ["`shapley`", "A.3", "+0.00", "+2.00", "+0.00", "+0.00", "yes", "2 of 4"]


def test_averages_over_references(load):
    references = np.array([[0.0, 0.0], [2.0, 4.0]])
    average = load("reference_bias").averaged_reference
    assert average(np.array([1.0, 1.0]), references, np.array([3.0, 5.0])).tolist() == [0.0, -5.0]

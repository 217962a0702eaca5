"""Numbers of `experiments/magnex` on cases with a known answer."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pertinent
from pertinent.stats import Difference
from tests import tiny
from tests.miniature import experiment


@pytest.fixture
def load():
    with experiment("magnex") as importer:
        yield importer


def test_exact_match_and_f1_of_answers(load):
    own = load("models")
    assert own._words("The Eiffel-Tower, in a city") == ["eiffeltower", "in", "city"]
    assert own._f1(["big", "red", "dog"], ["red", "dog"]) == pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1))
    assert own._f1(["a", "a"], ["a"]) == pytest.approx(2 / 3)
    assert own._f1([], []) == 1.0 and own._f1([], ["a"]) == 0.0


def classify(rows):
    """Probabilities of a model of table rows with log-odds 3 and 1."""
    p = 1 / (1 + np.exp(-np.asarray(rows, dtype=float) @ np.array([3.0, 1.0])))
    return np.column_stack([1 - p, p])


def test_top_features(load):
    top = load("measuring").top
    assert np.flatnonzero(top(np.array([0.1, 0.9, 0.5, 0.9]), 2)).tolist() == [1, 3]
    assert not top(np.array([1.0, 2.0]), 0).any()


def test_the_chosen_setting(load):
    """The sparsest setting that is sufficient enough, else the most sufficient; first all are tried."""
    fits = load("fits")
    settings = fits.GRID["forest"]

    def choose(*rows):
        names = ("sufficiency", "share removed")
        pairs = zip(settings, rows, strict=False)
        records = {fit.setting: dict(zip(names, ([a], [b]), strict=True)) for fit, (a, b) in pairs}
        return fits.choose("forest", records)

    assert choose((1.0, 0.5), (0.99, 0.7), (0.8, 0.9)) == settings[1]
    assert choose((0.9, 0.5), (0.95, 0.1), (0.8, 0.9)) == settings[1]
    assert choose((0.9, 0.5), (0.95, 0.1)) is None


def test_antithetic_masks_estimate_the_gradient(load):
    """The gradient of a quality that is linear in the masks is w p (1 − p)."""
    own = load("estimators")
    w, p = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([0.3, 0.6, 0.9])

    class Linear(own.Antithetic):
        def quality(self, answers, kept, real, predictions):
            return answers

    class Batch(own.FixedBatch):
        def ask(self, kept):
            return (kept.float() * w).sum(-1)

    torch.manual_seed(0)
    logits = p.logit().repeat(4000, 1).requires_grad_()
    batch = Batch(None, [], torch.zeros(4000), logits, 0.0)
    learner = Linear(samples=4)
    learner.compute_loss(batch).backward()
    # The loss is a mean over inputs and pairs; each pair has its own estimate.
    found = -logits.grad.sum(0)
    assert found.tolist() == pytest.approx((w * p * (1 - p)).tolist(), abs=0.03)


def test_answers_of_a_reader(load):
    """The best of the known answers counts: one is exact, one has half of the words, one none."""
    own = load("models")
    said = {"q1": "the tower", "q2": "red dog", "q3": "cat"}
    model = SimpleNamespace(
        prepare=lambda raw: raw["question"], details=lambda question: {"answer": said[question]}
    )
    known = {"q1": ["Rome", "Tower!"], "q2": ["dog house"], "q3": ["mouse"]}
    rows = [{"question": key, "context": "", "answers": answers} for key, answers in known.items()]
    found = own.answers(model, rows)
    assert found == {"exact match": pytest.approx(1 / 3), "F1": pytest.approx(1.5 / 3), "questions": 3}


def test_tokens_of_an_answer(load):
    own, tokenizer = load("models"), tiny.tokenizer()
    row = {"question": "w1 w2", "context": "w3 w4 w5 w6", "answers": ["w4 w5"], "answer_start": [3]}
    read, (first, last) = own._span(tokenizer, row)
    assert tokenizer.convert_ids_to_tokens(read["input_ids"])[first : last + 1] == ["w4", "w5"]
    assert own._span(tokenizer, row | {"answer_start": [50]}) is None  # it was cut off


def test_batches_have_every_question_once(load):
    models = load("models")
    lengths = list(range(3 * 32 + 1))
    batches = list(models._batches(lengths, 32, epochs=2))
    for epoch in (batches[:4], batches[4:]):
        assert sorted(i for batch in epoch for i in batch) == lengths
    assert all(batch == list(range(batch[0], batch[0] + len(batch))) for batch in batches)  # similar lengths


def test_the_learning_rate_of_a_reader(load):
    """It rises for a tenth of 100 steps, and then falls to 0."""
    rates = [load("models").warmed_up(step, 100) for step in (0, 10, 55, 91)]
    assert rates == pytest.approx([0.1, 1.0, 0.5, 0.1])


def test_accuracy_of_a_black_box(load):
    def by_sign(rows):
        return np.column_stack([np.asarray(rows)[:, 0] < 0, np.asarray(rows)[:, 0] >= 0]).astype(float)

    model = pertinent.wrap(by_sign, kind="table", background=np.zeros((1, 2)))
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    assert load("models").accuracy(model, rows, [1, 0, 0, 1]) == 0.75


def record(sufficiency, **others):
    """The record of a fit: two inputs with four features each."""
    rows = {"sufficiency": sufficiency, "share removed": [0.5, 0.75], "features": [4, 4]}
    rows |= {"comprehensiveness": [0.2, 0.4], "of one": [0.95, 0.1], "large": [1, 3]}
    rows |= {"in the question": [1, 0], "of the question": [2, 2]} | others
    dev = {"dev_sufficiency": 0.9, "dev_share_removed": 0.8}
    return {"magnex": rows, "history": [1.0, 1.2, 1.3, 1.4], "fit seconds": 9.0, "steps": 7, "dev": dev}


def fits_of(*rows):
    """Records of fits to the forest, of sufficiency and sparsity."""
    return {f"forest_fit_{i}": record(su, **{"share removed": sp}) for i, (su, sp) in enumerate(rows)}


def test_goals_are_reached_by_the_mean_of_seeds(load):
    """0.99 at 0.81: the first seed misses it by sparsity, the mean of both does not."""
    records = fits_of(([1.0, 0.98], [0.8, 0.8]), ([1.0, 1.0], [0.9, 0.8]))
    (line,) = [line for line in load("tables").goals(records).splitlines() if "forest" in line]
    cells = line.strip("| ").split(" | ")
    assert cells[1:] == ["0.99 at 0.81", "0.995 at 0.825", "0.990 at 0.800; 1.000 at 0.850", "yes", "1 of 2"]


def test_main_tables(load):
    """The deviation is over inputs: 0.1 with the first seed and 0 with the second."""
    tables = load("tables")
    records = fits_of(([0.9, 0.7], [0.5, 0.5]), ([0.8, 0.8], [0.5, 0.5]))
    for own in records.values():
        lime = [value - 0.3 for value in own["magnex"]["sufficiency"]]
        own["lime"] = {"sufficiency": lime, "share removed": [0.5, 0.5]}
    runs = tables.runs(records, "forest", "fit")
    cell = tables.mean_and_deviation(runs, "magnex", "sufficiency")
    assert cell.startswith("0.800 [") and cell.endswith(" ± 0.05")
    assert tables.mean_and_deviation([], "magnex", "sufficiency") == "–"
    assert "| lime | 0.300 [0.300, 0.300]" in tables.differences(records)
    records["forest_timings"] = {"seconds": {"magnex": [0.1, 0.3], "lime": [1.0]}}
    page = tables.main_tables(records)
    assert f"| 0.99 ± 0.02 | {cell} | 0.02 ± 0.00 | 0.200 |" in page
    assert "\nSufficiency of the top 19% of each input: magnex –, lime –.\n" in page


def test_seconds_compared_with_predictions(load):
    together = {"magnex": 3.0, "prediction": 1.5, "device": "cpu", "inputs": 1000}
    page = load("tables").speed({"forest_timings": {"together": together}})
    assert "| cpu | 1000 | 1.50 s | 3.00 s | 2.00× |" in page


def test_variances_of_estimators(load):
    own = {"variance": {"early": {"a": 0.5}, "late": {"a": 0.25, "b": 1.0}}, "quality": {"a": [1.0, 2.0]}}
    lines = load("tables").estimators({"estimators": own}).splitlines()
    assert lines[2] == "| a | 0.5 | 0.25 | 1.500 | 1.000, 2.000 |" and lines[3] == "| b | – | 1 | – |  |"


@pytest.mark.parametrize("samples", [1, 4])
def test_variance_of_the_gradient(load, monkeypatch, samples):
    """The quality is whether the first of 64 pixels is kept, with probability 1/2, and the baseline 1/2.

    Then the gradient (τ₁ − ½)(τⱼ − ½) is ¼ for the first pixel, and ±¼ for each other: 63 / 16 for one mask.
    """
    own = load("estimators")

    class First(own.MAGNExLearner):
        def quality(self, answers, kept, real, predictions):
            return kept[..., 0].float()

    e = SimpleNamespace(scores=np.full(64, 0.5), prediction=SimpleNamespace(values=np.full(10, 0.1)))
    monkeypatch.setattr(own.pertinent, "explain", lambda model, raw, fitted, **options: [e] * len(raw))
    monkeypatch.setattr(own.FixedBatch, "ask", lambda batch, kept: torch.zeros(*kept.shape[:2], 10))
    torch.manual_seed(0)
    raw = [np.zeros((1, 8, 8), dtype=np.float32)] * 60
    learner = First(baseline="moving-average", samples=samples)
    monkeypatch.setattr(own, "ModelAnswers", lambda *_: None)
    model = SimpleNamespace(prepare=lambda image, features: image)
    found = own.variance(model, None, raw, learner, repeats=40)
    assert found == pytest.approx(63 / 16, rel=0.03)


def test_two_halves_have_no_paragraph_in_common(load):
    rows = [{"context": context, "question": i} for i, context in enumerate("abcab")]
    first, second = load("sets").halves(rows)
    assert [row["question"] for row in first] == [0, 2, 3] and [row["question"] for row in second] == [1, 4]


def test_words_around_an_answer(load):
    own = load("measuring")
    mask = np.array([0, 0, 1, 1, 0, 0, 0], dtype=bool)
    assert own.widen(mask, 0).tolist() == mask.tolist()
    assert np.flatnonzero(own.widen(mask, 2)).tolist() == [0, 1, 2, 3, 4, 5]
    words = ["It", "rained", ".", "Rome", "fell", "in", "476", "!", "Then"]
    assert np.flatnonzero(own.within_sentence(words, np.arange(9) == 4)).tolist() == [3, 4, 5, 6, 7]
    assert not own.widen(np.zeros(3, dtype=bool), 2).any()


def test_number_of_large_scores(load):
    own = load("measuring")
    assert own.count_large(np.array([0.4, 1.0, 0.5, -2.0])) == 2
    assert own.count_large(np.array([-1.0, -2.0])) == 0


def test_as_many_features_as_the_papers_explainer_keeps(load):
    own = load("measuring")
    kept = own.top_share("squad", np.arange(25.0))  # it removes 76%
    assert np.flatnonzero(kept).tolist() == [19, 20, 21, 22, 23, 24]


def test_the_papers_estimator_has_as_many_evaluations_in_a_step(load):
    fits = load("fits")
    for variants in fits.VARIANTS.values():
        assert len({fit.masks * fit.batch for fit in variants.values()}) == 1
    assert fits.IMDB.by_paper().masks == 1 and fits.IMDB.by_paper().baseline == "moving-average"


def test_measures_of_a_selection(load):
    """Log-odds 3 and 1: the first is selected; without it 1 is left, and alone it leaves 3."""
    model = pertinent.wrap(classify, kind="table", background=np.zeros((1, 2)))
    e = pertinent.explain(model, np.ones(2), "leave-one-out", removal="mean", progress=False)
    rows = load("measuring").judge(model, [e], [np.array([True, False])], [e.scores])
    whole, alone, without = 1 / (1 + np.exp(-np.array([4.0, 3.0, 1.0])))
    assert rows["sufficiency"] == rows["of one"] == pytest.approx([1 - (whole - alone)], abs=1e-4)
    assert rows["comprehensiveness"] == pytest.approx([whole - without], abs=1e-4)
    assert rows["share removed"] == [0.5] and rows["large"] == [1] and rows["features"] == [2]


def test_the_words_of_a_readers_answer(load):
    from transformers import BertConfig, BertForQuestionAnswering

    torch.manual_seed(1)
    reader = BertForQuestionAnswering(BertConfig(**tiny.BASE | {"num_labels": 2})).eval()
    model = pertinent.wrap((reader, tiny.tokenizer()))
    pairs = [{"question": tiny.text(3, seed=i), "context": tiny.text(8, seed=50 + i)} for i in range(4)]
    for e in pertinent.explain(model, pairs, "random", progress=False):
        words = np.array(e.features)[load("measuring").words_of_answer(model, e)]
        assert " ".join(words) == model.details(e.input)["answer"] != ""


def test_captums_lime(load):
    """Pixels have the scores of their patches; weights fall with the distance; a lasso drops features."""
    own = load("lime_images")
    pixels = own.of_pixels(np.array([1.0, 2.0, 3.0, 4.0]), "patches:2").reshape(4, 4)
    assert pixels[0].tolist() == [1, 1, 2, 2] and pixels[3].tolist() == [3, 3, 4, 4]
    image = np.array([[[3.0, 4.0]]])
    shown = np.array([[[[3.0, 4.0]]], [[[3.0, 0.0]]], [[[0.0, 0.0]]]])
    expected = [1.0, np.exp(-(0.4**2) / 2), np.exp(-0.5)]
    np.testing.assert_allclose(own.similarity(image, shown), expected)
    kept = np.random.default_rng(0).random((400, 3)) < 0.5
    values = 2.0 * kept[:, 0] + 0.001 * kept[:, 1]
    lasso, ridge = (own.regress(kept, values, np.ones(400), fit) for fit in ("lasso", "ridge"))
    assert lasso[0] > 1.9 and lasso[1] == lasso[2] == 0.0
    np.testing.assert_allclose(ridge, [2.0, 0.001, 0.0], atol=0.03)


def test_tables_of_variants(load):
    """Variants are compared on the same inputs, each by the mean over its seeds."""
    own = load("tables")
    found = {
        "squad_as_before_0": record([0.5, 0.7]),
        "squad_as_before_1": record([0.7, 0.7]),
        "squad_papers_estimator_0": record([0.5, 0.6]),
    }
    lines = own.squad(found).splitlines()[2:]
    assert lines[0].startswith("| as before | 0.650 [") and lines[0].endswith("| 2 |")
    assert "| no | 0.900 at 0.800 | 7 7 |" in lines[0]
    lines = own.papers_estimator(found).splitlines()[2:]
    assert [line.split(" | ")[1] for line in lines] == [
        "leave one out",
        "moving average, one mask (paper)",
        "difference",
    ]
    assert "| no | 1.300 | 7 7 | 9 | 2 |" in lines[0]  # the mean of the last three measurements


def test_share_of_the_missing_sufficiency_that_a_cause_explains(load):
    """0.68 is 0.20 short of 0.88: 0.08 more on each input are 40% of that, and 0.1 less none."""
    own = load("tables")
    sparse = {"share removed": [0.8, 0.9]}
    found = {
        "squad_as_before_0": record([0.6, 0.76], **sparse),
        "squad_better_reader_0": record([0.68, 0.84], **sparse),
        "squad_question_removable_0": record([0.5, 0.66], **sparse),
    }
    known, *lines = own.causes(found).splitlines()[2:]
    assert known.endswith("| as before | 0.220 | – | 100% |")  # 0.9 of dev questions
    assert len(lines) == 2
    assert lines[0].startswith("| the question's words") and lines[0].endswith("| no |")
    assert lines[1].startswith("| a better reader") and lines[1].endswith("| 40% |")
    assert "| 0.080 [0.080, 0.080]" in lines[1]
    unclear = Difference(0.01, -0.02, 0.04, 200, p_value=0.5)
    assert own.explained_share(unclear, missing=0.1, sparsity=0.8) == "not clearly, at most 40%"
    assert own.explained_share(Difference(0.1, 0.05, 0.2, 200, 0.001), 0.1, sparsity=0.5).startswith("no: ")


def test_whether_the_papers_numbers_are_reached(load):
    reaches = load("tables").reaches
    at = {"share removed": [0.7, 0.9]}
    assert reaches([record([0.8, 1.0], **at)], "squad") == "yes"
    assert reaches([record([0.8, 0.9], **at)], "squad") == "no"
    assert reaches([record([1.0, 1.0])], "squad") == "no"  # 0.625 of the features are removed
    assert reaches([record([1.0, 1.0])], "sentiment") == "–"  # not in the paper


def test_sufficiency_where_the_reader_is_right(load):
    """Right about one of two: 0.87 × 1.0 + 0.13 × 0.5 if it were right as often as the paper's."""
    own = load("tables")
    found = {
        "squad_as_before_0": record([1.0, 0.5]),
        "windows_as_before": {"readings": [{"exact match": 1.0}, {"exact match": 0.0}]},
    }
    cells = own.by_rightness(found).splitlines()[2].strip("| ").split(" | ")
    assert cells == ["as before", "magnex", "50.0%", "1.000", "0.500", "0.935"]
    # 0.935 instead of 0.75 are more than the 0.13 that are missing.
    assert own.causes(found).splitlines()[3].endswith("| as before | 0.185 | – | 100% |")


def test_jobs_need_their_black_box(load):
    stages = load("stages")
    jobs = {job.name: job for job in stages.variants(None, seeds=[0])}
    assert jobs["squad_half_seen_questions_0"].needs == jobs["windows_half"].needs == ["reader_half.json"]
    assert jobs["imdb_as_before_0"].needs == ["classifier.json"]
    assert jobs["cnn_as_before_0"].needs == ["cnn_model.json"] and jobs["sentiment_as_before_0"].needs == []
    assert {need for job in jobs.values() for need in job.needs} <= {job.record for job in jobs.values()}
    assert not any("'" in job.record or " " in job.record for job in jobs.values())
    fits = {job.name: job for job in stages.fits(None, boxes=["forest"], seeds=[3])}
    tried = {job.record for job in stages.grid(None, boxes=["forest"])} - {"forest_model.json"}
    assert set(fits["forest_fit_3"].needs) == tried | {"forest_lime.json"}


def test_one_feature_is_enough_for_half_of_the_inputs(load):
    """Two and one of four features are kept; the best alone is enough for the first input."""
    line = load("tables").hindsight({"imdb_as_before_0": record([0.9, 0.9])}).splitlines()[2]
    cells = line.strip("| ").split(" | ")
    assert cells[1:6] == ["magnex", "1.5", "50.0%", "50.0%", "2"] and cells[6].startswith("0.300 [")


def test_magnex_compared_with_lime_on_the_same_inputs(load):
    run = record([0.9, 0.9])
    run["lime"] = run["magnex"] | {"comprehensiveness": [0.3, 0.5], "of one": [0.5, 0.15]}
    line = load("tables").hindsight({"imdb_as_before_0": run}).splitlines()[3]
    cells = line.strip("| ").split(" | ")
    assert cells[7].startswith("0.200 [") and cells[8].startswith("-0.100 [-0.100, -0.100]")


def test_sparsity_of_questions_and_contexts(load):
    """One of four question words is kept, and of contexts (2 − 1) + 1 of 4."""
    found = {"squad_question_removable_0": record([0.9, 0.9])}
    assert load("tables").question_words(found).splitlines()[2] == ("| question removable | 0.750 | 0.500 |")


def test_sufficiency_by_the_readers_certainty(load):
    """Two questions in each third of certainty; three are answered rightly."""
    own = load("tables")
    readings = [{"certainty": c, "exact match": float(c > 0.5)} for c in (0.1, 0.4, 0.6, 0.9, 0.95, 0.2)]
    around = {w: {"sufficiency": [0.0, 0.5, 1.0, 1.0, 1.0, 0.0]} for w in own.WINDOWS}
    found = {"windows_as_before": {"readings": readings} | around}
    rows = [line.strip("| ").split(" | ") for line in own.by_certainty(found).splitlines()[2:]]
    assert [row[2] for row in rows] == ["2", "2", "2", "3", "3"]
    assert rows[0][3].startswith("0.000") and rows[1][4].startswith("0.750")
    assert rows[2][5].startswith("1.000") and rows[3][3].startswith("1.000")
    assert rows[4][3].startswith("0.167")


def test_two_passes_compared_with_one(load):
    found = {"imdb_as_before_0": {"together": {"inputs": 9, "prediction": 2.0, "magnex": 2.2}}}
    found["imdb_as_before_0"]["together"]["magnex, two passes"] = 4.0
    assert "| 9 | 2.00 s | 2.20 s, 1.10× | 4.00 s, 2.00× |" in load("tables").together(found)

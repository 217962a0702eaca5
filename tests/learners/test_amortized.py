"""Learned Shapley values: the training, the files, refusals, and local adaption."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest
import torch

import pertinent
from pertinent.asks import Network, NetworkOutputs
from pertinent.errors import FileError, InputError, ModelError, SettingError
from pertinent.explainers.base import Task
from pertinent.explainers.shapley.shapley_sampling import ShapleySampling
from pertinent.learners.methods.amortized_shapley import AmortizedShapley, combine_estimates
from pertinent.learners.network_trainer import ExampleCollator, TrainingExamples
from pertinent.learners.networks.scorer import feature_scores
from pertinent.learners.networks.token_scorers import TokenScorer
from pertinent.learners.score_arrays import normalize_scores
from pertinent.models.transformer import TransformerModel
from pertinent.runs.explanation_steps import REPEATED
from pertinent.stats import spearman
from pertinent.testing.games import random_interactions
from tests import tiny
from tests.learners import write_digest

OPTIONS = {"samples": 8, "epochs": 6, "learning_rate": 3e-3, "batch_size": 8, "progress": False}
FEW = OPTIONS | {"epochs": 1}


def some_texts(n, seed=0):
    rng = random.Random(seed)
    return [" ".join(rng.choices(tiny.WORDS[:20], k=rng.randint(4, 9))) for _ in range(n)]


TEXTS, NEW = some_texts(40), some_texts(25, seed=1)
LENGTHS = [len(text.split()) for text in TEXTS]
PILOTS = REPEATED * (1 + REPEATED) + sum(4 + 3 * (n - 1) for n in LENGTHS) + 4 * (max(LENGTHS) + 12)
"""Rows that one permutation and one with its reverse cost, of every text, each with both ends; and those of
the comparison with leave-one-out on four held-out texts."""


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(tiny.pair("bert"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fits") / "fitted"


@pytest.fixture(scope="module")
def fitted(model, folder):
    return pertinent.fit(model, TEXTS, out=folder, **OPTIONS)


@pytest.fixture(scope="module")
def exact(model):
    return pertinent.explain(model, NEW, method="exact-shapley", progress=False)


def weights(fitted):
    return fitted.network.scorer.state_dict()


def scores(model, explainer, texts=NEW, **options):
    return [e.scores for e in pertinent.explain(model, texts, explainer, progress=False, **options)]


def error(found, exact):
    return np.mean([((mine - e.scores) ** 2).mean() for mine, e in zip(found, exact, strict=True)])


@pytest.fixture
def rows(monkeypatch):
    """Return the rows that the explained model is asked about."""
    asked = []
    submit = TransformerModel.submit

    def counted(self, rows):
        asked.append(sum(len(part.attend) for part in rows))
        return submit(self, rows)

    monkeypatch.setattr(TransformerModel, "submit", counted)
    return asked


# -- what is learned ---------------------------------------------------------------------------


def test_it_learns_the_values_of_texts_it_has_seen_and_of_others(model, fitted, exact):
    known = pertinent.explain(model, TEXTS, method="exact-shapley", progress=False)
    for texts, truth in ((TEXTS, known), (NEW, exact)):
        found = pertinent.explain(model, texts, method=fitted, progress=False)
        assert not found.failures
        assert {e.evaluations for e in found} == {1}
        ranks = [spearman(np.stack([e.scores, t.scores]))[0, 1] for e, t in zip(found, truth, strict=True)]
        assert np.mean(ranks) > 0.6
    assert fitted.network.card["dev_spearman"] > 0.6


def test_the_explained_model_is_left_alone(model, fitted):
    untouched = tiny.model("bert").state_dict()
    assert all(torch.equal(weight, untouched[name]) for name, weight in model.model.state_dict().items())


def test_same_seed_same_weights(model, fitted):
    again = pertinent.fit(model, TEXTS, **OPTIONS)
    other = pertinent.fit(model, TEXTS, seed=1, **OPTIONS)
    assert all(torch.equal(weight, weights(again)[name]) for name, weight in weights(fitted).items())
    assert again.network.fingerprint == fitted.network.fingerprint
    assert not all(torch.equal(weight, weights(other)[name]) for name, weight in weights(fitted).items())


def test_a_word_is_the_sum_of_its_tokens(model, fitted):
    text = "w1-w2 w3 w4-w5"
    words = pertinent.explain(model, text, method=fitted)
    tokens = pertinent.explain(model, text, method=fitted, features="tokens")
    assert (len(words.features), len(tokens.features)) == (3, 7)
    sums = np.add.reduceat(tokens.scores, [0, 3, 4])
    np.testing.assert_allclose(words.scores, sums, rtol=1e-5, atol=1e-8)


def test_special_tokens_and_padding_are_no_features(model):
    tokens = torch.tensor(
        [[[100.0], [1.0], [2.0], [4.0], [100.0]], [[100.0], [8.0], [100.0], [100.0], [100.0]]]
    )
    owners = torch.tensor([[-1, 0, 1, 1, -1], [-1, 0, -1, -1, -1]])
    assert feature_scores(tokens, owners, 2).tolist() == [[[1.0, 6.0]], [[8.0, 0.0]]]
    inputs = [model.prepare(text) for text in ("w1 w2", "w1 w2 w3")]
    data = TrainingExamples(inputs, [{"scores": np.ones((1, 2))}, {"scores": np.full((1, 3), 2.0)}])
    batch = ExampleCollator(data, model, TokenScorer.from_model(model, inputs, 1))([(0, 0), (0, 1)])
    np.testing.assert_array_equal(batch["targets"]["scores"], [[[1, 1, 0]], [[2, 2, 2]]])
    np.testing.assert_array_equal(batch["real"], [[True, True, False], [True, True, True]])
    (texts,) = batch["passes"]
    assert texts.owners.tolist() == [[-1, 0, 1, -1, -1], [-1, 0, 1, 2, -1]]


def test_it_is_deterministic_whoever_else_is_explained(model, fitted):
    together = scores(model, fitted)
    for text, mine in zip(NEW[:4], together[:4], strict=True):
        np.testing.assert_allclose(pertinent.explain(model, text, fitted, seed=9).scores, mine, atol=1e-7)


def test_all_classes_at_once(model, exact):
    fitted = pertinent.fit(model, TEXTS, classes="all", **OPTIONS | {"epochs": 2})
    e = pertinent.explain(model, NEW[0], fitted.refined(30), target=1)
    assert e.class_scores.shape == (3, len(e.features))
    np.testing.assert_array_equal(e.scores, e.class_scores[1])
    np.testing.assert_allclose(e.base_values + e.class_scores.sum(axis=1), e.prediction.values, atol=1e-6)
    np.testing.assert_allclose(e.class_scores, exact[0].class_scores, atol=3e-3)


@pytest.mark.parametrize("architecture", ["roberta", "distilbert", "mpnet", "modernbert"])
def test_every_architecture(architecture, tmp_path):
    model = pertinent.wrap(tiny.pair(architecture))
    fitted = pertinent.fit(model, TEXTS[:10], **OPTIONS | {"epochs": 1, "samples": 2})
    fitted.save(tmp_path / "saved")
    again = pertinent.load_explainer(tmp_path / "saved")
    assert again.network.fingerprint == fitted.network.fingerprint
    for mine, other in zip(scores(model, fitted), scores(model, again), strict=True):
        np.testing.assert_array_equal(mine, other)


# -- like any method ---------------------------------------------------------------------------


def test_in_compare_and_in_a_journalled_run(model, fitted, tmp_path):
    found = pertinent.compare(model, NEW[:5], [fitted, "leave-one-out"], "sufficiency", progress=False)
    assert [e.method for e in found.explanations][:2] == ["amortized-shapley", "leave-one-out"]
    es = pertinent.explain(model, NEW[:5], fitted, out=tmp_path / "run.parquet", progress=False)
    again = pertinent.explain(model, NEW[:5], fitted, out=tmp_path / "run.parquet", progress=False)
    np.testing.assert_array_equal(es[0].scores, again[0].scores)
    assert "BertModel" in es[0].settings["network"]
    with pytest.raises(FileError, match="differs in"):
        pertinent.explain(model, NEW[:5], fitted.refined(1), out=tmp_path / "run.parquet", progress=False)


def test_texts_share_batches(model, fitted, monkeypatch):
    sizes = []
    submit = type(fitted.network).submit
    monkeypatch.setattr(
        type(fitted.network), "submit", lambda self, *args: sizes.append(len(args[1])) or submit(self, *args)
    )
    scores(model, fitted)
    assert sum(sizes) == len(NEW)
    assert len(sizes) < len(NEW) / 2


# -- what is kept ------------------------------------------------------------------------------


def test_saved_and_loaded_it_gives_the_same_values(model, fitted, folder, tmp_path):
    fitted.save(tmp_path / "saved")
    files = {path.name for path in (tmp_path / "saved").iterdir()}
    assert files == {"config.json", "model.safetensors", "pertinent.json"}
    assert {path.name for path in folder.iterdir()} == files | {"teacher.parquet"}
    for place in (tmp_path / "saved", folder):
        loaded = pertinent.load_explainer(place)
        for mine, other in zip(scores(model, fitted), scores(model, loaded), strict=True):
            np.testing.assert_array_equal(mine, other)


def test_the_card_says_what_it_was_trained_on(model, fitted, folder):
    card = json.loads((folder / "pertinent.json").read_text())
    assert card == fitted.network.card | {"digest": card["digest"]}
    assert card["model"] == model.fingerprint.hex()
    assert card["teacher"] == {"method": "shapley-sampling", "settings": {"samples": 8}}
    assert (card["inputs"], card["examples"], card["dev_examples"]) == (40, 36, 4)


def test_a_finished_fit_is_read_and_asks_nothing(model, fitted, folder, rows):
    again = pertinent.fit(model, TEXTS, out=folder, **OPTIONS)
    assert again.network.fingerprint == fitted.network.fingerprint
    assert rows == []
    with pytest.raises(SettingError, match=r"different settings \(epochs\)"):
        pertinent.fit(model, TEXTS, out=folder, **OPTIONS | {"epochs": 7})


def test_a_killed_fit_goes_on_and_recomputes_no_reference(model, tmp_path, rows):
    class Killed(BaseException):
        pass

    def kill_at(done, total):
        def callback(progress):
            if progress.total == total and progress.done >= done:
                raise Killed

        return callback

    asked = []
    for done, total in (
        (20, len(TEXTS)),
        (100, 6 * 36),
    ):  # in the explanations by the teacher, then in the training
        with pytest.raises(Killed):
            pertinent.fit(model, TEXTS, out=tmp_path / "f", **OPTIONS | {"progress": kill_at(done, total)})
        asked.append(sum(rows))
    assert asked[1] - PILOTS < 2 * asked[0]
    found = pertinent.fit(model, TEXTS, out=tmp_path / "f", **OPTIONS)
    assert sum(rows) - asked[1] <= PILOTS
    whole = pertinent.fit(model, TEXTS, teacher_explanations=tmp_path / "f" / "teacher.parquet", **OPTIONS)
    assert all(torch.equal(weight, weights(whole)[name]) for name, weight in weights(found).items())


def test_references_are_used_again(model, fitted, folder, rows):
    file = folder / "teacher.parquet"
    again = pertinent.fit(model, TEXTS, teacher_explanations=file, **OPTIONS)
    assert all(torch.equal(weight, weights(again)[name]) for name, weight in weights(fitted).items())
    assert sum(rows) <= PILOTS
    some = pertinent.fit(model, TEXTS[:20], teacher_explanations=pertinent.read(file), **FEW)
    assert some.network.card["examples"] == 18
    with pytest.raises(
        SettingError, match="must be 'attention-mask', the teacher's removal, but got 'mask-token'"
    ):
        pertinent.fit(model, TEXTS, teacher_explanations=file, removal="mask-token", progress=False)


def test_references_of_any_method(model):
    fitted = pertinent.fit(model, TEXTS[:10], teacher="exact-shapley", epochs=1, progress=False)
    assert np.isfinite(fitted.network.card["sampling_variances"]).all()
    with pytest.raises(
        SettingError,
        match="`classes` must be 'predicted', because the teacher gradient scores only one class",
    ):
        pertinent.fit(model, TEXTS[:4], teacher="gradient", classes="all", progress=False)


# -- what is refused ---------------------------------------------------------------------------


def test_another_model_is_refused(fitted, folder):
    changed = tiny.pair("bert")
    with torch.no_grad():
        changed[0].classifier.bias += 0.1
    other = pertinent.wrap(changed)
    with pytest.raises(ModelError, match="fitted to a different model"):
        pertinent.explain(other, NEW[0], fitted)
    with pytest.raises(FileError, match="`teacher_explanations` must explain this model"):
        pertinent.fit(other, TEXTS, teacher_explanations=folder / "teacher.parquet", progress=False)
    function = pertinent.wrap(lambda texts: [[0.5, 0.5]] * len(texts))
    with pytest.raises(ModelError, match="fitted to a different model"):
        pertinent.explain(function, NEW[0], fitted)


def test_another_removal_or_target_or_scale_is_refused(model, fitted):
    with pytest.raises(
        SettingError, match="`removal` must be 'attention-mask', which the explainer was fitted with"
    ):
        pertinent.explain(model, NEW[0], fitted, removal="mask-token")
    target = (pertinent.explain(model, NEW[0], fitted).target + 1) % 3
    with pytest.raises(SettingError, match="must be the predicted class of this explainer"):
        pertinent.explain(model, NEW[0], fitted, target=target)
    with pytest.raises(SettingError, match="`scale` must be 'natural'"):
        pertinent.explain(model, NEW[0], fitted, scale="logit")


@pytest.mark.parametrize(
    ("inputs", "options", "error", "said"),
    [
        ("one text", {}, InputError, "must be a collection"),
        (["w1 w2"], {}, InputError, "at least 2 usable inputs"),
        (["w1 w2", ""], {}, InputError, "Input 1: The text is empty"),
        (TEXTS, {"method": "amortised-shapley"}, SettingError, "Did you mean 'amortized-shapley'"),
        (TEXTS, {"validation_fraction": 1.0}, SettingError, "must be above 0 and below 1"),
        (TEXTS, {"samplez": 3}, SettingError, "samplez"),
    ],
)
def test_what_cannot_be_fitted(model, inputs, options, error, said):
    with pytest.raises(error, match=said):
        pertinent.fit(model, inputs, progress=False, **options)


def test_a_damaged_folder_is_refused(fitted, tmp_path):
    with pytest.raises(FileError, match="no explainer"):
        pertinent.load_explainer(tmp_path)
    fitted.save(tmp_path / "f")
    card = dict(fitted.network.card)
    (tmp_path / "f" / "pertinent.json").write_text(json.dumps(card | {"classes": "some"}))
    with pytest.raises(FileError, match="`classes` must be one of predicted, all"):
        pertinent.load_explainer(tmp_path / "f")
    fitted.save(tmp_path / "f")
    (tmp_path / "f" / "model.safetensors").write_bytes(b"nothing")
    write_digest(tmp_path / "f")
    with pytest.raises(FileError, match="cannot be loaded"):
        pertinent.load_explainer(tmp_path / "f")


# -- normalization and local adaption ----------------------------------------------------------


def test_normalized_scores_add_up(model, fitted):
    plain = pertinent.explain(model, NEW[0], fitted)
    e = pertinent.explain(model, NEW[0], replace(fitted, normalize=True))
    assert (plain.base_values, e.evaluations) == (None, 3)
    assert e.base_values[e.target] + e.scores.sum() == pytest.approx(e.prediction.values[e.target])
    np.testing.assert_allclose(np.diff(e.scores), np.diff(plain.scores), atol=1e-12)


class Said(Network):
    """A network with fixed outputs."""

    fingerprint = b"said"

    def __init__(self, scores, card):
        taught = {"learned_from": {"method": "shapley"}}
        self.scores, self.card = (
            scores,
            {"classes": "all", "scale": "natural", "features": None, **taught, **card},
        )

    def check(self, model, removal): ...
    def submit(self, model, inputs): ...
    def read(self, outputs, inputs): ...
    def save(self, folder): ...


def played(explainer, game):
    """Run the algorithm on a game; the network's answer is its scores."""
    prediction = game.values(np.ones((1, game.d), dtype=bool))[0]
    task = Task(game.d, 0, prediction, 10**6, (0.5,), np.random.default_rng(0))
    steps, answer = explainer.explain(task), None
    while True:
        try:
            ask = steps.send(answer)
        except StopIteration as stop:
            return stop.value
        answer = ask.network.scores if isinstance(ask, NetworkOutputs) else game(ask.masks)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_paper_is_algorithm_1_to_the_letter(m):
    game = random_interactions(6, seed=0)
    network = Said(np.random.default_rng(1).normal(size=(1, 6)), {})
    found = played(AmortizedShapley(network, refine=m, combine="paper"), game)
    sampled = played(ShapleySampling(samples=m, antithetic=False), game)
    np.testing.assert_allclose(found.scores, (network.scores[0] + m * sampled.scores[0]) / m)
    assert found.base_values is None


@pytest.mark.parametrize("m", [1, 2, 3, 8])
def test_the_parts_are_weighted_by_what_is_known_of_their_errors(m):
    game = random_interactions(6, seed=0)
    card = {"error_variances": [0.5], "sampling_variances": [[0.27], [0.09]]}
    network = Said(np.random.default_rng(1).normal(size=(1, 6)), card)
    found = played(AmortizedShapley(network, refine=m), game)
    sampled = played(ShapleySampling(samples=m), game)
    variance = {1: 0.27, 2: 0.09, 3: (2 * 2 * 0.09 + 0.27) / 9, 8: 0.09 / 4}[m]
    prediction = normalize_scores(network.scores, sampled.scores.sum(axis=1))
    scores, errors = combine_estimates(
        prediction, sampled.scores, sampled.standard_errors, np.array([0.5]), np.array([variance])
    )
    np.testing.assert_allclose(found.scores, scores[0])
    np.testing.assert_allclose(found.standard_errors, errors[0])


class SamePermutations(ShapleySampling):
    """A method that draws the permutations of local adaption, because draws depend on the name."""

    name = AmortizedShapley.name


def test_it_is_better_than_either_part_and_converges(model, exact):
    fitted = pertinent.fit(model, some_texts(200), validation_fraction=0.3, **OPTIONS)
    alone = error(scores(model, replace(fitted, normalize=True)), exact)

    def mean_error(method):
        return np.mean([error(scores(model, method, seed=s), exact) for s in range(4)])

    for m in (1, 2, 3, 4, 8):
        refined = mean_error(fitted.refined(m))
        assert refined < min(alone, mean_error(SamePermutations(samples=m))), m
        assert refined < mean_error(fitted.refined(m, combine="paper"))
    assert error(scores(model, fitted.refined(300)), exact) < alone / 100


def test_a_refined_explanation_counts_everything(model, fitted):
    e = pertinent.explain(model, NEW[0], fitted.refined(3))
    d = len(e.features)
    assert e.cost.budget == 1 + 2 + 3 * (d - 1)
    assert e.evaluations <= e.cost.budget
    assert e.base_values[e.target] + e.scores.sum() == pytest.approx(e.prediction.values[e.target])
    with pytest.raises(SettingError, match="`refine` must be at least 0"):
        fitted.refined(-1)


def test_on_the_logit_scale(model):
    fitted = pertinent.fit(model, TEXTS, scale="logit", **OPTIONS)
    e = pertinent.explain(model, NEW[0], replace(fitted, normalize=True), scale="logit")
    assert e.request.scale == "logit"
    with pytest.raises(SettingError, match="`scale` must be 'logit'"):
        pertinent.explain(model, NEW[0], fitted)

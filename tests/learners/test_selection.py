"""Methods that learn to select: their losses by hand, and their results on known problems."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy as torch_cross_entropy

from pertinent.errors import SettingError
from pertinent.learners.methods.aim import AIMLearner, centre, intercepts
from pertinent.learners.methods.invase import INVASELearner, share_selected
from pertinent.learners.methods.l2x import L2XLearner
from pertinent.learners.methods.vibi import VIBILearner, divergence_from_uniform
from pertinent.learners.networks.joint_networks import SelectionBatch
from pertinent.learners.networks.word_scorer import TextApproximator, WordScorer
from pertinent.learners.subsets import cross_entropy, log_probability, one_hot, relaxed_subset

REAL = torch.tensor([[True, True, True, False], [True, True, True, True]])
PREDICTIONS = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])


pytestmark = pytest.mark.usefixtures("one_thread")


class Told(SelectionBatch):
    """A batch with fixed outputs of its networks, which keeps the questions."""

    def __init__(self, scores, approximate, answers=None, real=REAL, predictions=PREDICTIONS):
        self._scores, self._approximate, self._answers = scores, approximate, answers
        self.real, self.predictions, self.memory = real, predictions, torch.zeros(0)
        self.approximated, self.asked = {}, []

    def scores(self, network):
        return self._scores[network]

    def approximate(self, network, kept):
        self.approximated[network] = kept
        return self._approximate(network, kept)

    def ask(self, kept):
        self.asked.append(kept)
        return self._answers(kept)


def readings(kept):
    """Return logits of three classes that depend on every feature, including padding."""
    weights = torch.tensor([[1.0, -2.0, 0.5], [0.3, 0.2, -1.0], [-0.5, 1.0, 0.1], [50.0, -50.0, 9.0]])
    return kept @ weights


# -- AIM ---------------------------------------------------------------------------------------


def aim_scores():
    torch.manual_seed(1)
    return {"explainer": torch.randn(2, 3, 4), "selector": torch.randn(2, 1, 4)}


@pytest.mark.parametrize("learns_from", ["decisions", "probabilities"])
def test_the_loss_of_aim_by_hand(learns_from):
    told = Told(aim_scores(), lambda _, kept: readings(kept), lambda kept: readings(kept.float()))
    torch.manual_seed(5)
    settings = {"beta": 0.3, "temperature": 0.4, "explore": 0.0, "learns_from": learns_from}
    loss = AIMLearner(trained="both", alpha=1.7, **settings).compute_loss(told)
    z = told.approximated["approximator"]
    (asked,) = told.asked
    assert torch.equal(asked, z > 0.5)
    every = told.scores("explainer") - told.scores("explainer").mean(1, keepdim=True)
    linear = torch.tensor(
        [[sum(own[c, i] * z[row, i] for i in range(4)) for c in range(3)] for row, own in enumerate(every)]
    )
    wanted = readings(asked.float())
    wanted = one_hot(wanted) if learns_from == "decisions" else wanted
    constants = intercepts(wanted, linear)
    by_hand = 0.0
    for row, weights in enumerate(every):
        by_hand += torch_cross_entropy(linear[row] + constants, wanted[row])  # Eqn. 2
        by_hand += 1.7 * torch_cross_entropy(readings(z[row]), PREDICTIONS[row].argmax())  # Eqn. 4
        real = range(3 if row == 0 else 4)
        by_hand += 0.3 * sum(math.sqrt(sum(weights[c, i] ** 2 for c in range(3))) for i in real)
    torch.testing.assert_close(loss, by_hand / 2, atol=1e-4, rtol=1e-5)


def test_the_intercepts_of_aim_are_those_of_a_softmax_regression():
    torch.manual_seed(2)
    logits = 2 * torch.randn(300, 3)
    decided = one_hot(logits + torch.tensor([1.0, 0.0, -1.5]) + torch.randn(300, 3))
    found = intercepts(decided, logits)
    often = (logits + found).softmax(-1).mean(0)
    torch.testing.assert_close(often, decided.mean(0), atol=2e-3, rtol=0)
    free = torch.zeros(3, requires_grad=True)
    fit = torch.optim.LBFGS([free], max_iter=200)

    def loss():
        fit.zero_grad()
        value = cross_entropy(decided, logits + free).mean()
        value.backward()
        return value

    fit.step(loss)
    torch.testing.assert_close(found - found.mean(), (free - free.mean()).detach(), atol=0.02, rtol=0)


def test_one_class_alone_gives_intercepts_that_explain_everything():
    """Check a constant model, which leaves nothing for the weights to learn."""
    decided = torch.tensor([[0.0, 1.0]]).repeat(50, 1)
    logits = torch.randn(50, 2)
    assert cross_entropy(decided, logits + intercepts(decided, logits)).mean() < 0.05


def test_the_weights_of_aim_sum_to_zero_over_classes():
    scores = aim_scores()["explainer"]
    torch.testing.assert_close(centre(scores).sum(1), torch.zeros(2, 4), atol=1e-6, rtol=0)
    alone = scores[:, :1]
    assert centre(alone) is alone
    shifted = scores + torch.randn(2, 1, 4)
    torch.testing.assert_close(centre(shifted), centre(scores))
    learner = AIMLearner(k=1)
    chosen = [learner.selected(each, REAL, PREDICTIONS) for each in (scores, shifted)]
    assert torch.equal(*chosen)


def test_aim_explores_beside_the_selector():
    """Check that neighbours of some inputs keep random features, and the approximator the selector's."""
    scores = {"explainer": torch.randn(2, 3, 4), "selector": torch.full((2, 1, 4), 30.0)}
    random = 0
    for seed in range(400):
        torch.manual_seed(seed)
        told = Told(scores, lambda _, kept: readings(kept), lambda kept: readings(kept.float()))
        AIMLearner(trained="both", explore=0.25).compute_loss(told)
        assert torch.equal(told.approximated["approximator"] > 0.5, told.real)
        random += int((told.asked[0] != told.real).any(-1).sum())
    # All d features are kept with probability ∫ d^(d(u − 1)) du.
    all_kept = [(1 - d**-d) / (d * math.log(d)) for d in (3, 4)]
    np.testing.assert_allclose(random / 800, 0.25 * (1 - np.mean(all_kept)), atol=0.04)


def test_the_samples_of_aim_are_concrete():
    logits = torch.tensor([1.2, -0.7]).repeat(20000, 1)
    torch.manual_seed(0)
    z = AIMLearner(trained="both", temperature=0.3)._relaxed(logits)
    # P(z > 1/2) is π whatever the temperature, and log-odds of z are logistic noise around the logits.
    np.testing.assert_allclose((z > 0.5).float().mean(0), logits[0].sigmoid(), atol=0.015)
    log_odds = 0.3 * torch.logit(z.double().clamp(1e-12, 1 - 1e-12))
    np.testing.assert_allclose(log_odds.median(0).values, logits[0], atol=0.05)
    sharp = AIMLearner(trained="both", temperature=1e-3)._relaxed(logits)
    assert ((sharp < 1e-3) | (sharp > 1 - 1e-3)).float().mean() > 0.99


def test_padding_is_nothing_to_aim():
    changed = aim_scores()
    for scores in changed.values():
        scores[0, :, 3] = 30.0
    for train in ("both", "selector", "explainer"):
        losses = []
        for scores in (aim_scores(), changed):
            torch.manual_seed(5)
            told = Told(scores, lambda _, kept: readings(kept), lambda kept: readings(kept.float()))
            losses.append(AIMLearner(trained=train).compute_loss(told))
        torch.testing.assert_close(*losses)


@pytest.mark.parametrize(
    ("train", "settings"),
    [
        ("explainer", {"alpha": 2.0}),
        ("explainer", {"temperature": 0.1}),
        ("explainer", {"explore": 0.0}),
        ("explainer", {"infer": "selector"}),
        ("selector", {"beta": 1.0}),
        ("selector", {"context": False}),
        ("selector", {"explore": 0.0}),
        ("selector", {"infer": "selector"}),
        ("selector", {"intercept": False}),
        ("selector", {"centring": False}),
        ("selector", {"sizes": "uniform"}),
    ],
)
def test_settings_of_what_is_not_trained_are_not_ignored(train, settings):
    (name,) = settings
    with pytest.raises(SettingError, match=f"`{name}` must be .* with trained='{train}'"):
        AIMLearner(trained=train, **settings)
    AIMLearner(trained="both", **settings)


def test_what_aim_trains_and_asks():
    assert AIMLearner() == AIMLearner(trained="explainer")
    for train, networks, asks in (
        ("both", ["explainer", "selector", "approximator"], 1),
        ("selector", ["selector", "approximator"], 0),
        ("explainer", ["explainer"], 1),
    ):
        learner = AIMLearner(trained=train)
        assert sorted(learner.networks()) == sorted(networks)
        told = Told(aim_scores(), lambda _, kept: readings(kept), lambda kept: readings(kept.float()))
        learner.compute_loss(told)
        assert len(told.asked) == asks
        assert bool(told.approximated) == ("approximator" in networks)


class Toy(SelectionBatch):
    """Texts of 200 words; the first 5 support one class and the next 5 the other."""

    def __init__(self, networks, generator):
        lean = torch.rand(16, 1, generator=generator)
        side = (torch.rand(16, 200, generator=generator) < lean).long()
        topic = 1 + 5 * side + torch.randint(5, (16, 200), generator=generator)
        others = torch.randint(11, 200, (16, 200), generator=generator)
        self.ids = topic.where(torch.rand(16, 200, generator=generator) < 0.05, others)
        self.networks, self.real, self.memory = networks, self.ids > 0, torch.zeros(0)
        self.predictions = self.ask(self.real)

    def scores(self, network):
        return self.networks[network](ids=self.ids, segments=torch.zeros_like(self.ids)).transpose(1, 2)

    def approximate(self, network, kept):
        return self.networks[network](kept, ids=self.ids)

    def ask(self, kept):
        first, second = (((self.ids - 1) // 5 == side) & kept.bool() for side in (0, 1))
        return torch.stack([first.sum(1) + 0.1, second.sum(1)], 1).float().softmax(-1)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_selector_of_aim_lives_and_the_words_of_topics_are_found(seed):
    """Check the selector after 20 steps, when it kept nothing or everything with shared initial scores."""
    torch.manual_seed(seed)
    learner, generator = AIMLearner(trained="both", explore=0.0), torch.Generator().manual_seed(seed)
    networks = {name: WordScorer(n, 200) for name, n in (("explainer", 2), ("selector", 1))}
    networks["approximator"] = TextApproximator(200, 2)
    weights = [weight for network in networks.values() for weight in network.parameters()]
    optimizer, kept = torch.optim.AdamW(weights, 2e-3), []
    for _ in range(60):
        optimizer.zero_grad()
        toy = Toy(networks, generator)
        learner.compute_loss(toy).backward()
        optimizer.step()
        kept.append(float(learner.watched(toy)["kept"].detach().mean()))
    assert min(kept) > 0.02 and max(kept) < 0.98
    toy = Toy(networks, generator)
    with torch.no_grad():
        found = centre(toy.scores("explainer"))[:, 0]
    topics = toy.ids <= 10
    assert ((found > 0) == (toy.ids <= 5))[topics].float().mean() > 0.95
    five = found.abs().topk(5).indices  # of about ten
    assert topics.gather(1, five).float().mean() > 0.95


def test_the_first_loss_of_aim_teaches_the_selector():
    scores = {name: own.requires_grad_() for name, own in aim_scores().items()}
    told = Told(scores, lambda _, kept: readings(kept), lambda kept: readings(kept.float()))
    torch.manual_seed(0)
    AIMLearner(trained="both", alpha=0.0, beta=0.0, explore=0.0, temperature=1.0).compute_loss(
        told
    ).backward()
    assert (scores["selector"].grad[:, 0][REAL] != 0).all()
    assert scores["selector"].grad[0, 0, 3] == 0  # padding


def test_the_loss_of_aim_as_the_paper_has_it():
    told = Told(aim_scores(), lambda _, kept: readings(kept), lambda kept: readings(kept.float()))
    torch.manual_seed(5)
    plain = {
        "learns_from": "decisions",
        "intercept": False,
        "centring": False,
        "context": False,
        "explore": 0.0,
    }
    loss = AIMLearner(trained="both", alpha=0.0, beta=0.3, **plain).compute_loss(told)
    z, weights = told.approximated["approximator"], told.scores("explainer")
    decided = readings((z > 0.5).float()).argmax(1)
    by_hand = torch_cross_entropy((weights * z[:, None]).sum(-1), decided)
    by_hand += 0.3 * (weights.norm(dim=1) * REAL).sum(1).mean()
    torch.testing.assert_close(loss, by_hand, atol=1e-4, rtol=1e-5)


def test_random_neighbours_of_aim_may_have_uniform_sizes():
    real = torch.ones(4000, 100, dtype=torch.bool)
    scores = {"explainer": torch.zeros(4000, 3, 100)}
    for sizes, share in (("uniform", 0.5), ("mostly-few", 0.215)):  # ∫ 100^(u − 1) du
        told = Told(scores, None, lambda kept: torch.ones(len(kept), 3), real, torch.ones(4000, 3))
        torch.manual_seed(0)
        AIMLearner(sizes=sizes).compute_loss(told)
        assert float(told.asked[0].float().mean()) == pytest.approx(share, abs=0.02)


def test_a_selector_that_does_not_select_is_told():
    told = Told({"selector": torch.full((2, 1, 4), -6.0)}, None)
    kept = AIMLearner(trained="both").watched(told)["kept"]
    np.testing.assert_allclose(kept, 1 / (1 + math.exp(6)), rtol=1e-5)
    doubt = AIMLearner(trained="both").doubt
    assert doubt({"dev_kept": 0.5}) is None
    assert doubt({}) is None
    assert doubt({"dev_kept": 0.002}) == "The selector does not select: it keeps 0.2% of the features."
    assert doubt({"dev_kept": 0.99}) == "The selector does not select: it keeps 99.0% of the features."


# -- the relaxed subset of L2X and VIBI --------------------------------------------------------


def test_a_cold_subset_is_k_hot():
    torch.manual_seed(0)
    logits, real = torch.randn(200, 6), torch.ones(200, 6, dtype=torch.bool)
    real[::2, 4:] = False
    k = torch.where(real[:, 4], 3, 2)
    z = relaxed_subset(logits, real, k, 1e-4)
    assert (z[~real] == 0).all()
    assert ((z < 1e-4) | (z > 1 - 1e-4)).float().mean() > 0.99
    numbers = (z > 0.5).sum(1)
    assert (numbers <= k).all() and (numbers >= 1).all()
    assert (numbers == k).any()  # fewer if a feature was drawn twice
    sure = relaxed_subset(torch.tensor([[50.0, 0, 0]]), real[1:2, :3], torch.tensor([2]), 1e-3)
    assert sure.round().tolist() == [[1.0, 0.0, 0.0]]


def test_a_subset_is_the_maximum_of_concrete_samples():
    torch.manual_seed(0)
    logits, real = torch.tensor([[0.5, -1.0, 2.0, 9.0]]).repeat(30000, 1), REAL[:1].repeat(30000, 1)
    one = relaxed_subset(logits, real, torch.ones(30000, dtype=torch.long), 0.5)
    torch.testing.assert_close(one.sum(1), torch.ones(30000))
    # The largest share falls to a feature with its probability, at any temperature (Gumbel's maximum).
    shares = torch.bincount(one.argmax(1), minlength=4) / 30000
    np.testing.assert_allclose(shares[:3], logits[0, :3].softmax(0), atol=0.01)
    hot = relaxed_subset(logits, real, torch.full((30000,), 2), 1e4)
    np.testing.assert_allclose(hot[:, :3], 1 / 3, atol=1e-2)
    two = relaxed_subset(logits, real, torch.full((30000,), 2), 0.5)
    assert ((two.sum(1) > 1 - 1e-6) & (two.sum(1) < 2 + 1e-6)).all()
    # At least one of two draws is feature 1: 1 − (1 − p)².
    p = logits[0, :3].softmax(0)
    cold = relaxed_subset(logits, real, torch.full((30000,), 2), 1e-4) > 0.5
    np.testing.assert_allclose(cold.float().mean(0)[:3], 1 - (1 - p) ** 2, atol=0.01)


@pytest.mark.parametrize(
    "learner", [L2XLearner(k=2, subsets="selected"), VIBILearner(k=2, beta=0.3, subsets="selected")]
)
def test_the_losses_of_l2x_and_vibi_by_hand(learner):
    logits = torch.tensor([[[0.1, 1.0, -0.5, 7.0]], [[0.4, 0.3, 0.2, 0.1]]], requires_grad=True)
    told = Told({"explainer": logits}, lambda _, kept: readings(kept))
    loss = learner.compute_loss(told)
    answers = readings(told.approximated["approximator"]).log_softmax(-1)
    by_hand = 0.0
    for row in range(2):
        if isinstance(learner, L2XLearner):  # the model's probabilities
            by_hand -= sum(PREDICTIONS[row, c] * answers[row, c] for c in range(3))
        else:  # its decision, and the divergence of two draws
            p = logits[row, 0, : 3 if row == 0 else 4].softmax(0)
            by_hand -= answers[row, PREDICTIONS[row].argmax()]
            by_hand += 0.3 * 2 * sum(p[i] * (p[i] / (1 / len(p))).log() for i in range(len(p)))
    torch.testing.assert_close(loss, by_hand / 2)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient[0, 0, 3] == 0
    assert (gradient[1] != 0).all()


def test_the_divergence_by_formula():
    logits = torch.tensor([[3.0, 3.0, 3.0, 99.0], [0.0, 0.0, 0.0, 60.0]])
    np.testing.assert_allclose(divergence_from_uniform(logits, REAL), [0.0, math.log(4)], atol=1e-6)


@pytest.mark.parametrize("learner", [L2XLearner, VIBILearner])
def test_how_many_are_selected(learner):
    real = torch.arange(60) < torch.tensor([[1], [2], [5], [60]])
    assert learner().n_selected(real).tolist() == [1, 1, 3, 10]
    assert learner(k=4).n_selected(real).tolist() == [1, 2, 4, 4]


# -- INVASE ------------------------------------------------------------------------------------


def test_the_policy_gradient_of_invase_is_the_exact_one():
    logits = torch.tensor([[[0.3, -0.8, 1.1, 5.0]]], requires_grad=True)
    real, predictions = REAL[:1], PREDICTIONS[:1]
    learner = INVASELearner(penalty=0.7, subsets="selected")

    def regret(kept):
        return torch_cross_entropy(readings(kept), torch.tensor(0)) - torch_cross_entropy(
            readings(real[0].float()), torch.tensor(0)
        )

    p = logits[0, 0, :3].sigmoid()
    expected = 0.0
    for chosen in product((0.0, 1.0), repeat=3):
        kept = torch.tensor([*chosen, 0.0])
        probability = math.prod(p[i] if chosen[i] else 1 - p[i] for i in range(3))
        expected = expected + probability * regret(kept)
    (exact,) = torch.autograd.grad(expected + 0.7 * p.mean(), logits)

    n = 200_000
    torch.manual_seed(0)
    many = logits.expand(n, 1, 4)
    told = Told(
        {"selector": many},
        lambda _, kept: readings(kept),
        real=real.expand(n, 4),
        predictions=predictions.expand(n, 3),
    )
    (sampled,) = torch.autograd.grad(learner.compute_loss(told), logits)
    assert not told.approximated["predictor"].requires_grad
    assert (told.approximated["predictor"][:, 3] == 0).all()
    assert (told.approximated["baseline"] == real).all()
    np.testing.assert_allclose(sampled, exact, atol=0.02)
    assert exact.abs().max() > 0.1
    assert sampled[0, 0, 3] == 0


def test_invase_trains_the_predictor_and_the_baseline_by_cross_entropy():
    head = {name: torch.zeros(3, requires_grad=True) for name in ("predictor", "baseline")}
    told = Told({"selector": torch.zeros(2, 1, 4)}, lambda name, kept: readings(kept) + head[name])
    torch.manual_seed(0)
    learner = INVASELearner(subsets="selected")
    gradients = torch.autograd.grad(learner.compute_loss(told), list(head.values()))
    for name, gradient in zip(head, gradients, strict=True):
        logits = readings(told.approximated[name])
        by_hand = (logits.softmax(-1) - one_hot(PREDICTIONS)).mean(0)
        torch.testing.assert_close(gradient, by_hand)


def test_probabilities_of_selections():
    logits = torch.tensor([[0.0, 200.0, -200.0, 3.0], [1.0, -1.0, 2.0, 0.5]])
    selected = torch.tensor([[True, True, False, False], [True, True, False, False]])
    p = logits[1].double().sigmoid()
    wanted = [math.log(0.5), math.log(p[0] * p[1] * (1 - p[2]) * (1 - p[3]))]
    np.testing.assert_allclose(log_probability(logits, selected, REAL), wanted, rtol=1e-5)
    np.testing.assert_allclose(share_selected(logits, REAL), [0.5, float(p.mean())], rtol=1e-6)


def test_helpers():
    logits = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    expected = torch_cross_entropy(logits, PREDICTIONS, reduction="none")
    torch.testing.assert_close(cross_entropy(PREDICTIONS, logits), expected)
    assert one_hot(PREDICTIONS).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_what_is_selected_on_dev_inputs():
    scores = torch.zeros(2, 3, 4)
    scores[0, 0] = torch.tensor([1.0, 3.0, 2.0, 9.0])
    scores[1, 2] = torch.tensor([4.0, 1.0, 2.0, 3.0])
    learner = AIMLearner(k=2)
    kept = learner.selected(scores, REAL, PREDICTIONS)
    assert kept.tolist() == [[False, True, True, False], [True, False, False, True]]
    assert learner.quality(PREDICTIONS.flip(0), kept, REAL, PREDICTIONS).tolist() == [0, 0]
    assert learner.quality(PREDICTIONS, kept, REAL, PREDICTIONS).tolist() == [1, 1]

"""Counterfactual training: what is drawn, what is computed, what is learned, and what a kill leaves."""

import json
import random
from collections import Counter
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

import pertinent
from pertinent.errors import ExampleError, FileError, InputError, MissingExtra, ModelError, SettingError
from pertinent.finetuning.batches import Collator, Counterfactuals, Examples, Shuffled
from pertinent.finetuning.fine_tuning import with_new_head
from pertinent.finetuning.trainer import CounterfactualTrainer, _Reader
from pertinent.finetuning.training_settings import TrainingSettings, text_removal
from pertinent.models.embedded.load import load_transformer
from pertinent.models.tokens.batches import collate
from pertinent.outputs import column_index
from pertinent.removals.base import TokenRows, removals
from tests import tiny

TEXT_REMOVALS = [name for name in removals.for_kind("text") if name != "marginalize"]
SPARSITIES = (0.05, 0.1, 0.2, 0.5)
SETTINGS = {
    "sparsities": SPARSITIES,
    "epochs": 1,
    "batch_size": 8,
    "learning_rate": 1e-5,
    "seed": 0,
    "precision": "float32",
    "max_length": None,
    "patience": None,
    "checkpoint_steps": None,
    "options": {},
}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def plain_model(**changes):
    """A model with small weights, as one begins to train with."""
    made = tiny.model("bert", **changes)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim > 1:
                parameter.div_(4)
    return made


def toy(n, seed=0, longest=14):
    """Each text is made of the words of its class."""
    rng = random.Random(seed)
    labels = [rng.randrange(3) for _ in range(n)]
    words = [tiny.WORDS[30 * y : 30 * y + 6] for y in labels]
    return [" ".join(rng.choices(w, k=rng.randint(3, longest))) for w in words], labels


def fit(out, *, data=None, model=None, **options):
    settings = {"out": out, "epochs": 1, "batch_size": 8, "learning_rate": 3e-3, "progress": False} | options
    pair = model or plain_model(), tiny.tokenizer(model_max_length=200)
    return pertinent.train(pair, *(data or toy(40)), **settings)


def weights(trained):
    return {name: tensor.clone() for name, tensor in trained.model.model.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def wrapped():
    return pertinent.wrap(tiny.pair("bert"))


def examples(wrapped, n=10, longest=14):
    return Examples.from_texts(wrapped, *toy(n, longest=longest))


def counterfactuals(removal="attention-mask", seed=0, model=None):
    made = text_removal(removal)
    return Counterfactuals(made if model is None else made.bind(model), SPARSITIES, seed)


# -- what is drawn -----------------------------------------------------------------------------


def test_masks_have_the_size_and_the_uniform_distribution_of_the_paper():
    drawn = Counterfactuals(removals.make("attention-mask"), (0.2, 0.5), 0)
    masks = [tuple(np.flatnonzero(drawn.draw(0, i, 5)[0][0]).tolist()) for i in range(6000)]
    sizes = Counter(map(len, masks))
    assert set(sizes) == {1, 3}  # ceil(.2·5), ceil(.5·5)
    assert abs(sizes[1] / 6000 - 0.5) < 0.03
    for k in (1, 3):
        sets = Counter(mask for mask in masks if len(mask) == k)
        every = list(combinations(range(5), k))
        assert set(sets) == set(every)
        expected = sizes[k] / len(every)
        chi = sum((sets[s] - expected) ** 2 / expected for s in every)
        assert chi < 30  # 9 degrees of freedom at most: p < .001


def test_default_sparsities_are_drawn_per_example():
    sizes = Counter(int(counterfactuals().draw(0, i, 40)[0].sum()) for i in range(2000))
    assert set(sizes) == {2, 4, 8, 20}
    assert all(abs(count / 2000 - 0.25) < 0.05 for count in sizes.values())


def test_a_mask_depends_on_seed_epoch_and_example_only():
    def mask(epoch, example, seed=0):
        return counterfactuals(seed=seed).draw(epoch, example, 40)[0].tolist()

    assert mask(1, 7) == mask(1, 7)
    assert mask(1, 7) not in (mask(2, 7), mask(1, 8), mask(1, 7, seed=1))


def test_every_example_once_in_batches_of_similar_length(wrapped):
    data = examples(wrapped, 203, longest=40)
    clock = SimpleNamespace(epoch=0)
    sampler = Shuffled(data.lengths, 8, 0, lambda: clock.epoch)
    first = list(sampler)
    assert sorted(first) == [(0, i) for i in range(203)] == sorted(sampler)
    assert first == list(sampler)
    clock.epoch = 1
    assert [i for _, i in sampler] != [i for _, i in first]
    spread = [np.ptp(data.lengths[[i for _, i in first[b : b + 8]]]) for b in range(0, 200, 8)]
    assert np.mean(spread) < 5
    means = [data.lengths[[i for _, i in first[b : b + 8]]].mean() for b in range(0, 200, 8)]
    assert (np.diff(means) < 0).any() and (np.diff(means) > 0).any()


# -- what is computed --------------------------------------------------------------------------


@pytest.mark.parametrize("removal", TEXT_REMOVALS)
@pytest.mark.parametrize("pass_cost", [0, 10**9])
def test_the_loss_is_that_of_each_row_alone(wrapped, removal, pass_cost):
    data = examples(wrapped)
    drawn = counterfactuals(removal, model=wrapped)
    places = [(3, i) for i in (4, 1, 7)]
    batch = Collator(data, wrapped.pad_id, drawn, pass_cost)(places)
    assert batch["labels"].tolist() == [data.labels[i] for i in (4, 1, 7)] * 2
    got = torch.cat([wrapped.forward(part).logits for part in batch["passes"]])
    inputs = [data.inputs[i] for _, i in places]
    rows = [TokenRows(g.tokens, np.ones((1, len(g.tokens.ids)), dtype=bool)) for g in inputs]
    rows += [
        drawn.removal(g, *drawn.draw(3, i, g.n_features)) for (_, i), g in zip(places, inputs, strict=True)
    ]
    padded = torch.cat([wrapped.forward(collate([row], [False], 0)).logits for row in rows])
    assert torch.allclose(got, padded, atol=1e-4)


def test_dropped_tokens_are_not_computed(wrapped):
    data = examples(wrapped, longest=40)
    places = [(0, i) for i in range(10)]
    whole, replaced = Collator(data, 0, counterfactuals(), 0)(places)["passes"]
    assert whole.ids.shape[1] == data.lengths.max() > replaced.ids.shape[1]
    (together,) = Collator(data, 0, counterfactuals(), 10**9)(places)["passes"]
    assert together.ids.shape == (20, data.lengths.max())
    (alone,) = Collator(data, 0)(places)["passes"]
    assert alone.ids.shape == (10, data.lengths.max())


def test_the_query_is_never_removed(wrapped):
    raw = [{"query": "w1 w2 w3", "document": "w4 w5 w6 w7 w8"}]
    data = Examples.from_texts(wrapped, raw, [0])
    for epoch in range(20):
        _, replaced = Collator(data, 0, counterfactuals(), 0)([(epoch, 0)])["passes"]
        assert replaced.ids[0, :5].tolist() == data.inputs[0].tokens.ids[:5].tolist()
        assert replaced.ids.shape[1] <= 6 + 3


def test_the_trainer_averages_over_both_halves(wrapped, tmp_path, monkeypatch):
    seen = []
    compute_loss = CounterfactualTrainer.compute_loss

    def watched(self, model, inputs, **options):
        loss, outputs = compute_loss(self, model, inputs, **options | {"return_outputs": True})
        seen.append((loss.item(), outputs["logits"].detach(), inputs["labels"]))
        return loss

    monkeypatch.setattr(CounterfactualTrainer, "compute_loss", watched)
    fit(tmp_path / "m", data=toy(8))
    ((loss, logits, labels),) = seen
    each = -torch.log_softmax(logits, 1)[range(16), labels]
    assert loss == pytest.approx((each[:8].mean().item() + each[8:].mean().item()) / 2, abs=1e-6)


def test_a_wrapper_for_several_devices_does_not_hide_the_embeddings(wrapped):
    data = examples(wrapped)
    batch = Collator(data, 0, counterfactuals("zero-vector"), 10**9)([(0, 0), (0, 1)])
    reader = _Reader(torch.nn.DataParallel(wrapped.model), wrapped.model)
    (part,) = batch["passes"]
    assert torch.equal(wrapped.forward(part, reader).logits, wrapped.forward(part).logits)


# -- what is learned ---------------------------------------------------------------------------


def cued(n, seed=0):
    """Most texts hold a cue and are of class 0; without it they are of class 1."""
    rng = random.Random(seed)
    labels = [int(rng.random() < 0.25) for _ in range(n)]
    words = [[tiny.WORDS[10] if y else "w0", *rng.choices(tiny.WORDS[10:30], k=7)] for y in labels]
    return [" ".join(rng.sample(w, 8)) for w in words], labels


def accuracies(trained):
    """On whole texts, and where only two tokens of each are left."""
    data = Examples.from_texts(trained.model, *cued(200, seed=9))
    drawn = Counterfactuals(removals.make("mask-token"), (0.2,), 5)
    (batch,) = Collator(data, 0, drawn, 10**9)([(0, i) for i in range(200)])["passes"]
    with torch.no_grad():
        predicted = trained.model.forward(batch).logits.argmax(1).numpy()
    return (predicted.reshape(2, 200) == data.labels).mean(axis=1)


def test_both_ways_learn_and_counterfactual_training_makes_robust(tmp_path):
    # A removed cue means class 1 to a model that never saw a mask; the better guess is class 0.
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    options = {"data": cued(240), "epochs": 8, "removal": "mask-token"}
    standard = fit(tmp_path / "s", model=plain_model(**still), counterfactual=False, **options)
    robust = fit(tmp_path / "c", model=plain_model(**still), **options)
    (whole, ablated), (robust_whole, robust_ablated) = accuracies(standard), accuracies(robust)
    assert min(whole, robust_whole) > 0.95
    assert robust_ablated > ablated + 0.1


@pytest.mark.parametrize("removal", TEXT_REMOVALS)
def test_every_text_removal_trains(tmp_path, removal):
    model = plain_model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    trained = fit(tmp_path / "m", model=model, data=toy(16), removal=removal)
    assert not same(before, weights(trained))
    assert all(torch.isfinite(tensor).all() for tensor in weights(trained).values())
    assert json.loads((tmp_path / "m" / "pertinent.json").read_text())["removal"] == removal


@pytest.mark.parametrize(("precision", "mixed"), [("float32", "no"), ("bfloat16", "bf16")])
def test_precision_is_mixed(tmp_path, precision, mixed):
    # Asked for, not run: oneDNN's bfloat16 needs instructions that not every machine lends.
    made = TrainingSettings(removal=text_removal("slice-out"), **SETTINGS | {"precision": precision})
    arguments = made.arguments(tmp_path, None, "cpu")
    assert (arguments.bf16, arguments.fp16) == (mixed == "bf16", False)
    assert made.arguments(tmp_path, "accuracy", "cpu").load_best_model_at_end


def test_same_seed_same_model(tmp_path):
    one, two, other = (fit(tmp_path / str(i), data=toy(16), seed=s) for i, s in enumerate((0, 0, 1)))
    assert same(weights(one), weights(two))
    assert not same(weights(one), weights(other))


def test_early_stopping_and_the_best_model(tmp_path):
    trained = fit(tmp_path / "m", validation=(["w1 w2"], [0]), epochs=6, patience=1, learning_rate=1e-9)
    assert trained.steps == 10  # the first epoch, and one that did not beat it
    assert trained.accuracy in (0.0, 1.0)


# -- what is written, and what a killed run leaves ---------------------------------------------


def test_the_folder_can_be_read_and_explained(tmp_path):
    trained = fit(tmp_path / "m", data=(toy(16)[0], [f"LABEL_{y}" for y in toy(16)[1]]), validation=toy(8, 1))
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == [
        "config.json", "model.safetensors", "pertinent.json", "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip
    assert AutoModelForSequenceClassification.from_pretrained(tmp_path / "m").num_labels == 3
    read = load_transformer(tmp_path / "m")
    one = pertinent.explain(read, "w1 w2 w3", method="leave-one-out")
    assert np.allclose(
        one.scores, pertinent.explain(trained.model, "w1 w2 w3", method="leave-one-out").scores
    )
    record = json.loads((tmp_path / "m" / "pertinent.json").read_text())
    expected = {
        "counterfactual": True,
        "removal": "attention-mask",
        "seed": 0,
        "examples": 16,
        "dev_examples": 8,
    }
    assert expected.items() <= record.items()
    assert record["sparsities"] == list(SPARSITIES)
    assert record["dev_accuracy"] == trained.accuracy is not None


def kill_at(monkeypatch, step):
    """Training ends after so many steps, as if someone pulled the plug."""
    training_step = CounterfactualTrainer.training_step
    calls = []

    def dies(self, *arguments, **options):
        calls.append(0)
        if len(calls) > step:
            raise KeyboardInterrupt
        return training_step(self, *arguments, **options)

    monkeypatch.setattr(CounterfactualTrainer, "training_step", dies)


@pytest.mark.parametrize(("kill", "every"), [(4, None), (5, 2), (1, None)])
def test_a_killed_run_ends_where_an_unbroken_one_does(tmp_path, monkeypatch, kill, every):
    options = {"data": toy(24), "epochs": 2, "checkpoint_steps": every, "patience": 9}
    options["validation"] = toy(8, 1)
    unbroken = fit(tmp_path / "a", **options)
    with monkeypatch.context() as patch:
        kill_at(patch, kill)
        with pytest.raises(KeyboardInterrupt):
            fit(tmp_path / "b", **options)
    assert not (tmp_path / "b" / "config.json").exists()
    with pytest.raises(FileError, match="already contains a training run"):
        fit(tmp_path / "b", **options)
    with pytest.raises(SettingError, match=r"different settings \(seed\)"):
        fit(tmp_path / "b", **options, seed=3, resume=True)
    torch.manual_seed(99)
    resumed = fit(tmp_path / "b", **options, resume=True)
    assert resumed.steps == unbroken.steps == 6
    assert resumed.accuracy == unbroken.accuracy
    assert same(weights(unbroken), weights(resumed))


def test_a_finished_run_is_read_back(tmp_path, monkeypatch):
    first = fit(tmp_path / "m", data=toy(16), validation=toy(8, 1))
    kill_at(monkeypatch, 0)
    again = fit(tmp_path / "m", data=toy(16), validation=toy(8, 1), resume=True)
    assert same(weights(first), weights(again))
    assert (again.accuracy, again.steps) == (first.accuracy, first.steps)


def test_a_half_written_checkpoint_is_passed_over(tmp_path):
    from pertinent.finetuning.run_folder import RunFolder

    folder = RunFolder(tmp_path / "m", {})
    folder.open(resume=False)
    assert folder.last_checkpoint() is None
    for step, whole in ((9, True), (10, True), (11, False)):
        (folder.checkpoints / f"checkpoint-{step}").mkdir()
        if whole:
            (folder.checkpoints / f"checkpoint-{step}" / "trainer_state.json").touch()
    assert folder.last_checkpoint().endswith("checkpoint-10")


def test_nothing_is_printed_and_progress_is_told(tmp_path, capsys):
    seen = []
    fit(tmp_path / "m", data=toy(16), validation=toy(8, 1), progress=seen.append)
    assert capsys.readouterr() == ("", "")
    assert [(p.done, p.total, p.evaluations) for p in seen] == [(8, 16, 8), (16, 16, 16)]


# -- mistakes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "label", "message"),
    [
        ("  ", 0, "Example 2: The text is empty"),
        (7, 0, "Example 2: A text must be a string"),
        ("w1", 3, "Example 2: `label` must be a name or a number from 0 to 2, but got 3"),
        ("w1", float("nan"), "Example 2: A label must be a name or an index"),
        ("w1", None, "Example 2: A label must be a name or an index"),
        ("w1", 0.5, "Example 2: A label must be a name or an index"),
        ("w1", "LABEL_7", "Example 2: Unknown label 'LABEL_7'. Did you mean 'LABEL_"),
    ],
)
def test_a_bad_example_is_named(tmp_path, row, label, message):
    with pytest.raises(ExampleError) as error:
        fit(tmp_path / "m", data=(["w1", "w2", row], [0, 1, label]))
    assert str(error.value).startswith(message)
    assert (error.value.row, error.value.data) == (2, "train")
    assert repr(error.value.label) == repr(label if "label" in message else None)
    assert not (tmp_path / "m").exists()
    with pytest.raises(ExampleError, match="Validation example 0"):
        fit(tmp_path / "m", data=(["w1"], [0]), validation=([row], [label]))


def test_a_new_head_is_for_the_classes_of_the_labels(tmp_path):
    texts, labels = toy(8)
    model = plain_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    trained = fit(tmp_path / "m", model=model, data=(texts, ["abc"[y] for y in labels]), new_head=True)
    assert trained.model.classes == tuple(sorted({"abc"[y] for y in labels}))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_a_wrapped_model_is_trained_as_a_pair_is(tmp_path):
    one = fit(tmp_path / "a", data=toy(8))
    pair = plain_model(), tiny.tokenizer(model_max_length=200)
    options = {"epochs": 1, "batch_size": 8, "learning_rate": 3e-3, "progress": False}
    two = pertinent.train(pertinent.wrap(pair), *toy(8), out=tmp_path / "b", **options)
    assert all(torch.equal(value, weights(two)[name]) for name, value in weights(one).items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"removal": "marginalize"}, "cannot be 'marginalize'"),
        ({"removal": "blur"}, "must support text, got 'blur'"),
        ({"removal": "attention"}, "Did you mean 'attention-mask'"),
        ({"sparsity": ()}, "`sparsities` must be"),
        ({"sparsity": (0.1, 1.5)}, "`sparsity` must be"),
        ({"epochs": 0}, "`epochs` must be"),
        ({"batch_size": 0}, "`batch_size` must be"),
        ({"learning_rate": 0}, "`learning_rate` must be"),
        ({"seed": -1}, "`seed` must be"),
        ({"precision": "int8"}, "Unknown precision"),
        ({"precision": "float16"}, "needs CUDA"),
        ({"patience": 2}, "pass `validation`"),
        ({"options": {"warmup": 3}}, "unexpected keyword argument 'warmup'"),
        ({"data": (["w1"], [])}, "one label for each of 1 texts, got 0"),
    ],
)
def test_bad_settings_are_said(tmp_path, options, message):
    with pytest.raises(SettingError, match=message):
        fit(tmp_path / "m", **{"data": toy(4)} | options)
    assert not (tmp_path / "m").exists()


def test_other_mistakes(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no examples"):
        fit(tmp_path / "m", data=([], []))
    with pytest.raises(ModelError, match="float32"):
        fit(tmp_path / "m", model=plain_model().to(torch.bfloat16))
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "mine").touch()
    with pytest.raises(FileError, match="not empty"):
        fit(tmp_path / "x", data=toy(4))
    monkeypatch.setitem(__import__("sys").modules, "accelerate", None)
    with pytest.raises(MissingExtra, match=r"pertinent\[train\]"):
        fit(tmp_path / "m", data=toy(4))


def test_truncation_is_said_once(tmp_path, caplog):
    long = [tiny.text(30, i) for i in range(8)]
    fit(tmp_path / "m", data=([*long, "w1"], [0] * 9), max_length=12)
    assert [r.getMessage() for r in caplog.records if "truncated" in r.getMessage()] == [
        "8 of 9 texts were truncated to 12 tokens."
    ]


def test_labels_by_name_and_number():
    assert [column_index(label, ("no", "1", "yes")) for label in ("yes", "1", "2", 0, 2.0, np.int64(1))] == [
        2, 1, 2, 0, 2, 1,
    ]  # fmt: skip
    assert column_index(torch.tensor(1), ("a", "b")) == 1


def test_a_new_head_keeps_the_encoder():
    model = plain_model()
    fresh = with_new_head(model, ["pro", "con", "pro"], 0)
    assert fresh.config.id2label == {0: "con", 1: "pro"}
    assert fresh.classifier.weight.shape[0] == 2
    assert same(model.bert.state_dict(), fresh.bert.state_dict())
    assert same(fresh.state_dict(), with_new_head(model, ["con", "pro"], 0).state_dict())
    assert with_new_head(model, [10, 9, "2"], 0).config.id2label == {0: "2", 1: "9", 2: "10"}
    with pytest.raises(InputError, match="at least two"):
        with_new_head(model, ["a", "a"], 0)

"""Randomising a copy of a model by layers: which there are, and that the model itself never changes."""

import numpy as np
import pytest
import torch
from torch import nn

import pertinent
from pertinent.errors import ModelError, SettingError
from pertinent.models.torch.randomised import RandomisedModel, layers_of
from tests import tiny


class Own(nn.Module):
    """Parameters of its own without reset_parameters, a list of blocks, and a head registered last."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.arange(1.0, 7.0))
        self.same = nn.Parameter(torch.ones(6))
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)) for _ in range(2)])
        self.heads = nn.ModuleDict({"a": nn.Linear(6, 3)})
        self.head = nn.Linear(6, 3, bias=False)

    def forward(self, x):
        for block in self.blocks:
            x = torch.relu(block(x * self.scale * self.same))
        return self.head(x) + self.heads["a"](x)


def wrapped(module):
    return pertinent.wrap(module, kind="table", output="logit")


def state(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def changed(before, after):
    return {name for name in before if not torch.equal(before[name], after[name])}


def test_layers_from_the_output_down():
    assert layers_of(wrapped(Own())) == [
        "head", "heads.a", "blocks.1.1", "blocks.1.0", "blocks.0.1", "blocks.0.0", "Own",
    ]  # fmt: skip
    nested = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)), nn.Linear(4, 2))
    assert layers_of(wrapped(nested)) == ["1", "0.2", "0.0"]
    names = layers_of(pertinent.wrap(tiny.pair("bert")))
    assert names[:3] == ["classifier", "bert.pooler.dense", "bert.encoder.layer.1"]
    assert names[-1] == "bert.embeddings.word_embeddings"


def test_chosen_layers_in_the_same_order():
    model = wrapped(Own())
    assert layers_of(model, ["blocks.0", "head", "blocks.1.1"]) == ["head", "blocks.1.1", "blocks.0"]
    with pytest.raises(SettingError, match="Did you mean 'head'"):
        layers_of(model, ["hed"])
    for wrong in ([], ["head", "head"]):
        with pytest.raises(SettingError, match="`layers` must be at least one, all different"):
            layers_of(model, wrong)


def test_a_layer_alone_changes_and_only_in_the_copy():
    module = Own()
    module.blocks[1][1].running_mean += 3.0
    before, model = state(module), wrapped(module)
    copied = RandomisedModel(model, seed=0)
    copied.randomise("head")
    assert changed(before, state(copied.model.module)) == {"head.weight"}
    copied.randomise("blocks.1")
    inside = {f"blocks.1.{name}" for name in ("0.weight", "0.bias", "1.running_mean")}
    assert changed(before, state(copied.model.module)) == {"head.weight", *inside}
    assert not changed(before, state(module))
    assert copied.model.function is copied.model.module


def test_parameters_without_reset_are_permuted_and_equal_ones_stay():
    module = Own()
    copied = RandomisedModel(wrapped(module), seed=1)
    copied.randomise("Own")
    after = copied.model.module
    assert not torch.equal(after.scale, module.scale)
    assert torch.equal(after.scale.sort().values, module.scale)
    assert torch.equal(after.same, module.same)


def test_reset_parameters_are_those_of_torch():
    module = Own()
    copied = RandomisedModel(wrapped(module), seed=0)
    copied.randomise("blocks.0.0")
    weight = copied.model.module.blocks[0][0].weight
    bound = 1 / np.sqrt(6)  # of nn.Linear
    assert weight.abs().max() <= bound
    assert torch.unique(weight).numel() == 36


def test_draws_depend_on_the_seed_and_the_layer_alone():
    module, random_state = Own(), torch.get_rng_state()

    def weights(seed, *layers):
        copied = RandomisedModel(wrapped(module), seed)
        for layer in layers:
            copied.randomise(layer)
        return copied.model.module.head.weight

    assert torch.equal(weights(0, "head"), weights(0, "heads.a", "blocks.0", "head"))
    assert not torch.equal(weights(0, "head"), weights(1, "head"))
    assert torch.equal(random_state, torch.get_rng_state())


def test_the_generators_of_other_devices_are_left_alone(monkeypatch):
    seeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    RandomisedModel(wrapped(Own()), 0).randomise("head")
    assert seeded == []


def test_tied_weights_stay_tied_and_parametrised_ones_change():
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    module[2].weight = module[0].weight
    copied = RandomisedModel(wrapped(module), 0).model.module
    assert copied[2].weight is copied[0].weight
    normed = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 2)))
    copied = RandomisedModel(wrapped(normed), 0)
    copied.randomise("0")
    assert not torch.allclose(copied.model.module[0].weight, normed[0].weight)


def test_a_fingerprint_is_that_of_the_parameters():
    model = wrapped(Own())
    copied = RandomisedModel(model, 0)
    assert copied.model.fingerprint == model.fingerprint
    copied.randomise("head")
    assert copied.model.fingerprint != model.fingerprint


def test_a_transformer_shares_its_tokenizer_but_nothing_that_computes():
    model = pertinent.wrap(tiny.pair("bert"))
    copied = RandomisedModel(model, 0).model
    assert copied.tokenizer is model.tokenizer
    assert copied.module is copied.model is not model.model
    assert copied.compaction.states.__self__ is copied


def test_models_without_parameters():
    with pytest.raises(
        ModelError, match="must be a torch module or a transformers model; got <FunctionModel"
    ):
        layers_of(pertinent.wrap(lambda rows: [[0.5, 0.5] for _ in rows], kind="table"))
    with pytest.raises(ModelError, match="The Softmax has no parameters to randomise"):
        layers_of(wrapped(nn.Softmax(dim=1)))


def test_a_model_that_cannot_be_copied_or_reset():
    class Uncopied(nn.Linear):
        def __deepcopy__(self, memo):
            raise TypeError("not this one")

    with pytest.raises(ModelError, match="cannot be copied, and must not be modified in place: not this"):
        RandomisedModel(wrapped(Uncopied(2, 2)), 0)

    class Stubborn(nn.Linear):
        made = False

        def reset_parameters(self):
            if Stubborn.made:
                raise ValueError("once only")
            super().reset_parameters()

    module = nn.Sequential(Stubborn(2, 2))
    Stubborn.made = True
    with pytest.raises(ModelError, match="The layer '0' cannot be reinitialised: once only"):
        RandomisedModel(wrapped(module), 0).randomise("0")

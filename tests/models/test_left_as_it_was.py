"""A wrapped model stays as its owner left it, and can be sent to another process."""

import pickle

import cloudpickle
import numpy as np
import pytest

import pertinent
from tests import tiny


@pytest.mark.parametrize("architecture", ["bert", "distilbert"])
def test_a_wrapped_transformer_can_be_pickled(architecture):
    """Hooks for hidden states stayed behind, which cannot be pickled."""
    model, tokenizer = tiny.pair(architecture)
    before = {name: set(part.__dict__) for name, part in model.named_modules()}
    wrapped = pertinent.wrap((model, tokenizer))
    e = pertinent.explain(wrapped, "a good film", budget=20)
    assert {name: set(part.__dict__) for name, part in model.named_modules()} == before
    assert not any(part._forward_hooks for part in model.modules())
    pickle.loads(pickle.dumps(model))
    sent = pickle.loads(cloudpickle.dumps(wrapped))
    np.testing.assert_allclose(pertinent.explain(sent, "a good film", budget=20).scores, e.scores, atol=1e-6)


@pytest.mark.parametrize("name", ["sentiment", "digits", "table"])
def test_embedded_models_can_be_sent_to_another_process(name):
    model = pertinent.load(name)
    assert pickle.loads(cloudpickle.dumps(model)).fingerprint == model.fingerprint

"""Values of many questions in one batch: on their own scales, and each with its own error."""

import numpy as np

from pertinent.asks import BatchPart, Values
from pertinent.errors import ModelError
from pertinent.outputs import output_named
from pertinent.removals.base import removals


class Logits:
    """A model whose outputs are logits of two classes."""

    columns_differ = False
    output = output_named("logit", None)

    def as_scale(self, input, outputs, scale):
        return self.output.as_scale(outputs, scale)

    @staticmethod
    def checked(outputs, n):
        assert len(outputs) == n
        return outputs


def test_parts_of_a_batch_are_read_on_their_own_scales():
    logits = np.random.default_rng(0).normal(size=(9, 2))
    logits[7] = np.nan
    removal = removals.make("mean")
    scales, sizes = ["natural", "logit", "natural", "raw"], [3, 2, 2, 2]
    parts = [
        BatchPart(Values(np.ones((n, 4), dtype=bool), scale), None, removal, np.arange(n), 0)
        for scale, n in zip(scales, sizes, strict=True)
    ]
    found = Values.read(Logits(), logits, parts)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[0], p[:3])
    np.testing.assert_allclose(found[1], np.log(p[3:5] / (1 - p[3:5])))
    np.testing.assert_allclose(found[2], p[5:7])
    assert isinstance(found[3], ModelError)


def test_masks_have_one_price_on_every_scale():
    masks = np.eye(3, dtype=bool)
    paid = set()
    assert [Values(masks, scale).price(paid) for scale in ("natural", "logit")] == [3, 0]
    assert not set(Values(masks).keys) & set(Values(masks, "logit").keys)

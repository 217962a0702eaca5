"""Every registered method passes the checks of `pertinent.testing`."""

from dataclasses import fields

import pytest
import torch

from pertinent.explainers.base import explainers
from pertinent.testing import EXPLAINER_CHECKS

FEWER_STEPS = {"attack_steps": 3, "subsets": 16}
"""Settings that make slow methods faster, where they have them."""


def make(method):
    cls = explainers.get(method)
    names = {f.name for f in fields(cls)}
    faster = {"steps": 20} if method == "meaningful-perturbation" else {}
    return cls(**faster, **{name: value for name, value in FEWER_STEPS.items() if name in names})


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("check", EXPLAINER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("method", explainers.all())
def test_explainer(method, check):
    check(make(method))

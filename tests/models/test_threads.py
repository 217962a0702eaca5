"""Threads wait for each other only where torch's settings, or a module, must be changed for a while."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError, Lock

import numpy as np
import pytest
import torch

import pertinent
from pertinent.models.torch.inference import evaluating, exclusive

ROWS = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)


class Meeting(torch.nn.Module):
    """A network in which threads meet, if they can, and which notes how many were in it at once."""

    def __init__(self, n=2):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(4, 2)
        self.drop = torch.nn.Dropout(0.9)
        self.barrier, self.lock = Barrier(n), Lock()
        self.inside = self.most = self.most_beside_gradients = 0
        self.modes = set()

    def forward(self, rows):
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
            if rows.requires_grad:
                self.most_beside_gradients = max(self.most_beside_gradients, self.inside)
            self.modes.add((self.training, self.drop.training))
        try:
            self.barrier.wait(0.3)
        except BrokenBarrierError:
            pass
        finally:
            with self.lock:
                self.inside -= 1
        return self.drop(self.layer(rows))


def in_threads(work, n=2):
    """What `work` returns to each of n threads; one that waits for ever fails."""
    with ThreadPoolExecutor(n) as pool:
        return [future.result(timeout=60) for future in [pool.submit(work, i) for i in range(n)]]


def explained(network, method):
    """One explanation in each of two threads, by a model of its own."""
    models = [pertinent.wrap(network, kind="table", output="logit") for _ in range(2)]
    return in_threads(lambda i: pertinent.explain(models[i], ROWS[i], method, progress=False).scores)


def test_a_module_in_eval_mode_is_evaluated_by_several_threads_at_once():
    network = Meeting().eval()
    found = explained(network, "leave-one-out")
    assert network.most == 2
    quiet = Meeting(1).eval()
    for own, alone_found in zip(found, explained(quiet, "leave-one-out"), strict=True):
        np.testing.assert_allclose(own, alone_found, atol=1e-6)


def test_a_function_is_called_by_several_threads_at_once():
    barrier = Barrier(2)

    def classify(rows):
        barrier.wait(20)
        p = 1 / (1 + np.exp(-rows.sum(axis=1)))
        return np.stack([1 - p, p], axis=1)

    models = [pertinent.wrap(classify, kind="table") for _ in range(2)]
    found = in_threads(lambda i: pertinent.explain(models[i], ROWS[i], "leave-one-out", progress=False))
    assert [len(e.scores) for e in found] == [4, 4]


@pytest.mark.parametrize("method", ["leave-one-out", "gradient"])
def test_threads_take_turns_with_a_module_in_training_mode(method):
    """Its mode is changed for a while; no thread may see it in training mode, and it is as before."""
    network = Meeting().train()
    explained(network, method)
    assert network.most == 1
    assert network.modes == {(False, False)}
    assert network.training and network.drop.training


def test_gradients_are_computed_by_one_thread_at_a_time():
    """The weights' gradients are switched off for a while."""
    network = Meeting().eval()
    explained(network, "gradient")
    assert network.most_beside_gradients == 1
    assert all(weight.requires_grad for weight in network.parameters())


def test_threads_that_change_something_in_the_midst_do_not_wait_for_each_other_for_ever():
    network = Meeting().eval()
    both, order = Barrier(2), []

    def work(i):
        with evaluating(network):
            both.wait(20)
            with evaluating(network), exclusive():
                order.append((i, "in"))
                with exclusive(), evaluating(network):
                    order.append((i, "out"))
            return i

    assert in_threads(work) == [0, 1]
    assert [i for i, _ in order] in ([0, 0, 1, 1], [1, 1, 0, 0])


def test_what_one_thread_changes_no_other_sees():
    """One changes attention kernels again and again; the other finds them as they are outside."""
    network, seen = torch.nn.Linear(2, 2).eval(), set()

    def work(i):
        for _ in range(200):
            if i == 0:
                with exclusive():
                    torch.backends.cuda.enable_flash_sdp(False)
                    torch.backends.cuda.enable_flash_sdp(True)
            else:
                with evaluating(network):
                    seen.add(torch.backends.cuda.flash_sdp_enabled())

    in_threads(work)
    assert seen == {True}


def test_attention_kernels_that_the_user_has_switched_off_are_used_and_switched_off_again():
    network = torch.nn.Linear(2, 2).eval()
    torch.backends.cuda.enable_flash_sdp(False)
    try:
        with evaluating(network):
            assert torch.backends.cuda.flash_sdp_enabled()
        assert not torch.backends.cuda.flash_sdp_enabled()
    finally:
        torch.backends.cuda.enable_flash_sdp(True)

"""Where and how torch computes: devices, dtypes, modes and threads, all as they were afterwards."""

import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import numpy as np
import pytest
import torch

import pertinent
from pertinent.errors import ModelError, SettingError
from pertinent.models.embedded.load import load_transformer
from pertinent.models.tokens.masked_lm import Filler
from pertinent.models.torch.devices import available_devices, parse_device
from pertinent.models.torch.inference import WORK_PER_THREAD, evaluating, n_weights
from tests import tiny

IMAGE = np.random.default_rng(0).random((1, 8, 8), dtype=np.float32)


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Dropout(0.5), torch.nn.Flatten(),
        torch.nn.Linear(144, 3),
    )  # fmt: skip


def flags(module):
    return {name: part.training for name, part in module.named_modules()}


@pytest.mark.parametrize("method", ["leave-one-out", "gradient-search", "integrated-gradients"])
def test_modules_are_left_in_the_mode_they_were_in(method):
    module = network().train()
    module[1].eval()
    before, statistics = flags(module), module[1].running_mean.clone()
    model = pertinent.wrap(module)
    assert flags(module) == before
    explained = pertinent.explain(model, IMAGE, method=method, budget=100)
    assert flags(module) == before
    assert torch.equal(module[1].running_mean, statistics)
    again = pertinent.explain(pertinent.wrap(network().eval()), IMAGE, method=method, budget=100)
    np.testing.assert_allclose(explained.scores, again.scores, atol=1e-6)


@pytest.mark.parametrize("method", ["leave-one-out", "gradient-search", "integrated-gradients"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_transformers_are_left_in_the_mode_they_were_in(method, dtype):
    found = []
    for mode in (True, False):
        module, tokenizer = tiny.pair("bert", dtype=dtype)
        module.train(mode)
        module.bert.pooler.eval()
        before = flags(module)
        model = pertinent.wrap((module, tokenizer))
        found.append(pertinent.explain(model, tiny.text(8), method=method, budget=100).scores)
        assert flags(module) == before
        assert model.compaction.holds(30)
    np.testing.assert_array_equal(*found)


def test_a_filler_is_left_in_the_mode_it_was_in():
    from transformers import BertConfig, BertForMaskedLM

    module = BertForMaskedLM(BertConfig(**tiny.BASE)).train()
    filler = Filler(module, tiny.tokenizer(model_max_length=200))
    tokens = pertinent.wrap(tiny.pair("bert")).prepare(tiny.text(6)).tokens
    removed = np.zeros((1, len(tokens.ids)), dtype=bool)
    removed[0, 2:4] = True
    drawn = [filler.draw(tokens, removed, np.full((2, 5), 0.5)) for _ in range(2)]
    np.testing.assert_array_equal(*drawn)
    assert all(flags(module).values())


def test_an_error_leaves_the_mode_too():
    module = network().train()
    with pytest.raises(pertinent.PertinentError):
        pertinent.explain(pertinent.wrap(module, kind="image"), np.zeros((1, 3, 3)), method="random")
    assert all(flags(module).values())


# -- threads ---------------------------------------------------------------------------------------


def settings():
    return (
        torch.get_float32_matmul_precision(),
        torch.backends.mkldnn.enabled,
        torch.backends.mkldnn.allow_tf32,
        torch.get_num_threads(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.backends.cuda.flash_sdp_enabled(),
        torch.backends.cuda.cudnn_sdp_enabled(),
    )


@pytest.fixture
def medium_precision():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.usefixtures("medium_precision")
def test_explaining_from_several_threads_leaves_torch_as_it_was():
    module, tokenizer = tiny.pair("bert")
    attention = module.config._attn_implementation
    model = pertinent.wrap((module.train(), tokenizer))
    methods = ["kernel-shap", "gradient-search", "integrated-gradients", "leave-one-out"]
    texts = [tiny.text(n, seed=n) for n in (6, 20, 40)]
    alone = [pertinent.explain(model, texts, method=m, budget=100, progress=False) for m in methods]
    shared = pertinent.wrap((module, tokenizer))
    before = settings()
    start = threading.Barrier(4)

    def work(method):
        start.wait()
        explained = pertinent.explain(shared, texts, method=method, budget=100, progress=False)
        return explained, settings()

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, methods))
    assert settings() == before
    assert module.config._attn_implementation == attention
    assert all(flags(module).values()) and all(p.requires_grad for p in module.parameters())
    for one, (other, own) in zip(alone, together, strict=True):
        assert own[3:6] == before[3:6]
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a.scores, b.scores, atol=1e-3)


def test_a_small_batch_has_one_thread():
    module = torch.nn.Linear(4, 4)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        for work, threads in ((1, 1), (2.5 * WORK_PER_THREAD, 2), (1e30, 4)):
            with evaluating(module, work):
                assert torch.get_num_threads() == threads
                with ThreadPoolExecutor(1) as pool:
                    assert pool.submit(torch.get_num_threads).result() == 4
            assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)


def test_small_models_run_on_one_thread():
    seen = []

    class Spy(torch.nn.Linear):
        def forward(self, x):
            seen.append(torch.get_num_threads())
            return super().forward(x)

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        pertinent.explain(pertinent.wrap(Spy(4, 3), kind="table"), np.ones(4), method="gradient")
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}


def test_weights_that_are_looked_up_do_not_count():
    module = torch.nn.Sequential(torch.nn.Embedding(100, 4), torch.nn.Linear(4, 3))
    assert n_weights(module) == 15
    assert n_weights(torch.nn.LazyLinear(3)) == np.inf
    lazy = pertinent.wrap(torch.nn.LazyLinear(3), kind="table")
    assert len(pertinent.explain(lazy, np.ones(4), method="leave-one-out").scores) == 4


# -- devices and dtypes ----------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", "cpu:0", torch.device("cpu")])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16", torch.bfloat16, torch.float32])
def test_devices_and_dtypes_as_torch_has_them(device, dtype):
    for name in ("sentiment", "digits"):
        model = pertinent.load(name, device=device, dtype=dtype)
        assert model.device.type == "cpu"
        assert str(model.dtype).endswith(str(dtype).removeprefix("torch."))
    assert np.isfinite(pertinent.explain(model, IMAGE, method="gradient-x-input").scores).all()


@pytest.mark.parametrize(
    "device", ["cuda:99", "mps:7", "xpu", "tpu", "", 3.5, "meta", torch.device("cuda", 99)]
)
def test_devices_that_are_not_here(device, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    for load in (
        lambda: pertinent.load("sentiment", device=device),
        lambda: load_transformer(tmp_path, device=device),
    ):
        with pytest.raises(SettingError, match=" or ".join(available_devices())):
            load()


def test_a_device_without_memory_left_is_not_called_missing(monkeypatch):
    for error in (
        torch.OutOfMemoryError("Tried to allocate 2.00 MiB."),
        RuntimeError("CUDA error: out of memory"),
    ):
        monkeypatch.setattr(torch, "empty", Mock(side_effect=error))
        with pytest.raises(ModelError, match=r"'cuda:0' is out of memory: stop other processes"):
            parse_device("cuda:0")


@pytest.mark.parametrize("dtype", ["float8", "int64", torch.int64, None])
def test_dtypes_that_do_not_exist(dtype):
    with pytest.raises(SettingError, match="dtype"):
        pertinent.load("sentiment", dtype=dtype)


# -- what a model shows ----------------------------------------------------------------------------


def predict(texts):
    return [[0.5, 0.5] for _ in texts]


def test_a_model_shows_itself_in_one_line():
    assert repr(pertinent.load("sentiment")) == (
        "<TransformerModel BertClassifier: 2 classes (negative, positive), reads text, cpu float32>"
    )
    assert repr(pertinent.wrap(predict, kind="text")) == (
        "<FunctionModel predict: classes not known yet, reads text>"
    )
    assert repr(pertinent.wrap(network(), kind="image", output="value", names=["a\nb"])) == (
        "<ModuleModel Sequential: 1 value (a b), reads image, cpu float32>"
    )
    assert repr(pertinent.load("digits")) == (
        "<DigitsModel Sequential: 10 classes (0, 1, 2, 3, 4, …), reads image, cpu float32>"
    )
    assert repr(pertinent.load("table")).startswith("<EstimatorModel ")

"""The same requests on Ray: the same answers, whatever the workers, the blocks and what happens to them."""

import os
import re
import socket
import sys
import time
from threading import Lock, Thread

import numpy as np
import pytest
import torch

import pertinent
from pertinent import Cluster
from pertinent.cluster import worker_pool
from pertinent.errors import ClusterError, FileError, InputError, MissingExtra, ModelError, SettingError
from pertinent.runs.explain import explain_all
from pertinent.runs.run import Run

TEXTS = [f"film {i} is {'bad' if i % 3 else 'good'}, {i * 7 % 11} stars" for i in range(24)]
WORDS = {"method": "kernel-shap", "budget": 30, "progress": False}

pytestmark = pytest.mark.usefixtures("ray_here")


def own_model(spoilt=None):
    """A model whose answers do not depend on the batch; `spoilt` is called with each text first."""

    def classify(texts):  # sent by value, because it is defined in a function
        for text in texts:
            if spoilt is not None:
                spoilt(text)
        return [[0.9, 0.1] if "bad" in t else [0.2 + len(t) % 7 / 20, 0.8 - len(t) % 7 / 20] for t in texts]

    return pertinent.wrap(classify, kind="text", classes=["bad", "good"])


def plain(explanations):
    return [{**e.to_dict(), "seconds": 0.0} for e in explanations]


@pytest.mark.parametrize(("workers", "block_size"), [(1, None), (2, 5)])
def test_answers_and_failures_are_those_of_one_process(workers, block_size):
    inputs, ids = [*TEXTS, "", OSError("unreadable")], [f"n{i}" for i in range(26)]
    here = pertinent.explain(own_model(), inputs, ids=ids, **WORDS)
    seen = []
    cluster = Cluster(workers=workers, block_size=block_size)
    found = pertinent.explain(
        own_model(), inputs, ids=ids, cluster=cluster, **WORDS | {"progress": seen.append}
    )
    assert plain(found) == plain(here)
    assert found.failures == here.failures and len(found.failures) == 2
    assert [(f.id, type(f.error)) for f in found.failures] == [
        ("n24", InputError),
        ("n25", ModelError),
    ]
    last = seen[-1]
    assert (last.done, last.failed, last.total) == (26, 2, 26) and last.evaluations > 24 * 20


def test_a_model_is_loaded_by_its_name_and_texts_stream(ray_here):
    cluster = Cluster(workers=1, block_size=3)
    found = pertinent.explain("cluster_models:classify", TEXTS[:7], cluster=cluster, **WORDS)
    assert np.array_equal(
        [e.scores for e in found], [e.scores for e in pertinent.explain(own_model(), TEXTS[:7], **WORDS)]
    )
    stream = pertinent.explain_iter(
        "sentiment", iter(TEXTS[:4]), "leave-one-out", cluster=cluster, progress=False
    )
    here = pertinent.explain(pertinent.load("sentiment"), TEXTS[:4], "leave-one-out", progress=False)
    for e in stream:  # a transformer's answers depend a little on the rest of the batch
        assert np.allclose(e.scores, here[e.index].scores, atol=1e-5)


def test_a_journalled_run_is_continued_on_a_cluster(tmp_path):
    def stop(now):
        if now.done >= 8:
            raise KeyboardInterrupt

    words = WORDS | {"progress": stop}
    with pytest.raises(KeyboardInterrupt):
        pertinent.explain(own_model(), TEXTS, out=tmp_path / "run.parquet", batch_size=30, **words)
    cluster = Cluster(workers=1)
    seen = []
    words = WORDS | {"progress": seen.append}
    pertinent.explain(
        own_model(), TEXTS, out=tmp_path / "run.parquet", batch_size=30, cluster=cluster, **words
    )
    assert 0 < seen[-1].done <= 16
    assert plain(pertinent.read(tmp_path / "run.parquet")) == plain(
        pertinent.explain(own_model(), TEXTS, **WORDS)
    )


@pytest.mark.parametrize("store", ["run.parquet", "run"])
def test_a_model_that_has_changed_on_the_workers_is_noticed(tmp_path, store):
    setting = tmp_path / "setting.txt"
    setting.write_text("0.3")
    path = str(setting)

    def classify(texts):
        with open(path) as file:  # noqa: PTH123
            p = float(file.read())
        return [[p, 1 - p] if "bad" in text else [0.5, 0.5] for text in texts]

    model, out = pertinent.wrap(classify, kind="text"), tmp_path / store
    words = WORDS | {"cluster": Cluster(workers=1, block_size=4), "out": out}

    def broken():
        yield from TEXTS[:10]
        raise RuntimeError("the line is cut")

    with pytest.raises(RuntimeError, match="cut"):
        pertinent.explain(model, broken(), **words)
    n_finished = len(pertinent.read(out))
    setting.write_text("0.4")
    with pytest.raises(FileError, match="The model has changed"):
        pertinent.explain(model, TEXTS[:12], **words)
    assert len(pertinent.read(out)) == n_finished
    setting.write_text("0.3")
    assert len(pertinent.explain(model, TEXTS[:12], **words)) == 12
    setting.write_text("0.4")
    with pytest.raises(FileError, match="The model has changed"):
        pertinent.explain(model, TEXTS[:12], **words)


def test_other_verbs_have_the_answers_of_one_process():
    model, cluster, quiet = own_model(), Cluster(workers=1), {"progress": False}
    methods, inputs = ["lime:samples=20", "leave-one-out"], [*TEXTS[:5], ""]
    here = pertinent.compare(model, inputs, methods, **quiet)
    found = pertinent.compare(model, inputs, methods, cluster=cluster, **quiet)
    assert found.rows == here.rows and found.failures == here.failures
    again = [
        pertinent.evaluate(model, here.explanations, "insertion", cluster=c, **quiet) for c in (None, cluster)
    ]
    assert again[0].rows == again[1].rows
    assert again[0].mean("lime", "insertion") == again[1].mean("lime", "insertion")
    other = pertinent.wrap(
        lambda texts: [[0.2, 0.3, 0.5] for _ in texts], kind="text", classes=["a", "b", "c"]
    )
    for where in (None, cluster):
        with pytest.raises(InputError, match="None of the 5 inputs could be measured; the first: insertion"):
            pertinent.evaluate(other, here.explanations, "insertion", cluster=where, **quiet)
    stable = [
        pertinent.stability(model, TEXTS[:3], "lime", seeds=2, cluster=c, **quiet) for c in (None, cluster)
    ]
    assert stable[0].summary["mse"] == stable[1].summary["mse"]


def test_checks_and_attacks_have_the_answers_of_one_process():
    clusters, quiet = (None, Cluster(workers=1)), {"progress": False}
    texts = [*TEXTS[:3], "", TEXTS[4]]
    checks = [pertinent.check_removal(own_model(), texts, draws=3, cluster=c, **quiet) for c in clusters]
    assert checks[0].rows == checks[1].rows and checks[0].classes == checks[1].classes
    assert [f.index for f in checks[1].failures] == [f.index for f in checks[0].failures] == [3]

    def classify(rows):
        return [[0.1, 0.9] if r[0] + r[1] > 1 else [0.7, 0.3] for r in rows]

    rows = pertinent.wrap(classify, background=[[0.1, 0.2], [0.8, 0.9]])
    given = [[0.9, 0.3], [0.2, 0.1], [0.5, "x"]]
    attacks = [pertinent.attack_radius(rows, given, cluster=c, **quiet) for c in clusters]
    assert [a.radii.tolist() for a in attacks[0]] == [a.radii.tolist() for a in attacks[1]]
    assert [f.index for f in attacks[1].failures] == [f.index for f in attacks[0].failures] == [2]


def test_a_sanity_check_has_the_answers_of_one_process():
    network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    model = pertinent.wrap(network, kind="table", output="logit")
    found = [
        pertinent.sanity(model, np.eye(4), "leave-one-out", layers="last", cluster=c, progress=False)
        for c in (None, Cluster(workers=1))
    ]
    assert found[0].rows == found[1].rows


def test_a_check_names_the_classes_that_workers_have_found():
    model = pertinent.wrap(lambda texts: [{"no": 0.9, "yes": 0.1} for _ in texts], kind="text")
    found = pertinent.check_removal(model, TEXTS[:2], cluster=Cluster(workers=1), progress=False)
    assert found.classes == ("no", "yes")


def test_an_input_that_kills_its_workers_fails_a_check():
    def kill(text):
        if "film 1 " in text:
            os._exit(1)

    words = {"removals": "slice-out", "features": "sentences", "cluster": Cluster(workers=1)}
    texts = [f"{text}. So it is." for text in TEXTS[:3]]
    found = pertinent.check_removal(own_model(kill), texts, progress=False, **words)
    assert {row.input for row in found.rows} == {0, 2}
    assert re.search("[23] workers died while processing only this input", str(found.failures[0]))


def test_a_teacher_explains_on_a_cluster(tmp_path):
    words = {"epochs": 1, "samples": 2, "progress": False}
    pertinent.fit(own_model(), TEXTS[:8], out=tmp_path / "fitted", cluster=Cluster(workers=1), **words)
    run = Run.from_arguments(own_model(), TEXTS[:8], "teacher", independent=True, progress=False)
    here = explain_all(run, [pertinent.Request.from_method("shapley-sampling", {"samples": 2})])
    taught = pertinent.read(tmp_path / "fitted" / "teacher.parquet")
    assert np.array_equal([e.scores for e in taught], [e.scores for e in here])


def test_a_worker_keeps_to_its_threads():
    def count(texts):
        from threadpoolctl import threadpool_info

        most = max(pool["num_threads"] for pool in threadpool_info())
        return [[most / 100, 1 - most / 100] for _ in texts]

    model = pertinent.wrap(count, kind="text")
    e = pertinent.explain(model, "so good", "leave-one-out", cluster=Cluster(workers=1), progress=False)
    assert e.prediction.values[0] == 0.01


def test_a_worker_that_is_killed_costs_nothing_and_files_are_whole(tmp_path):
    def kill_once(text, mark=tmp_path / "killed"):
        if "film 9 " in text and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), 9)

    cluster = Cluster(workers=2, block_size=6)
    found = pertinent.explain(own_model(kill_once), TEXTS, cluster=cluster, out=tmp_path / "run", **WORDS)
    assert (tmp_path / "killed").exists() and len(found.files) == 4
    assert plain(found) == plain(pertinent.explain(own_model(), TEXTS, **WORDS))


def test_an_input_that_kills_its_workers_is_a_failure():
    def kill(text):
        if "film 9 " in text:
            os._exit(1)

    found = pertinent.explain(own_model(kill), TEXTS[6:12], cluster=Cluster(workers=1, block_size=6), **WORDS)
    assert [f.index for f in found.failures] == [3]
    assert re.search("[23] workers died while processing only this input", found.failures[0].reason)
    rest = [*TEXTS[6:9], *TEXTS[10:12]]
    here = pertinent.explain(own_model(), rest, **WORDS)
    assert np.array_equal([e.scores for e in found], [e.scores for e in here])


def test_workers_that_die_while_they_load_are_not_replaced_for_ever(monkeypatch):
    class Deadly(float):
        def __reduce__(self):
            return os._exit, (1,)

    monkeypatch.setattr(worker_pool, "LOAD_ATTEMPTS", 2)
    model = own_model()
    model.first_batch = Deadly(1)
    with pytest.raises(ClusterError, match="2 consecutive attempts"):
        pertinent.explain(model, TEXTS, cluster=Cluster(workers=1), **WORDS)


def test_a_model_that_cannot_be_sent_or_loaded():
    lock = Lock()
    with pytest.raises(ModelError, match=r"cannot be sent to workers .*lock.*'package.module:name'"):
        pertinent.explain(own_model(lambda text: lock), TEXTS, cluster=Cluster(workers=1), **WORDS)
    with pytest.raises(SettingError, match=r"no module 'no_such_models'"):
        pertinent.explain("no_such_models:model", TEXTS, cluster=Cluster(workers=1), **WORDS)


def test_a_worker_with_other_versions(monkeypatch):
    monkeypatch.setattr(worker_pool, "versions", lambda: {"numpy": "0.9"})
    with pytest.raises(ClusterError, match=rf"has numpy {np.__version__} \(here 0.9\): install the same"):
        pertinent.explain(own_model(), TEXTS, cluster=Cluster(workers=1), **WORDS)


def test_no_worker_fits():
    with pytest.raises(ClusterError, match=r"has 2 CPUs and 0 GPUs: reduce .*gpus_per_worker=0.5"):
        pertinent.explain(own_model(), TEXTS, cluster=Cluster(gpus_per_worker=0.5), **WORDS)


@pytest.fixture
def unconnected(monkeypatch, ray_here):
    """As if this process were not connected to Ray."""
    monkeypatch.setattr(ray_here, "is_initialized", lambda: False)


@pytest.mark.usefixtures("unconnected")
def test_a_wrong_address_is_said_within_seconds():
    with socket.socket() as free, socket.create_server(("127.0.0.1", 0)) as other:
        free.bind(("127.0.0.1", 0))
        port, port_of_other = free.getsockname()[1], other.getsockname()[1]
        Thread(target=greet, args=[other], daemon=True).start()
        wrong = {
            f"127.0.0.1:{port}": "Nothing answers at",
            f"127.0.0.1:{port_of_other}": "is not Ray",
            "a b": "must be HOST:PORT",
        }
        _check_errors(wrong)


def greet(server):
    with server.accept()[0] as connection:
        connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")


def _check_errors(wrong):
    for address, said in wrong.items():
        begin = time.monotonic()
        with pytest.raises(ClusterError, match=said):
            pertinent.explain(own_model(), TEXTS, cluster=Cluster(address), **WORDS)
        assert time.monotonic() - begin < 6


@pytest.mark.usefixtures("unconnected")
def test_ray_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pertinent\[cluster\]'"):
        pertinent.explain(own_model(), TEXTS, cluster=Cluster(), **WORDS)


def test_workers_wait_passively(monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    model = own_model(lambda _: 1 / (os.environ.get("OMP_WAIT_POLICY") == "PASSIVE"))
    assert not pertinent.explain(model, TEXTS[:2], "leave-one-out", cluster=Cluster(workers=1)).failures

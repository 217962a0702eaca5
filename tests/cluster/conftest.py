"""One small Ray on this machine for all tests of a module."""

import os
import sys

import pytest

MODULE = """
def classify(texts):
    return [[0.9, 0.1] if "bad" in t else [0.2 + len(t) % 7 / 20, 0.8 - len(t) % 7 / 20] for t in texts]
"""


@pytest.fixture(scope="module")
def ray_here(tmp_path_factory):
    """A Ray with two cores, whose workers can import the module `cluster_models`."""
    ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'pertinent[cluster]')")
    folder = tmp_path_factory.mktemp("modules")
    (folder / "cluster_models.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *filter(None, sys.path)]))
        ray.init(
            num_cpus=2,
            object_store_memory=100_000_000,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
        )
        yield ray
        ray.shutdown()

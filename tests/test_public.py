"""The public API: exported names, import time and dependencies."""

import subprocess
import sys

import pytest

import pertinent

NAMES = [
    "Attacked", "Attacks", "Benchmark", "Cluster", "EarlyStopping", "Evaluation", "Explanation",
    "ExplanationFolder", "Explanations", "Failure", "Hops", "Importance", "PerplexityCheck",
    "PertinentError", "Prompt",
    "RemovalCheck", "Request", "RequestEstimate", "Sanity", "Service", "Stability", "StudyReport", "Text",
    "adapt", "attack_radius", "benchmark", "check_removal", "compare", "create_study",
    "estimate_requests", "evaluate", "explain", "explain_hops",
    "explain_iter", "fit", "list_methods", "list_metrics", "list_removals", "load",
    "load_explainer", "merge", "neighbour_stability", "read",
    "report_study", "sanity", "save_report",
    "sensitivity", "serve", "serve_study", "stability", "train", "wrap", "wrap_endpoint",
]  # fmt: skip


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_exported_names():
    assert sorted(pertinent.__all__) == NAMES
    for name in NAMES:
        assert callable(getattr(pertinent, name))
    assert set(NAMES) < set(dir(pertinent))


def test_functions_are_not_shadowed_by_submodules():
    code = """
import importlib, pkgutil, pertinent
for module in pkgutil.walk_packages(pertinent.__path__, "pertinent."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
for name in pertinent.__all__:
    assert callable(getattr(pertinent, name)), name
"""
    assert run(code).stderr == ""


def test_import_is_fast():
    code = """
import sys, pertinent
heavy = {"torch", "transformers", "numpy", "pandas", "sklearn", "matplotlib", "rich", "pyarrow"}
print(sorted(heavy & set(sys.modules)))
"""
    assert run(code).stdout.strip() == "[]"


def test_explaining_and_evaluating_need_only_core_dependencies():
    code = """
import sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in "rich pyarrow pandas matplotlib sklearn skimage PIL shap".split():
            return None
        return self.finder.find_spec(name, path, target)
sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
import pertinent
model = pertinent.load("sentiment")
e = pertinent.explain(model, "a slow start, then wonderful", method="parallel-local-search", sparsity=0.2)
evaluation = pertinent.evaluate(model, e)
assert evaluation.mean("parallel-local-search", "sufficiency") < 0.5
print(e, evaluation)
try:
    e.save("x.parquet")
except ImportError as error:
    print(error)
"""
    result = run(code)
    assert result.returncode == 0, result.stderr
    assert "wonderful" in result.stdout
    assert "pip install 'pertinent[tables]'" in result.stdout


def test_no_unpickling():
    from pathlib import Path

    source = Path(pertinent.__file__).parent
    for path in source.rglob("*.py"):
        text = path.read_text()
        assert "pickle" not in text, path
        assert "torch.load(" not in text, path


@pytest.mark.parametrize(
    ("method", "module"),
    [("leave-one-out", "leave_one_out"), ("anchors", "search.anchors")],
)
def test_only_the_used_method_is_imported(method, module):
    code = """
import sys, pertinent
model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
pertinent.explain(model, ["not bad", "so good"], method="METHOD")
pertinent.compare(model, ["not bad"], ["METHOD"])
methods = [name for name in sys.modules if name.startswith("pertinent.explainers") and name.count(".") > 1]
print(sorted({"torch", "transformers", "sklearn", "pandas", "pyarrow"} & set(sys.modules)))
packages = (".base", ".coarse_to_fine", ".removal_jackknife", ".early_stopping", ".learned")
packages += (".robustness", ".search", ".shapley")
print([name for name in methods if not name.endswith(packages)])
"""
    found = run(code.replace("METHOD", method))
    assert found.stdout.splitlines() == ["[]", f"['pertinent.explainers.{module}']"], found.stderr

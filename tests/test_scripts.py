"""The scripts of `experiments/` and `benchmarks/` fit the library, by their syntax and in miniature."""

import ast
import importlib
import inspect
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pertinent
from pertinent.api.explain import explain
from pertinent.config.settings import setting_names
from pertinent.explainers.base import explainers, learned_methods
from tests.miniature import (
    ROOT,
    call,
    resample_less,
    scripts,
    write_frame,
    write_images,
    write_texts,
)

SCRIPTS = sorted(path for folder in ("experiments", "benchmarks") for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Each module of `pertinent`, and each name that is taken from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "pertinent":
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((own.name, "") for own in node.names if own.name.partition(".")[0] == "pertinent")


def is_public(node: ast.AST) -> bool:
    """Whether this is `pertinent.NAME`."""
    return (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pertinent"
    )


def settings() -> set[str]:
    """The settings of all methods, fitted or not."""
    found = {name for cls in explainers.all().values() for name in setting_names(cls)}
    for cls in learned_methods.all().values():
        found |= {*setting_names(cls), *setting_names(cls.learner)}
    return found


def accepted(function) -> set[str] | None:
    """The keywords of a function; ``None`` if it takes any."""
    parameters = inspect.signature(function).parameters
    names = {name for name, own in parameters.items() if own.kind is not own.VAR_KEYWORD}
    rest = next((name for name, own in parameters.items() if own.kind is own.VAR_KEYWORD), None)
    if rest == "options":  # of `wrap`, which passes them on
        return None
    if rest == "words":  # those of `explain`
        names |= set(inspect.signature(explain).parameters)
    return names | settings() if rest else names


def complaints(source: str) -> list[str]:
    """What a script asks of the library that is not there."""
    tree, found = ast.parse(source), []
    for module, name in imported(tree):
        try:
            own = importlib.import_module(module)
            if name and not hasattr(own, name):
                importlib.import_module(f"{module}.{name}")
        except ModuleNotFoundError:
            found.append(f"from {module} import {name}")
    for node in ast.walk(tree):
        if is_public(node) and not hasattr(pertinent, node.attr):
            found.append(f"line {node.lineno}: pertinent.{node.attr}")
        elif isinstance(node, ast.Call) and is_public(node.func):
            known = accepted(getattr(pertinent, node.func.attr, None) or (lambda **options: options))
            given = {keyword.arg for keyword in node.keywords if keyword.arg is not None}
            wrong = sorted(given - known) if known is not None else []
            found += [f"line {node.lineno}: pertinent.{node.func.attr}({name}=)" for name in wrong]
    return found


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_a_script_asks_only_for_what_there_is(path):
    assert not complaints(path.read_text(encoding="utf-8"))


def test_what_is_not_there_is_noticed():
    assert not complaints("import pertinent\npertinent.explain(m, x, 'lime', samples=9, seed=1)")
    assert not complaints("import pertinent\npertinent.stability(m, x, 'lime', samples=9, budget=1)")
    assert complaints("def f():\n    from pertinent.nowhere import x") == ["from pertinent.nowhere import x"]
    assert complaints("from pertinent.masks import nothing") == ["from pertinent.masks import nothing"]
    assert complaints("pertinent.explane(m, x)") == ["line 1: pertinent.explane"]
    assert complaints("pertinent.fit(m, x, dev=0.1)") == ["line 1: pertinent.fit(dev=)"]
    assert complaints("pertinent.evaluate(m, x, marks=[])") == ["line 1: pertinent.evaluate(marks=)"]


@pytest.fixture(scope="module")
def vo2023(tmp_path_factory):
    """The sets of Vo et al., packed, and what a few stages found of one of them."""
    folder = tmp_path_factory.mktemp("vo2023")
    for name, classes in (("imdb", 2), ("hatexplain", 3), ("ag_news", 4)):
        write_texts(folder / "raw", name, {"train": 48, "test": 8}, 20, classes)
    for name in ("mnist", "fashion_mnist"):
        write_images(folder / "raw" / name)
    (folder / "results").mkdir()
    with scripts("experiments/vo2023") as load:
        call(load("sets"), "--data", folder / "raw", "--out", folder / "data")
        stages = load("stages")
        job = stages.Job(folder / "data", folder / "results", "cpu", 48, 4, 2, 1, 1, 16)
        known = stages.boxes() | stages.stages_of(1) | stages.timings()
        of_texts = "box aim_0 aim_with_a_selector_0 l2x_0 lime_0"
        names = [f"imdb_{name}" for name in of_texts.split()] + ["mnist_pixels_0", "mnist_timed"]
        for name in names:
            (folder / "results" / f"{name}.json").write_text(json.dumps(known[name](job)))
    return folder


def test_vo2023_tables_and_pictures(vo2023, tmp_path, monkeypatch):
    results = vo2023 / "results"
    own = ROOT / "experiments" / "vo2023"
    pages = [Path(shutil.copy(own / name, tmp_path)) for name in ("README.md", "examples.md")]
    for page in pages:
        page.write_text(re.sub(r"(<!-- [^>]+ -->\n)[^<]*(?=<!-- end)", r"\1", page.read_text()))
    with scripts("experiments/vo2023") as load:
        words = resample_less(load("words"))
        resample_less(load("results"))
        for own_name in (
            "pertinent.metrics.english_words.is_contaminated",
            f"{words.__name__}.is_contaminated",
        ):
            monkeypatch.setattr(own_name, "w1".__eq__)  # without NLTK's data
        monkeypatch.setattr(words, "clusters", set)
        call(load("tables"), "--data", vo2023 / "data", "--results", results, "--page", pages[0])
        call(load("pictures"), "--results", results, "--out", tmp_path)
    assert "| imdb | `aim` |" in pages[0].read_text()
    assert "`aim` for positive" in pages[1].read_text()
    assert {"figure2.png", "cost.png"} <= {path.name for path in tmp_path.iterdir()}


def test_vo2023_paper_form(vo2023, tmp_path, monkeypatch):
    page = Path(shutil.copy(ROOT / "experiments" / "vo2023" / "paper_form.md", tmp_path))
    with scripts("experiments/vo2023") as load:
        own = load("paper_form")
        options = own.Options(vo2023 / "data", tmp_path, "cpu", 48, 4, 1, 1, 16)
        forms = (
            "from probabilities",
            "paper",
            "paper, D.2: selector alone",
            "both, explore 0, before",
            "lime",
        )
        fits = [own.Fit("imdb", "linear", form, 0) for form in forms]
        fits.append(own.Fit("imdb", "network", forms[0], 0))
        found = {fit: own.carried_out(fit, options) for fit in fits}
        lines = [own.shown(fit, each | {"wall seconds": 1.0}) for fit, each in found.items()]
        monkeypatch.setattr(own, "PAGE", page)
        made = tmp_path / "made.json"
        made.write_text(json.dumps({fit.name: each for fit, each in found.items()}))
        call(own, "--page", made)
    assert all("faithfulness" in line for line in lines)
    assert found[fits[0]]["pi"] == []
    assert 0 < found[fits[1]]["pi"][0][1] < 1  # what the selector keeps is watched
    assert "true words" in found[fits[0]] and "true words" not in found[fits[-1]]
    assert "| `both, explore 0, before` |" in page.read_text()


def test_vo2023_baselines_and_settings(vo2023, tmp_path, monkeypatch):
    """L2X tuned, FI by class and by draws, words by K; their numbers are kept, and written into the pages."""
    readme = Path(shutil.copy(ROOT / "experiments" / "vo2023" / "README.md", tmp_path))
    few = ("--data", vo2023 / "data", "--folder", tmp_path / "boxes", "--train", 48, "--test", 4)
    few += ("--epochs", 1, "--box-epochs", 1, "--batch-size", 16, "--device", "cpu", "--sets", "imdb")
    with scripts("experiments/vo2023") as load:
        baselines, extra, records = (load(name) for name in ("baselines", "extra", "records"))
        fits = [baselines.Fit("imdb", "network", form, 0) for form in (baselines.AIM, "l2x, τ 0.1")]
        monkeypatch.setattr(baselines, "phases", lambda *_: [fits])
        monkeypatch.setattr(baselines, "train_boxes", lambda *_: None)
        carried_out = load("paper_form").carried_out

        def here(fits, options, *_):
            return [(fit, carried_out(fit, options) | {"wall seconds": 1.0}) for fit in fits]

        monkeypatch.setattr(baselines, "run", here)
        call(baselines, *few, "--out", tmp_path / "made.json")
        monkeypatch.setattr(extra, "DRAWS", (50,))
        call(
            extra,
            *few,
            "--results",
            tmp_path / "extra",
            "--sampled",
            2,
            "--parts",
            "classes",
            "sizes",
            "draws",
        )
        monkeypatch.setattr(
            records, "MEASURES", dict.fromkeys(records.MEASURES, lambda words: float(len(words)))
        )
        for _ in range(2):  # what is there stays
            made = ("--made", tmp_path / "made.json", "--extra", tmp_path / "extra")
            call(records, *made, "--out", tmp_path / "records")
        page = resample_less(load("extra_page"))
        resample_less(baselines)
        monkeypatch.setattr(page, "DRAWS", (50,))
        call(page, "--records", tmp_path / "records", "--page", readme)
    text = readme.read_text()
    assert "| imdb | `l2x, tuned: τ 0.1` |" in text and "- imdb: AIM keeps" in text
    assert "| imdb | `functional-information, draws 50` |" in text and "words of `l2x`" in text


def test_vo2023_known_features(capsys):
    with scripts("experiments/vo2023") as load:
        own = load("known_features")
        few = ("--rows", 80, "--test", 3, "--seeds", 1)
        call(own, *few, "--tasks", "switch", "--methods", "invase, selected", "maple", "kernel-shap")
    assert [line.split(" | ")[1] for line in capsys.readouterr().out.splitlines()[2:]] == [
        "`invase, selected`",
        "`maple`",
        "`kernel-shap`",
    ]


def test_vo2023_refinement(tmp_path, capsys):
    write_texts(tmp_path, "sst2", {"train_sentences": 1006}, 20)
    with scripts("experiments/vo2023") as load:
        few = ("--train", 40, "--inputs", 2, "--seeds", 1, "--budgets", 10, "--starts", "aim")
        call(load("refinement"), "--data", tmp_path, *few, "--only", "texts")
    assert capsys.readouterr().out.count("| aim | thompson-search | 10 |") == 1


def test_vo2023_tabular(tmp_path):
    rng = np.random.default_rng(0)
    columns = ["Serial_No", "GRE_Score", "TOEFL", "Rating", "SOP", "LOR", "CGPA", "Research", "Chance"]
    rows = pd.DataFrame(rng.normal(size=(160, 9)) + 5, columns=columns)
    (tmp_path / "graduate_admission").mkdir()
    rows[:130].to_csv(tmp_path / "graduate_admission" / "Admission_Predict.csv", index=False)
    rows.to_csv(tmp_path / "graduate_admission" / "Admission_Predict_Ver1.1.csv", index=False)
    for split, n in (("train", 5000), ("test", 40)):
        numbers = {name: rng.normal(size=n) for name in ("age", "hours", "fnlwgt", "gain", "loss", "years")}
        kinds = {name: rng.choice(["a", "b"], n) for name in ("work", "sex", "education", "income")}
        label = (numbers["age"] + (kinds["work"] == "a") > 0.5).astype(np.int8)
        write_frame(tmp_path / "adult" / f"{split}.parquet", **numbers, **kinds, label=label)
    page = Path(shutil.copy(ROOT / "experiments" / "vo2023" / "tabular.md", tmp_path))
    with scripts("experiments/vo2023") as load:
        own = load("tabular")
        own.EPOCHS = dict.fromkeys(own.SETS, 1)
        few = ("--seeds", 1, "--draws", 2, "--train", 60, "--test", 3, "--page", page)
        rows = ("aim", "lime", "maple", "best by sufficiency")
        call(own, "--data", tmp_path, "--results", tmp_path / "results", *few, "--rows", *rows)
    assert len(list((tmp_path / "results").glob("*.json"))) == 12
    assert page.read_text().count("| `best by sufficiency` |") == 3

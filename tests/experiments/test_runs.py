"""The stages of every paper in miniature, and the pages of their records."""

from dataclasses import replace

import numpy as np
import pytest

from tests.miniature import (
    experiment,
    rebuild_pages,
    run_stages,
    sentences,
    write_encoder,
    write_frame,
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

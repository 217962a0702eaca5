"""The scripts of `benchmarks/` run in miniature."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pertinent
from pertinent.masks import all_coalitions, shapley_values_of
from tests import tiny
from tests.miniature import ROOT, call, scripts, write_encoder


def test_which_method_writes_both_tables(tmp_path):
    description = (ROOT / "benchmarks" / "which_method" / "tables.yaml").read_text()
    methods = description[description.index("methods:") : description.index("metrics:")]
    few = description.replace(methods, "methods: [shapley, leave-one-out, random]\n").replace(
        'sets:wines"', 'sets:wines", limit: 8'
    )
    with scripts("benchmarks", ".") as load:
        run = load("which_method.run")
        (tmp_path / "tables.yaml").write_text(few.replace("seeds: 2", "seeds: 1"))
        for folder in (tmp_path, tmp_path / "root"):
            folder.mkdir(exist_ok=True)
            (folder / "README.md").write_text(f"Before.\n{run.BEGIN}\nold\n{run.END}\nAfter.\n")
        run.HERE, run.ROOT, run.SETS = tmp_path, tmp_path / "root", {"tables": "a table classifier"}
        call(run, tmp_path / "results")
    table = (tmp_path / "root" / "README.md").read_text()
    assert "| a table classifier | 200 | `" in table and "old" not in table
    assert table.startswith("Before.") and table.endswith("After.\n")
    page = (tmp_path / "README.md").read_text()
    assert "| leave-one-out | 14 |" in page
    assert "comprehensiveness: no significant difference from" in page


def test_kills(capsys):
    with scripts("benchmarks") as load:
        call(load("kills"), "--inputs", 4, "--kills", 1)
    assert "results equal: True" in capsys.readouterr().out


def test_masks_memory_and_cpu_speed(tmp_path, capsys):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    encoder = write_encoder(tmp_path / "encoder")
    with scripts("benchmarks") as load:
        model = AutoModelForSequenceClassification.from_pretrained(encoder).eval()
        tokenizer = AutoTokenizer.from_pretrained(encoder)
        mask, memory, cpu, peers = (load(name) for name in ("mask", "memory", "cpu", "peers"))
        mask.bert_base = lambda *_: model
        mask.torch = SimpleNamespace(
            **vars(torch) | {"randint": lambda a, b, *c, **d: torch.randint(5, 90, *c, **d)}
        )
        call(mask, "--tokens", 16, "--lengths", 8, "--repeats", 1)
        load("common").WORDS = tiny.WORDS
        wrapped = pertinent.wrap((model, tokenizer))
        memory.stream(wrapped, 2, 8, 20)
        memory.keep(wrapped, 2, 8, 20)
        case = peers.Case(model, tokenizer, ["w1 w2 w3 w4 w5", "w6 w7 w8 w9"], 20)
        kept = []
        cpu.pertinent_work(case, "kernel-shap", kept)(case)
        ids, positions = (np.concatenate(column) for column in zip(*kept, strict=True))
        np.savez(tmp_path / "kept.npz", lengths=[len(row) for row, _ in kept], ids=ids, positions=positions)
        batches = cpu.bare_batches(str(tmp_path / "kept.npz"), 64)
        count = peers.Count(model)
        for batch in batches:
            model(**batch)
    assert "with a mask, ms" in capsys.readouterr().out
    assert count.rows == len(kept)


def test_arithmetic_and_gpu_speed_omit_rows_that_fail(tmp_path, capsys):
    with scripts("benchmarks") as load:
        arithmetic, gpu = load("arithmetic"), load("gpu")
        few = ("--tokens", 9, "--texts", 1, "--budget", 30)
        call(arithmetic, *few, "--json", tmp_path / "arithmetic.json")
        gpu.bert_base = lambda *_: arithmetic.small_bert()
        few = ("--tokens", 9, 22, "--texts", 1, 2, "--budget", 30, "--seconds", 0, "--device", "cpu")
        call(gpu, *few, "--json", tmp_path / "gpu.json")
        call(gpu, *few, "--limit", 0)
    rows = json.loads((tmp_path / "arithmetic.json").read_text())
    assert [row["method"] for row in rows] == list(arithmetic.METHODS)
    assert all(value >= 0 for row in rows for name, value in row.items() if name != "method")
    rows = json.loads((tmp_path / "gpu.json").read_text())
    assert [row["method"] for row in rows if row["tokens"] == 9] == list(gpu.METHODS)
    assert [row["method"] for row in rows if row["tokens"] == 22] == [
        method for method in gpu.METHODS if method != "kernel-shap"
    ]
    assert all(row["masks per text"] >= 20 for row in rows)
    printed = capsys.readouterr()
    assert "`budget` must be at least 40 for kernel-shap" in printed.err
    assert printed.out.count("skipped after 0 s") == 10


def test_shapley_errors_on_one_game(tmp_path):
    with scripts("benchmarks") as load:
        games, shapley = load("shapley_games"), load("shapley")
        shapley.peers = dict
        results = shapley.Results()
        game = games.table("unanimity", games._unanimity(np.random.default_rng(0), 6), 6)
        for times in (2, 5):
            results.measure(game, times, 1)
        shapley.plot(results.errors, shapley.METHODS, str(tmp_path / "plot.png"))
    assert [row["evaluations"] for row in results.rows()] == ["2d", "5d"]
    assert [row["rows"] for row in results.summary()] == [1, 1]
    assert (tmp_path / "plot.png").is_file()


def test_closed_form_shapley_values_of_hard_games():
    with scripts("benchmarks") as load:
        families = load("shapley_families")
        voters = np.array([5, 3, 3, 2, 1, 1])
        power = families._power(voters, 9)
        airport = families._airport("airport", 0)
        pairs = families._pairs("pairs", 0, singles=3.0)
        sparse = families._sparse("sparse", 0)
        sigmoid = families.FAMILIES["self-dual sigmoid"]("self-dual sigmoid", 1)
    everyone = all_coalitions(6)
    np.testing.assert_allclose(power, shapley_values_of((everyone @ voters >= 9).astype(float)), atol=1e-12)
    for game in (airport, pairs):
        np.testing.assert_allclose(game.truth, shapley_values_of(game(all_coalitions(game.d))), atol=1e-9)
    ends = sparse(np.array([[False] * 40, [True] * 40]))
    assert sparse.truth.sum() == pytest.approx(ends[1] - ends[0])
    masks = all_coalitions(12)
    np.testing.assert_allclose(sigmoid(masks) + sigmoid(~masks), 1.0)


def test_coverage_of_one_cell(tmp_path):
    options = ("--seeds", 2, "--methods", "banzhaf", "--games", "AND", "--most-evaluations", 8)
    with scripts("benchmarks") as load:
        call(load("interval_coverage"), *options, "--json", tmp_path / "cells.json")
    cells = json.loads((tmp_path / "cells.json").read_text())
    assert {(cell["method"], cell["game"]) for cell in cells} == {("banzhaf", "AND")}


def test_interactions_of_one_game(tmp_path):
    with scripts("benchmarks") as load:
        interactions = load("interactions")
        game = load("shapley_games").table("sum", lambda masks: masks.sum(axis=1) * masks[:, 0], 4)
        interactions.games = lambda: [game]
        interactions.PEERS = {"sii": lambda: {"zeros": lambda *_: np.zeros(6)}}
        options = ("--seeds", 1, "--long", 0, "--index", "sii", "--times", 3)
        call(interactions, *options, "--json", tmp_path / "rows.json")
    (row,) = json.loads((tmp_path / "rows.json").read_text())
    assert row["best peer"] == "zeros"


def test_block_schedule(capsys):
    with scripts("benchmarks") as load:
        call(load("block_schedule"), "--workers", 4, "--minutes", 1, "--blocks", 16, 64)
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_service(capsys):
    with scripts("benchmarks") as load:
        call(load("service"), "--texts", 1, "--users", 2, "--budget", 60)
    assert capsys.readouterr().out.count("by turns") == 1


def test_language_models_on_the_cpu(capsys):
    pytest.importorskip("captum")
    with scripts("benchmarks") as load:
        load("language_models").SHAPES["cpu"] |= {"num_hidden_layers": 1, "hidden_size": 32}
        call(load("language_models"), "--sizes", 24, 2, 4, "--repeats", 1)
    assert "loop of context-cite, batch of 1" in capsys.readouterr().out


def test_tree_models(capsys):
    pytest.importorskip("lightgbm")
    pytest.importorskip("xgboost")
    with scripts("benchmarks") as load:
        trees = load("trees")
        setups = trees._setups()
        trees._setups = lambda: {"lightgbm, log-odds": setups["lightgbm, log-odds"]}
        trees.TRAINING = 200
        call(trees, "--rows", 2, "--shap-rows", 1)
    assert "ours / shap" in capsys.readouterr().out

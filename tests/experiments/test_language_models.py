"""Numbers of `experiments/language_models` on cases with a known answer, and its stage in miniature."""

import random

import numpy as np
import pytest

import pertinent
from pertinent.testing.games import additive
from tests import tiny_lm
from tests.miniature import experiment, rebuild_pages, run_stages, write_frame

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


@pytest.fixture(scope="module")
def load():
    with experiment("language_models") as load:
        yield load


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Paragraphs of six short sentences, each with a question about its second sentence."""
    rng, folder = random.Random(0), tmp_path_factory.mktemp("data")
    paragraphs = [" ".join(f"A{i} {rng.choice(WORDS)}." for i in range(6)) for _ in range(20)]
    answers = [[paragraph.split(". ")[1].strip(".")] for paragraph in paragraphs]
    columns = {"context": paragraphs, "question": ["What is it?"] * 20, "answers": answers}
    write_frame(folder / "squad_v1" / "dev.parquet", **columns)
    return folder


def test_the_right_sentences_are_those_with_an_answer_or_the_planted_instruction(load, data):
    examples = load("prompts").read_squad(data)
    assert {example.task for example in examples} == {"squad", "injection"}
    for example in examples:
        assert 8 <= len(example.sentences) <= 20
        for i, text in enumerate(example.sentences):
            assert (i in example.right) == any(word in text for word in example.expected)
        assert example.is_expected(f"It is {example.expected[0].lower()}.")


def test_measures_of_an_additive_game(load):
    measuring = load("measuring")
    effects = np.array([3.0, -1.0, 0.5, 0.0, 2.0, 0.25])

    class Game:
        n = 6

        def logits(self, masks):
            return additive(effects).values(masks)[:, 0]

    truth = measuring.Truth.of(Game())
    np.testing.assert_allclose(truth.effects, effects, atol=1e-9)
    np.testing.assert_allclose(truth.drops, effects, atol=1e-9)
    example = load("prompts").Example("squad", "?", ("",) * 6, (0,), ("x",))
    case = measuring.Case(example, "x", None, Game())
    right = truth.measures(effects, np.full(6, 1e-6), case)
    assert right == pytest.approx({"lds": 1.0, "precision": 1.0, "drop": 3.0, "coverage": 1.0})
    wrong = truth.measures(-effects, np.full(6, 1e-6), case)
    assert (wrong["precision"], wrong["drop"]) == (0.0, -1.0)
    assert wrong["lds"] == pytest.approx(-1.0) and wrong["coverage"] == pytest.approx(1 / 6)


def test_the_stage_and_the_page(load, data, tmp_path, monkeypatch):
    """Methods of the library and peers answer alike where they are the same."""
    measuring, tables = load("measuring"), load("tables")
    methods, peers = ("bayesian-regression", "leave-one-out"), ("ContextCite", "captum FeatureAblation")
    plan = measuring.Plan((16, 32), methods, peers)
    for module in (measuring, tables):
        monkeypatch.setattr(module, "PLAN", plan)
    monkeypatch.setattr(measuring, "N_TEST", 20)
    monkeypatch.setattr(measuring, "N_REFERENCE", 20)
    model = tmp_path / "smollm2"
    tiny_lm.model("llama", max_position_embeddings=1024).save_pretrained(model)
    tiny_lm.tokenizer(model_max_length=1024).save_pretrained(model)
    options = ["--data", data, "--results", tmp_path, "--model", model, "--examples", "4"]
    run_stages("language_models", "evaluate", *options)
    record = load("experiments.shared.stages").read_record(tmp_path / "smollm2.json")
    assert len(record["examples"]) == 4
    for example in record["examples"]:
        found = {(row["method"], row["budget"]): row for row in example["found"]}
        assert found["bayesian-regression", 16]["evaluations"] <= 16
        assert 0 <= found["bayesian-regression", 32]["coverage"] <= 1
        pair = found["leave-one-out", 32], found["captum FeatureAblation", 32]
        np.testing.assert_allclose(*(row["drop"] for row in pair), atol=1e-3)
    rebuild_pages("language_models", tmp_path / "pages", "--results", tmp_path)
    page = (tmp_path / "pages" / "README.md").read_text()
    assert "| squad | 2 | " in page and "| `leave-one-out` | " in page and "| ContextCite | " in page


def test_games_of_peers_are_those_of_the_library(load):
    peers, measuring = load("peers"), load("measuring")
    model = pertinent.wrap((tiny_lm.model("llama"), tiny_lm.tokenizer()))
    prompt = pertinent.Prompt(
        "Who?", sources=["Ann keeps it.", "Bob lost it.", "Cleo came."], answer=" Bob keeps"
    )
    game = measuring.game_of(model, prompt)
    e = pertinent.explain(model, prompt, "leave-one-out")
    values = game.values(np.concatenate([np.ones((1, 3), dtype=bool), ~np.eye(3, dtype=bool)]))
    np.testing.assert_allclose(e.prediction.values[0], values[0], atol=1e-4)
    np.testing.assert_allclose(e.scores, values[0] - values[1:], atol=1e-4)
    ablation = peers.PEERS["captum FeatureAblation"](game, 8, 0)
    np.testing.assert_allclose(ablation, e.scores, atol=1e-4)
    assert peers.PEERS["captum FeatureAblation"](game, 3, 0) is None
    lengths = peers.PEERS["inseq saliency"](game, 64, 0)
    assert (lengths > 0).all()

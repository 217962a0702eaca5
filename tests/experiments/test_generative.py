"""Numbers of `experiments/generative` on cases with a known answer, and its stages in miniature."""

import random

import numpy as np
import pytest
import torch

import pertinent
from tests import tiny_lm
from tests.miniature import experiment, rebuild_pages, run_stages, write_frame

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


@pytest.fixture(scope="module")
def load():
    with experiment("generative") as load:
        yield load


def sentence(rng):
    return " ".join(f"{rng.choice(WORDS)}{rng.randrange(1000)}" for _ in range(9)).capitalize() + "."


@pytest.fixture(scope="module")
def folder(tmp_path_factory, load):
    """Packed texts and their tokenizer."""
    rng, data = random.Random(0), tmp_path_factory.mktemp("data")
    paragraphs = [" ".join(sentence(rng) for _ in range(4)) for _ in range(20)]
    answers = [[paragraph.split()[2]] for paragraph in paragraphs]
    for split, rows in (("train", slice(10)), ("dev", slice(10, 20))):
        columns = {"context": paragraphs[rows], "question": ["What is it?"] * 10, "answers": answers[rows]}
        write_frame(data / "squad_v1" / f"{split}.parquet", **columns)
    for split in ("dev", "train_part"):
        write_frame(data / "boolq" / f"{split}.parquet", document=[sentence(rng) for _ in range(6)])
    for name, split in (("ag_news", "train"), ("ag_news", "test"), ("imdb", "train")):
        write_frame(data / name / f"{split}.parquet", text=[sentence(rng) for _ in range(6)])
    load("texts").N_HELD_OUT = 4
    run_stages("generative", "pack", "--data", data, "--out", data / "packed")
    return data / "packed"


def test_no_sentence_is_trained_on_and_held_out(folder, load):
    train, held_out = (load("tasks").Texts.read(folder, held_out=flag).documents for flag in (False, True))
    assert not {" ".join(text) for text in held_out} & {" ".join(text) for text in train}


@pytest.mark.parametrize("kind", ["continue", "cloze", "find", "squad"])
@pytest.mark.parametrize("twice", [False, True])
def test_only_the_right_sentences_have_the_answer(folder, load, kind, twice):
    tasks, rng = load("tasks"), random.Random(1)
    texts = tasks.Texts.read(folder, held_out=True)
    for _ in range(5):
        example = tasks.draw_example(texts, kind, 8, rng, twice=twice)
        assert len(example.sentences) == 8 + twice
        answer = f" {example.question.answer}"
        assert example.right == tuple(i for i, text in enumerate(example.sentences) if answer in f" {text}")
        assert len(example.right) == 1 + twice


def test_blocks_are_tokenized_as_the_whole_text(folder, load):
    tasks = load("tasks")
    texts, spelling = tasks.Texts.read(folder, held_out=False), tasks.Spelling(folder)
    ids, is_answer = tasks.draw_block(texts, 5, 3, random.Random(0), spelling)
    text = spelling.tokenizer.decode(ids, skip_special_tokens=False)
    assert spelling.tokenizer.encode(text, add_special_tokens=False).ids == ids
    assert len(is_answer) == len(ids)
    assert text.count("\nA:") == 3
    assert np.diff(np.array(is_answer, dtype=int)).clip(0).sum() == 3


def test_stages_and_page(folder, load, tmp_path, monkeypatch):
    """A model is trained for a second; captum's ablation and ours agree, and the page has all parts."""
    measuring, tables, small = load("measuring"), load("tables"), load("small")
    plan = measuring.Plan((16, 32), ("leave-one-out", "gradient-x-input"), ("captum FeatureAblation",))
    for module in (measuring, tables):
        monkeypatch.setattr(module, "PLAN", plan)
        monkeypatch.setattr(module, "N_TEST_MASKS", 20)
        monkeypatch.setattr(module, "N_BANK", 40)
    monkeypatch.setattr(measuring, "N_SENTENCES", 5)
    monkeypatch.setattr(measuring, "SETS", {"cloze": ("cloze", False)})
    monkeypatch.setattr(tables, "SUBSETS", 2)
    monkeypatch.setattr(small, "PLAN", measuring.Plan((32,), ("leave-one-out",), ("ContextCite",)))
    options = ["--data", folder, "--work", tmp_path / "work", "--results", tmp_path]
    sizes = ["--layers", "1", "--width", "64", "--batch", "512", "--workers", "1"]
    run_stages("generative", "train", *options, "--minutes", "0.02", *sizes)
    evaluation = ["--minutes", "0", "--seeds", "1", "--together", "2", "--any-answer"]
    run_stages("generative", "evaluate", "small", *options, *evaluation, "--examples", "8")
    record = load("experiments.shared.stages").read_record(tmp_path / "examples-0.json")
    measures = {(row["method"], row["budget"]): row for row in record["examples"][0]["found"]}
    pair = measures["leave-one-out", 16], measures["captum FeatureAblation", 16]
    np.testing.assert_allclose(*(row["lds"] for row in pair), atol=0.05)
    rebuild_pages("generative", tmp_path / "pages", "--results", tmp_path)
    page = (tmp_path / "pages" / "README.md").read_text()
    assert "| cloze | 0% of " in page and "8 questions." in page
    assert "| `leave-one-out` | " in page and "| as many | lds | " in page


def test_games_of_peers_are_those_of_the_library(load):
    peers = load("peers")
    model = pertinent.wrap((tiny_lm.model("llama"), tiny_lm.tokenizer()))
    prompt = pertinent.Prompt(
        "Who?", sources=["Ann keeps it.", "Bob lost it.", "Cleo came."], answer=" Bob keeps"
    )
    tokens = model.prepare(prompt).tokens
    before = ~tokens.scored
    game = peers.Game(model.model, tokens.ids[before], tokens.feature[before], tokens.ids[~before])
    e = pertinent.explain(model, prompt, "leave-one-out")
    values = game.values(np.concatenate([np.ones((1, 3), dtype=bool), ~np.eye(3, dtype=bool)]))
    np.testing.assert_allclose(e.prediction.values[0], values[0], atol=1e-4)
    np.testing.assert_allclose(e.scores, values[0] - values[1:], atol=1e-4)
    ablation = peers.PEERS["captum FeatureAblation"](game, 8, 0)
    np.testing.assert_allclose(ablation, e.scores, atol=1e-4)
    assert peers.PEERS["captum FeatureAblation"](game, 3, 0) is None
    lengths = peers.PEERS["inseq saliency"](game, 64, 0)
    assert (lengths > 0).all()


def test_the_losses_of_answers_and_of_other_tokens(load):
    training = load("training")
    model = training.network(1, 64)
    ids = np.arange(12).reshape(2, 6)
    answers = np.zeros((2, 6), dtype=bool)
    answers[:, 4:] = True
    text_loss, answer_loss = training.losses_of(model, ids, answers, "cpu")
    with torch.no_grad():
        logs = model(torch.tensor(ids)).logits[:, :-1].log_softmax(dim=-1)
    losses = -logs.gather(2, torch.tensor(ids)[:, 1:, None])[..., 0].numpy()
    np.testing.assert_allclose(text_loss.item(), losses[:, :3].mean(), rtol=0.02)
    np.testing.assert_allclose(answer_loss.item(), losses[:, 3:].mean(), rtol=0.02)

"""Numbers of `experiments/generative` on cases with a known answer, and its scripts in miniature."""

import argparse
import gzip
import json
import random

import numpy as np
import pytest
import torch

import pertinent
from tests import tiny_lm
from tests.miniature import ROOT, resample_less, scripts, write_frame

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


@pytest.fixture(scope="module")
def modules():
    with scripts("experiments/generative", "experiments") as found:
        yield {name: found(name) for name in ("texts", "tasks", "peers", "evaluate", "tables")}


def sentence(rng):
    return " ".join(f"{rng.choice(WORDS)}{rng.randrange(1000)}" for _ in range(9)).capitalize() + "."


@pytest.fixture(scope="module")
def folder(tmp_path_factory, modules):
    """Texts that were packed, and a language model with random weights."""
    rng, data = random.Random(0), tmp_path_factory.mktemp("data")
    paragraphs = [" ".join(sentence(rng) for _ in range(4)) for _ in range(20)]
    answers = [[own.split()[2]] for own in paragraphs]
    for split, own in (("train", slice(10)), ("dev", slice(10, 20))):
        columns = {"context": paragraphs[own], "question": ["What is it?"] * 10, "answers": answers[own]}
        write_frame(data / "squad_v1" / f"{split}.parquet", **columns)
    for split in ("dev", "train_part"):
        write_frame(data / "boolq" / f"{split}.parquet", document=[sentence(rng) for _ in range(6)])
    for name, split in (("ag_news", "train"), ("ag_news", "test"), ("imdb", "train")):
        write_frame(data / name / f"{split}.parquet", text=[sentence(rng) for _ in range(6)])
    modules["texts"].N_HELD_OUT = 4
    packed = modules["texts"].packed(data)
    assert not {" ".join(own) for own in packed["held_out"]} & {" ".join(own) for own in packed["train"]}
    (data / "texts.json.xz").write_bytes(modules["texts"].lzma.compress(json.dumps(packed).encode()))
    modules["texts"].trained_tokenizer([f" {own}" for own in paragraphs]).save(str(data / "tokenizer.json"))
    return data


@pytest.mark.parametrize("kind", ["continue", "cloze", "find", "squad"])
@pytest.mark.parametrize("twice", [False, True])
def test_the_answer_is_in_the_right_sentences_alone(folder, modules, kind, twice):
    texts, rng = modules["tasks"].Texts.read(folder, held_out=True), random.Random(1)
    for _ in range(5):
        own = modules["tasks"].example(texts, kind, 8, rng, twice=twice)
        assert len(own.sentences) == 8 + twice
        holders = [i for i, text in enumerate(own.sentences) if f" {own.question.answer}" in f" {text}"]
        assert tuple(holders) == own.right
        assert len(own.right) == 1 + twice


def test_blocks_are_tokenised_as_the_whole_text(folder, modules):
    texts, spelling = modules["tasks"].Texts.read(folder, held_out=False), modules["tasks"].Spelling(folder)
    ids, is_answer = modules["tasks"].block(texts, 5, 3, random.Random(0), spelling)
    text = spelling.tokenizer.decode(ids, skip_special_tokens=False)
    assert spelling.tokenizer.encode(text, add_special_tokens=False).ids == ids
    assert len(is_answer) == len(ids)
    assert text.count("\nA:") == 3
    assert np.diff(np.array(is_answer, dtype=int)).clip(0).sum() == 3


def test_examples_are_evaluated_and_put_into_tables(folder, modules, tmp_path, monkeypatch, capsys):
    evaluate, tables, tasks = modules["evaluate"], modules["tables"], modules["tasks"]
    transformers = pytest.importorskip("transformers")
    vocabulary = tasks.Spelling(folder).tokenizer.get_vocab_size()
    model = tiny_lm.model("llama", vocab_size=vocabulary, max_position_embeddings=1024, bos_token_id=0)
    model.save_pretrained(tmp_path / "model")
    transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), bos_token="<|end|>", eos_token="<|end|>"
    ).save_pretrained(tmp_path / "model")
    for module in (evaluate, tables):
        monkeypatch.setattr(module, "BUDGETS", (16, 32))
    small = {"N_TEST_MASKS": 20, "N_BANK": 40}
    for name, n in small.items():
        monkeypatch.setattr(evaluate, name, n)
        monkeypatch.setattr(tables, name, n)
    monkeypatch.setattr(evaluate, "N_SENTENCES", 5)
    monkeypatch.setattr(evaluate, "SETS", {"cloze": ("cloze", False)})
    scored = evaluate.scored
    chosen = {"methods": ("leave-one-out", "gradient-x-input"), "budgets": (16, 32)}
    monkeypatch.setattr(evaluate, "scored", lambda *words: scored(*words, **chosen))
    own = argparse.Namespace(
        data=folder, model=tmp_path / "model", out=tmp_path, device="cpu", at_once=2, trial=True
    )
    evaluate.evaluate(own, 0, 0.0)
    records = [json.loads(line) for line in (tmp_path / "examples-0.jsonl").read_text().splitlines()]
    found = {(each["method"], each["budget"]): each for each in records[0]["found"]}
    np.testing.assert_allclose(  # captum's and ours are the same
        found["leave-one-out", 16]["lds"], found["captum FeatureAblation", 16]["lds"], atol=0.05
    )
    with gzip.open(tmp_path / "examples-0.jsonl.gz", "wt") as file:
        file.writelines(f"{json.dumps(record)}\n" for record in records)
    (tmp_path / "training.json").write_text('{"parameters": 1, "steps": 1, "tokens": 1, "seconds": 60}')
    monkeypatch.setattr(tables, "SUBSETS", 2)
    resample_less(tables)
    results = tables.Results(tables.read(tmp_path))
    assert "`single-effects`" in results.table("lds", ".2f")
    assert "ContextCite" in results.table("precision", ".2f", (0, 1))
    assert "as many" in results.ahead()
    assert "cloze" in tables.overview(tmp_path, results)
    capsys.readouterr()


def test_games_of_peers_are_those_of_the_library(modules):
    model = pertinent.wrap((tiny_lm.model("llama"), tiny_lm.tokenizer()))
    prompt = pertinent.Prompt(
        "Who?", sources=["Ann keeps it.", "Bob lost it.", "Cleo came."], answer=" Bob keeps"
    )
    tokens = model.prepare(prompt).tokens
    before = ~tokens.scored
    game = modules["peers"].Game(model.model, tokens.ids[before], tokens.feature[before], tokens.ids[~before])
    e = pertinent.explain(model, prompt, "leave-one-out")
    values = game.values(np.concatenate([np.ones((1, 3), dtype=bool), ~np.eye(3, dtype=bool)]))
    np.testing.assert_allclose(e.prediction.values[0], values[0], atol=1e-4)
    np.testing.assert_allclose(e.scores, values[0] - values[1:], atol=1e-4)
    ablation = modules["peers"].PEERS["captum FeatureAblation"](game, 8, 0)
    np.testing.assert_allclose(ablation, e.scores, atol=1e-4)
    assert modules["peers"].PEERS["captum FeatureAblation"](game, 3, 0) is None
    lengths = modules["peers"].PEERS["inseq saliency"](game, 64, 0)
    assert (lengths > 0).all()


def test_the_loss_of_answers_and_of_other_tokens():
    with scripts("experiments/generative") as found:
        train = found("train")
        model = train.network(1, 64)
        ids = np.arange(12).reshape(2, 6)
        answers = np.zeros((2, 6), dtype=bool)
        answers[:, 4:] = True
        text, said = train.loss_of(model, ids, answers, "cpu")
        with torch.no_grad():
            logs = model(torch.tensor(ids)).logits[:, :-1].log_softmax(dim=-1)
        each = -logs.gather(2, torch.tensor(ids)[:, 1:, None])[..., 0].numpy()
        np.testing.assert_allclose(text.item(), each[:, :3].mean(), rtol=0.02)
        np.testing.assert_allclose(said.item(), each[:, 3:].mean(), rtol=0.02)
    assert (ROOT / "experiments" / "generative" / "README.md").exists()

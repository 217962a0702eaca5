"""Texts that the language model is trained and tested on, packed into one file with its tokenizer.

A document is a list of sentences of 6 to 24 words. A question of SQuAD has the index of its document and of
the sentence with the answer.
"""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

N_HELD_OUT = 500
"""Paragraphs of SQuAD's development set for testing; they and their questions are not trained on."""

N_NEWS, N_REVIEWS = 28_000, 3_000
VOCABULARY = 8192
END = "<|end|>"
_EDGE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z\"'(\[])")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of 6 to 24 words, with single spaces and without long words."""
    return [s for s in _EDGE.split(" ".join(text.replace("\\", " ").split())) if _is_suitable(s)]


def _is_suitable(sentence: str) -> bool:
    words = sentence.split()
    return 6 <= len(words) <= 24 and max(map(len, words)) <= 24 and sentence.isascii()


def documents(texts: Any) -> list[list[str]]:
    """Return the suitable sentences of each text that has any."""
    return [sentences for sentences in map(split_sentences, texts) if sentences]


def squad(rows: Any) -> tuple[list[list[str]], list[tuple[int, str, str, int]]]:
    """Return paragraphs, and (paragraph, question, answer, sentence) if only one sentence has the answer."""
    paragraphs: dict[str, int] = {}
    texts: list[list[str]] = []
    questions = []
    for context, question, answers in zip(rows["context"], rows["question"], rows["answers"], strict=True):
        if context not in paragraphs:
            paragraphs[context] = len(texts)
            texts.append(split_sentences(context))
        index = paragraphs[context]
        answer = " ".join(str(min(answers, key=len)).split())
        holders = [i for i, sentence in enumerate(texts[index]) if f" {answer}" in f" {sentence}"]
        if len(holders) == 1 and 1 <= len(answer.split()) <= 8 and question.isascii():
            questions.append((index, " ".join(question.split()), answer, holders[0]))
    return texts, questions


def read_texts(data: Path) -> dict[str, Any]:
    """Return documents and questions for training, and those held out."""
    import pandas as pd

    def read(name: str) -> Any:
        return pd.read_parquet(data / f"{name}.parquet")

    dev = read("squad_v1/dev")
    last = set(dev["context"].drop_duplicates().tail(N_HELD_OUT))
    held_out, held_questions = squad(dev[dev["context"].isin(last)])
    train, questions = squad(pd.concat([read("squad_v1/train"), dev[~dev["context"].isin(last)]]))
    for name in ("boolq/dev", "boolq/train_part"):
        train += documents(read(name)["document"].drop_duplicates())
    train += documents(read("ag_news/train")["text"].head(N_NEWS))
    reviews = read("imdb/train")["text"].head(N_REVIEWS)
    train += documents(text.replace("<br />", " ") for text in reviews)
    return {
        "train": train,
        "questions": questions,
        "held_out": held_out + documents(read("ag_news/test")["text"].head(1000)),
        "held_questions": held_questions,
    }


def train_tokenizer(texts: list[str]) -> Tokenizer:
    """Return a byte-level BPE tokenizer that puts the end token before a text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=[END], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{END} $A", special_tokens=[(END, tokenizer.token_to_id(END))]
    )
    return tokenizer


def pack_texts(data: Path, folder: Path) -> None:
    """Write the texts and their tokenizer, about 3 MB."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = read_texts(data)
    (folder / "texts.json.xz").write_bytes(lzma.compress(json.dumps(texts).encode(), preset=9))
    whole = [f" {sentence}" for document in texts["train"] for sentence in document]
    asked = [f" {question}\nA: {answer}" for _, question, answer, _ in texts["questions"]]
    train_tokenizer([*whole, *asked]).save(str(folder / "tokenizer.json"))
    print({name: len(part) for name, part in texts.items()}, sum(map(len, whole)), "characters")

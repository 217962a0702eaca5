"""Packs the texts that the language model is trained and tested on into one file, with its tokenizer.

    python experiments/generative/texts.py DATA FOLDER

DATA holds the data sets as Parquet: `squad_v1`, `boolq`, `ag_news`, `imdb`. FOLDER gets `texts.json.xz` and
`tokenizer.json`, about 3 MB. A document is a list of sentences of 6 to 24 words; a question of SQuAD goes
with the number of its document and of the sentence that holds the answer.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

N_HELD_OUT = 500
"""Paragraphs of SQuAD's development set that the model is tested on; their questions alone are asked."""

N_NEWS, N_REVIEWS = 28_000, 3_000
VOCABULARY = 8192
END = "<|end|>"
_EDGE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z\"'(\[])")


def sentences(text: str) -> list[str]:
    """The sentences of a text, with single spaces."""
    return _EDGE.split(" ".join(text.replace("\\", " ").split()))


def fits(sentence: str) -> bool:
    """Whether a sentence is of 6 to 24 words, none of them long."""
    words = sentence.split()
    return 6 <= len(words) <= 24 and max(map(len, words)) <= 24 and sentence.isascii()


def documents(texts: Any) -> list[list[str]]:
    """The sentences of each text that fit, if there are any."""
    found = ([own for own in sentences(text) if fits(own)] for text in texts)
    return [own for own in found if own]


def squad(rows: Any) -> tuple[list[list[str]], list[tuple[int, str, str, int]]]:
    """Paragraphs, and (paragraph, question, answer, sentence) where one sentence alone holds the answer."""
    paragraphs: dict[str, int] = {}
    texts: list[list[str]] = []
    questions = []
    for context, question, answers in zip(rows["context"], rows["question"], rows["answers"], strict=True):
        if context not in paragraphs:
            paragraphs[context] = len(texts)
            texts.append([own for own in sentences(context) if fits(own)])
        number = paragraphs[context]
        answer = " ".join(str(min(answers, key=len)).split())
        holders = [place for place, own in enumerate(texts[number]) if f" {answer}" in f" {own}"]
        if len(holders) == 1 and 1 <= len(answer.split()) <= 8 and question.isascii():
            questions.append((number, " ".join(question.split()), answer, holders[0]))
    return texts, questions


def packed(data: Path) -> dict[str, Any]:
    """Documents and questions to train on, and those held out."""
    import pandas as pd

    def read(name: str) -> Any:
        return pd.read_parquet(data / f"{name}.parquet")

    dev = read("squad_v1/dev")
    last = set(dev["context"].drop_duplicates().tail(N_HELD_OUT))
    held_out, held_questions = squad(dev[dev["context"].isin(last)])
    known = pd.concat([read("squad_v1/train"), dev[~dev["context"].isin(last)]])
    train, questions = squad(known)
    for name in ("boolq/dev", "boolq/train_part"):
        train += documents(read(name)["document"].drop_duplicates())
    train += documents(read("ag_news/train")["text"].head(N_NEWS))
    reviews = read("imdb/train")["text"].head(N_REVIEWS)
    train += documents(own.replace("<br />", " ") for own in reviews)
    held_news = documents(read("ag_news/test")["text"].head(1000))
    return {
        "train": train,
        "questions": questions,
        "held_out": held_out + held_news,
        "held_questions": held_questions,
    }


def trained_tokenizer(texts: list[str]) -> Tokenizer:
    """A byte-level BPE that puts the end token before a text."""
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


def main() -> None:
    """Pack the texts and train the tokenizer."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    texts = packed(chosen.data)
    (chosen.folder / "texts.json.xz").write_bytes(lzma.compress(json.dumps(texts).encode(), preset=9))
    whole = [f" {sentence}" for document in texts["train"] for sentence in document]
    trained_tokenizer([*whole, *(f" {q}\nA: {a}" for _, q, a, _ in texts["questions"])]).save(
        str(chosen.folder / "tokenizer.json")
    )
    counts = {name: len(own) for name, own in texts.items()}
    print(counts, sum(map(len, whole)), "characters")


if __name__ == "__main__":
    main()

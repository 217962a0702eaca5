"""Explain texts of AG News by every method and measure them by the paper's criteria (Tables 1, 2, 3 and 9).

    python experiments/hsieh2021/text.py --data DATA --encoder ENCODER --out RESULTS

`DATA` holds the folder ``ag_news``; `ENCODER` is the folder of all-MiniLM-L6-v2. `text_report.py` makes the
page of the results.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from records import Writer
from text_criteria import RadiiOfIrrelevant, RadiiOfRelevant, TopDeletion, TopInsertion, top_words
from text_models import TRAINING, WIDTH, WORDS, Texts, accuracy, bilstm, explained_texts, minilm, read
from transformers.utils import logging as transformers_logging

import pertinent
from pertinent.explainers.base import explainers
from pertinent.models.base import Model
from pertinent.results.explanation import Explanations

ZERO, RANDOM = "zero-vector", "random-token"
CHOSEN = {"chosen": 0.2}
"""Five words and more, of texts of 20 words and more."""
SETS: dict[str, Any] = {"sparsity": (0.025, 0.05, 0.075, 0.1, 0.125), "budget": 250}
"""About one to five words."""

MODELS = {name: f"AG News, {name}" for name in ("BiLSTM", "BiLSTM, pretrained vectors", "MiniLM")}
"""The experiments of the records, by the models that are explained."""

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "random": ("random", {}),
    "gradient": ("gradient", {"reduce": "length"}),
    "integrated-gradients": ("integrated-gradients", {"points": 50, "baseline": ZERO}),
    "leave-one-out": ("leave-one-out", {}),
    "shapley-sampling": ("shapley-sampling", {"samples": 25}),
    "greedy-as": ("greedy-as", CHOSEN),
    "greedy-as, relevant": ("greedy-as", CHOSEN | {"criterion": "relevant"}),
    "counterfactual": ("counterfactual", {"most": 5}),
    "expected-gradients": ("expected-gradients", {"samples": 200}),
    "lime": ("lime", {"samples": 1000}),
    "shapley": ("shapley", {"budget": 1000}),
    "anchors": ("anchors", SETS | {"budget": 1000}),
    "thompson-search": ("thompson-search", SETS),
    "parallel-local-search": ("parallel-local-search", SETS),
    "one-step-banzhaf": ("one-step-banzhaf", {}),
    "one-step-banzhaf, relevant": ("one-step-banzhaf", {"criterion": "relevant"}),
    "greedy": ("greedy", CHOSEN),
    "greedy, relevant": ("greedy", CHOSEN | {"criterion": "relevant"}),
    "greedy-as, 1,000 subsets": ("greedy-as", CHOSEN | {"subsets": 1000}),
}
"""By the name of their row, the most telling first."""
DEFAULT = [row for row in METHODS if row != "greedy-as, 1,000 subsets"]
"""The rows that are run unless others are asked for."""


def explained(model: Model, texts: list[str], row: str) -> Explanations:
    """The explanations of a row; baselines explain the logit of the predicted class, as the authors' do."""
    method, settings = METHODS[row]
    if "raw" in explainers.get(method).traits.scales:
        settings = settings | {"scale": "raw"}
    return pertinent.explain(
        model, texts, method, removal=ZERO, features="words", seed=0, progress=False, **settings
    )


def measure(model: Model, texts: list[str], row: str, writer: Writer) -> None:
    """Explain all texts by a method, and write how good the explanations are."""
    start = time.perf_counter()
    found = explained(model, texts, row)
    seconds = (time.perf_counter() - start) / len(texts)
    writer.write(row, "seconds", [seconds])
    writer.write(row, "passes", [np.mean([e.evaluations for e in found])])
    for removal, metrics in (
        (ZERO, [RadiiOfIrrelevant(), RadiiOfRelevant(), TopInsertion(), TopDeletion()]),
        (RANDOM, [TopInsertion(), TopDeletion()]),
    ):
        judged = pertinent.evaluate(model, found, metrics, removal=removal, progress=False)
        own = {} if removal == ZERO else {"removal": removal}
        for metric in metrics:
            curves = np.full((len(texts), 5), np.nan)
            for one in judged.rows:
                if one.metric == metric.name and one.sparsity is not None:
                    curves[found[one.explanation].index, int(one.sparsity) - 1] = one.value
            writer.write(row, metric.name, curves, **own)
        for failure in judged.failures:
            print(f"{row}, text {failure.index}: {failure.reason}")
    for failure in found.failures:
        print(f"{row}, text {failure.index}: {failure.reason}")
    with (writer.path.parent / "top_words.json").open("a", encoding="utf-8") as file:
        top = {e.index: np.flatnonzero(top_words(e)[-1]).tolist() for e in found}
        file.write(json.dumps({"experiment": writer.experiment, "method": row, "top": top}) + "\n")
    print(f"{writer.experiment}, {row}: {seconds:.3f} s a text", flush=True)


def describe(model: Model, own: Texts, writer: Writer) -> None:
    """Write the texts, their words, what is predicted, and the norms of their embeddings."""
    found = pertinent.explain(model, own.texts, "random", removal=ZERO, features="words", progress=False)
    with (writer.path.parent / "texts.json").open("a", encoding="utf-8") as file:
        for e in found:
            record = {"experiment": writer.experiment, "input": e.index, "words": e.features}
            record |= {"predicted": e.target_name, "probability": float(e.prediction.values[e.target])}
            file.write(json.dumps(record) + "\n")
    inner: Any = model
    embeddings = inner.model.get_input_embeddings().weight.detach().float()
    inputs: list[Any] = [e.input for e in found]
    norms = [embeddings[torch.tensor(input.tokens.ids)].norm().item() for input in inputs]
    writer.write("–", "norm", norms)


def main() -> None:
    """Train the models, then explain, by the most telling methods first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--words", type=int, nargs=2, default=WORDS, help="of texts: the fewest, the most")
    parser.add_argument("--width", type=int, default=WIDTH, help="of the LSTM, in each direction")
    parser.add_argument("--training", type=int, default=TRAINING)
    parser.add_argument("--test", type=int, default=2000, help="texts that accuracy is measured on")
    parser.add_argument("--epochs", type=int, nargs=2, default=(4, 2), help="of the LSTM and of the encoder")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=DEFAULT)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    transformers_logging.set_verbosity_error()
    logging.getLogger("pertinent").setLevel(logging.ERROR)  # test texts are truncated
    torch.set_float32_matmul_precision("high")
    arguments.out.mkdir(parents=True, exist_ok=True)
    training = read(arguments.data, "train").part(0, arguments.training)
    test = read(arguments.data, "test")
    own = explained_texts(test, arguments.texts, arguments.words)
    start = time.perf_counter()
    of_lstm, of_encoder = arguments.epochs
    device, encoder = arguments.device, arguments.encoder
    trainings: dict[str, Callable[[], Model]] = {
        "BiLSTM": partial(bilstm, training, epochs=of_lstm, device=device, width=arguments.width),
        "BiLSTM, pretrained vectors": partial(
            bilstm, training, epochs=of_lstm, device=device, width=arguments.width, encoder=encoder
        ),
        "MiniLM": partial(minilm, encoder, training, epochs=of_encoder, device=device),
    }
    trained = {MODELS[name]: trainings[name]() for name in arguments.models}
    print(f"trained in {time.perf_counter() - start:.0f} s", flush=True)
    writers = {name: Writer(arguments.out / "text.jsonl", name) for name in trained}
    for name, model in trained.items():
        writers[name].write("–", "accuracy", [accuracy(model, test.part(0, arguments.test))])
        describe(model, own, writers[name])
    for row in arguments.methods:
        for name, model in trained.items():
            try:
                measure(model, own.texts, row, writers[name])
            except Exception:  # noqa: BLE001  the other methods go on
                print(f"{name}, {row}: {traceback.format_exc()}", flush=True)


if __name__ == "__main__":
    main()

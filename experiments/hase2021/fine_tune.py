"""Fine-tune one model.

    python fine_tune.py --data DIR --encoder DIR --out DIR --result FILE --set sst2 --seed 0 [--removal NAME]

Without `--removal` training is standard, with it counterfactual (Hase et al. 2021, Sec. 4). The encoder may
be a model that was fine-tuned on another set: its classification layer is made anew.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from data import DEV, TRAINED_ON, read
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging

import pertinent

logging.set_verbosity_error()

LEARNING_RATE = 1e-4
TESTED = 2000
"""Test examples that a model's accuracy is measured on."""


def main() -> None:
    """Train and save the model, and measure it on the test split."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--encoder", type=Path, required=True, help="a pretrained encoder in transformers' format"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--result", type=Path, required=True, help="where to write how accurate it is")
    parser.add_argument("--set", choices=TRAINED_ON, required=True)
    parser.add_argument("--removal", help="train counterfactually with this removal")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="training examples")
    parser.add_argument("--learning-rate", type=float, default=LEARNING_RATE)
    parser.add_argument("--layers", type=int, help="of the encoder, from the first on; by default all")
    arguments = parser.parse_args()
    spec = TRAINED_ON[arguments.set]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(arguments.seed)
    model = AutoModelForSequenceClassification.from_pretrained(
        arguments.encoder,
        num_labels=len(spec.classes),
        id2label=dict(enumerate(spec.classes)),
        label2id={name: index for index, name in enumerate(spec.classes)},
        ignore_mismatched_sizes=True,
        dtype=torch.float32,
        **({"num_hidden_layers": arguments.layers} if arguments.layers else {}),
    ).to(device)
    # A model that was fine-tuned on shorter texts has kept their limit.
    tokenizer = AutoTokenizer.from_pretrained(
        arguments.encoder, model_max_length=model.config.max_position_embeddings
    )
    data = read(arguments.data, arguments.set, "train", arguments.limit)
    dev = read(arguments.data, arguments.set, "dev", DEV)
    start = time.perf_counter()
    trained = pertinent.train(
        (model, tokenizer),
        data.examples,
        data.labels,
        validation=(dev.examples, dev.labels),
        out=arguments.out,
        counterfactual=arguments.removal is not None,
        removal=arguments.removal or "attention-mask",
        epochs=spec.epochs,
        batch_size=spec.batch_size,
        learning_rate=arguments.learning_rate,
        seed=arguments.seed,
        max_length=spec.max_length,
        precision="bfloat16" if device == "cuda" else "float32",
        progress=False,
        options={"warmup_steps": len(data.labels) * spec.epochs // spec.batch_size // 10},
    )
    test = read(arguments.data, arguments.set, "test", TESTED)
    right = correct(trained.model, test.examples, test.labels)
    result = {
        "set": arguments.set,
        "removal": arguments.removal,
        "layers": model.config.num_hidden_layers,
        "seed": arguments.seed,
        "train": len(data.labels),
        "dev accuracy": trained.accuracy,
        "test accuracy": sum(right) / len(right),
        "right": right,
        "seconds": time.perf_counter() - start,
    }
    arguments.result.parent.mkdir(parents=True, exist_ok=True)
    arguments.result.write_text(json.dumps(result))


def correct(model: object, examples: list[dict[str, str]], labels: list[int]) -> list[int]:
    """Whether each example is classified rightly, 1 or 0."""
    found = pertinent.explain(model, examples, "random", features="sentences", progress=False)
    return [int(e.target == labels[e.index]) for e in found]


if __name__ == "__main__":
    main()

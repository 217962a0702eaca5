"""Training of the classifiers and of the encoder that fills in masked tokens."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import pertinent
from experiments.hase2021.data import DEV, SETS, DataSet, read
from experiments.hase2021.methods import FILLER
from experiments.shared.data import Examples
from experiments.shared.stages import Run

LEARNING_RATE = 1e-4
MASKED = 0.3
"""Share of tokens that the filler learns to fill in."""
TESTED = 2000
"""Test examples on which a model's accuracy is measured."""


def fine_tune(
    run: Run,
    spec: DataSet,
    name: str,
    *,
    start: str | None = None,
    removal: str | None = None,
    seed: int = 0,
    limit: int | None = None,
    layers: int | None = None,
    learning_rate: float = LEARNING_RATE,
) -> dict[str, Any]:
    """Fine-tune a model, save it in the work folder, and measure it on the test split.

    Training is counterfactual (Hase et al. 2021, Sec. 4) with a removal, and standard without. It starts
    from the encoder or, with a new classification layer, from a model that was trained before.
    """
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    encoder = run.work / start if start else run.encoder
    torch.manual_seed(seed)
    model = AutoModelForSequenceClassification.from_pretrained(
        encoder,
        num_labels=len(spec.classes),
        id2label=dict(enumerate(spec.classes)),
        label2id={name: index for index, name in enumerate(spec.classes)},
        ignore_mismatched_sizes=True,
        dtype=torch.float32,
        **({"num_hidden_layers": layers} if layers else {}),
    ).to(run.device)
    # A model that was fine-tuned on shorter texts has kept their limit.
    tokenizer = AutoTokenizer.from_pretrained(encoder, model_max_length=model.config.max_position_embeddings)
    data, dev = read(run.data, spec, "train", limit), read(run.data, spec, "dev", DEV)
    began = time.perf_counter()
    trained = pertinent.train(
        (model, tokenizer),
        data.inputs,
        data.labels,
        validation=(dev.inputs, dev.labels),
        out=run.work / name,
        counterfactual=removal is not None,
        removal=removal or "attention-mask",
        epochs=spec.epochs,
        batch_size=spec.batch_size,
        learning_rate=learning_rate,
        seed=seed,
        max_length=spec.max_length,
        precision="bfloat16" if run.device.startswith("cuda") else "float32",
        progress=False,
        options={"warmup_steps": len(data.labels) * spec.epochs // spec.batch_size // 10},
    )
    correct = correct_predictions(trained.model, read(run.data, spec, "test", TESTED))
    return {
        "set": spec.key,
        "removal": removal,
        "layers": model.config.num_hidden_layers,
        "seed": seed,
        "train": len(data.labels),
        "dev accuracy": trained.accuracy,
        "test accuracy": sum(correct) / len(correct),
        "right": correct,
        "seconds": time.perf_counter() - began,
    }


def correct_predictions(model: object, data: Examples) -> list[int]:
    """Return for each example 1 if it is classified correctly, else 0."""
    explanations = pertinent.explain(model, data.inputs, "random", features="sentences", progress=False)
    return [int(e.target == data.labels[e.index]) for e in explanations]


def train_filler(
    run: Run, sets: Sequence[str], *, limit: int | None = None, epochs: int = 6, seed: int = 0
) -> dict[str, Any]:
    """Train the encoder, with a new head, to fill in masked tokens, for `marginalize` in Figure 2.

    Return the loss on dev texts before and after.
    """
    from transformers import (
        AutoModelForMaskedLM,
        AutoTokenizer,
        DataCollatorForLanguageModeling,
        Trainer,
        TrainingArguments,
    )

    out: Path = run.work / FILLER
    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(run.encoder)
    model = AutoModelForMaskedLM.from_pretrained(run.encoder, dtype=torch.float32)

    def encode(split: str, n: int | None) -> list[dict[str, list[int]]]:
        inputs = [text for name in sets for text in read(run.data, SETS[name], split, n).inputs]
        return [dict(tokenizer(*text.values(), truncation=True, max_length=128)) for text in inputs]

    on_gpu = run.device.startswith("cuda")
    trainer = Trainer(
        model,
        TrainingArguments(
            str(out / "checkpoints"),
            num_train_epochs=epochs,
            per_device_train_batch_size=128,
            per_device_eval_batch_size=128,
            learning_rate=3e-4,
            warmup_steps=100,
            bf16=on_gpu,
            dataloader_pin_memory=on_gpu,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            seed=seed,
        ),
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=MASKED),
        train_dataset=encode("train", limit),  # type: ignore[arg-type]
        eval_dataset=encode("dev", DEV),  # type: ignore[arg-type]
    )
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    after = trainer.evaluate()["eval_loss"]
    return {"sets": list(sets), "seed": seed, "loss before": before, "loss": after}

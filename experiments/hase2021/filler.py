"""Teach an encoder to fill in masked tokens, for the removal `marginalize` in Figure 2.

    python filler.py --data DIR --encoder DIR --out DIR --result FILE [--sets snli sst2]

The encoder at hand has lost its masked-language-model head, so one is trained, and the encoder with it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from data import DEV, SETS, read
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
)
from transformers.utils import logging

logging.set_verbosity_error()

MASKED = 0.3
"""The share of tokens that is to be filled in."""


def main() -> None:
    """Train, save, and tell how well held-out tokens are filled in."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--result", type=Path, required=True, help="where to write how well it does")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["snli", "sst2"])
    parser.add_argument("--limit", type=int, help="training examples of each set")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    tokenizer = AutoTokenizer.from_pretrained(arguments.encoder)
    model = AutoModelForMaskedLM.from_pretrained(arguments.encoder, dtype=torch.float32)

    def encoded(split: str, limit: int | None) -> list[dict[str, list[int]]]:
        texts = [
            tuple(e.values()) for s in arguments.sets for e in read(arguments.data, s, split, limit).examples
        ]
        return [dict(tokenizer(*text, truncation=True, max_length=128)) for text in texts]

    trainer = Trainer(
        model,
        TrainingArguments(
            str(arguments.out / "checkpoints"),
            num_train_epochs=arguments.epochs,
            per_device_train_batch_size=128,
            per_device_eval_batch_size=128,
            learning_rate=3e-4,
            warmup_steps=100,
            bf16=torch.cuda.is_available(),
            dataloader_pin_memory=torch.cuda.is_available(),
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            seed=arguments.seed,
        ),
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=MASKED),
        train_dataset=encoded("train", arguments.limit),  # type: ignore[arg-type]
        eval_dataset=encoded("dev", DEV),  # type: ignore[arg-type]
    )
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    model.save_pretrained(arguments.out)
    tokenizer.save_pretrained(arguments.out)
    losses = {"loss before": before, "loss": trainer.evaluate()["eval_loss"]}
    arguments.result.parent.mkdir(parents=True, exist_ok=True)
    arguments.result.write_text(json.dumps({"sets": arguments.sets, "seed": arguments.seed, **losses}))


if __name__ == "__main__":
    main()

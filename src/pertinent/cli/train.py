"""The command ``train``."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from pertinent.cli.labelled import Labelled, labelled
from pertinent.cli.models import kind_read, load_model
from pertinent.cli.output import Output
from pertinent.errors import InputError, SettingError
from pertinent.models.heads.classification import ClassificationHead
from pertinent.models.transformer import TransformerModel
from pertinent.training.classification_head import with_new_head
from pertinent.training.fine_tuning import train as fine_tune
from pertinent.training.labelled_texts import ExampleError


def train(args: Namespace) -> int:
    """Fine-tune a text classifier on a file, and print its accuracy."""
    if kind_read(args.model) != "text":
        raise SettingError(
            f"The model {args.model!r} reads {kind_read(args.model)}s: choose a text classifier."
        )
    data = labelled(args.data, args)
    dev = None if args.dev is None else labelled(args.dev, args)
    model = load_model(args.model, args.device)
    if not isinstance(model, TransformerModel) or not isinstance(model.head, ClassificationHead):
        raise SettingError(f"The model {args.model!r} is no transformers text classifier: choose one.")
    classifier = with_new_head(model.model, data.labels, args.seed) if args.new_head else model.model
    options: dict[str, Any] = {} if args.sparsity is None else {"sparsities": args.sparsity}
    try:
        trained = fine_tune(
            classifier,
            model.tokenizer,
            data.texts,
            data.labels,
            out=args.out,
            dev=None if dev is None else (dev.texts, dev.labels),
            counterfactual=not args.standard,
            removal=args.removal,
            epochs=args.epochs,
            batch_size=args.batch_size,
            learning_rate=args.learning_rate,
            seed=args.seed,
            precision=args.precision,
            max_length=args.max_length,
            patience=args.patience,
            checkpoint_steps=args.checkpoint_steps,
            resume=args.resume,
            progress=False if args.quiet else None,
            **options,
        )
    except ExampleError as error:
        raise InputError(_located(error, data, dev)) from error
    accuracy = "" if trained.accuracy is None else f", dev accuracy {trained.accuracy:.1%}"
    output = Output(Namespace(quiet=args.quiet))
    output.show(f"Trained on {len(data.texts)} examples in {trained.steps} steps{accuracy}.")
    output.show(f"Saved: {trained.folder.resolve()}")
    return 0


def _located(error: ExampleError, data: Labelled, dev: Labelled | None) -> str:
    """The error with its place in the file."""
    file = data if error.data == "train" or dev is None else dev
    hint = " --new-head trains for the labels of the file." if "Unknown label" in error.reason else ""
    return f"{file.where[error.row]}: {error.reason}{hint}"

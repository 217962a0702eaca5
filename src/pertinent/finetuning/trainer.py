"""Subclasses of transformers' ``Trainer`` for batches of examples and for counterfactual training."""

from __future__ import annotations

import logging
import random
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.attention import sdpa_kernel
from torch.nn.functional import cross_entropy
from transformers import PrinterCallback, Trainer, TrainerCallback

from pertinent.engine.progress import Callback, Progress, progress_callback
from pertinent.finetuning.batches import (
    Collator,
    Counterfactuals,
    ExampleIndexes,
    Examples,
    InputSet,
    Shuffled,
    without_messages,
)
from pertinent.models.embedded.load import no_progress_bar
from pertinent.models.torch import devices
from pertinent.models.transformer import TransformerModel

PASS_COST = {"cpu": 0, "cuda": 16384}
"""Overhead of an additional forward pass, in tokens that a small model computes in that time."""


@contextmanager
def training_session(
    label: str, progress: Callback | bool | None, device: torch.device, precision: str
) -> Iterator[Callback]:
    """Set up deterministic training, yield the progress callback, and restore the process.

    `label` is the text of the progress bar.
    """
    with (
        kept_random_states(),
        progress_callback(progress, label) as callback,
        no_progress_bar(),
        without_messages(logging.getLogger("transformers.trainer_utils"), "mtime"),  # handled by transformers
        devices.disable_onednn(device, getattr(torch, precision)),
        sdpa_kernel(devices.ATTENTION),
    ):
        yield callback


@contextmanager
def kept_random_states() -> Iterator[None]:
    """Restore the random states of Python, numpy and torch, which transformers' trainer sets."""
    python_state = random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002  transformers seeds the global generator
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)  # noqa: NPY002


class ExampleTrainer(Trainer):
    """A trainer with batches of similar length, in an order that depends only on (seed, epoch).

    Subclasses define the loss. `collators` create the batches of training and validation examples; `masked`
    means that progress also counts a masked copy of every example.
    """

    def __init__(
        self,
        model: Any,
        arguments: Any,
        examples: InputSet,
        dev: InputSet | None,
        *,
        collators: tuple[Any, Any],
        metrics: Callable[[Any], dict[str, float]],
        progress: Callback,
        callbacks: list[TrainerCallback],
        masked: bool = False,
    ) -> None:
        super().__init__(
            model,
            arguments,
            data_collator=collators[0],
            train_dataset=ExampleIndexes(examples),
            eval_dataset=None if dev is None else ExampleIndexes(dev),
            compute_metrics=metrics,
            callbacks=[_Reporter(len(examples), progress, masked), *callbacks],
        )
        self.remove_callback(PrinterCallback)
        self.model_accepts_loss_kwargs = False  # so that accumulated steps are averaged
        self._examples, self._dev_collator = examples, collators[1]

    @abstractmethod
    def loss_and_outputs(self, model: Any, prepared: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        """Return the loss of a collated batch, and the outputs to measure."""

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return the loss, optionally with the outputs; called by transformers."""
        loss, outputs = self.loss_and_outputs(model, inputs)
        return (loss, outputs) if return_outputs else loss

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        """Return the loader of the validation examples, with their collator."""
        training, self.data_collator = self.data_collator, self._dev_collator
        try:
            return super().get_eval_dataloader(eval_dataset)
        finally:
            self.data_collator = training

    def _get_train_sampler(self, train_dataset: Any = None) -> Shuffled:
        return Shuffled(
            self._examples.lengths,
            self._train_batch_size,
            self.args.seed,
            epoch=lambda: int(self.state.epoch or 0),  # a resumed epoch restarts and skips its first batches
        )


class CounterfactualTrainer(ExampleTrainer):
    """A trainer that minimises the mean cross-entropy over whole texts and any counterfactuals."""

    def __init__(
        self,
        wrapped: TransformerModel,
        arguments: Any,
        examples: Examples,
        *,
        dev: Examples | None,
        counterfactuals: Counterfactuals | None,
        **options: Any,
    ) -> None:
        pad_id = wrapped.pad_id
        pass_cost = PASS_COST["cpu" if arguments.device.type == "cpu" else "cuda"]
        whole = Collator(examples if dev is None else dev, pad_id)
        super().__init__(
            wrapped.model,
            arguments,
            examples,
            dev,
            collators=(Collator(examples, pad_id, counterfactuals, pass_cost), whole),
            metrics=_accuracy,
            masked=counterfactuals is not None,
            **options,
        )
        self._wrapped = wrapped
        wrapped.device = self.args.device

    def loss_and_outputs(self, model: Any, prepared: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        """Return the cross-entropy of a batch, and its logits."""
        reader = _Reader(model, self._wrapped.model)
        logits = torch.cat([self._wrapped.forward(batch, reader).logits for batch in prepared["passes"]])
        return cross_entropy(logits.float(), prepared["labels"]), {"logits": logits}


@dataclass(frozen=True)
class _Reader:
    """A model, possibly in a multi-device wrapper, and its embeddings, which the wrapper hides."""

    model: Any
    inner: Any

    def __call__(self, **options: Any) -> Any:
        return self.model(**options)

    def get_input_embeddings(self) -> Any:
        return self.inner.get_input_embeddings()


class _Reporter(TrainerCallback):
    """Callback that reports progress."""

    def __init__(self, n_examples: int, show: Callback, masked: bool) -> None:
        self.n_examples, self.show, self.masked = n_examples, show, masked

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report the number of examples seen."""
        done = round(state.epoch * self.n_examples)
        total = round(args.num_train_epochs * self.n_examples)
        self.show(Progress(done, 0, total, done if self.masked else 0))


def _accuracy(results: Any) -> dict[str, float]:
    return {"accuracy": float(np.mean(results.predictions.argmax(axis=1) == results.label_ids))}

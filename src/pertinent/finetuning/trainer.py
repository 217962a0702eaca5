"""transformers' ``Trainer`` on our batches, and with the loss of counterfactual training."""

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
"""Cost of starting one more pass, in tokens that a small model computes in the same time."""


@contextmanager
def training_session(
    what: str, progress: Callback | bool | None, device: torch.device, precision: str
) -> Iterator[Callback]:
    """Prepare the process for a training, yield the callback for progress, and restore the process.

    `what` labels the progress bar. Deterministic operations are used.
    """
    with (
        kept_random_states(),
        progress_callback(progress, what) as callback,
        no_progress_bar(),
        without_messages(logging.getLogger("transformers.trainer_utils"), "mtime"),  # it handles these
        devices.disable_onednn(device, getattr(torch, precision)),
        sdpa_kernel(devices.ATTENTION),
    ):
        yield callback


@contextmanager
def kept_random_states() -> Iterator[None]:
    """Restore the random states of Python, numpy and torch, which transformers' trainer seeds."""
    own, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  what transformers seeds
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(own)
            np.random.set_state(of_numpy)  # noqa: NPY002


class ExampleTrainer(Trainer):
    """Trains on batches of examples of similar length, in an order that depends only on (seed, epoch).

    Subclasses define the loss. `collators` make the batches of the training and of the validation examples;
    `masked` says whether every example is also seen with features removed, which progress reports.
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
        """The loss of a batch that a collator has prepared, and the outputs to measure."""

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The loss, as transformers' trainer asks for it."""
        loss, outputs = self.loss_and_outputs(model, inputs)
        return (loss, outputs) if return_outputs else loss

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        """Validation examples have a collator of their own."""
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
    """Minimises the mean cross-entropy over whole texts and, if there are any, one counterfactual of each."""

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
        """Run the passes of a batch, one after the other."""
        reads = _Reader(model, self._wrapped.model)
        logits = torch.cat([self._wrapped.forward(batch, reads).logits for batch in prepared["passes"]])
        return cross_entropy(logits.float(), prepared["labels"]), {"logits": logits}


@dataclass(frozen=True)
class _Reader:
    """A model that may be in a multi-device wrapper, which hides its embeddings."""

    model: Any
    inner: Any

    def __call__(self, **options: Any) -> Any:
        return self.model(**options)

    def get_input_embeddings(self) -> Any:
        return self.inner.get_input_embeddings()


class _Reporter(TrainerCallback):
    """Reports progress."""

    def __init__(self, n_examples: int, show: Callback, masked: bool) -> None:
        self.n_examples, self.show, self.masked = n_examples, show, masked

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report the examples seen so far."""
        done = round(state.epoch * self.n_examples)
        total = round(args.num_train_epochs * self.n_examples)
        self.show(Progress(done, 0, total, done if self.masked else 0))


def _accuracy(answers: Any) -> dict[str, float]:
    return {"accuracy": float(np.mean(answers.predictions.argmax(axis=1) == answers.label_ids))}

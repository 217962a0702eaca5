"""transformers' ``Trainer`` on our batches, and with the loss of counterfactual training."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch.nn.attention import sdpa_kernel
from torch.nn.functional import cross_entropy
from transformers import PrinterCallback, Trainer, TrainerCallback

from pertinent.array_types import Ints
from pertinent.engine.progress import Callback, Progress, progress_callback
from pertinent.models.embedded.load import no_bar
from pertinent.models.torch import devices
from pertinent.models.transformer import TransformerModel
from pertinent.training.batches import Clock, Collator, Counterfactuals, Places, Shuffled
from pertinent.training.labelled_texts import Examples

PASS_COST = {"cpu": 0, "cuda": 16384}
"""The time to start one more pass, in tokens that a small model computes in that time."""


@contextmanager
def training_session(
    what: str, progress: Callback | bool | None, device: torch.device, precision: str
) -> Iterator[Callback]:
    """Everything around a training: yields the callback for progress, and leaves the process as it was.

    `what` stands at the progress bar. Operations are chosen that give the same numbers every time.
    """
    with (
        kept_random_states(),
        progress_callback(progress, what) as callback,
        no_bar(),
        _no_checkpoint_warnings(),
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


@contextmanager
def _no_checkpoint_warnings() -> Iterator[None]:
    """Leave out a warning of transformers about checkpoints of the same second, which it handles."""
    logger = logging.getLogger("transformers.trainer_utils")

    def is_other(record: logging.LogRecord) -> bool:
        return "mtime" not in record.getMessage()

    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


class Lengths(Protocol):
    """Examples, as far as their order needs them."""

    def __len__(self) -> int: ...

    @property
    def lengths(self) -> Ints:
        """The length of each."""
        ...


class ExampleTrainer(Trainer):
    """Trains on batches of examples of similar length, in an order that depends only on (seed, epoch).

    A subclass has the loss. `collators` make the batches, of training and of dev examples; `masked` says
    whether every example is also seen with features removed, which progress tells.
    """

    def __init__(
        self,
        model: Any,
        arguments: Any,
        examples: Lengths,
        dev: Lengths | None,
        *,
        collators: tuple[Any, Any],
        metrics: Callable[[Any], dict[str, float]],
        progress: Callback,
        callbacks: list[TrainerCallback],
        masked: bool = False,
    ) -> None:
        clock = Clock()
        super().__init__(
            model,
            arguments,
            data_collator=collators[0],
            train_dataset=Places(examples),
            eval_dataset=None if dev is None else Places(dev),
            compute_metrics=metrics,
            callbacks=[_Clockwork(clock, len(examples), progress, masked), *callbacks],
        )
        self.remove_callback(PrinterCallback)
        self.model_accepts_loss_kwargs = False  # so that accumulated steps are averaged
        self._examples, self._clock, self._dev_collator = examples, clock, collators[1]

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        """Dev examples have a collator of their own."""
        training, self.data_collator = self.data_collator, self._dev_collator
        try:
            return super().get_eval_dataloader(eval_dataset)
        finally:
            self.data_collator = training

    def _get_train_sampler(self, train_dataset: Any = None) -> Shuffled:
        del train_dataset
        return Shuffled(self._examples.lengths, self._train_batch_size, self.args.seed, self._clock)


class CounterfactualTrainer(ExampleTrainer):
    """Mean cross-entropy over whole texts and, if asked for, one counterfactual of each."""

    def __init__(
        self,
        wrapped: TransformerModel,
        arguments: Any,
        examples: Examples,
        *,
        dev: Examples | None,
        counterfactuals: Counterfactuals | None,
        progress: Callback,
        callbacks: list[TrainerCallback],
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
            progress=progress,
            callbacks=callbacks,
            masked=counterfactuals is not None,
        )
        self._wrapped = wrapped
        wrapped.device = self.args.device

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """Run the passes of a batch, one after the other."""
        del num_items_in_batch
        reads = _Reader(model, self._wrapped.model)
        logits = torch.cat([self._wrapped.forward(batch, reads).logits for batch in inputs["passes"]])
        loss = cross_entropy(logits.float(), inputs["labels"])
        return (loss, {"logits": logits}) if return_outputs else loss


@dataclass(frozen=True)
class _Reader:
    """A model that may be in a multi-device wrapper, which hides its embeddings."""

    model: Any
    inner: Any

    def __call__(self, **options: Any) -> Any:
        return self.model(**options)

    def get_input_embeddings(self) -> Any:
        return self.inner.get_input_embeddings()


class _Clockwork(TrainerCallback):
    """Sets the epoch of the sampler, and reports progress."""

    def __init__(self, clock: Clock, n_examples: int, show: Callback, masked: bool) -> None:
        self.clock, self.n_examples, self.show, self.masked = clock, n_examples, show, masked

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Set the epoch; exact after a resume, where an epoch restarts and skips its first batches."""
        del args, control
        self.clock.epoch = int(state.epoch or 0)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report the examples seen so far."""
        del control
        done = round(state.epoch * self.n_examples)
        total = round(args.num_train_epochs * self.n_examples)
        self.show(Progress(done, 0, total, done if self.masked else 0))


def _accuracy(answers: Any) -> dict[str, float]:
    return {"accuracy": float(np.mean(answers.predictions.argmax(axis=1) == answers.label_ids))}

"""transformers' ``Trainer``, with the loss of counterfactual training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from transformers import PrinterCallback, Trainer, TrainerCallback

from pertinent.engine.progress import Callback, Progress
from pertinent.models.transformer import TransformerModel
from pertinent.training.batches import Clock, Collator, Counterfactuals, Places, Shuffled
from pertinent.training.examples import Examples

PASS_COST = {"cpu": 0, "cuda": 16384}
"""The time to start one more pass, in tokens that a small model computes in that time."""


class CounterfactualTrainer(Trainer):
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
        clock = Clock()
        pad_id = wrapped.pad_id
        pass_cost = PASS_COST["cpu" if arguments.device.type == "cpu" else "cuda"]
        super().__init__(
            wrapped.model,
            arguments,
            data_collator=Collator(examples, pad_id, counterfactuals, pass_cost),
            train_dataset=Places(examples),
            eval_dataset=None if dev is None else Places(dev),
            compute_metrics=_accuracy,
            callbacks=[_Clockwork(clock, len(examples), progress, counterfactuals is not None), *callbacks],
        )
        self.remove_callback(PrinterCallback)
        self.model_accepts_loss_kwargs = False  # so that accumulated steps are averaged
        self._wrapped, self._examples, self._clock = wrapped, examples, clock
        self._dev_collator = Collator(examples if dev is None else dev, pad_id)
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

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        """Whole texts only."""
        training, self.data_collator = self.data_collator, self._dev_collator
        try:
            return super().get_eval_dataloader(eval_dataset)
        finally:
            self.data_collator = training

    def _get_train_sampler(self, train_dataset: Any = None) -> Shuffled:
        del train_dataset
        return Shuffled(self._examples.lengths, self._train_batch_size, self.args.seed, self._clock)


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

    def __init__(self, clock: Clock, n_examples: int, show: Callback, counterfactual: bool) -> None:
        self.clock, self.n_examples, self.show, self.counterfactual = clock, n_examples, show, counterfactual

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Set the epoch; exact after a resume, where an epoch restarts and skips its first batches."""
        del args, control
        self.clock.epoch = int(state.epoch or 0)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report the examples seen so far."""
        del control
        done = round(state.epoch * self.n_examples)
        total = round(args.num_train_epochs * self.n_examples)
        self.show(Progress(done, 0, total, done if self.counterfactual else 0))


def _accuracy(answers: Any) -> dict[str, float]:
    return {"accuracy": float(np.mean(answers.predictions.argmax(axis=1) == answers.label_ids))}

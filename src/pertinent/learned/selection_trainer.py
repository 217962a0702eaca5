"""Training a method that learns to select: in every step features are selected, and the model is asked."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch

from pertinent.inputs.base import Input
from pertinent.learned.model_answers import Asker
from pertinent.learned.networks.joint_networks import Networks
from pertinent.learned.networks.scorer import Batch
from pertinent.learned.selection import CHOICE, LearnsSelection, Round
from pertinent.learned.training_data import LessonCollator, Lessons
from pertinent.models.base import Model
from pertinent.training.trainer import ExampleTrainer

DIGITS = 4
"""Of the numbers by which networks are compared."""


class Step(Round):
    """A batch of inputs of one or more groups, each of which goes through a network by itself."""

    def __init__(self, networks: Networks, model: Model, asker: Asker, batch: dict[str, Any]) -> None:
        self._networks, self._model, self._asker = networks, model, asker
        self._batches: list[Batch] = batch["passes"]
        self._inputs: list[Input] = batch["inputs"]
        self.real, self.memory = batch["real"], networks.memory
        self.predictions = batch["lesson"]["predictions"]

    def scores(self, network: str) -> torch.Tensor:
        """Pass by pass."""
        width = self.real.shape[1]
        return torch.cat([self._networks.scores(network, self._model, b, width) for b in self._batches])

    def approximate(self, network: str, kept: torch.Tensor) -> torch.Tensor:
        """Pass by pass."""
        shares = torch.split(kept, [len(batch.owners) for batch in self._batches])
        pairs = zip(self._batches, shares, strict=True)
        return torch.cat([self._networks.approximate(network, batch, own) for batch, own in pairs])

    def ask(self, kept: torch.Tensor) -> torch.Tensor:
        """Through the engine."""
        return self._asker.ask_tensor(self._inputs, kept)


class SelectionTrainer(ExampleTrainer):
    """Trains networks by the loss of `learner`; `explained` is the model that is explained.

    `examples` are those to train on, and those to measure on.
    """

    def __init__(
        self,
        learner: LearnsSelection,
        explained: Model,
        networks: Networks,
        arguments: Any,
        examples: tuple[Lessons, Lessons],
        *,
        asker: Asker,
        **options: Any,
    ) -> None:
        data, dev = examples
        placed = copy.copy(explained)
        placed.device = arguments.device
        reader = networks.reader
        collators = LessonCollator(data, placed, reader), LessonCollator(dev, placed, reader)
        super().__init__(networks, arguments, data, dev, collators=collators, metrics=lambda _: {}, **options)
        self._learner, self._explained, self._dev, self._asker = learner, placed, dev, asker

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """The learner's own."""
        del num_items_in_batch, model
        loss = self._learner.compute_loss(self._step(inputs))
        return (loss, {}) if return_outputs else loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """How good the selections of the dev inputs are, and the number by which the best network is chosen.

        Of networks that are equally faithful it is the one with which the model is surest of its decisions.
        """
        quality, certainty = 0.0, 0.0
        for step, kept in self._selections():
            answers = step.ask(kept)
            quality += float(self._learner.quality(answers, kept, step.real, step.predictions).sum())
            decided = step.predictions.argmax(-1, keepdim=True)
            certainty += float(answers.gather(-1, decided).sum())
        n = len(self._dev)
        chosen_by = round(quality, DIGITS) / n  # answers depend a little on the rest of a batch
        if self._learner.measure == "faithfulness":  # a decision that is kept counts for more
            chosen_by += 0.5 * round(certainty / n, DIGITS) / n
        metrics = {f"eval_{self._learner.measure}": quality / n, f"eval_{CHOICE}": chosen_by}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def described(self) -> dict[str, float]:
        """What the card says of the network beside its measure, and that of as many random features."""
        sums: dict[str, float] = {}
        for step, kept in self._selections():
            random, known = _as_many(kept, step.real), (step.real, step.predictions)
            guessed = step.ask(random)
            own = self._learner.described(step.ask(kept), kept, *known)
            others = self._learner.described(guessed, random, *known)
            own |= {f"random_{name}": each for name, each in others.items()}
            own["random"] = self._learner.quality(guessed, random, *known)
            for name, each in own.items():
                sums[name] = sums.get(name, 0.0) + float(each.sum())
        return {f"dev_{name}": total / len(self._dev) for name, total in sums.items()}

    def _selections(self) -> Iterator[tuple[Step, torch.Tensor]]:
        """The dev inputs in batches, and what is selected of them."""
        networks: Any = self.model
        networks.eval()
        size = self.args.per_device_eval_batch_size
        for start in range(0, len(self._dev), size):
            places = [(0, i) for i in range(start, min(start + size, len(self._dev)))]
            step = self._step(self._prepare_inputs(self._dev_collator(places)))
            with torch.no_grad(), self.compute_loss_context_manager():
                scores = step.scores(self._learner.answering)
            yield step, self._learner.selected(scores, step.real, step.predictions)

    def _step(self, batch: dict[str, Any]) -> Step:
        networks: Any = self.model
        return Step(networks, self._explained, self._asker, batch)


def _as_many(kept: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """As many random features (rows, width) as are kept, the same every time."""
    noise = torch.rand(real.shape, generator=torch.Generator().manual_seed(0)).to(real.device)
    place = noise.masked_fill(~real, 2.0).argsort(dim=-1).argsort(dim=-1)
    return place < kept.sum(-1, keepdim=True)

"""Training context of a learner: inputs, teacher explanations, model, networks and training loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks import Algorithm, Values
from pertinent.config.fingerprints import generator
from pertinent.engine.engine import Engine
from pertinent.engine.job import Job
from pertinent.errors import require
from pertinent.finetuning.run_folder import RunFolder
from pertinent.finetuning.trainer import training_session
from pertinent.finetuning.training_settings import TrainerSettings
from pertinent.inputs.base import Input
from pertinent.learners.base import LearnedClasses, TrainingTargets
from pertinent.learners.fitted_network import FittedNetwork
from pertinent.learners.network_trainer import Loss, Measurement, NetworkTrainer, TrainingExamples
from pertinent.learners.networks.joint_networks import JointNetworks
from pertinent.learners.networks.scorer import Approximator, Scorer, device_of, small_scorer_for
from pertinent.learners.networks.token_scorers import HiddenStateScorer, scorer_for
from pertinent.learners.networks.word_scorer import PaperWordScorer, WordScorer
from pertinent.learners.selection import Layouts, ScoringNetwork
from pertinent.models.base import Model
from pertinent.outputs import Scale
from pertinent.removals.base import Removal
from pertinent.results.explanation import Explanation

if TYPE_CHECKING:
    from pertinent.learners.fit_run import FitRun
    from pertinent.learners.surrogate import Surrogate


@dataclass(frozen=True, eq=False)
class TrainingContext:
    """The data and tools for training a learner.

    Attributes
    ----------
    fit
        The fit that the context belongs to.
    folder
        Folder for checkpoints.
    inputs, explanations
        The inputs that the teacher explained, and the explanation of each.
    labels
        True class or value of each input; all ``None`` if the user passed no labels.
    classes
        Classes for which scores are learned.
    surrogate
        Network that learners may evaluate instead of the model.
    """

    fit: FitRun
    folder: RunFolder
    inputs: Sequence[Input]
    explanations: Sequence[Explanation]
    labels: Sequence[Any]
    classes: LearnedClasses
    surrogate: Surrogate | None = None

    @property
    def model(self) -> Model:
        """Return the model to explain."""
        return self.fit.run.model

    @property
    def seed(self) -> int:
        """Return the seed of the fit."""
        return self.fit.training.seed

    def columns(self, explanation: Explanation) -> Sequence[int]:
        """Return the model's columns for which scores are learned from an explanation."""
        return range(len(explanation.prediction.values)) if self.classes == "all" else [explanation.target]

    def examples(
        self, targets: Callable[[Explanation, Sequence[int], Any], TrainingTargets]
    ) -> TrainingExamples:
        """Return the inputs with targets computed from the explanation, its columns and the label."""
        pairs = zip(self.explanations, self.labels, strict=True)
        return TrainingExamples(self.inputs, [targets(e, self.columns(e), label) for e, label in pairs])

    def split(self, examples: TrainingExamples) -> tuple[TrainingExamples, TrainingExamples]:
        """Split the examples at random into training and validation examples."""
        order, n = self.shuffled(len(examples)), self.n_held_out
        return examples.pick(np.sort(order[n:])), examples.pick(np.sort(order[:n]))

    @property
    def n_held_out(self) -> int:
        """Return the number of validation inputs, at least 1."""
        return min(max(1, round(self.fit.validation_fraction * len(self.inputs))), len(self.inputs) - 1)

    def shuffled(self, n: int) -> Ints:
        """Return the indices 0 to n − 1 in random order; the first ones are held out."""
        return generator(self.seed, "dev").permutation(n)

    @cached_property
    def answers(self) -> ModelAnswers:
        """Return an object that evaluates the model on masked inputs."""
        return ModelAnswers(self.model, self.fit.removal, self.seed)

    @contextmanager
    def _initial_weights(self) -> Iterator[None]:
        """Seed the random weights drawn in the block with the seed of the fit."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.seed)
            yield

    def new_scorer(self, training: TrainingExamples, deviation: Floats) -> Scorer:
        """Create the network that learns scores of these inputs, in units of `deviation` (columns,)."""
        with self._initial_weights():
            scorer = scorer_for(self.model, training.inputs).from_model(
                self.model, training.inputs, len(deviation)
            )
        scorer.deviation.copy_(torch.from_numpy(deviation))
        return scorer.to(device_of(self.model))

    def new_approximator(self, inputs: Sequence[Input], n_columns: int) -> tuple[Scorer, Approximator]:
        """Create a network that predicts the model's answer from some features, and its reader, a scorer."""
        with self._initial_weights():
            reader = scorer_for(self.model, inputs).from_model(self.model, inputs, 1)
            return reader, reader.approximator(self.model, n_columns)

    def new_networks(
        self, training: TrainingExamples, layouts: Layouts, n_columns: int, n_memory: int
    ) -> JointNetworks:
        """Create the networks of these layouts for a model with `n_columns`, storing `n_memory` values."""
        model, inputs = self.model, training.inputs
        scorers: dict[str, Scorer] = {}
        with self._initial_weights():
            for name, layout in layouts.items():
                if isinstance(layout, ScoringNetwork):
                    columns = n_columns if layout.columns is None else layout.columns
                    hidden = layout.hidden and HiddenStateScorer.suits(model)
                    scorer = HiddenStateScorer if hidden else small_scorer_for(inputs)
                    if layout.layers == "paper":
                        require(
                            scorer is WordScorer, "layers", "'own' for inputs that are not texts", "paper"
                        )
                        scorer = PaperWordScorer
                    options = {"context": layout.context, "bias": layout.bias}
                    scorers[name] = scorer.from_model(model, inputs, columns, **options)
            first = next(iter(scorers.values()))
            approximators = {
                name: first.approximator(model, n_columns) for name in layouts if name not in scorers
            }
        return JointNetworks({**scorers, **approximators}, n_memory).to(device_of(model))

    def predict(self, scorer: Scorer, inputs: Sequence[Input]) -> list[Floats]:
        """Return the scores (columns, features) that a network assigns to each input."""
        network = FittedNetwork(scorer, {})
        answers = [network.submit(self.model, [input]).outputs() for input in inputs]
        return [network.read(answer, [input])[0] for answer, input in zip(answers, inputs, strict=True)]

    def optimise(
        self,
        networks: torch.nn.Module,
        reader: Scorer,
        training: TrainingExamples,
        validation: TrainingExamples,
        *,
        loss: Loss,
        validate: Measurement,
        describe: Measurement = lambda _: {},
        measure: str,
        choose_by: str | None = None,
    ) -> dict[str, Any]:
        """Train networks in place and return entries for the card.

        `validate` measures the networks on the validation inputs. The best networks are kept, by the number
        named `choose_by`, or else `measure`; larger is better, except for the loss. `describe` returns card
        entries about the best networks. Training resumes from the last checkpoint in the folder, if there is
        one.
        """
        settings, device = self._settings_for(len(training)), device_of(self.model)
        arguments = settings.arguments(self.folder.checkpoints, choose_by or measure, device.type)
        with training_session("fit", self.fit.run.progress, device, settings.precision) as callback:
            trainer = NetworkTrainer(
                networks,
                reader,
                self.model,
                arguments,
                (training, validation),
                loss=loss,
                validate=validate,
                progress=callback,
                callbacks=settings.callbacks(),
            )
            trainer.train(resume_from_checkpoint=self.folder.last_checkpoint())
            described = describe(trainer.validation_batches())
        networks.to(device).eval()
        logs, best = trainer.state.log_history, trainer.state.best_metric
        if choose_by is not None:
            measured = [log for log in logs if f"eval_{choose_by}" in log]
            best = max(measured, key=lambda log: log[f"eval_{choose_by}"])[f"eval_{measure}"]
        # The card records no times, so equal fits give equal cards.
        names = {
            name for log in logs for name in log if name.startswith("eval_") or name in ("epoch", "loss")
        }
        names -= {f"eval_{choose_by}"}
        history = [{name: log[name] for name in log if name in names} for log in logs]
        return {f"dev_{measure}": best, "steps": trainer.state.global_step, "history": history, **described}

    def _settings_for(self, n: int) -> TrainerSettings:
        """Return the settings for n training inputs, with the number of steps between measurements."""
        settings, measurements = self.fit.training, self.fit.measurements
        if measurements is None or settings.epochs is None:
            return settings
        n_expected = (1 - self.fit.validation_fraction) * len(self.fit.inputs)
        interval = math.ceil(settings.epochs * math.ceil(n_expected / settings.batch_size) / measurements)
        if n < n_expected:  # measure as often as with all inputs explained
            interval = max(1, math.ceil(interval * n / n_expected))
        options = {**settings.options, "logging_strategy": "steps", "logging_steps": interval}
        return replace(settings, checkpoint_steps=interval, options=options)


class ModelAnswers:
    """The model's answers to masked inputs; batch sizes are determined once for all steps."""

    def __init__(self, model: Model, removal: Removal, seed: int) -> None:
        self._engine = Engine(model)
        self._removal, self._seed = removal.bind(model), seed
        self._device = device_of(model).type

    def ask(self, inputs: Sequence[Input], masks: Sequence[Masks], scale: Scale = "natural") -> list[Floats]:
        """Return the answers (n, columns) to the masks (n, features) of each input; raise the first error."""
        jobs = (
            Job(i, input, self._removal, _ask_values(rows, scale), self._seed)
            for i, (input, rows) in enumerate(zip(inputs, masks, strict=True))
        )
        answers: dict[int, Floats] = {}
        with torch.autocast(self._device, enabled=False):
            for job in self._engine.run(jobs):
                if job.error is not None:
                    raise job.error
                answers[job.key] = job.result
        return [answers[i] for i in range(len(inputs))]

    def ask_tensor(self, inputs: Sequence[Input], kept: torch.Tensor) -> torch.Tensor:
        """Return the answers as a tensor, for a mask tensor (rows, width) or (rows, samples, width)."""
        samples = (kept if kept.ndim == 3 else kept[:, None]).detach().bool().cpu().numpy()
        masks = [rows[:, : input.n_features] for rows, input in zip(samples, inputs, strict=True)]
        answers = torch.from_numpy(np.stack(self.ask(inputs, masks))).float().to(kept.device)
        return answers if kept.ndim == 3 else answers[:, 0]


def _ask_values(masks: Masks, scale: Scale) -> Algorithm:
    return (yield Values(masks, scale))

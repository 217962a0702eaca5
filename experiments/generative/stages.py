"""Stages of the experiment with a language model that answers from a context."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from experiments.generative.measuring import measure_examples
from experiments.generative.small import measure_lessons
from experiments.generative.texts import pack_texts
from experiments.generative.training import train_model
from experiments.shared.stages import Job, Run, Stages

STAGES = Stages()


@STAGES.add()
def pack(run: Run, *, out: Path) -> None:
    """Pack the texts and train their tokenizer.

    Parameters
    ----------
    out
        Folder for the packed texts, which is the data folder of the stages train and evaluate.
    """
    pack_texts(run.data, out)


@STAGES.add(alone=True)
def train(
    run: Run,
    *,
    minutes: float = 6.0,
    batch: int = 65_536,
    layers: int = 12,
    width: int = 640,
    workers: int = 5,
) -> Iterator[Job]:
    """Train the language model.

    Parameters
    ----------
    minutes
        Time for training, or for the examples of a seed.
    batch
        Tokens of a batch.
    layers
        Layers of the model.
    width
        Width of the model.
    workers
        Processes that draw training texts.
    """
    options = {"batch": batch, "layers": layers, "width": width, "workers": workers}
    yield Job("training.json", partial(train_model, seconds=60 * minutes, **options))


@STAGES.add(after=["train"])
def evaluate(
    run: Run, *, minutes: float = 4.0, seeds: int = 6, together: int = 10, any_answer: bool = False
) -> Iterator[Job]:
    """Measure the methods on examples, drawn with each seed until the time is over.

    Parameters
    ----------
    minutes
        Time for training, or for the examples of a seed.
    seeds
        Number of seeds.
    together
        Examples that are explained together.
    any_answer
        Use questions that the model answers wrongly, too.
    """
    options = {"seconds": 60 * minutes, "together": together, "any_answer": any_answer}
    for seed in range(seeds):
        compute = partial(measure_examples, seed=seed, **options)
        yield Job(f"examples-{seed}.json", compute, ["training.json"])


@STAGES.add()
def small(run: Run, *, examples: int = 80) -> Iterator[Job]:
    """Compare with captum on the embedded model; no GPU needed.

    Parameters
    ----------
    examples
        Number of questions.
    """
    yield Job("small.jsonl", partial(measure_lessons, n=examples))

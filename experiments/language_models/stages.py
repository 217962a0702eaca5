"""Stages of the experiment with real language models that answer from several paragraphs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from experiments.language_models.measuring import measure_examples
from experiments.shared.stages import Job, Run, Stages

STAGES = Stages()


@STAGES.add()
def evaluate(
    run: Run,
    *,
    model: Path = Path("smollm2"),
    dtype: str = "float32",
    examples: int = 300,
    minutes: float = 60.0,
) -> Iterator[Job]:
    """Measure the methods on examples until there are enough or the time is over.

    Parameters
    ----------
    model
        Folder of a chat model in transformers' format.
    dtype
        Precision of the model.
    examples
        Number of examples.
    minutes
        Time for all examples.
    """
    options = {"model": str(model), "dtype": dtype, "examples": examples, "seconds": 60 * minutes}
    yield Job(f"{Path(model).name}.json", partial(measure_examples, **options))

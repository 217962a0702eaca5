"""Stages of the experiments of MAGNEx: the four tables, variants of them, and LIME on images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from experiments.magnex.estimators import measure_estimators
from experiments.magnex.fits import BOXES, GRID, VARIANTS, Fit, Sizes, other_methods
from experiments.magnex.lime_images import measure_lime
from experiments.magnex.measuring import (
    measure_box,
    measure_chosen,
    measure_variant,
    measure_windows,
    record_of,
    record_scores,
    time_fit,
    try_setting,
)
from experiments.magnex.models import READERS, Reader, train_classifier
from experiments.magnex.sets import REVIEWS, read_questions, read_reviews
from experiments.shared.data import write_packed
from experiments.shared.stages import Job, Run, Stages

STAGES = Stages()
Boxes = Annotated[Sequence[str], BOXES]


@STAGES.add()
def pack(run: Run, *, out: Path) -> None:
    """Pack reviews and questions, for a machine that cannot read Parquet; MNIST is used as it is.

    Parameters
    ----------
    out
        Folder for the packed files.
    """
    rows = ((f"imdb/{split}", read_reviews(run.data, split)) for split in REVIEWS)
    write_packed(out, rows)
    write_packed(out, ((f"squad/{split}", read_questions(run.data, split)) for split in REVIEWS))


@STAGES.add()
def grid(
    run: Run,
    *,
    boxes: Boxes = BOXES,
    weights: Path = Path(),
    scale: float = 1.0,
    test: int = 200,
    limit: int | None = None,
) -> Iterator[Job]:
    """Train the black boxes, and try the settings of explainers on dev inputs.

    Parameters
    ----------
    boxes
        Black boxes.
    weights
        The convolutional network, such as a stage of hsieh2021 saves.
    scale
        Factor of the numbers of steps and training inputs of a fit.
    test
        Test inputs.
    limit
        Training examples of the black boxes.
    """
    sizes = Sizes(weights, scale, test, limit=limit)
    for box in boxes:
        yield box_job(GRID[box][0], sizes)
        for fit in GRID[box]:
            yield job(fit.setting, partial(try_setting, fit=fit, sizes=sizes), fit)


@STAGES.add(after=["grid"])
def fits(
    run: Run,
    *,
    boxes: Boxes = BOXES,
    weights: Path = Path(),
    scale: float = 1.0,
    test: int = 200,
    limit: int | None = None,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
) -> Iterator[Job]:
    """Fit explainers with the chosen settings, and measure them and the other methods (Tables 1 to 4).

    Parameters
    ----------
    seeds
        Initializations.
    """
    sizes = Sizes(weights, scale, test, limit=limit)
    for box in boxes:
        others = [f"{box} {method}" for method in other_methods(box)]
        for method, name in zip(other_methods(box), others, strict=True):
            yield job(name, partial(record_scores, box=box, method=method, sizes=sizes), GRID[box][0])
        for seed in seeds:
            compute = partial(measure_chosen, box=box, seed=seed, sizes=sizes)
            needs = [*others, *(fit.setting for fit in GRID[box])]
            yield Job(record_of(f"{box} fit {seed}"), compute, list(map(record_of, needs)))


@STAGES.add(after=["fits"], alone=True)
def timings(
    run: Run,
    *,
    boxes: Boxes = BOXES,
    weights: Path = Path(),
    timed: int = 10,
    together: int = 1000,
    limit: int | None = None,
) -> Iterator[Job]:
    """Measure the seconds of explanations, one by one and together.

    Parameters
    ----------
    timed
        Inputs that are timed one by one.
    together
        Inputs that are timed together.
    """
    sizes = Sizes(weights, timed=timed, together=together, limit=limit)
    for box in boxes:
        compute = partial(time_fit, box=box, sizes=sizes)
        yield Job(record_of(f"{box} timings"), compute, [record_of(f"{box} fit 0")])


@STAGES.add()
def variants(
    run: Run,
    *,
    boxes: Annotated[Sequence[str], tuple(VARIANTS)] = tuple(VARIANTS),
    weights: Path = Path(),
    scale: float = 1.0,
    test: int = 200,
    timed: int = 20,
    limit: int | None = None,
    seeds: Sequence[int] = (0, 1, 2),
) -> Iterator[Job]:
    """Fit variants: the paper's estimator of the gradient, and possible causes of the result on SQuAD."""
    sizes = Sizes(weights, scale, test, timed, limit=limit)
    for box in boxes:
        for fit in VARIANTS[box].values():
            if box != "sentiment":
                yield box_job(fit, sizes)
        for reader in {fit.reader: None for fit in VARIANTS[box].values()} if box == "squad" else ():
            compute = partial(measure_windows, reader=reader, sizes=sizes)
            yield job(f"windows {reader}", compute, Fit("squad", 0.0, reader=reader))
    for seed in seeds:
        for box in boxes:
            for name, fit in VARIANTS[box].items():
                compute = partial(measure_variant, box=box, variant=name, seed=seed, sizes=sizes)
                yield job(f"{box} {name} {seed}", compute, fit)


@STAGES.add()
def estimators(
    run: Run,
    *,
    steps: int = 400,
    seeds: int = 5,
    train: int = 1000,
    test: int = 200,
    repeats: int = 60,
    inputs: int = 50,
) -> Iterator[Job]:
    """Compare estimators of the gradient, on the embedded model of digits; no GPU needed.

    Parameters
    ----------
    steps
        Steps of a fit.
    seeds
        Number of fits with each estimator.
    train
        Inputs to learn from.
    test
        Test inputs whose selection is measured.
    repeats
        Gradients of which the variance is measured.
    inputs
        Test inputs of these gradients.
    """
    options = {"steps": steps, "seeds": seeds, "n_train": train, "n_test": test}
    yield Job("estimators.json", partial(measure_estimators, repeats=repeats, n_inputs=inputs, **options))


@STAGES.add()
def lime_images(run: Run, *, weights: Path, images: int = 60, sparsity: float = 0.907) -> Iterator[Job]:
    """Compare variants of LIME on the convolutional network.

    Parameters
    ----------
    images
        Test images.
    sparsity
        Share of pixels that is removed, that of magnex in the table.
    """
    compute = partial(measure_lime, weights=weights, n=images, sparsity=sparsity)
    yield Job("lime_images.json", compute)


def job(name: str, compute: partial[object], fit: Fit) -> Job:
    """Return a job that needs a fit's black box."""
    needs = [] if fit.box == "sentiment" else [record_of(fit.box_record)]
    return Job(record_of(name), compute, needs)


def box_job(fit: Fit, sizes: Sizes) -> Job:
    """Return the job that trains or measures a fit's black box."""
    record = record_of(fit.box_record)
    if fit.box == "squad":
        return Job(record, partial(Reader.train, READERS[fit.reader], limit=sizes.limit))
    if fit.box == "imdb":
        return Job(record, partial(train_classifier, limit=sizes.limit))
    return Job(record, partial(measure_box, fit=fit, sizes=sizes))

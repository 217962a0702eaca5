"""Stages of the experiments of Yang et al. 2023: a game of only the tokens, and the paper's game."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from experiments.hase2021.data import read
from experiments.shared.data import write_packed
from experiments.shared.options import changed
from experiments.shared.stages import Job, Run, Stages
from experiments.yang2023.calibration import calibrate_game, calibrate_pairs
from experiments.yang2023.measure import METHODS
from experiments.yang2023.measuring import (
    ADAPTED,
    FASTSHAP,
    ON_PAIRS,
    PADDED,
    PROPORTIONS,
    TRAININGS,
    compute_references,
    explain_example,
    explain_pairs,
    explain_training_texts,
    measure_adaption,
    measure_curve,
    measure_method,
    measure_padded,
    measure_transfer,
    time_methods,
    train_amortized,
    train_classifier,
    train_fastshap,
)
from experiments.yang2023.paper_game import play_game, time_game
from experiments.yang2023.sets import GAME_SIZES, SETS, SIZES, TARGETS
from experiments.yang2023.subject import Subject

STAGES = Stages()
AMORTIZED = [f"amortized-{seed}" for seed in range(TRAININGS)]
Names = Annotated[Sequence[str], tuple(SIZES)]
GameNames = Annotated[Sequence[str], tuple(GAME_SIZES)]


@STAGES.add()
def pack(run: Run, *, out: Path, limit: int | None = None) -> None:
    """Pack the columns in use, reviews cut to their first words, for a machine that cannot read Parquet.

    Parameters
    ----------
    out
        Folder for the packed files.
    limit
        Rows of each split.
    """
    splits = [(spec, split) for spec in SETS.values() for split in spec.splits]
    write_packed(
        out, ((f"{spec.key}/{split}", read(run.data, spec, split, limit).rows()) for spec, split in splits)
    )


@STAGES.add()
def measure(run: Run, *, sets: Names = tuple(SIZES), sizes: Sequence[str] = ()) -> Iterator[Job]:
    """Train models and amortized explainers, and measure all methods in a game of only the tokens.

    Parameters
    ----------
    sets
        Data sets.
    sizes
        Sizes that differ from those of the data sets, such as texts=100 fit=500.
    """
    for dataset in sets:
        yield from training_jobs(dataset, sizes)
        if dataset != "yelp":
            yield from method_jobs(dataset, sizes)


@STAGES.add(after=["measure"], alone=True)
def timings(run: Run, *, sets: Names = tuple(SIZES), sizes: Sequence[str] = ()) -> Iterator[Job]:
    """Measure the seconds of texts one by one (Sec. 6.1)."""
    for name, on_cpu in (("seconds-alone", False), ("seconds-cpu", True)):
        for dataset in sets:
            if dataset != "yelp":
                yield job(dataset, sizes, name, partial(time_methods, on_cpu=on_cpu), ["amortized-0"])


@STAGES.add()
def game(run: Run, *, sets: GameNames = tuple(GAME_SIZES), sizes: Sequence[str] = ()) -> Iterator[Job]:
    """Play the paper's game, and record every score in SET.npz."""
    for dataset in sets:
        compute = partial(play_game, dataset=dataset, sizes=changed(GAME_SIZES[dataset], sizes))
        yield Job(f"{dataset}.game.json", compute)


@STAGES.add(after=["game"], alone=True)
def game_timings(
    run: Run, *, sets: GameNames = tuple(GAME_SIZES), sizes: Sequence[str] = ()
) -> Iterator[Job]:
    """Measure the seconds of KS-200 with one mask per pass, captum's default, and of the amortized model."""
    for dataset in sets:
        compute = partial(time_game, dataset=dataset, sizes=changed(GAME_SIZES[dataset], sizes))
        yield Job(f"{dataset}.game-timings.json", compute, [f"{dataset}.game.json"])


@STAGES.add(after=["measure"])
def calibrate(run: Run, *, nltk: Path, splits: int = 20, train: int = 500) -> Iterator[Job]:
    """Calibrate the model of MNLI on MRPC from explanations (Table 6).

    Parameters
    ----------
    nltk
        Folder with NLTK's data.
    splits
        Random splits of the pairs.
    train
        Pairs that the random forest learns from.
    """
    compute = partial(calibrate_pairs, nltk=nltk, n_splits=splits, n_train=train)
    yield Job("mnli.calibration.json", compute, [f"mnli.pairs-{ON_PAIRS[0]}.json"])


@STAGES.add(after=["game"])
def game_calibrate(run: Run, *, nltk: Path, splits: int = 20, train: int = 500) -> Iterator[Job]:
    """Calibrate the model of MNLI on MRPC from explanations of the paper's game (Table 6)."""
    compute = partial(calibrate_game, nltk=nltk, n_splits=splits, n_train=train)
    yield Job("mnli.calibration-game.json", compute, ["mnli.game.json"])


def training_jobs(dataset: str, sizes: Sequence[str]) -> Iterator[Job]:
    """Yield the jobs that train the model and its amortized explainers, and transfer them."""
    new = partial(job, dataset, sizes)
    yield new("model", train_classifier)
    yield new("learned", explain_training_texts, ["model"])
    for seed, name in enumerate(AMORTIZED):
        yield new(name, partial(train_amortized, seed=seed), ["learned"])
    if dataset in TARGETS:
        target = TARGETS[dataset]
        yield new(f"transfer-{target}", partial(measure_transfer, target=target), AMORTIZED)


def method_jobs(dataset: str, sizes: Sequence[str]) -> Iterator[Job]:
    """Yield the jobs that measure methods on test texts, the most telling first."""
    new = partial(job, dataset, sizes)
    yield new("reference", compute_references, ["model"])
    for name, n in FASTSHAP.items():
        for seed in range(n):
            yield new(f"{name}-{seed}", partial(train_fastshap, name=name, seed=seed), ["learned"])
    yield new("method-amortized", partial(measure_method, name="amortized"), ["reference", *AMORTIZED])
    for m in ADAPTED:
        yield new(f"adapted-{m}", partial(measure_adaption, m=m), ["reference", *AMORTIZED])
    for name in ON_PAIRS if dataset == "mnli" else ():
        yield new(f"pairs-{name}", partial(explain_pairs, name=name), AMORTIZED)
    if dataset == "imdb":
        yield new("example", explain_example, ["model"])
    for name, n in (FASTSHAP | dict.fromkeys(METHODS, 0)).items():
        needs = ["reference", *(f"{name}-{seed}" for seed in range(n))]
        yield new(f"method-{name}", partial(measure_method, name=name), needs)
    for name in PADDED:
        yield new(f"padded-{name}", partial(measure_padded, name=name), ["reference"])
    for percent in PROPORTIONS[::-1]:
        yield new(f"curve-{percent}", partial(measure_curve, percent=percent), ["reference", "learned"])


def job(
    dataset: str, sizes: Sequence[str], name: str, function: Callable[..., Any], needs: Sequence[str] = ()
) -> Job:
    """Return the job of a measurement of a data set."""
    compute = partial(of_subject, function, dataset, sizes)
    return Job(f"{dataset}.{name}.json", compute, [f"{dataset}.{needed}.json" for needed in needs])


def of_subject(function: Callable[..., Any], dataset: str, sizes: Sequence[str], run: Run) -> Any:
    """Call a function of a subject."""
    return function(Subject(dataset, run, changed(SIZES[dataset], sizes)))

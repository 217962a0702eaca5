"""AIM in the paper's own form beside ours, with how much the selector keeps over the steps.

    python experiments/vo2023/paper_form.py --data DATA --out FILE [--sets imdb] [--boxes network linear]
    python experiments/vo2023/paper_form.py --page FILE [FILE ...]   # write the tables of paper_form.md

Fits every form with every seed to the black boxes of `black_boxes.py`, and to the linear ones of
`linear_box.py`, whose true words are known. After every fit FILE is written; what it holds is not made
again, so a run that was stopped goes on. DATA is as `sets.py` packs it, or holds Parquet files. Each fit is
measured on held-out texts:

- ``faithfulness``, ``class faithfulness``, ``log odds`` (+Δ and −Δ), ``comprehensiveness``, ``sufficiency``:
  means over texts, of the top 10 words, or of 10% of them;
- ``true words``: with a linear black box, the share of the 10 words with the largest true weights for the
  predicted class that are among the 10 of the explainer; ``true signs``: the share of the 10 truly weightiest
  words, whatever they speak for, to which it gives the right sign; ``rank correlation`` with true weights;
  all of texts with at least 20 words, by scores as they are and ``relative`` to the mean over classes;
- ``values``: the values of each text; ``words``: the top 10 words of each text, if the box is a network;
- ``pi``: rows of (step, mean, standard deviation) of the probability to be kept over the words of a batch;
  ``kept``: its mean over dev inputs, by the network that was chosen.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import queue
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from forms import SETTINGS
from linear_box import K, linear_classifier, true_words
from sets import TEXTS, read

sys.path.append(str(Path(__file__).parents[1]))

from shared.legacy import fill_in, table

BOXES = ("network", "linear")
BOX_SECONDS = 300
"""Seconds within which all black boxes must be trained; an H200 took 60."""
TABLE_6 = {"imdb": (1.8, 1e-3), "hatexplain": (0.1, 1e-3), "ag_news": (0.1, 1e-4)}
"""α and β of Table 6."""

DECISIONS: dict[str, Any] = {"learns_from": "decisions"}
PLAIN = DECISIONS | {"context": False, "intercept": False, "centring": False, "layers": "paper"}
PAPER = PLAIN | {"trained": "both", "explore": 0.0}
FORMS: dict[str, dict[str, Any]] = {
    "from probabilities": {},
    "from probabilities, no context": {"context": False},
    "explainer alone": DECISIONS,
    "both, explore 0": DECISIONS | {"trained": "both", "explore": 0.0},
    "both, explore .5": DECISIONS | {"trained": "both"},
    "paper": PAPER,
    "paper, D.3: explainer alone": PLAIN | {"sizes": "uniform"},
    "paper, D.1: from the selector": PAPER | {"infer": "selector"},
    "paper, D.2: selector alone": {"trained": "selector", "layers": "paper"},
    "paper, temperature 1": PAPER | {"temperature": 1.0},
    "paper, own layers": PAPER | {"layers": "own"},
    "paper, explore .5": PAPER | {"explore": 0.5},
    "explainer alone, own, no context": DECISIONS | {"context": False},
    "both, explore 0, before": DECISIONS | {"trained": "both", "explore": 0.0},
}
"""Forms learn from decisions, as in the paper, unless they say so. In the last, the embeddings of segments
are random, as they were when its selector died."""
MAIN = tuple(FORMS)[:6]
SAMPLED: dict[str, dict[str, Any]] = {
    "lime": {"budget": 1000},
    "leave-one-out": {},
    "shapley": {"budget": 1000},
}
OTHERS = ("magnex", *SAMPLED)
"""Other methods, measured only if they are named by ``--forms``."""


class Fit(NamedTuple):
    """A form of AIM, or another method, with a seed, on one black box."""

    which: str
    box: str
    form: str
    seed: int

    @property
    def name(self) -> str:
        """The key of its results in the file."""
        return " | ".join(map(str, self))


def settings_of(which: str, form: str) -> dict[str, Any]:
    """The settings of `fit`, with α and β of Table 6 where they say something."""
    own, (alpha, beta) = FORMS[form], TABLE_6[which]
    train = own.get("trained", "explainer")
    table = ({"alpha": alpha} if train != "explainer" else {}) | (
        {"beta": beta} if train != "selector" else {}
    )
    return table | own


def method_of(fit: Fit) -> tuple[str, dict[str, Any]]:
    """The method that is fitted, and its settings."""
    if fit.form in SETTINGS:
        return fit.form.partition(",")[0], SETTINGS[fit.form]
    return ("magnex", {}) if fit.form == "magnex" else ("aim", settings_of(fit.which, fit.form))


PREPARED: dict[Any, Any] = {}


def prepared(which: str, prepare: Any, raw: str, features: Any = None) -> Any:
    """A text as models read it; it is cut once for all fits, since both black boxes read the same words."""
    key = which, raw, features
    if key not in PREPARED:
        PREPARED[key] = prepare(raw, features)
    return PREPARED[key]


@lru_cache(maxsize=2)
def black_box(which: str, box: str, options: Options) -> tuple[Any, list[str], list[str], float]:
    """The model, the texts to learn from, those to explain, and the model's accuracy on the latter."""
    from black_boxes import text_classifier

    import pertinent

    training, test = (read(options.data, which, split) for split in ("train", "test"))
    training, test = training.part(0, options.train), test.part(0, options.test)
    make = text_classifier if box == "network" else linear_classifier
    model = make(
        which,
        training,
        epochs=options.box_epochs,
        device=options.device,
        weights=options.folder / f"{which} {box}.safetensors",
    )
    model.prepare = partial(prepared, which, model.prepare)
    answered = pertinent.explain(
        model, test.inputs, "random", features="sentences", removal="pad-token", progress=False
    )
    right = float(np.mean([e.target == test.labels[e.index] for e in answered]))
    return model, training.inputs, test.inputs, right


class Options(NamedTuple):
    """How much is done, and where."""

    data: Path
    folder: Path
    device: str
    train: int
    test: int
    epochs: int
    box_epochs: int
    batch_size: int
    fit_on: int | None = None


def add_options(parser: argparse.ArgumentParser, test: int) -> None:
    """Add the arguments that `Options` holds besides the data; `test` is the default number of test texts."""
    import torch

    parser.add_argument("--folder", type=Path, default=Path("boxes"), help="for the black boxes' weights")
    parser.add_argument("--train", type=int, default=20_000)
    parser.add_argument("--test", type=int, default=test)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--box-epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--fit-on", type=int, help="fit to the first N of the black box's training texts")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")


def options_of(arguments: argparse.Namespace) -> Options:
    """The options among the arguments."""
    return Options(*(getattr(arguments, name) for name in Options._fields))


def carried_out(fit: Fit, options: Options) -> dict[str, Any]:
    """Fit a form to the black box, explain the held-out texts, and measure; other methods are not fitted."""
    import pertinent

    model, inputs, test, right = black_box(fit.which, fit.box, options)
    start, card, pi = time.perf_counter(), dict[str, Any](), list[Any]()
    method: Any = fit.form
    words: dict[str, Any] = {"removal": "pad-token", "seed": fit.seed, "progress": False}
    if fit.form in SAMPLED:
        words |= SAMPLED[fit.form]
    else:
        training = {"epochs": options.epochs, "batch_size": options.batch_size, "patience": None}
        name, settings = method_of(fit)
        with watching(random_segments=fit.form.endswith("before")) as pi:
            method = pertinent.fit(model, inputs[: options.fit_on], name, **words, **training, **settings)
        card = method.network.card
    fitted = time.perf_counter()
    found = pertinent.explain(model, test, method, **words)
    history = card.get("history", [])
    return {
        "accuracy of the black box": right,
        "steps": card.get("steps", 0),
        "fit seconds": fitted - start,
        "dev faithfulness": card.get("dev_faithfulness"),
        "dev faithfulness by check": [h["eval_faithfulness"] for h in history if "eval_faithfulness" in h],
        "kept": card.get("dev_kept"),
        "kept by check": [h["eval_kept"] for h in history if "eval_kept" in h],
        "doubt": card.get("doubt"),
        "pi": pi,
        **measured(model, found, every_class=card.get("classes") == "all"),
        **(true_words(model, test, found) if fit.box == "linear" else {}),
        "words": [[word for word, _ in e.top(K)] for e in found] if fit.box == "network" else [],
        "measure seconds": time.perf_counter() - fitted,
    }


@contextmanager
def watching(*, random_segments: bool) -> Iterator[list[tuple[int, float, float]]]:
    """Write down the mean and the deviation of the selector's keep-probability in some of the steps."""
    import torch

    from pertinent.learners.methods.aim import AIMLearner
    from pertinent.learners.networks.word_scorer import WordScorer

    own, init, count = AIMLearner.compute_loss, WordScorer.__init__, itertools.count()
    found: list[tuple[int, float, float]] = []

    def compute_loss(learner: Any, batch: Any) -> Any:
        step = next(count)
        if learner.trained != "explainer" and (step % 25 == 0 or (step < 50 and step % 2 == 0)):
            with torch.no_grad():
                kept = batch.scores("selector")[:, 0].sigmoid()[batch.real]
            found.append((step, round(float(kept.mean()), 4), round(float(kept.std()), 4)))
        return own(learner, batch)

    def with_random_segments(scorer: Any, *args: Any, **options: Any) -> None:
        init(scorer, *args, **options)
        torch.nn.init.normal_(scorer.segment.weight)

    with ExitStack() as stack:
        stack.enter_context(patch.object(AIMLearner, "compute_loss", compute_loss))
        if random_segments:
            stack.enter_context(patch.object(WordScorer, "__init__", with_random_segments))
        yield found


def measured(model: Any, found: Any, *, every_class: bool) -> dict[str, Any]:
    """Means over texts, and the values of each."""
    import pertinent
    from pertinent.metrics.top_features import (
        ClassFaithfulness,
        Faithfulness,
        NegativeDeltaLogOdds,
        PositiveDeltaLogOdds,
    )

    metrics: list[Any] = [Faithfulness(k=K), PositiveDeltaLogOdds(), NegativeDeltaLogOdds()]
    metrics += ["sufficiency", "comprehensiveness", *([ClassFaithfulness()] if every_class else [])]
    values: dict[str, list[float]] = {}
    for row in pertinent.evaluate(model, found, metrics, progress=False).rows:
        if row.sparsity in (None, 0.1):
            values.setdefault(row.metric, []).append(row.value)
    means = {name: float(np.mean(own)) for name, own in values.items()}
    rounded = {name: np.round(own, 4).tolist() for name, own in values.items()}
    return means | {"values": rounded, "explained": len(found), "failures": len(found.failures)}


def work(tasks: Any, done: Any, options: Options) -> None:
    """Carry out what is asked for until nothing is."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import torch

    torch.set_num_threads(1)
    while True:
        fit = tasks.get()
        if fit is None:
            return
        start = time.perf_counter()
        try:
            result = carried_out(fit, options)
        except Exception:  # noqa: BLE001 (the others go on)
            result = {"error": traceback.format_exc()[-3000:]}
        done.put((fit, result | {"wall seconds": time.perf_counter() - start}))


def fits_of(arguments: Any) -> Iterator[Fit]:
    """What is to be done, the most telling first: the main forms of all seeds, then the others."""
    for forms, seeds in ((MAIN, arguments.seeds), ((*tuple(FORMS)[6:], *OTHERS), arguments.more_seeds)):
        for seed in range(seeds):
            for which in arguments.sets:
                for form in forms:
                    if form in arguments.forms:
                        for box in arguments.boxes:
                            if box == "network" or seed < arguments.linear_seeds:
                                yield Fit(which, box, form, seed)


def shown(fit: Fit, own: dict[str, Any]) -> str:
    """A line of the log: the main numbers of a fit, or its error."""
    if "error" in own:
        return f"{fit.name}: FAILED\n{own['error']}"
    names = ("faithfulness", "class-faithfulness", "positive-delta-log-odds", "negative-delta-log-odds")
    names += ("comprehensiveness", "true words", "true signs", "rank correlation", "kept")
    cells = [f"{name} {own[name]:.3f}" for name in names if own.get(name) is not None]
    pi = [f"{each[1]:.2f}" for each in own["pi"] if each[0] in (0, 10, 20, 40, 100, 300)] + [
        f"{each[1]:.2f}±{each[2]:.2f}" for each in own["pi"][-1:]
    ]
    seconds = f"{own['fit seconds']:.0f} + {own['measure seconds']:.0f} s of {own['wall seconds']:.0f}"
    return f"{fit.name}: {', '.join(cells)}; π {' '.join(pi)}; {own['steps']} steps, {seconds}"


PAGE = Path(__file__).with_suffix(".md")
SHOWN = {
    "faithfulness": "faithfulness",
    "class faithfulness": "class-faithfulness",
    "+Δ log-odds": "positive-delta-log-odds",
    "comprehensiveness at 10%": "comprehensiveness",
    "true words": "true words",
    "true signs": "true signs",
    "π kept": "kept",
}


def write_page(results: list[dict[str, Any]]) -> None:
    """Write the tables, of the fits of all results."""
    made = {name: own for result in results for name, own in result.items()}
    fill_in(PAGE, {f"{which}, {box}": page_table(made, which, box) for which in TEXTS for box in BOXES})


def page_table(made: dict[str, Any], which: str, box: str) -> str:
    """A row of each form: means over seeds with their standard deviation."""
    rows = []
    for form in FORMS:
        key = f"{which} | {box} | {form} | "
        runs = [own for name, own in made.items() if name.startswith(key)]
        rows.append([f"`{form}`", *(over_seeds(runs, name) for name in SHOWN.values())])
        rows[-1].append(str(len(runs)) if runs else "–")
    shown = [place for place in range(len(SHOWN) + 2) if any(row[place] != "–" for row in rows)]
    head = ["form", *SHOWN, "seeds"]
    return table([head[i] for i in shown], [[row[i] for i in shown] for row in rows])


def over_seeds(runs: list[dict[str, Any]], name: str) -> str:
    """The mean of a number over seeds, and its standard deviation where there are several."""
    values = [own[name] for own in runs if own.get(name) is not None]
    if not values:
        return "–"
    spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


MPS = "nvidia-cuda-mps-control"


@contextmanager
def sharing(wanted: bool) -> Iterator[None]:
    """Let processes compute on the GPU at the same time, by a daemon of this run alone, if one starts.

    A daemon outlives the command that started it, and one that is being stopped blocks whoever connects to
    it: so it has a folder of its own, every call has a time limit, and it is stopped in the end.
    """
    if not wanted:
        yield
        return
    os.environ["CUDA_MPS_PIPE_DIRECTORY"] = os.environ["CUDA_MPS_LOG_DIRECTORY"] = tempfile.mkdtemp()
    try:
        subprocess.run([MPS, "-d"], check=True, timeout=20)
        test = "import torch; torch.ones(9, device='cuda').sum().item()"
        subprocess.run([sys.executable, "-c", test], check=True, timeout=60)
        print("MPS runs", flush=True)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"no MPS: {error}", flush=True)
        os.environ["CUDA_MPS_PIPE_DIRECTORY"] = tempfile.mkdtemp()  # nobody listens there
    try:
        yield
    finally:
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run([MPS], input=b"quit\n", check=False, timeout=15)


def train_box(which: str, box: str, options: Options) -> None:
    """Train a black box if it is not there, and say how good it is."""
    import torch

    torch.set_num_threads(2)
    print(f"{which}, {box}: accuracy {black_box(which, box, options)[3]:.3f}", flush=True)


def train_boxes(waiting: list[Fit], options: Options, last: float) -> None:
    """Train the black boxes side by side; one that takes too long ends the run."""
    context = multiprocessing.get_context("spawn")
    keys = dict.fromkeys((fit.which, fit.box) for fit in waiting)
    processes = [context.Process(target=train_box, args=(*key, options)) for key in keys]
    for process in processes:
        process.start()
    for process in processes:
        process.join(max(0.0, min(last, time.time() + BOX_SECONDS) - time.time()))
    stuck = [process for process in processes if process.exitcode != 0]
    for process in stuck:
        process.kill()
    if stuck:
        raise SystemExit(f"{len(stuck)} black boxes failed or took longer than {BOX_SECONDS} s")


def run(waiting: list[Fit], options: Options, processes: int, last: float) -> Iterator[tuple[Fit, Any]]:
    """What comes of each fit as soon as it is done, until time is up."""
    context = multiprocessing.get_context("spawn")
    tasks, done = context.Queue(), context.Queue()
    workers = [
        context.Process(target=work, args=(tasks, done, options)) for _ in range(min(processes, len(waiting)))
    ]
    for fit in waiting:
        tasks.put(fit)
    for worker in workers:
        tasks.put(None)
        worker.start()
    try:
        for _ in waiting:
            yield done.get(timeout=max(0.0, last - time.time()))
    except queue.Empty:
        print("time is up", flush=True)
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def main() -> None:
    """Train the black boxes, then fit and measure, several at a time."""
    arguments = _arguments()
    if arguments.page:
        write_page([json.loads(path.read_text()) for path in arguments.page])
        return
    began = time.time()
    last, out = began + arguments.seconds, arguments.out
    arguments.folder.mkdir(parents=True, exist_ok=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    options = options_of(arguments)
    made: dict[str, Any] = json.loads(out.read_text()) if out.is_file() else {}
    waiting, failures = [fit for fit in fits_of(arguments) if fit.name not in made], 0
    with sharing(arguments.mps):
        train_boxes(waiting, options, last)
        print(f"black boxes after {time.time() - began:.0f} s", flush=True)
        for fit, result in run(waiting, options, arguments.processes, last):
            print(f"[{time.time() - began:.0f} s] {shown(fit, result)}", flush=True)
            if "error" not in result:
                made[fit.name] = result
                unfinished = out.with_suffix(".part")
                unfinished.write_text(json.dumps(made))
                unfinished.replace(out)
            else:
                failures += 1
                if failures >= 3 and not made:
                    break
    print(f"{len(made)} fits are in {out}", flush=True)


def _arguments() -> Any:

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--page", type=Path, nargs="+", help="results to write into paper_form.md")
    parser.add_argument("--sets", nargs="+", choices=TEXTS, default=TEXTS)
    parser.add_argument("--boxes", nargs="+", choices=BOXES, default=BOXES)
    parser.add_argument("--forms", nargs="+", choices=(*FORMS, *OTHERS), default=tuple(FORMS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--linear-seeds", type=int, default=5)
    parser.add_argument("--more-seeds", type=int, default=1, help="of the forms after the main ones")
    parser.add_argument("--seconds", type=float, default=1e6, help="stop after so long")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--mps", action="store_true", help="NVIDIA's multi-process service, if it starts")
    add_options(parser, test=500)
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""Play the paper's game on one set, and keep every score.

    python experiments/yang2023/paper_game.py --set yelp --data PACKED --encoder ENCODER --work WORK --out OUT

512 positions are players, removed tokens become [PAD] that is attended to, and scores are of the raw logit,
as in the authors' code. OUT/SET.npz is written after every stage: a run that was stopped resumes there.
`--stages seconds` times KS-200 with one mask per pass, as captum does by default, and the amortized model.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from game_records import Record
from job import Job
from measure import seconds_of_each
from one_mask_per_pass import OneMaskPerPass
from padding import PLAYERS, CaptumKernelShap, Padded
from sets import TARGETS, Sizes, Split, read, test_texts, training_texts
from stages import fine_tuned

import pertinent
from pertinent.explainers.base import Explainer, explainers
from pertinent.results.explanation import Explanation

OPTIONS: dict[str, Any] = {
    "features": "tokens",
    "removal": "pad-token",
    "scale": "raw",
    "progress": False,
}
TRUTH = 98
"""Seed of the SVS-25 that others are compared with."""
REVIEWS = Sizes(texts=100, fewer=60, transferred=200, timed=12, fit=500, few_seeds=3)
SENTENCES = Sizes(texts=200, fewer=100, timed=12, fit=2000, few_seeds=3)
SIZES = {
    "yelp": REVIEWS,
    "imdb": REVIEWS,
    "sst2": replace(SENTENCES, limit=40_000),
    "mnli": replace(SENTENCES, pairs=1725),
}
TRAININGS = 3
REPEATS = 3
LIMITED = 500
"""Number of texts for which the time limit of a stage is meant; it grows with more of them."""
CHUNK = 20
"""Number of texts that are explained between two looks at the clock."""


def estimator(name: str) -> tuple[str | Explainer, dict[str, Any]]:
    """Return a method by its name, such as ``KS-200, captum``, and its settings.

    Permutations of the tokens alone are distributed as those of all players with padding left out, whose
    scores are 0, so SVS and the reference need no padding.
    """
    kind, _, number = name.partition("-")
    if kind == "SVS":
        return "shapley-sampling", {"samples": int(number), "antithetic": False}
    samples, _, whose = number.partition(", ")
    if kind == "reference":
        return "kernel-shap", {"samples": int(samples)}
    own = {"samples": int(samples)}
    inner = CaptumKernelShap(**own) if whose == "captum" else explainers.make("kernel-shap", own)
    return Padded(inner, PLAYERS), {}


@dataclass
class Game:
    """One set, its record, and the time left."""

    job: Job
    record: Record
    end: float
    stage_seconds: float

    def explain(
        self, texts: Split, of: str, name: str, *, seed: int, n: int, method: Explainer | None = None
    ) -> None:
        """Record the scores of the first n texts by one method, as many as time allows, or why it failed."""
        key = f"{of}/{name}/{seed}"
        if key in self.record or time.time() > self.end:
            return
        start = time.time()
        own, settings = estimator(name) if method is None else (method, {})
        last = min(self.end, start + self.stage_seconds * max(1, n / LIMITED))
        found: list[Explanation] = []
        try:
            for first in range(0, min(n, len(texts.examples)), CHUNK):
                chunk = texts.examples[first : min(first + CHUNK, n)]
                found += pertinent.explain(self.job.model, chunk, own, seed=seed, **settings, **OPTIONS)
                if time.time() > last:
                    break
        except Exception as error:  # noqa: BLE001 (the others go on)
            self.record.meta[key] = {"error": repr(error)[:500]}
            print(f"{key} failed: {error!r}", flush=True)
            return
        self.record.add(key, [e.scores for e in found], [e.details.get("special", []) for e in found])
        self.record.note(key, texts=len(found), evaluations=float(np.mean([e.evaluations for e in found])))
        self._say(key, start)

    def train(self) -> None:
        """Fine-tune the classifier, and fit amortized models to SVS-25 of the training texts."""
        job, start = self.job, time.time()
        if not (job.folder / "model").exists():
            self.record.meta["model"] = fine_tuned(job)
            self._say("model", start)
        wanted = [seed for seed in range(TRAININGS) if not (job.folder / f"amortized-{seed}").exists()]
        if not wanted:
            return
        start = time.time()
        texts = training_texts(job.data, job.which, job.sizes.fit)
        references = pertinent.explain(
            job.model, texts, "shapley-sampling", samples=25, antithetic=False, **OPTIONS
        )
        self.record.meta["learned"] = {
            "texts": len(references),
            "seconds": time.time() - start,
            "evaluations": float(np.mean([e.evaluations for e in references])),
        }
        self._say("learned", start)
        for seed in wanted:
            if time.time() > self.end:
                return
            start = time.time()
            fitted: Any = pertinent.fit(
                job.model,
                [e.input.raw for e in references],
                teacher_explanations=references,
                validation_fraction=0.1,
                epochs=job.sizes.epochs,
                seed=seed,
                **OPTIONS,
            )
            fitted.save(job.folder / f"amortized-{seed}")
            card = fitted.network.card
            self.record.note(f"amortized-{seed}", seconds=time.time() - start, spearman=card["dev_spearman"])
            self._say(f"amortized-{seed}", start)

    def texts(self, texts: Split, of: str, names: Sequence[str], n: int) -> None:
        """Record all methods on these texts: those of SVS-25 and amortized models first."""
        sizes = self.job.sizes
        self.explain(texts, of, "SVS-25", seed=TRUTH, n=n)
        for seed, fitted in enumerate(self.job.trained("amortized")):
            self.explain(texts, of, "amortized", seed=seed, n=n, method=fitted)
        for seed in range(sizes.seeds):
            for name in names:
                few = "captum" not in name or name.startswith(("KS-2000", "SVS"))
                if seed < (sizes.few_seeds if few else sizes.seeds):
                    fewer = min(n, sizes.fewer) if few and name.startswith("KS") else n
                    self.explain(texts, of, name, seed=seed, n=fewer)

    def pairs(self) -> None:
        """Record the scores of pairs of MRPC, and what calibration needs besides their texts (Table 6)."""
        split = read(self.job.data, "mrpc", "test", self.job.sizes.pairs)
        amortized, *_ = self.job.trained("amortized")
        if "pairs" not in self.record.meta:
            found = pertinent.explain(self.job.model, split.examples, "random", **OPTIONS)
            self.record.meta["pairs"] = {
                "labels": split.labels,
                "probabilities": [np.round(e.prediction.values, 5).tolist() for e in found],
                "spans": [e.input.spans.tolist() for e in found],
            }
        self.explain(split, "mrpc", "amortized", seed=0, n=len(split.labels), method=amortized)
        for name in ("KS-2000, captum", "SVS-25", "KS-200, captum"):
            self.explain(split, "mrpc", name, seed=0, n=len(split.labels))

    def play(self) -> None:
        """Run all stages, the most important first."""
        job, sizes = self.job, self.job.sizes
        self.train()
        target = TARGETS.get(job.which)
        if target is not None:
            names = ("KS-100, captum", "KS-100, ours", "KS-200, captum", "KS-25, captum")
            self.texts(test_texts(job.data, target, sizes.transferred), target, names, sizes.transferred)
        names = ("KS-200, captum", "KS-200, ours", "KS-25, captum", "SVS-25", "KS-2000, captum")
        self.texts(job.test, job.which, names, sizes.texts)
        if job.which == "mnli":
            self.pairs()
        self.texts(job.test, job.which, ("KS-2000, ours", "KS-25, ours"), sizes.texts)
        for of, split in ((job.which, job.test), (target, None)):
            if of is not None:
                split = split or test_texts(job.data, of, sizes.transferred)
                self.explain(split, of, f"reference-{sizes.reference}", seed=TRUTH, n=len(split.labels))

    def time(self) -> None:
        """Record the seconds of texts one by one: KS-200 as captum runs it, ours, and the amortized model."""
        job = self.job
        fitted, *_ = job.trained("amortized")
        captum = OneMaskPerPass(job.folder / "model", job.device)

        def explain(method: Any, text: Any) -> None:
            own, settings = method
            pertinent.explain(job.model, [text], own, seed=0, **settings, **OPTIONS)

        methods = {
            "KS-200, one mask per pass": captum.explain,
            "one pass": captum.classify,
            "KS-200, one batch": lambda text: explain(("kernel-shap", {"samples": 200}), text),
            "amortized": lambda text: explain((fitted, {}), text),
        }
        texts, start = job.test.examples[: job.sizes.timed], time.time()
        seconds_of_each(methods, texts[:2], 1)
        self.record.meta["seconds"] = seconds_of_each(methods, texts, REPEATS)
        self._say("seconds", start)

    def _say(self, stage: str, start: float) -> None:
        """Save the record, and print the stage with its seconds."""
        self.record.save()
        left = self.end - time.time()
        print(f"{self.job.which} {stage}: {time.time() - start:.1f} s, {left:.0f} s left", flush=True)


def main() -> None:
    """Play one set, or time its methods."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--set", choices=SIZES, required=True)
    parser.add_argument("--data", type=Path, required=True, help="what sets.py packed")
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="where the models are kept")
    parser.add_argument("--out", type=Path, required=True, help="where the record is written")
    parser.add_argument("--stages", choices=("play", "seconds"), default="play")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=1e9, help="start nothing after this long")
    parser.add_argument("--stage-seconds", type=float, default=1e9, help="limit for each method and seed")
    for size in fields(Sizes):
        parser.add_argument(f"--{size.name.replace('_', '-')}", type=int, help="other than the set's own")
    arguments = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_float32_matmul_precision("high")
    changed = {size.name: getattr(arguments, size.name) for size in fields(Sizes)}
    sizes = replace(SIZES[arguments.set], **{k: v for k, v in changed.items() if v is not None})
    job = Job(arguments.set, arguments.data, arguments.work, arguments.encoder, arguments.device, sizes)
    job.folder.mkdir(parents=True, exist_ok=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    record = Record(arguments.out / f"{arguments.set}.npz")
    game = Game(job, record, time.time() + arguments.seconds, arguments.stage_seconds)
    game.play() if arguments.stages == "play" else game.time()


if __name__ == "__main__":
    main()

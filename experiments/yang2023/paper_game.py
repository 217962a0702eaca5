"""The paper's game: 512 players, and removed tokens become [PAD] that is attended to.

Scores are of the raw logit, as in the authors' code. The record SET.npz is written after every method and
seed, so that a stopped run resumes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import pertinent
from experiments.hase2021.data import read
from experiments.shared.data import Examples
from experiments.shared.stages import Run
from experiments.yang2023.game_record import GameRecord
from experiments.yang2023.measuring import train_classifier, warm_seconds
from experiments.yang2023.one_mask_per_pass import OneMaskPerPass
from experiments.yang2023.padding import PLAYERS, CaptumKernelShap, Padded
from experiments.yang2023.sets import SETS, TARGETS, Sizes, test_texts, training_texts
from experiments.yang2023.subject import Subject
from pertinent.explainers.base import Explainer, explainers

OPTIONS: dict[str, Any] = {
    "features": "tokens",
    "removal": "pad-token",
    "scale": "raw",
    "progress": False,
}
TRUTH = 98
"""Seed of the SVS-25 that other methods are compared with."""
TRAININGS = 3


def estimator(name: str) -> tuple[str | Explainer, dict[str, Any]]:
    """Return a method by name, such as ``KS-200, captum``, and its settings.

    Permutations of only the tokens are distributed as those of all players without padding, whose scores are
    0, so SVS and the reference need no padding.
    """
    kind, _, number = name.partition("-")
    if kind == "SVS":
        return "shapley-sampling", {"samples": int(number), "antithetic": False}
    samples, _, whose = number.partition(", ")
    settings = {"samples": int(samples)}
    if kind == "reference":
        return "kernel-shap", settings
    inner = CaptumKernelShap(**settings) if whose == "captum" else explainers.make("kernel-shap", settings)
    return Padded(inner, PLAYERS), {}


def play_game(run: Run, dataset: str, sizes: Sizes) -> dict[str, Any]:
    """Play the game on one data set, and record all scores."""
    game = Game.start(run, dataset, sizes)
    game.play()
    return {"keys": game.record.keys, "finished": time.time() < run.end}


def time_game(run: Run, dataset: str, sizes: Sizes) -> dict[str, Any]:
    """Measure the seconds of texts one by one: KS-200 as captum runs it and in one batch, and amortized."""
    game = Game.start(run, dataset, sizes)
    fitted, *_ = game.subject.trained("amortized")
    captum = OneMaskPerPass(game.subject.folder / "model", run.device)

    def explain(method: Any, text: dict[str, str], **settings: Any) -> None:
        pertinent.explain(game.subject.model, [text], method, seed=0, **settings, **OPTIONS)

    methods = {
        "KS-200, one mask per pass": captum.explain,
        "one pass": captum.classify,
        "KS-200, one batch": lambda text: explain("kernel-shap", text, samples=200),
        "amortized": lambda text: explain(fitted, text),
    }
    seconds = warm_seconds(methods, game.subject.test.inputs[: sizes.timed])
    game.record.meta["seconds"] = seconds
    game.record.save()
    return seconds


@dataclass
class Game:
    """One data set, its record, and the time by which no more is started."""

    subject: Subject
    record: GameRecord
    end: float

    @classmethod
    def start(cls, run: Run, dataset: str, sizes: Sizes) -> Game:
        """Start or resume the game on a data set."""
        subject = Subject(dataset, run, sizes, game=True)
        subject.folder.mkdir(parents=True, exist_ok=True)
        return cls(subject, GameRecord(run.results / f"{dataset}.npz"), run.end)

    def play(self) -> None:
        """Run everything, the most important first."""
        subject, sizes = self.subject, self.subject.sizes
        self.train()
        target = TARGETS.get(subject.dataset)
        moved = None if target is None else test_texts(subject.run.data, target, sizes.transferred)
        if moved is not None:
            names = ("KS-100, captum", "KS-100, ours", "KS-200, captum", "KS-25, captum")
            self.explain_texts(moved, target, names, sizes.transferred)
        names = ("KS-200, captum", "KS-200, ours", "KS-25, captum", "SVS-25", "KS-2000, captum")
        self.explain_texts(subject.test, subject.dataset, names, sizes.texts)
        if subject.dataset == "mnli":
            self.explain_pairs()
        self.explain_texts(subject.test, subject.dataset, ("KS-2000, ours", "KS-25, ours"), sizes.texts)
        for name, texts in ((subject.dataset, subject.test), (target, moved)):
            if name is not None:
                self.explain(texts, name, f"reference-{sizes.reference}", seed=TRUTH)

    def train(self) -> None:
        """Fine-tune the classifier, and fit amortized models to SVS-25 of the training texts."""
        subject = self.subject
        if not (subject.folder / "model").exists():
            self.record.meta["model"] = train_classifier(subject)
            self.record.save()
        seeds = [seed for seed in range(TRAININGS) if not (subject.folder / f"amortized-{seed}").exists()]
        if not seeds:
            return
        start = time.time()
        texts = training_texts(subject.run.data, subject.dataset, subject.sizes.fit)
        method, settings = estimator("SVS-25")
        teacher = pertinent.explain(subject.model, texts, method, **settings, **OPTIONS)
        self.record.meta["learned"] = {
            "texts": len(teacher),
            "seconds": time.time() - start,
            "evaluations": float(np.mean([e.evaluations for e in teacher])),
        }
        for seed in seeds:
            start = time.time()
            fitted = subject.fit_amortized(teacher, seed, OPTIONS)
            fitted.save(subject.folder / f"amortized-{seed}")
            spearman = fitted.network.card["dev_spearman"]
            self.record.meta[f"amortized-{seed}"] = {"seconds": time.time() - start, "spearman": spearman}
            self.record.save()

    def explain_texts(self, texts: Examples, name: str, methods: Sequence[str], n: int) -> None:
        """Record all methods on texts: SVS-25 and the amortized models first."""
        sizes = self.subject.sizes
        self.explain(texts, name, "SVS-25", seed=TRUTH, n=n)
        for seed, fitted in enumerate(self.subject.trained("amortized")):
            self.explain(texts, name, "amortized", seed=seed, n=n, method=fitted)
        for seed in range(sizes.seeds):
            for method in methods:
                is_slow = "captum" not in method or method.startswith(("KS-2000", "SVS"))
                if seed < (sizes.few_seeds if is_slow else sizes.seeds):
                    fewer = min(n, sizes.fewer) if is_slow and method.startswith("KS") else n
                    self.explain(texts, name, method, seed=seed, n=fewer)

    def explain_pairs(self) -> None:
        """Record the scores of pairs of MRPC, and what calibration needs besides their texts (Table 6)."""
        data = read(self.subject.run.data, SETS["mrpc"], "test", self.subject.sizes.pairs)
        amortized, *_ = self.subject.trained("amortized")
        if "pairs" not in self.record.meta:
            explanations = pertinent.explain(self.subject.model, data.inputs, "random", **OPTIONS)
            self.record.meta["pairs"] = {
                "labels": data.labels,
                "probabilities": [np.round(e.prediction.values, 5).tolist() for e in explanations],
                "spans": [e.input.spans.tolist() for e in explanations],
            }
        self.explain(data, "mrpc", "amortized", seed=0, method=amortized)
        for name in ("KS-2000, captum", "SVS-25", "KS-200, captum"):
            self.explain(data, "mrpc", name, seed=0)

    def explain(
        self,
        texts: Examples,
        name: str,
        method_name: str,
        *,
        seed: int,
        n: int | None = None,
        method: Explainer | None = None,
    ) -> None:
        """Record the scores of the first n texts by one method, or why it failed."""
        key, start = f"{name}/{method_name}/{seed}", time.time()
        if key in self.record or start > self.end:
            return
        explainer, settings = estimator(method_name) if method is None else (method, {})
        try:
            explanations = pertinent.explain(
                self.subject.model, texts.inputs[:n], explainer, seed=seed, **settings, **OPTIONS
            )
        except Exception as error:  # noqa: BLE001  the other methods continue
            self.record.meta[key] = {"error": repr(error)[:500]}
            print(f"{key} failed: {error!r}", flush=True)
            return
        special = [e.details.get("special", []) for e in explanations]
        self.record.add(key, [e.scores for e in explanations], special)
        evaluations = float(np.mean([e.evaluations for e in explanations]))
        self.record.meta[key] = {"texts": len(explanations), "evaluations": evaluations}
        self.record.save()
        print(f"{key}: {time.time() - start:.1f} s", flush=True)

"""Datamodeling scores, precision at 1, drops and coverage of methods by their number of evaluations."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from transformers import AutoModelForCausalLM, AutoTokenizer

import pertinent
from experiments.language_models.peers import PEERS, Game
from experiments.language_models.prompts import Example, prompt_of, read_squad
from experiments.shared.stages import Run
from pertinent.array_types import Floats, Masks


@dataclass(frozen=True)
class Plan:
    """Budgets and methods that are measured."""

    budgets: Sequence[int]
    methods: Sequence[str]
    peers: Sequence[str]


PLAN = Plan(
    budgets=(8, 16, 32, 64),
    methods=(
        "bayesian-regression",
        "bayesian-regression:prior=uniform",
        "single-effects",
        "context-cite",
        "shapley",
        "kernel-shap",
        "banzhaf",
        "leave-one-out",
        "gradient-x-input",
    ),
    peers=tuple(PEERS),
)
N_TEST, N_REFERENCE = 128, 256
"""Number of unseen masks for the datamodeling score, and of further masks for reference effects."""

TOGETHER = 20
"""Number of prompts that are explained in one call."""


@dataclass(frozen=True)
class Case:
    """An example with the model's answer, and the same prompt for the peers."""

    example: Example
    answer: str
    prompt: pertinent.Prompt
    game: Game

    @property
    def is_expected(self) -> bool:
        """Return whether the model answered rightly, or as the planted instruction says."""
        return self.example.is_expected(self.answer)


def game_of(wrapped: Any, prompt: pertinent.Prompt) -> Game:
    """Return the prompt for the peers, by the tokens of the wrapped model."""
    tokens = wrapped.prepare(prompt).tokens
    before = ~tokens.scored
    return Game(wrapped.model, tokens.ids[before], tokens.feature[before], np.array(tokens.ids[~before]))


def case_of(wrapped: Any, example: Example) -> Case:
    """Return the case of an example with the model's greedy answer."""
    answer = wrapped.prepare(prompt_of(example)).text.answer
    prompt = prompt_of(example, answer)
    return Case(example, answer, prompt, game_of(wrapped, prompt))


def measure_examples(
    run: Run, *, model: str, dtype: str, examples: int, seconds: float
) -> Iterator[dict[str, Any]]:
    """Yield the records of examples until there are enough or the time is over."""
    logging.disable(logging.WARNING)
    end = time.time() + seconds
    tokenizer = AutoTokenizer.from_pretrained(model)
    network = AutoModelForCausalLM.from_pretrained(model, dtype=getattr(torch, dtype)).to(run.device).eval()
    network.requires_grad_(requires_grad=False)
    wrapped = pertinent.wrap((network, tokenizer), max_new_tokens=16)
    todo, records = read_squad(run.data)[:examples], []
    for first in range(0, len(todo), TOGETHER):
        cases = [case_of(wrapped, example) for example in todo[first : first + TOGETHER]]
        for case, found in zip(cases, measure(cases, wrapped, PLAN), strict=True):
            example = case.example
            facts = {"task": example.task, "sentences": len(example.sentences), "right": example.right}
            records.append(facts | {"answer": case.answer, "expected": case.is_expected, "found": found})
        yield {"examples": records}
        print(f"{len(records)} examples", flush=True)
        if time.time() > end:
            return


def measure(cases: Sequence[Case], wrapped: Any, plan: Plan) -> list[list[dict[str, Any]]]:
    """Return for each case the measures of each method and budget that is large enough."""
    found: list[list[dict[str, Any]]] = [[] for _ in cases]
    truths = [Truth.of(case.game) for case in cases]
    for budget in plan.budgets:
        for method in plan.methods:
            start = time.time()
            explanations = explain(wrapped, [case.prompt for case in cases], method, budget)
            seconds = round((time.time() - start) / len(cases), 4)
            for e in explanations:
                row = {"method": method, "budget": budget, "seconds": seconds, "evaluations": e.evaluations}
                scores = np.asarray(e.scores, dtype=float)
                found[e.index].append(
                    row | truths[e.index].measures(scores, e.standard_errors, cases[e.index])
                )
        for name in plan.peers:
            for case, truth, rows in zip(cases, truths, found, strict=True):
                start = time.time()
                scores = PEERS[name](case.game, budget, 0)
                row = {"method": name, "budget": budget, "seconds": round(time.time() - start, 4)}
                if scores is not None:
                    rows.append(row | truth.measures(scores, None, case))
    return found


def explain(model: Any, prompts: list[pertinent.Prompt], method: str, budget: int) -> Any:
    """Return the explanations by log-odds; none if the budget is too small."""
    try:
        return pertinent.explain(model, prompts, method, scale="logit", budget=budget, progress=False)
    except pertinent.PertinentError as error:
        print(method, budget, str(error)[:200], flush=True)
        return ()


@dataclass(frozen=True)
class Truth:
    """What the model answers to masks that no method has used.

    Attributes
    ----------
    masks, logits
        The masks and the log-odds of the answer.
    effects, errors
        The effects by least squares, and their standard errors.
    drops
        The loss of log-odds without each sentence.
    """

    masks: Masks
    logits: Floats
    effects: Floats
    errors: Floats
    drops: Floats

    @classmethod
    def of(cls, game: Game) -> Truth:
        """Evaluate the masks of a game."""
        masks = np.random.default_rng(12345).random((N_TEST + N_REFERENCE, game.n)) < 0.5
        logits = game.logits(masks)
        design = np.column_stack([np.ones(len(masks)), masks])
        coefficients = np.linalg.lstsq(design, logits, rcond=None)[0]
        variance = ((logits - design @ coefficients) ** 2).sum() / (len(masks) - design.shape[1])
        errors = np.sqrt(variance * np.linalg.inv(design.T @ design).diagonal())
        ends = game.logits(np.concatenate([np.ones((1, game.n), dtype=bool), ~np.eye(game.n, dtype=bool)]))
        return cls(masks[:N_TEST], logits[:N_TEST], coefficients[1:], errors[1:], ends[0] - ends[1:])

    def measures(self, scores: Floats, standard_errors: Floats | None, case: Case) -> dict[str, Any]:
        """Return the datamodeling score, precision at 1, the drop without the top sentence, and coverage."""
        predicted, top = self.masks @ scores, int(scores.argmax())
        lds = float(spearmanr(predicted, self.logits).statistic) if np.ptp(predicted) > 0 else 0.0
        found = {"lds": lds, "precision": float(top in case.example.right), "drop": float(self.drops[top])}
        if standard_errors is not None:
            width = 1.96 * np.hypot(standard_errors, self.errors)
            found["coverage"] = float((np.abs(scores - self.effects) <= width).mean())
        return found

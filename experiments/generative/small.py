"""Comparison with captum, with the embedded language model `recall` on the CPU.

Contexts are 16 made-up facts of `scripts/recall_facts.py`, of which one has the answer.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from scripts.recall_facts import Lesson, fact, lesson

import pertinent
from experiments.generative.measuring import Case, Plan, is_right, measure
from experiments.generative.peers import PEERS, Game
from experiments.shared.stages import Run

PLAN = Plan(
    budgets=(16, 32, 64),
    methods=("single-effects", "single-effects:prior=gradient", "shapley"),
    peers=tuple(name for name in PEERS if not name.startswith("inseq")),
)
BATCH = 8
N_FACTS = 16
COMMON = {"keeps", "the", "The", "lives", "in", "is", "a", "sold", "to"}
"""Words that facts may share."""


def draw_lesson(rng: random.Random) -> Lesson:
    """Return a question about one of several facts, which shares no rare word with the others."""
    while True:
        drawn = lesson(rng, 1)
        if drawn.right < 0 or len(drawn.sentences) > 1:
            continue
        others: list[str] = []
        names = set(drawn.sentences[0].strip(".").split() + drawn.question.strip("?").split())
        while len(others) < N_FACTS - 1:
            other = fact(rng).sentence
            rare = {word for word in other.strip(".").split() if word not in COMMON}
            if not rare & names:
                others.append(other)
                names |= rare
        index = rng.randrange(N_FACTS)
        sentences = (*others[:index], drawn.sentences[0], *others[index:])
        return Lesson(sentences, drawn.question, drawn.answer, index)


def measure_lessons(_run: Run, *, n: int) -> list[dict[str, Any]]:
    """Return the records of n questions that the model answers rightly."""
    torch.set_num_threads(1)
    wrapped, rng, n_questions = pertinent.load("recall"), random.Random(0), 0
    records: list[dict[str, Any]] = []
    for seed in range(n // BATCH):
        cases: list[Case] = []
        while len(cases) < BATCH:
            drawn, n_questions = draw_lesson(rng), n_questions + 1
            question = f"{drawn.question} Answer:"
            prompt = pertinent.Prompt(
                question, sources=drawn.sentences, separator=" ", answer=f" {drawn.answer}", chat=False
            )
            game = game_of(wrapped, prompt)
            if is_right(game, with_context=True):
                cases.append(Case(prompt, game, [drawn.right]))
        measures = measure(cases, wrapped, seed, PLAN)
        records += [{"asked": n_questions, "found": found} for found in measures]
    return records


def game_of(wrapped: Any, prompt: pertinent.Prompt) -> Game:
    """Return the prompt for the peers, by the tokens of the wrapped model."""
    tokens = wrapped.prepare(prompt).tokens
    before = ~tokens.scored
    return Game(wrapped.model, tokens.ids[before], tokens.feature[before], np.array(tokens.ids[~before]))

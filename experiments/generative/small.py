"""The same question beside captum, with the embedded language model `recall` on the CPU.

    python experiments/generative/small.py FOLDER --examples 40

Contexts are 16 made-up facts of `scripts/recall_facts.py`, of which one holds the answer. FOLDER gets
`small.jsonl`, with a line for each example; `tables.py` reads it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from evaluate import is_right, measured, scored, test_masks
from peers import Game

import pertinent

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

from recall_facts import Lesson, fact, lesson

BUDGETS = (16, 32, 64)
METHODS = ("single-effects", "single-effects:prior=gradient", "shapley")
PEERS = (
    "ContextCite",
    "captum KernelShap",
    "captum Lime",
    "captum ShapleyValueSampling",
    "captum FeatureAblation",
)
AT_ONCE = 8
N_FACTS = 16
COMMON = {"keeps", "the", "The", "lives", "in", "is", "a", "sold", "to"}
"""Words that facts may share."""


def context(rng: random.Random) -> Lesson:
    """A question about one of the facts, none of which shares a word with the answer but the right one."""
    while True:
        own = lesson(rng, 1)
        if own.right < 0 or len(own.sentences) > 1:
            continue
        others: list[str] = []
        names = set(own.sentences[0].strip(".").split() + own.question.strip("?").split())
        while len(others) < N_FACTS - 1:
            more = fact(rng).sentence
            rare = {word for word in more.strip(".").split() if word not in COMMON}
            if not rare & names:
                others.append(more)
                names |= rare
        place = rng.randrange(N_FACTS)
        return Lesson((*others[:place], own.sentences[0], *others[place:]), own.question, own.answer, place)


def main() -> None:
    """Explain questions that are answered rightly, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--examples", type=int, default=40)
    own = parser.parse_args()
    own.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    wrapped, rng, asked = pertinent.load("recall"), random.Random(0), 0
    with (own.folder / "small.jsonl").open("w") as file:
        for seed in range(own.examples // AT_ONCE):
            some: list[tuple[Lesson, pertinent.Prompt, Game]] = []
            while len(some) < AT_ONCE:
                made, asked = context(rng), asked + 1
                text = f"{made.question} Answer:"
                prompt = pertinent.Prompt(
                    text, sources=made.sentences, separator=" ", answer=f" {made.answer}"
                )
                game = game_of(wrapped, prompt)
                if is_right(game, with_context=True):
                    some.append((made, prompt, game))
            for record in records(some, wrapped, seed):
                file.write(f"{json.dumps({'asked': asked, **record})}\n")
            file.flush()


def records(
    some: list[tuple[Lesson, pertinent.Prompt, Game]], wrapped: Any, seed: int
) -> list[dict[str, Any]]:
    """What is found of some examples."""
    lessons, prompts, games = map(list, zip(*some, strict=True))
    chosen = {"budgets": BUDGETS, "methods": METHODS, "peers": PEERS}
    found = scored(games, prompts, wrapped, seed, **chosen)
    made: list[dict[str, Any]] = [{"found": []} for _ in some]
    for place, name, budget, scores, _ in found:
        game, masks = games[place], test_masks(games[place].n)
        test = masks, game.logits(masks)
        said = measured(scores, game, (lessons[place].right,), test)
        made[place]["found"].append({"method": name, "budget": budget, **said})
    return made


def game_of(wrapped: Any, prompt: pertinent.Prompt) -> Game:
    """The prompt for the peers, by the tokens of the wrapped model."""
    tokens = wrapped.prepare(prompt).tokens
    before = ~tokens.scored
    return Game(wrapped.model, tokens.ids[before], tokens.feature[before], np.array(tokens.ids[~before]))


if __name__ == "__main__":
    main()

"""Which method finds the sentence that holds the answer, by number of evaluations.

    python experiments/generative/evaluate.py DATA MODEL OUT --minutes 4

DATA was made by `texts.py`, MODEL by `train.py`. OUT gets files of how often the model is right, of JSON
lines, one for each example, and of the log-likelihoods of the answer's tokens for many masks. Only questions
that the model answers rightly with the context and wrongly without it are used.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peers import PEERS, Game
from scipy.stats import spearmanr
from tasks import KINDS, Example, Texts, example
from transformers import AutoModelForCausalLM, AutoTokenizer

import pertinent
from pertinent.array_types import Floats, Masks

BUDGETS = (16, 32, 64, 128, 256)
METHODS = (
    "single-effects",
    "single-effects:prior=gradient",
    "shapley",
    "context-cite",
    "kernel-shap",
    "banzhaf",
    "lime",
    "leave-one-out",
    "gradient-x-input",
    "integrated-gradients",
)
N_SENTENCES = 32
N_TEST_MASKS, N_BANK = 128, 512
TOP = (1, 3, 5)
TEMPLATE = "Context: {sources}\n\n{text}"
SETS = {**{kind: (kind, False) for kind in KINDS}, "cloze, said twice": ("cloze", True)}


def prompt_of(own: Example) -> pertinent.Prompt:
    """The prompt whose sources are the sentences."""
    return pertinent.Prompt(
        f"Q: {own.question.text}\nA:",
        sources=own.sentences,
        template=TEMPLATE,
        separator=" ",
        answer=f" {own.question.answer}",
    )


def game_of(own: Example, model: Any, tokenizer: Any) -> Game:
    """The same prompt for the peers."""

    def ids(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    parts = [[tokenizer.bos_token_id, *ids("Context:")], *(ids(f" {sentence}") for sentence in own.sentences)]
    parts.append(ids(f"\n\nQ: {own.question.text}\nA:"))
    owner = np.repeat([-1, *range(len(own.sentences)), -1], [len(part) for part in parts])
    return Game(model, np.concatenate(parts).astype(int), owner, np.array(ids(f" {own.question.answer}")))


@torch.inference_mode()
def is_right(game: Game, *, with_context: bool) -> bool:
    """Whether the model's greedy answer is the right one."""
    before = game.ids if with_context else game.ids[game.owner < 0]
    ids = torch.tensor(np.concatenate([before, game.answer])[None], device=game.model.device)
    logits = game.model(input_ids=ids).logits[0, len(before) - 1 : -1]
    return bool((logits.argmax(dim=-1).cpu().numpy() == game.answer).all())


class Examples:
    """Examples of each set in turn that the model answers rightly with, and wrongly without the context."""

    def __init__(
        self, texts: Texts, model: Any, tokenizer: Any, seed: int, *, any_answer: bool = False
    ) -> None:
        self.any_answer = any_answer
        self.texts, self.model, self.tokenizer = texts, model, tokenizer
        self.rng = random.Random(seed)
        self.counts = {name: [0, 0, 0] for name in SETS}

    def next(self, name: str, tries: int = 200) -> tuple[Example, Game] | None:
        """One more of a set; ``None`` if none was found."""
        kind, twice = SETS[name]
        for _ in range(tries):
            own = example(self.texts, kind, N_SENTENCES, self.rng, twice=twice)
            game = game_of(own, self.model, self.tokenizer)
            right, known = is_right(game, with_context=True), is_right(game, with_context=False)
            for place, add in enumerate((1, right, right and not known)):
                self.counts[name][place] += add
            if (right and not known) or self.any_answer:
                return own, game
        return None


def without_top(scores: Floats) -> Masks:
    """Masks without the sentences of the largest scores."""
    order = np.argsort(-scores, kind="stable")
    without = np.ones((len(TOP), len(scores)), dtype=bool)
    for row, k in zip(without, TOP, strict=True):
        row[order[:k]] = False
    return without


def measured(scores: Floats, game: Game, right: tuple[int, ...], test: Any) -> dict[str, Any]:
    """Precision at 1, linear datamodeling score, drops of the log-likelihood without the top sentences."""
    masks, logits = test
    predicted = masks @ scores
    full = game.values(np.ones((1, game.n), dtype=bool))[0]
    lds = float(spearmanr(predicted, logits).statistic) if np.ptp(predicted) > 0 else 0.0
    return {
        "precision": float(int(scores.argmax()) in right),
        "lds": lds,
        "drops": (full - game.values(without_top(scores))).tolist(),
        "scores": [float(f"{score:.3g}") for score in scores],
    }


def explained(model: Any, prompts: list[pertinent.Prompt], method: str, budget: int, seed: int) -> list[Any]:
    """The scores of each prompt's sentences by one of our methods; none if the budget is too small."""
    try:
        found = pertinent.explain(
            model, prompts, method, budget=budget, scale="logit", seed=seed, progress=False
        )
    except pertinent.PertinentError as error:
        if "scale" not in str(error):
            print(method, budget, error, flush=True)
            return [None] * len(prompts)
        found = pertinent.explain(model, prompts, method, budget=budget, seed=seed, progress=False)
    by_index = {own.index: np.asarray(own.scores, dtype=float) for own in found}
    return [by_index.get(number) for number in range(len(prompts))]


def evaluate(own: argparse.Namespace, number: int, end: float) -> None:
    """Examples with a seed of their own until the time is over, some at once."""
    logging.disable(logging.WARNING)
    dtype = torch.bfloat16 if own.device == "cuda" else torch.float32
    tokenizer = AutoTokenizer.from_pretrained(own.model)
    model = AutoModelForCausalLM.from_pretrained(own.model, dtype=dtype).to(own.device).eval()
    for weights in model.parameters():
        weights.requires_grad_(requires_grad=False)
    wrapped = pertinent.wrap((model, tokenizer))
    texts = Texts.read(own.data, held_out=True)
    examples = Examples(texts, model, tokenizer, 1000 + number, any_answer=own.trial)
    names, turn = list(SETS), number
    while True:
        some: list[tuple[str, Example, Game]] = []
        while len(some) < own.at_once:
            name, turn = names[turn % len(names)], turn + 1
            found = examples.next(name)
            if found is None:
                names.remove(name)
                if not names:
                    return
            else:
                some.append((name, *found))
        records = _records(some, wrapped, number)
        with (own.out / f"examples-{number}.jsonl").open("a") as file:
            file.writelines(f"{json.dumps(record)}\n" for record in records)
        banks = [game.by_token(bank_masks(game.n)).astype(np.float16) for _, _, game in some]
        np.savez_compressed(own.out / f"bank-{number}-{turn}.npz", *banks)
        (own.out / f"answers-{number}.json").write_text(json.dumps(examples.counts))
        if time.time() > end:
            return


def test_masks(n: int) -> Masks:
    """The masks for linear datamodeling scores."""
    return np.random.default_rng(12345).random((N_TEST_MASKS, n)) < 0.5


def bank_masks(n: int) -> Masks:
    """Masks whose answers are kept: all, nothing, each left out, each alone, the test's, random ones."""
    ends, each = np.array([[True], [False]]).repeat(n, axis=1), np.eye(n, dtype=bool)
    others = np.random.default_rng(777).random((N_BANK, n)) < 0.5
    return np.concatenate([ends, ~each, each, test_masks(n), others])


def scored(
    games: list[Game],
    prompts: list[pertinent.Prompt],
    wrapped: Any,
    seed: int,
    *,
    budgets: Sequence[int] = BUDGETS,
    methods: Sequence[str] = METHODS,
    peers: Sequence[str] = tuple(PEERS),
) -> list[tuple[int, str, int, Floats, float]]:
    """Place of the example, method, budget, scores and seconds, for each that the budget is enough for."""
    found: list[tuple[int, str, int, Floats, float]] = []
    for budget in budgets:
        for method in methods:
            if method == "gradient-x-input" and budget != budgets[0]:  # the same whatever the budget
                found += [(*own[:2], budget, *own[3:]) for own in found if own[1:3] == (method, budgets[0])]
                continue
            begun = time.time()
            several = explained(wrapped, prompts, method, budget, seed)
            took = (time.time() - begun) / len(games)
            found += [(i, method, budget, own, took) for i, own in enumerate(several) if own is not None]
        for name in peers:
            for place, game in enumerate(games):
                begun = time.time()
                scores = _by_peer(name, game, budget, seed)
                if scores is not None:
                    found.append((place, name, budget, scores, time.time() - begun))
    return found


def _by_peer(name: str, game: Game, budget: int, seed: int) -> Floats | None:
    """The scores of a peer, if the budget is enough for it and its package is there."""
    try:
        return PEERS[name](game, budget, seed)
    except Exception as error:  # noqa: BLE001  a package that is missing
        print(name, repr(error)[:300], flush=True)
        return None


def _records(some: list[tuple[str, Example, Game]], wrapped: Any, seed: int) -> list[dict[str, Any]]:
    """What is found of some examples."""
    start = time.time()
    prompts = [prompt_of(own) for _, own, _ in some]
    tests, records = [], []
    for name, own, game in some:
        masks = test_masks(game.n)
        tests.append((masks, game.logits(masks)))
        records.append(
            {
                "set": name,
                "right": own.right,
                "answer": own.question.answer,
                "n_tokens": len(game.answer),
                "full": game.values(np.ones((1, game.n), dtype=bool)).tolist(),
                "empty": game.values(np.zeros((1, game.n), dtype=bool)).tolist(),
                "found": [],
            }
        )
    found = scored([game for _, _, game in some], prompts, wrapped, seed)
    for place, (_, own, game) in enumerate(some):
        mine = [each for each in found if each[0] == place]
        game.values(np.concatenate([without_top(scores) for _, _, _, scores, _ in mine]))  # in few batches
        for _, method, budget, scores, took in mine:
            said = {"method": method, "budget": budget, "seconds": round(took, 4)}
            records[place]["found"].append(said | measured(scores, game, own.right, tests[place]))
    print(f"{len(some)} examples in {time.time() - start:.1f} s", flush=True)
    return records


def main() -> None:
    """Evaluate in several processes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--at-once", type=int, default=10)
    parser.add_argument("--device", default="cuda")
    parser.add_argument(
        "--trial", action="store_true", help="use questions that the model answers wrongly, too"
    )
    own = parser.parse_args()
    own.out.mkdir(parents=True, exist_ok=True)
    end = time.time() + 60 * own.minutes
    context = torch.multiprocessing.get_context("spawn")
    working = [context.Process(target=evaluate, args=(own, number, end)) for number in range(own.processes)]
    for process in working:
        process.start()
    for process in working:
        process.join(max(1.0, end + 35 - time.time()))
        if process.is_alive():
            process.terminate()


if __name__ == "__main__":
    main()

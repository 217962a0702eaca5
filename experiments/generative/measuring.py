"""Precision at 1, linear datamodeling scores and drops of methods by their number of evaluations."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from transformers import AutoModelForCausalLM, AutoTokenizer

import pertinent
from experiments.generative.peers import PEERS, Game
from experiments.generative.tasks import KINDS, Example, Texts, draw_example
from experiments.shared.stages import Run
from pertinent.array_types import Floats, Masks


@dataclass(frozen=True)
class Plan:
    """Budgets and methods that are measured."""

    budgets: Sequence[int]
    methods: Sequence[str]
    peers: Sequence[str]


PLAN = Plan(
    budgets=(16, 32, 64, 128, 256),
    methods=(
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
    ),
    peers=tuple(PEERS),
)


@dataclass(frozen=True)
class Case:
    """A prompt, the same prompt for the peers, and the indices of the sentences with the answer."""

    prompt: pertinent.Prompt
    game: Game
    right: Sequence[int]


N_SENTENCES = 32
N_TEST_MASKS, N_BANK = 128, 512
TOP = (1, 3, 5)
TEMPLATE = "Context: {sources}\n\n{text}"
SETS = {**{kind: (kind, False) for kind in KINDS}, "cloze, said twice": ("cloze", True)}


def prompt_of(example: Example) -> pertinent.Prompt:
    """Return the prompt whose sources are the sentences."""
    return pertinent.Prompt(
        f"Q: {example.question.text}\nA:",
        sources=example.sentences,
        template=TEMPLATE,
        separator=" ",
        answer=f" {example.question.answer}",
        chat=False,
    )


def game_of(example: Example, model: Any, tokenizer: Any) -> Game:
    """Return the same prompt for the peers."""

    def ids(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    sentences = [ids(f" {sentence}") for sentence in example.sentences]
    question = ids(f"\n\nQ: {example.question.text}\nA:")
    parts = [[tokenizer.bos_token_id, *ids("Context:")], *sentences, question]
    owner = np.repeat([-1, *range(len(sentences)), -1], [len(part) for part in parts])
    answer = np.array(ids(f" {example.question.answer}"))
    return Game(model, np.concatenate(parts).astype(int), owner, answer)


@torch.inference_mode()
def is_right(game: Game, *, with_context: bool) -> bool:
    """Return whether the model's greedy answer is the right one."""
    before = game.ids if with_context else game.ids[game.owner < 0]
    ids = torch.tensor(np.concatenate([before, game.answer])[None], device=game.model.device)
    logits = game.model(input_ids=ids).logits[0, len(before) - 1 : -1]
    return bool((logits.argmax(dim=-1).cpu().numpy() == game.answer).all())


class Examples:
    """Examples that the model answers rightly with the context, and wrongly without.

    Attributes
    ----------
    counts
        For each set the numbers of questions, of those answered rightly, and of those that are used.
    """

    def __init__(self, texts: Texts, model: Any, tokenizer: Any, seed: int, *, any_answer: bool) -> None:
        self.any_answer = any_answer
        self.texts, self.model, self.tokenizer = texts, model, tokenizer
        self.rng = random.Random(seed)
        self.counts = {name: [0, 0, 0] for name in SETS}

    def find(self, name: str, tries: int = 200) -> tuple[str, Example, Game] | None:
        """Return the next example of a set; ``None`` if no question was suitable."""
        kind, twice = SETS[name]
        for _ in range(tries):
            example = draw_example(self.texts, kind, N_SENTENCES, self.rng, twice=twice)
            game = game_of(example, self.model, self.tokenizer)
            right = is_right(game, with_context=True)
            is_suitable = right and not is_right(game, with_context=False)
            for i, count in enumerate((1, right, is_suitable)):
                self.counts[name][i] += count
            if is_suitable or self.any_answer:
                return name, example, game
        return None

    def batches(self, size: int, first: int) -> Iterator[list[tuple[str, Example, Game]]]:
        """Yield batches of examples from all sets, one after the other, starting at the index `first`."""
        names, turn = list(SETS), first
        while True:
            batch: list[tuple[str, Example, Game]] = []
            while len(batch) < size:
                name, turn = names[turn % len(names)], turn + 1
                if (example := self.find(name)) is not None:
                    batch.append(example)
                elif names := [other for other in names if other != name]:
                    continue
                else:
                    return
            yield batch


def measure_examples(
    run: Run, *, seed: int, seconds: float, together: int, any_answer: bool
) -> Iterator[dict[str, Any]]:
    """Yield the records of examples until the time is over; keep log-likelihoods in ``bank-SEED.npz``."""
    logging.disable(logging.WARNING)
    end = time.time() + seconds
    dtype = torch.bfloat16 if run.device.startswith("cuda") else torch.float32
    tokenizer = AutoTokenizer.from_pretrained(run.work)
    model = AutoModelForCausalLM.from_pretrained(run.work, dtype=dtype).to(run.device).eval()
    model.requires_grad_(requires_grad=False)
    wrapped = pertinent.wrap((model, tokenizer))
    texts = Texts.read(run.data, held_out=True)
    examples = Examples(texts, model, tokenizer, 1000 + seed, any_answer=any_answer)
    records: list[dict[str, Any]] = []
    banks: list[Floats] = []
    for batch in examples.batches(together, seed):
        cases = [Case(prompt_of(example), game, example.right) for _, example, game in batch]
        for (name, example, game), found in zip(batch, measure(cases, wrapped, seed, PLAN), strict=True):
            record = {"set": name, "right": example.right, "answer": example.question.answer}
            records.append(record | {"found": found})
            banks.append(game.by_token(bank_masks(game.n)).astype(np.float16))
        np.savez_compressed(run.results / f"bank-{seed}.npz", *banks)
        yield {"examples": records, "answers": examples.counts}
        print(f"{len(records)} examples", flush=True)
        if time.time() > end:
            return


def test_masks(n: int) -> Masks:
    """Return the masks for linear datamodeling scores."""
    return np.random.default_rng(12345).random((N_TEST_MASKS, n)) < 0.5


def bank_masks(n: int) -> Masks:
    """Return masks whose answers are kept: all, none, all but one, only one, those for tests, random ones."""
    ends, single = np.array([[True], [False]]).repeat(n, axis=1), np.eye(n, dtype=bool)
    others = np.random.default_rng(777).random((N_BANK, n)) < 0.5
    return np.concatenate([ends, ~single, single, test_masks(n), others])


def measure(cases: Sequence[Case], wrapped: Any, seed: int, plan: Plan) -> list[list[dict[str, Any]]]:
    """Return for each case the measures of each method and budget that is large enough."""
    scores = list(compute_scores(cases, wrapped, seed, plan))
    measures = []
    for i, case in enumerate(cases):
        of_case = [row[1:] for row in scores if row[0] == i]
        case.game.values(np.concatenate([without_top(row[2]) for row in of_case]))  # few large batches
        measures.append(
            [
                {"method": method, "budget": budget, "seconds": round(seconds, 4)} | measures_of(values, case)
                for method, budget, values, seconds in of_case
            ]
        )
    return measures


def compute_scores(
    cases: Sequence[Case], wrapped: Any, seed: int, plan: Plan
) -> Iterator[tuple[int, str, int, Floats, float]]:
    """Yield the case's index, method, budget, scores and seconds where the budget is large enough."""
    prompts = [case.prompt for case in cases]
    for budget in plan.budgets:
        for method in plan.methods:
            start = time.time()
            by_example = explain(wrapped, prompts, method, budget, seed)
            seconds = (time.time() - start) / len(cases)
            for i, scores in by_example.items():
                yield i, method, budget, scores, seconds
        for name in plan.peers:
            for i, case in enumerate(cases):
                start = time.time()
                by_peer = explain_by_peer(name, case.game, budget, seed)
                if by_peer is not None:
                    yield i, name, budget, by_peer, time.time() - start


def explain(
    model: Any, prompts: list[pertinent.Prompt], method: str, budget: int, seed: int
) -> dict[int, Floats]:
    """Return scores of a method of the library by index; none if the budget is too small."""
    options: dict[str, Any] = {"budget": budget, "seed": seed, "progress": False}
    try:
        explanations = pertinent.explain(model, prompts, method, scale="logit", **options)
    except pertinent.PertinentError as error:
        if "scale" not in str(error):
            print(method, budget, error, flush=True)
            return {}
        explanations = pertinent.explain(model, prompts, method, **options)
    return {e.index: np.asarray(e.scores, dtype=float) for e in explanations}


def explain_by_peer(name: str, game: Game, budget: int, seed: int) -> Floats | None:
    """Return the scores of a peer; ``None`` if the budget is too small or the package is missing."""
    try:
        return PEERS[name](game, budget, seed)
    except Exception as error:  # noqa: BLE001  a package that is missing
        print(name, repr(error)[:300], flush=True)
        return None


def measures_of(scores: Floats, case: Case) -> dict[str, Any]:
    """Return precision at 1, the linear datamodeling score, and drops without the top sentences."""
    game = case.game
    masks = test_masks(game.n)
    full = game.values(np.ones((1, game.n), dtype=bool))[0]
    return {
        "precision": float(int(scores.argmax()) in case.right),
        "lds": datamodeling_score(scores, masks, game.logits(masks)),
        "drops": (full - game.values(without_top(scores))).tolist(),
        "scores": [float(f"{score:.3g}") for score in scores],
    }


def datamodeling_score(scores: Floats, masks: Masks, logits: Floats) -> float:
    """Return Spearman's correlation of summed scores with logits; 0 for constant sums."""
    predicted = masks @ scores
    return float(spearmanr(predicted, logits).statistic) if np.ptp(predicted) > 0 else 0.0


def without_top(scores: Floats) -> Masks:
    """Return masks without the sentences of the largest scores."""
    ranks = np.argsort(np.argsort(-scores, kind="stable"))
    return ranks >= np.array(TOP)[:, None]

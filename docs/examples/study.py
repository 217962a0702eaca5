"""A study made from an embedded model, and simulated people who take part in it.

``python docs/examples/study.py`` makes a study in a temporary folder, lets the simulated people answer, and
prints the report. ``python docs/examples/study.py FOLDER`` makes the study alone, to be asked of real people:
``pertinent study serve FOLDER``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import pertinent
from pertinent.study.answers import Answers
from pertinent.study.design import Study, StudyQuestion

REVIEWS = [
    "The first half drags, but the acting is superb and the ending is a quiet triumph.",
    "A clumsy script and flat jokes waste a talented cast and a lovely score.",
    "I laughed from the first scene to the last, and so did everybody around me.",
    "Two hours of my life that nobody will ever give back to me.",
    "The plot makes no sense, and the effects look cheap even for a small film.",
    "A warm and funny portrait of a family that you will want to meet again.",
    "Every scene is beautiful, and the young actress in the lead is wonderful.",
    "What begins as a clever thriller ends as a dull and noisy mess.",
    "The dialogue is wooden, the pace is slow, and the twist is silly.",
    "A brilliant debut with a great soundtrack and a story that stays with you.",
    "Not even the excellent camera work can save this boring story.",
    "It is a simple film, honest and moving, and I enjoyed every minute of it.",
    "The director clearly loves his characters, and by the end you love them too.",
    "A lazy sequel that repeats the worst jokes of a film that had few good ones.",
    "The book was wonderful, but this version is a terrible disappointment.",
    "Smart, fast and surprisingly tender, it is the best comedy of the year.",
    "The lead is miscast and the love story never feels real for a moment.",
    "An unforgettable evening: great music, strong voices and a perfect ending.",
    "I wanted to like it, but the film is empty behind its pretty pictures.",
    "A small treasure that deserves a far larger audience than it will find.",
    "The humour is cruel, the message is stupid and the acting is awful.",
    "Rich in detail and full of life, this is cinema at its very best.",
    "After a promising start it loses its way and never finds it again.",
    "The cast is charming, the songs are catchy and the jokes are fresh.",
]
GOOD = """superb triumph lovely laughed warm funny beautiful wonderful clever brilliant great excellent honest
    moving enjoyed loves love smart tender best unforgettable perfect treasure rich charming"""
BAD = """drags clumsy flat waste nobody cheap dull noisy mess wooden slow silly boring lazy worst terrible
    disappointment miscast never empty cruel stupid awful loses"""


def make(folder: Path) -> Study:
    """Explain the reviews with three methods and create a study."""
    model = pertinent.load("sentiment")
    compared = pertinent.compare(
        model, REVIEWS, ["shapley", "lime", "random"], budget=200, progress=False
    ).explanations
    return pertinent.create_study(pertinent.Explanations(list(compared)), folder, top=4)


def answer(study: Study, question: StudyQuestion, rng: np.random.Generator) -> Any:
    """Return the answer of a participant who knows some good and bad words, with some random answers."""
    if question.kind == "check":
        return question.grade
    e = study.explanations[question.input][0]
    good, bad = GOOD.split(), BAD.split()
    tone = np.array([(word.lower() in good) - (word.lower() in bad) for word in e.features])
    seen = [tone[study.highlighted(question.input, method)] for method in question.methods]
    if question.kind == "mark":
        return np.flatnonzero((tone != 0) ^ (rng.random(len(tone)) < 0.05)).tolist()
    if question.kind == "guess":
        total = seen[0].sum() if rng.random() < 0.9 else rng.integers(-1, 2)
        return None if total == 0 else e.classes[int(total > 0)]
    known = [np.count_nonzero(each) + rng.normal(0, 0.7) for each in seen]
    if question.kind == "rate":
        return int(np.clip(round(1 + 1.5 * known[0]), 1, 5))
    return None if abs(known[0] - known[1]) < 0.5 else question.methods[int(known[1] > known[0])]


def simulate(study: Study, people: int) -> None:
    """Answer all questions with simulated participants."""
    answers = Answers(study)
    for number in range(people):
        rng = np.random.default_rng(number)
        person = answers.enter(f"simulated {number + 1}")
        for i, question in enumerate(person.questions):
            answers.record(person, i, answer(study, question, rng))


def main() -> pertinent.StudyReport:
    """Create the study, simulate participants, and analyse their answers."""
    with tempfile.TemporaryDirectory() as folder:
        study = make(Path(folder))
        simulate(study, study.cycle)
        return pertinent.report_study(study)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        make(Path(sys.argv[1]))
    else:
        print(main().to_markdown())

"""A small study, and simulated people of known behaviour."""

import numpy as np

import pertinent
from pertinent.study.answers import Answers

WEIGHTS = {"good": 2.0, "bad": -2.0, "fine": 1.0, "dull": -1.0}


def predict(texts):
    sums = np.array([sum(WEIGHTS.get(word, 0.0) for word in text.split()) for text in texts])
    p = 1 / (1 + np.exp(-sums))
    return np.stack([1 - p, p], axis=1)


def texts(n):
    """Texts of eight words, of which one matters."""
    rng = np.random.default_rng(0)
    found = []
    for i in range(n):
        words = [f"word{i}x{j}" for j in range(8)]
        words[int(rng.integers(8))] = list(WEIGHTS)[i % 4]
        found.append(" ".join(words))
    return found


def explained(n=24, methods=("leave-one-out", "random", "shapley")):
    """Explanations of `n` texts by each method."""
    model = pertinent.wrap(predict, kind="text", classes=["bad", "good"])
    found = pertinent.compare(model, texts(n), list(methods), budget=60, progress=False)
    return pertinent.Explanations(list(found.explanations))


def take_part(study, n, behave, *, first=0):
    """`n` people answer every question of a study as ``behave(study, question, rng)`` says."""
    answers = Answers(study)
    for number in range(first, first + n):
        rng = np.random.default_rng([7, number])
        person = answers.enter(f"person {number}")
        for i in range(len(person.answers), len(person.questions)):
            question = person.questions[i]
            given = question.grade if question.kind == "check" else behave(study, question, rng)
            assert answers.record(person, i, given)
    return answers


def by_the_words(study, question, rng):
    """Somebody who looks for the word that decides, and takes sides by it alone."""
    own = study.explanations[question.input]
    names = own[0].features
    (decisive,) = [i for i, name in enumerate(names) if name in WEIGHTS]
    shows = [decisive in study.highlighted(question.input, method) for method in question.methods]
    if question.kind == "guess":
        return ("good" if WEIGHTS[names[decisive]] > 0 else "bad") if shows[0] else None
    if question.kind == "prefer":
        return None if shows[0] == shows[1] else question.methods[shows.index(True)]
    return [decisive] if question.kind == "mark" else 5 if shows[0] else 1


def by_chance(study, question, rng):
    """Somebody who answers without looking."""
    e = study.explanations[question.input][0]
    if question.kind == "guess":
        return str(rng.choice(e.classes))
    if question.kind == "prefer":
        return int(rng.choice(question.methods))
    if question.kind == "mark":
        return (rng.random(len(e.features)) < 0.4).nonzero()[0].tolist()
    return int(rng.integers(1, 6))

"""Made-up facts, questions about them, and answers: what the language model `recall` is trained on."""

# ruff: noqa: SIM905  lists of words are read more easily in one string

from __future__ import annotations

import random
from dataclasses import dataclass

NAMES = """
Ann Bob Carl Dora Emil Fay Gus Hana Ivan Jane Kim Liam Mia Noah Olga Paul Quinn Rosa Sam Tess Uma Vera Will
Xena Yara Zoe Ada Ben Cleo Dan Eva Finn Gina Hugo Ida Jack Kate Leo Max Nora Omar Pia Ralf Sue Tom Ute Vito
Wanda Alice Bruno Clara David Elena Frank Greta Henry Irene Jonas Karen Lucas Maria Nadia Oscar Petra Robin
Sarah Tariq Ursula Victor Walter Yusuf Zelda Amir Bianca Chen Diego Esther Fatima George Helen Isaac Julia
Kofi Laura Mohammed Nina Oliver Priya Rachel Stefan Thomas Valerie
""".split()
THINGS = """
key map lamp book ring coin box bag hat coat boat bike car cup plate knife spoon clock watch phone letter
ticket card drum flute guitar piano violin ball kite rope axe saw hammer nail brush pen pencil ruler basket
bottle candle mirror blanket pillow chair table bench ladder bucket broom shovel rake wheel tent sail anchor
compass lens camera radio jar bowl pot pan kettle stamp flag mask crown sword shield helmet glove scarf boot
shoe sock belt purse wallet umbrella bell whistle magnet button needle thread carpet curtain vase statue
painting diary notebook folder password code recipe seed apple pear melon loaf cake pie
""".split()
PLACES = """
Rome Paris Oslo Cairo Lima Tokyo Delhi Berlin Madrid London Dublin Vienna Prague Athens Warsaw Lisbon Geneva
Naples Boston Denver Dallas Seattle Toronto Havana Quito Bogota Nairobi Lagos Accra Tunis Amman Beirut
Tehran Kabul Hanoi Manila Seoul Osaka Sydney Perth
""".split()
ROOMS = """
kitchen garden cellar attic garage office hall library bedroom bathroom stable barn shed tower chapel
workshop studio school market harbour station museum theatre hotel drawer closet cupboard
""".split()
COLOURS = "red blue green yellow black white brown grey pink purple orange golden silver".split()
JOBS = """
baker doctor farmer teacher pilot singer painter lawyer sailor driver nurse judge miner tailor cook gardener
writer dancer builder plumber butcher barber banker clerk guard
""".split()
FILLERS = (
    "It rains today.",
    "The train was late.",
    "The soup is cold.",
    "Nobody noticed the noise.",
    "The sun is out.",
    "Dinner is at eight.",
    "The street is quiet.",
    "It was a long winter.",
    "The windows are open.",
    "There is snow on the roof.",
)
UNKNOWN = "I do not know."
LETTERS = "b c d f g h j k l m n p r s t v w z br cl dr fl gr kr pl pr sl sp st tr".split()
VOWELS = "a e i o u ai ea ee oo ou".split()


@dataclass(frozen=True)
class Fact:
    """A sentence, and (question, short answer) pairs about it."""

    sentence: str
    questions: tuple[tuple[str, str], ...]


def made_up(rng: random.Random, *, capital: bool) -> str:
    """A word that there is not."""
    parts = [rng.choice(LETTERS) + rng.choice(VOWELS) for _ in range(rng.randint(1, 3))]
    word = "".join(parts) + rng.choice(["", "n", "r", "s", "l", "t", "m", "k"])
    return word.capitalize() if capital else word


def _some(words: list[str], rng: random.Random, *, capital: bool) -> str:
    return made_up(rng, capital=capital) if rng.random() < 0.35 else rng.choice(words)


def fact(rng: random.Random) -> Fact:
    """A random fact."""
    name, thing = _some(NAMES, rng, capital=True), _some(THINGS, rng, capital=False)
    place, room = _some(PLACES, rng, capital=True), _some(ROOMS, rng, capital=False)
    colour, job = _some(COLOURS, rng, capital=False), _some(JOBS, rng, capital=False)
    kind = rng.choice(("keeps", "keeps", "keeps", "lives", "is in", "colour", "job", "sold"))
    if kind == "keeps":
        return Fact(
            f"{name} keeps the {thing}.",
            ((f"Who keeps the {thing}?", name), (f"What does {name} keep?", f"the {thing}")),
        )
    if kind == "lives":
        return Fact(
            f"{name} lives in {place}.",
            ((f"Where does {name} live?", f"in {place}"), (f"Who lives in {place}?", name)),
        )
    if kind == "is in":
        return Fact(
            f"The {thing} is in the {room}.",
            ((f"Where is the {thing}?", f"in the {room}"), (f"What is in the {room}?", f"the {thing}")),
        )
    if kind == "colour":
        return Fact(f"The {thing} is {colour}.", ((f"What colour is the {thing}?", colour),))
    if kind == "job":
        return Fact(f"{name} is a {job}.", ((f"What is {name}?", f"a {job}"), (f"Who is a {job}?", name)))
    other = _some(NAMES, rng, capital=True)
    return Fact(
        f"{name} sold the {thing} to {other}.",
        (
            (f"Who sold the {thing}?", name),
            (f"Who bought the {thing}?", other),
            (f"What did {name} sell?", f"the {thing}"),
        ),
    )


@dataclass(frozen=True)
class Lesson:
    """Sentences, a question, its answer, and the place of the sentence that holds it (−1: none)."""

    sentences: tuple[str, ...]
    question: str
    answer: str
    right: int


def lesson(rng: random.Random, most: int = 12) -> Lesson:
    """Some facts, and a question about one of them, or about one that is not there."""
    facts: dict[str, Fact] = {}
    used: set[str] = set()
    for _ in range(rng.randint(1, most)):
        own = fact(rng)
        words = set(own.sentence.strip(".").split()) - {
            "keeps",
            "the",
            "The",
            "lives",
            "in",
            "is",
            "a",
            "sold",
            "to",
        }
        if not words & used:  # each name and each thing is in one fact
            used |= words
            facts[own.sentence] = own
    asked = rng.choice(list(facts.values()))
    question, answer = rng.choice(asked.questions)
    sentences = list(facts)
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 3))):
        sentences.insert(rng.randrange(len(sentences) + 1), rng.choice(FILLERS))
    if rng.random() < 0.12:
        sentences.remove(asked.sentence)
        return Lesson(tuple(sentences), question, UNKNOWN, -1)
    place = sentences.index(asked.sentence)
    if rng.random() < 0.15:
        share = rng.uniform(0.05, 0.6)
        kept = [[word for word in own.split() if rng.random() > share] for own in sentences]
        whole = kept[place] == sentences[place].split()
        shown = tuple(" ".join(own) for own in kept if own)
        right = sum(1 for own in kept[:place] if own) if whole else -1
        return Lesson(shown, question, answer if whole else UNKNOWN, right)
    return Lesson(tuple(sentences), question, answer, place)


def written(own: Lesson, rng: random.Random) -> tuple[str, str]:
    """A prompt and the answer as it follows the prompt: a plain text, sources, or a chat."""
    form = rng.random()
    if form < 0.3:
        return f"{' '.join([*own.sentences, own.question])} Answer:".strip(), f" {own.answer}"
    if form < 0.6:
        between = rng.choice([" ", "\n", "\n\n"])
        end = rng.choice(["\n\n", "\n", " "])
        after = rng.choice([" Answer:", "\nAnswer:"])
        return f"{between.join(own.sentences)}{end}{own.question}{after}", f" {own.answer}"
    told = " ".join(own.sentences)
    if rng.random() < 0.5:
        return f"<|system|>{told}<|user|>{own.question}<|assistant|>", own.answer
    return f"<|user|>{told} {own.question}<|assistant|>".replace("<|user|> ", "<|user|>"), own.answer

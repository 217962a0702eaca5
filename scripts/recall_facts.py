"""Training data of the language model `recall`: made-up facts, questions about them, and answers."""

# ruff: noqa: SIM905  lists of words are easier to read in one string

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
    """Sentence, its variable words, and (question, short answer) pairs about it."""

    sentence: str
    words: tuple[str, ...]
    questions: tuple[tuple[str, str], ...]

    def kind(self, question: str) -> str:
        """Return the question with `…` for the variable words: `Who keeps the …?`."""
        return " ".join(
            "…" + part[len(part.strip("?")) :] if part.strip("?") in self.words else part
            for part in question.split()
        )


def made_up(rng: random.Random, *, capital: bool) -> str:
    """Return a made-up word."""
    parts = [rng.choice(LETTERS) + rng.choice(VOWELS) for _ in range(rng.randint(1, 3))]
    word = "".join(parts) + rng.choice(["", "n", "r", "s", "l", "t", "m", "k"])
    return word.capitalize() if capital else word


def _some(words: list[str], rng: random.Random, *, new: bool) -> str:
    """Return a word of the list or a made-up word; every tenth of the list is `new`, not trained on."""
    if rng.random() < 0.35:
        return made_up(rng, capital=words[0][0].isupper())
    index = rng.randrange(len(words))
    while (index % 10 == 9) != new:
        index = rng.randrange(len(words))
    return words[index]


def fact(rng: random.Random, *, new: bool = False) -> Fact:
    """Return a random fact, of training words or of `new` words."""
    kind = rng.choice(("keeps", "keeps", "keeps", "lives", "is in", "colour", "job", "sold"))
    if kind == "keeps":
        name, thing = _some(NAMES, rng, new=new), _some(THINGS, rng, new=new)
        return Fact(
            f"{name} keeps the {thing}.",
            (name, thing),
            ((f"Who keeps the {thing}?", name), (f"What does {name} keep?", f"the {thing}")),
        )
    if kind == "lives":
        name, place = _some(NAMES, rng, new=new), _some(PLACES, rng, new=new)
        return Fact(
            f"{name} lives in {place}.",
            (name, place),
            ((f"Where does {name} live?", f"in {place}"), (f"Who lives in {place}?", name)),
        )
    if kind == "is in":
        thing, room = _some(THINGS, rng, new=new), _some(ROOMS, rng, new=new)
        return Fact(
            f"The {thing} is in the {room}.",
            (thing, room),
            ((f"Where is the {thing}?", f"in the {room}"), (f"What is in the {room}?", f"the {thing}")),
        )
    if kind == "colour":
        thing, colour = _some(THINGS, rng, new=new), _some(COLOURS, rng, new=new)
        question = f"What colour is the {thing}?"
        return Fact(f"The {thing} is {colour}.", (thing, colour), ((question, colour),))
    if kind == "job":
        name, job = _some(NAMES, rng, new=new), _some(JOBS, rng, new=new)
        questions = ((f"What is {name}?", f"a {job}"), (f"Who is a {job}?", name))
        return Fact(f"{name} is a {job}.", (name, job), questions)
    name, thing, other = (_some(words, rng, new=new) for words in (NAMES, THINGS, NAMES))
    return Fact(
        f"{name} sold the {thing} to {other}.",
        (name, thing, other),
        (
            (f"Who sold the {thing}?", name),
            (f"Who bought the {thing}?", other),
            (f"What did {name} sell?", f"the {thing}"),
        ),
    )


@dataclass(frozen=True)
class Lesson:
    """Sentences, question, answer, index of the sentence with the answer (−1: none), and kind."""

    sentences: tuple[str, ...]
    question: str
    answer: str
    right: int
    kind: str = ""


def lesson(rng: random.Random, most: int = 12, *, least: int = 1, new: bool = False) -> Lesson:
    """Return `least` to `most` facts and a question about one of them, or about a missing fact."""
    facts: dict[str, Fact] = {}
    used: set[str] = set()
    n_facts = rng.randint(least, most)
    while len(facts) < n_facts:
        new_fact = fact(rng, new=new)
        words = {*new_fact.words}
        if not used & words and len(words) == len(new_fact.words):  # each word is in only one fact
            used |= words
            facts[new_fact.sentence] = new_fact
    target = rng.choice(list(facts.values()))
    question, answer = rng.choice(target.questions)
    kind = target.kind(question)
    sentences = list(facts)
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 3))):
        sentences.insert(rng.randrange(len(sentences) + 1), rng.choice(FILLERS))
    if rng.random() < 0.12:
        sentences.remove(target.sentence)
        return Lesson(tuple(sentences), question, UNKNOWN, -1, kind)
    index = sentences.index(target.sentence)
    if rng.random() < 0.15:
        share = rng.uniform(0.05, 0.6)
        kept = [[word for word in sentence.split() if rng.random() > share] for sentence in sentences]
        whole = kept[index] == sentences[index].split()
        thinned = tuple(" ".join(words_kept) for words_kept in kept if words_kept)
        right = sum(1 for words_kept in kept[:index] if words_kept) if whole else -1
        return Lesson(thinned, question, answer if whole else UNKNOWN, right, kind)
    return Lesson(tuple(sentences), question, answer, index, kind)


def write_prompt(lesson: Lesson, rng: random.Random) -> tuple[str, str]:
    """Return a prompt (a plain text, sources, or a chat) and the answer as it follows the prompt."""
    form = rng.random()
    if form < 0.3:
        return f"{' '.join([*lesson.sentences, lesson.question])} Answer:".strip(), f" {lesson.answer}"
    if form < 0.6:
        between = rng.choice([" ", "\n", "\n\n"])
        end = rng.choice(["\n\n", "\n", " "])
        after = rng.choice([" Answer:", "\nAnswer:"])
        return f"{between.join(lesson.sentences)}{end}{lesson.question}{after}", f" {lesson.answer}"
    facts = " ".join(lesson.sentences)
    if rng.random() < 0.5:
        return f"<|system|>{facts}<|user|>{lesson.question}<|assistant|>", lesson.answer
    return f"<|user|>{facts} {lesson.question}<|assistant|>".replace("<|user|> ", "<|user|>"), lesson.answer

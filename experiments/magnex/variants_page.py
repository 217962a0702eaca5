"""Write what variants.py and lime_images.py found into README.md, between its markers.

python experiments/magnex/variants_page.py --results RESULTS [RESULTS ...]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from paper import NAMES as OF_TABLES
from paper import TABLES
from stages import GOALS
from variants import AROUND, READERS, VARIANTS, beside, file_of

from pertinent.stats import bootstrap, paired_difference

sys.path.append(str(Path(__file__).parents[1]))

from shared.legacy import fill_in, table

README = Path(__file__).parent / "README.md"
SEEDS = 9
NAMES = OF_TABLES | {"sentiment": "like Table 3: the embedded model of sentiment, reviews of 25 words"}
TEXTS = ("imdb", "sentiment", "squad")
WINDOWS = ("± 1", "± 5", "± 20")
ENOUGH = 0.9
"""The sufficiency above which one word explains an input, v of the fits."""
CAUSES = {
    "the question's words are features": ("question removable", "as before"),
    "learning from questions that the reader has seen": ("unseen questions", "half, seen questions"),
    "a better reader": ("better reader", "as before"),
    "the estimator": ("paper's estimator", "as before"),
    "more questions, more steps": ("more questions", "as before"),
    "more questions that the reader has not seen": ("unseen, more questions", "unseen questions"),
}
"""What could be wrong with SQuAD: the variant that changes it, and the one that is otherwise the same."""
EXACT = 0.87
"""The share of SQuAD's questions that the paper's kind of reader answers rightly (BERT-large)."""
SPARSE = 0.1
"""Selections that remove less than this share say nothing about sufficiency."""
CLEAR = 0.05
"""The p-value below which a difference is clear."""
Found = Mapping[str, Any]


def read(folders: Sequence[Path]) -> dict[str, Any]:
    """The stages that did not fail, by the names of their files."""
    found = {
        path.stem: json.loads(path.read_text()) for own in folders for path in sorted(own.rglob("*.json"))
    }
    return {name: own for name, own in found.items() if "error" not in own}


def runs(found: Found, which: str, variant: str) -> list[Any]:
    """What was found of a variant, with every seed."""
    names = [file_of(f"{which} {variant} {seed}") for seed in range(SEEDS)]
    return [found[name] for name in names if name in found]


def values(several: Sequence[Any], row: str, name: str) -> Any:
    """One number of each input (seeds, inputs)."""
    return np.array([run[row][name] for run in several], dtype=float)


def mean(several: Sequence[Any], row: str, name: str, digits: int = 3) -> str:
    """The mean over seeds and inputs with its 95% interval."""
    if not several or row not in several[0]:
        return "–"
    own = bootstrap(values(several, row, name))
    return f"{own.mean:.{digits}f} [{own.low:.{digits}f}, {own.high:.{digits}f}]"


def windows(found: Found) -> str:
    """What the words of a reader's answer are enough for."""
    rows = []
    for reader in READERS:
        own = found.get(file_of(f"windows {reader}"))
        if own is None:
            continue
        for name in (*(f"± {w}" for w in AROUND), "its sentence"):
            cells = [f"{np.mean(own[name][each]):.3f}" for each in ("sufficiency", "share removed")]
            rows.append([reader, name, *cells])
    return table(["reader", "words of the answer", "sufficiency", "sparsity"], rows)


def readers(found: Found) -> str:
    """How good the readers are."""
    rows = []
    for reader in READERS:
        own = found.get(file_of(f"reader {reader}"))
        if own is not None:
            epochs = "–" if "epochs" not in own else f"{own['epochs']:.1f}"
            rows.append([reader, epochs, f"{own['exact match']:.1%}", f"{own['F1']:.1%}"])
    return table(["reader", "epochs", "exact match", "F1"], rows)


def squad(found: Found) -> str:
    """How sufficient and sparse the selections of each variant are."""
    rows = []
    for variant in VARIANTS["squad"]:
        own = runs(found, "squad", variant)
        if not own:
            continue
        rows.append(
            [
                variant,
                mean(own, "magnex", "sufficiency"),
                mean(own, "magnex", "share removed"),
                reaches(own, "squad"),
                known_questions(own),
                " ".join(str(run["steps"]) for run in own),
                mean(own, "magnex, as many as the paper", "sufficiency"),
                mean(own[:1], "lime", "sufficiency"),
                mean(own[:1], "integrated-gradients", "sufficiency"),
                str(len(own)),
            ]
        )
    head = ["variant", "sufficiency", "sparsity", "0.88 at 0.76 is reached", "on dev questions", "steps"]
    head = [*head, "of the top 24%"]
    return table([*head, "lime, as many words", "integrated-gradients", "seeds"], rows)


def known_questions(several: Sequence[Any]) -> str:
    """The sufficiency at the sparsity of dev questions, which come from those that are learned from."""
    means = [
        np.mean([run["dev"][name] for run in several]) for name in ("dev_sufficiency", "dev_share_removed")
    ]
    return f"{means[0]:.3f} at {means[1]:.3f}"


def reaches(several: Sequence[Any], which: str) -> str:
    """Whether selections are as sufficient and as sparse as the paper's, on average."""
    if which not in GOALS:
        return "–"
    means = [values(several, "magnex", name).mean() for name in ("sufficiency", "share removed")]
    return "yes" if all(own >= goal for own, goal in zip(means, GOALS[which], strict=True)) else "no"


def causes(found: Found) -> str:
    """What each cause has to do with the sufficiency that is missing."""
    rows = []
    first = runs(found, "squad", "as before")
    if not first:
        return table(["cause"], rows)
    reached = values(first, "magnex", "sufficiency")
    missing = GOALS["squad"][0] - reached.mean()
    on_dev = np.mean([run["dev"]["dev_sufficiency"] for run in first])
    of_reader = {"the reader has not seen the questions: dev − test": on_dev - reached.mean()}
    if (readings := found.get(file_of("windows as before"))) is not None:
        name = f"the reader is right too seldom: {EXACT:.0%} instead"
        of_reader[name] = weighed(reached, rightness(readings)) - reached.mean()
    for cause, gap in of_reader.items():
        rows.append([cause, "as before", f"{gap:.3f}", "–", f"{min(1.0, gap / missing):.0%}"])
    for cause, pair in CAUSES.items():
        with_it, without = (runs(found, "squad", variant) for variant in pair)
        if with_it and without:
            gaps = [difference(with_it, without, name) for name in ("sufficiency", "share removed")]
            sparsity = values(with_it, "magnex", "share removed").mean()
            told = explains(gaps[0], missing, sparsity)
            rows.append([cause, f"{pair[0]} − {pair[1]}", *map(str, gaps), told])
    return table(["cause", "compared", "sufficiency", "sparsity", "explains what is missing"], rows)


def explains(gap: Any, missing: float, sparsity: float) -> str:
    """Whether a difference of sufficiency is clear, and how much of what is missing it is.

    A variant that is less sparse than the paper's explainer explains nothing.
    """
    if gap.high <= 0:
        return "no"
    if sparsity < GOALS["squad"][1]:
        return f"no: a sparsity of {sparsity:.2f}"
    if gap.p_value < CLEAR:
        return f"{min(1.0, gap.mean / missing):.0%}"
    return f"not clearly, at most {min(1.0, gap.high / missing):.0%}"


def by_rightness(found: Found) -> str:
    """The sufficiency of selections where the reader is right and where it is not.

    The last column weighs both as if it were right as often as the paper's reader.
    """
    rows = []
    for variant, setting in VARIANTS["squad"].items():
        own, readings = runs(found, "squad", variant), found.get(file_of(f"windows {setting.reader}"))
        if not own or readings is None or values(own, "magnex", "share removed").mean() < SPARSE:
            continue
        right = rightness(readings)
        for row in ("magnex", "lime"):
            several = own if row == "magnex" else own[:1]
            if row in several[0]:
                each = values(several, row, "sufficiency")
                rightly, wrongly = bootstrap(each[:, right]), bootstrap(each[:, ~right])
                cells = [str(rightly), str(wrongly), f"{weighed(each, right):.3f}"]
                rows.append([variant, row, f"{right.mean():.1%}", *cells])
    head = ["variant", "method", "answered rightly", "sufficiency, of these", "of the others"]
    return table([*head, f"if {EXACT:.0%} were right"], rows)


def rightness(readings: Any) -> Any:
    """Which questions the reader answers rightly."""
    return np.array([each["exact match"] for each in readings["readings"]]) > 0


def weighed(sufficiency: Any, right: Any) -> float:
    """The mean over seeds and questions as if the reader were right as often as the paper's."""
    return float(EXACT * sufficiency[:, right].mean() + (1 - EXACT) * sufficiency[:, ~right].mean())


def difference(own: Sequence[Any], other: Sequence[Any], name: str = "sufficiency") -> Any:
    """Of two variants on the same inputs, each the mean over its seeds."""
    return paired_difference(*(values(each, "magnex", name).mean(axis=0) for each in (own, other)))


def by_certainty(found: Found) -> str:
    """What the words around an answer are enough for, by how sure and how right the reader is."""
    rows = []
    for reader in READERS:
        own = found.get(file_of(f"windows {reader}"))
        if own is None:
            continue
        sure = np.array([each["certainty"] for each in own["readings"]])
        right = rightness(own)
        low, high = np.quantile(sure, [1 / 3, 2 / 3])
        parts = {
            f"certainty below {low:.2f}": sure < low,
            f"{low:.2f} to {high:.2f}": (sure >= low) & (sure < high),
            f"above {high:.2f}": sure >= high,
            "answered rightly": right,
            "wrongly": ~right,
        }
        for name, mask in parts.items():
            each = [np.array(own[w]["sufficiency"])[mask] for w in WINDOWS]
            rows.append([reader, name, str(int(mask.sum())), *(str(bootstrap(one[None])) for one in each)])
    return table(["reader", "questions", "number", *(f"the answer {w} words" for w in WINDOWS)], rows)


def question_words(found: Found) -> str:
    """What is kept of questions and of contexts where both may be removed."""
    rows = []
    for variant, own in VARIANTS["squad"].items():
        several = [] if own.fix_question else runs(found, "squad", variant)
        if several and values(several, "magnex", "share removed").mean() >= SPARSE:
            inside, of_it, features = (
                values(several, "magnex", name) for name in ("in the question", "of the question", "features")
            )
            kept = features * (1 - values(several, "magnex", "share removed"))
            shares = [inside.sum() / of_it.sum(), (kept - inside).sum() / (features - of_it).sum()]
            rows.append([variant, *(f"{1 - each:.3f}" for each in shares)])
    return table(["variant", "sparsity of the question", "of the context"], rows)


def estimators(found: Found) -> str:
    """The paper's estimator beside ours, in every table."""
    rows = []
    for which in VARIANTS:
        ours, papers = (runs(found, which, name) for name in ("as before", "paper's estimator"))
        for name, own in (("leave one out", ours), ("moving average, one mask (paper)", papers)):
            if own:
                quality = [np.mean(each["history"][-3:]) for each in own]
                rows.append(
                    [
                        NAMES[which],
                        name,
                        mean(own, "magnex", "sufficiency"),
                        mean(own, "magnex", "share removed"),
                        reaches(own, which),
                        f"{np.mean(quality):.3f}",
                        " ".join(str(each["steps"]) for each in own),
                        f"{np.mean([each['fit seconds'] for each in own]):.0f}",
                        str(len(own)),
                    ]
                )
        if ours and papers:
            gaps = [str(difference(papers, ours, name)) for name in ("sufficiency", "share removed")]
            rows.append([NAMES[which], "difference", *gaps, "", "–", "", "–", ""])
    head = ["", "estimator", "sufficiency", "sparsity", "the paper's is reached", "quality, dev", "steps"]
    return table([*head, "seconds of a fit", "seeds"], rows)


def hindsight(found: Found) -> str:
    """How much rests on one feature, and what is lost without what is kept."""
    rows = []
    for which in TEXTS:
        several = runs(found, which, "as before")
        for row in ("magnex", *beside(which)):
            own = several if row == "magnex" else several[:1]
            if own and row in own[0]:
                kept = values(own, row, "features") * (1 - values(own, row, "share removed"))
                rows.append(
                    [
                        NAMES[which],
                        row,
                        f"{np.mean(kept):.1f}",
                        f"{np.mean(kept < 1.5):.1%}",
                        f"{np.mean(values(own, row, 'of one') > ENOUGH):.1%}",
                        f"{np.median(values(own, row, 'large')):.0f}",
                        mean(own, row, "comprehensiveness"),
                        "" if row == "magnex" else ahead(several[0], row, "of one"),
                        "" if row == "magnex" else ahead(several[0], row, "comprehensiveness"),
                    ]
                )
    head = ["", "method", "features kept", "inputs with one", f"one alone is enough (above {ENOUGH})"]
    head += ["scores of at least half the largest, median", "comprehensiveness"]
    return table([*head, "of one: magnex − it", "comprehensiveness: magnex − it"], rows)


def ahead(run: Any, row: str, name: str) -> str:
    """By how much magnex is ahead of another method on the same inputs."""
    return str(paired_difference(*(np.array(run[each][name], dtype=float) for each in ("magnex", row))))


def seconds(found: Found) -> str:
    """Seconds for one input at a time: medians, with other work on the machine."""
    rows = []
    for which in VARIANTS:
        several = [own for own in runs(found, which, "as before") if "seconds" in own]
        for row in ("prediction", "magnex", *beside(which)) if several else ():
            paper = TABLES.get(which, {}).get(row)
            cells = "–" if paper is None else f"{paper[2][0]:.2f}"
            rows.append([NAMES[which], row, cells, f"{np.median(several[0]['seconds'][row]):.3f}"])
    return table(["", "method", "seconds, paper", "here"], rows)


def together(found: Found) -> str:
    """Many texts at once, with one pass of the encoder for prediction and hidden states, and with two."""
    rows = []
    for which in TEXTS:
        several = [own["together"] for own in runs(found, which, "as before") if "together" in own]
        for own in several[:1]:
            box = own["prediction"]
            cells = [f"{own[row]:.2f} s, {own[row] / box:.2f}×" for row in ("magnex", "magnex, two passes")]
            rows.append([NAMES[which], str(own["inputs"]), f"{box:.2f} s", *cells])
    return table(["", "inputs", "predictions alone", "magnex, one pass", "two passes"], rows)


def lime_images(found: Found) -> str:
    """Of LIME's variants on the convolutional network."""
    rows = []
    for name, own in found.get("lime_images", {}).items():
        used = np.mean(own["used"])
        rows.append([name, str(bootstrap(np.array([own["sufficiency"]]))), f"{used:.0f}"])
    return table(["LIME", "sufficiency of its top pixels", "pixels with a score"], rows)


PARTS = {
    "readers": readers,
    "windows": windows,
    "squad": squad,
    "causes": causes,
    "rightness": by_rightness,
    "certainty": by_certainty,
    "question": question_words,
    "paper's estimator": estimators,
    "hindsight": hindsight,
    "one by one": seconds,
    "together": together,
    "lime on images": lime_images,
}


def main() -> None:
    """Put each table between its markers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, nargs="+", required=True)
    parser.add_argument("--page", type=Path, default=README)
    parser.add_argument("--show", action="store_true", help="print the tables instead")
    arguments = parser.parse_args()
    found = read(arguments.results)
    made = {name: make(found) for name, make in PARTS.items()}
    tables = {name: own for name, own in made.items() if own.count("\n") > 2}  # those with rows
    if arguments.show:
        print("\n".join(f"{name}\n\n{own}" for name, own in tables.items()))
    else:
        fill_in(arguments.page, tables)


if __name__ == "__main__":
    main()

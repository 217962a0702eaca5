"""Tables of the paper with ours next to them, and of what explains the differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.magnex.fits import BOXES, GOALS, GRID, NAMES, PUBLISHED, VARIANTS, choose, other_methods
from experiments.magnex.lime_images import VARIANTS as LIME_VARIANTS
from experiments.magnex.measuring import AROUND, AS_PAPER, record_of
from experiments.magnex.models import READERS
from experiments.shared.intervals import show
from experiments.shared.pages import MISSING, table
from pertinent.array_types import Floats, Masks
from pertinent.stats import Difference, bootstrap, paired_difference

SEEDS = 9
TEXTS = ("imdb", "sentiment", "squad")
WINDOWS = ("± 1", "± 5", "± 20")
ENOUGH = 0.9
"""Sufficiency above which one word explains an input, v of the fits."""
CAUSES = {
    "the question's words are features": ("question removable", "as before"),
    "learning from questions that the reader has seen": ("unseen questions", "half, seen questions"),
    "a better reader": ("better reader", "as before"),
    "the estimator": ("paper's estimator", "as before"),
    "more questions, more steps": ("more questions", "as before"),
    "more questions that the reader has not seen": ("unseen, more questions", "unseen questions"),
}
"""Possible causes of the result on SQuAD: the variant with the cause, and the one without."""
EXACT = 0.87
"""Share of SQuAD's questions that the paper's kind of reader answers correctly (BERT-large)."""
SPARSE = 0.1
"""Selections that remove a smaller share say nothing about sufficiency."""
CLEAR = 0.05
"""p-value below which a difference is clear."""
SUFFICIENCY, SPARSITY = "sufficiency", "share removed"
Records = Mapping[str, Any]
"""Records by the stem of their file."""


def record(records: Records, name: str) -> Any:
    """Return a record; ``None`` if it is missing."""
    return records.get(record_of(name).removesuffix(".json"))


def runs(records: Records, box: str, variant: str) -> list[Any]:
    """Return the records of a variant, with every seed."""
    names = [f"{box} {variant} {seed}" for seed in range(SEEDS)]
    return [own for name in names if (own := record(records, name)) is not None]


def values(several: Sequence[Any], row: str, name: str) -> Floats:
    """Return a number of each input (seeds, inputs)."""
    return np.array([run[row][name] for run in several], dtype=float)


def mean(several: Sequence[Any], row: str, name: str) -> str:
    """Return the mean over seeds and inputs with its 95% interval."""
    if not several or row not in several[0]:
        return MISSING
    return show(bootstrap(values(several, row, name)), ".3f")


def mean_and_deviation(several: Sequence[Any], row: str, name: str) -> str:
    """Return the mean with a 95% interval over inputs and initializations, and the deviation over inputs."""
    if not several or row not in several[0]:
        return MISSING
    own = values(several, row, name)
    return f"{bootstrap(own)} ± {own.std(axis=1).mean():.2f}"


def means(several: Sequence[Any]) -> list[float]:
    """Return the mean sufficiency and the mean sparsity of selections."""
    return [float(values(several, "magnex", name).mean()) for name in (SUFFICIENCY, SPARSITY)]


def reaches(several: Sequence[Any], box: str) -> str:
    """Return whether selections are as sufficient and as sparse as the paper's, on average."""
    if box not in GOALS:
        return MISSING
    return "yes" if all(own >= goal for own, goal in zip(means(several), GOALS[box], strict=True)) else "no"


# -- the paper's tables -------------------------------------------------------------------------


def main_tables(records: Records) -> str:
    """Return the paper's tables."""
    parts = []
    for box in BOXES:
        fits, timings = runs(records, box, "fit"), record(records, f"{box} timings")
        rows = []
        for row, printed in PUBLISHED[box].items() if fits else ():
            paper = [f"{cell[0]:.2f} ± {cell[1]:.2f}" if cell else MISSING for cell in printed]
            ours = [mean_and_deviation(fits, row, name) for name in (SPARSITY, SUFFICIENCY)]
            ours.append(MISSING if timings is None else f"{np.mean(timings['seconds'][row]):.3f}")
            rows.append([row, *(cell for pair in zip(paper, ours, strict=True) for cell in pair)])
        head = ["method", "sparsity, paper", "here", "sufficiency, paper", "here", "seconds, paper", "here"]
        if rows:
            cells = {
                row: mean_and_deviation(fits, f"{row}, {AS_PAPER}", SUFFICIENCY) for row in PUBLISHED[box]
            }
            share = f"\nSufficiency of the top {1 - GOALS[box][1]:.0%} of each input: "
            share += ", ".join(f"{row} {cell}" for row, cell in cells.items())
            parts.append(f"**{NAMES[box]}.** {accuracy(records, box)}\n\n{table(head, rows)}{share}.\n")
    return "\n".join(parts)


def accuracy(records: Records, box: str) -> str:
    """Return how good a black box is."""
    own = record(records, GRID[box][0].box_record) or {}
    shown = [name for name in own if name in ("accuracy", "F1", "exact match")]
    return ", ".join(f"{name} {own[name]:.1%}" for name in shown)


def goals(records: Records) -> str:
    """Return the goals, and whether they were reached."""
    rows = []
    for box, (su, sp) in GOALS.items():
        fits = runs(records, box, "fit")
        if fits:
            each = [means([fit]) for fit in fits]
            overall = means(fits)
            reached = sum(a >= su and b >= sp for a, b in each)
            rows.append(
                [
                    NAMES[box],
                    f"{su:.2f} at {sp:.2f}",
                    f"{overall[0]:.3f} at {overall[1]:.3f}",
                    "; ".join(f"{a:.3f} at {b:.3f}" for a, b in each),
                    reaches(fits, box),
                    f"{reached} of {len(each)}",
                ]
            )
    head = ["", "goal: sufficiency at sparsity", "mean", "each initialisation", "reached"]
    return table([*head, "by initialisations"], rows)


def grid(records: Records) -> str:
    """Return the selections of dev inputs by v and learning rate."""
    rows = []
    for box in BOXES:
        tried = {fit.setting: record(records, fit.setting) for fit in GRID[box]}
        tried = {name: own for name, own in tried.items() if own is not None}
        chosen = choose(box, tried)
        for fit in GRID[box]:
            if fit.setting in tried:
                dev = [f"{np.mean(tried[fit.setting][name]):.3f}" for name in (SUFFICIENCY, SPARSITY)]
                note = "chosen" if fit == chosen else ""
                rows.append([NAMES[box], f"{fit.v:g}", f"{fit.learning_rate:g}", *dev, note])
    return table(["", "v", "learning rate", "sufficiency, dev", "sparsity, dev", ""], rows)


def differences(records: Records) -> str:
    """Return MAGNEx against the others at the same number of features of each input."""
    rows = []
    for box in BOXES:
        fits = runs(records, box, "fit")
        for method in other_methods(box) if fits else ():
            pair = (values(fits, row, SUFFICIENCY) for row in ("magnex", method))
            rows.append([NAMES[box], method, str(paired_difference(*pair))])
    return table(["", "against", "sufficiency of magnex − of it"], rows)


def estimators(records: Records) -> str:
    """Return the estimators of the gradient."""
    own, rows = records.get("estimators"), []
    for name in own["variance"]["late"] if own else ():
        qualities = own["quality"].get(name, [])
        variances = [own["variance"].get(when, {}).get(name) for when in ("early", "late")]
        rows.append(
            [
                name,
                *(MISSING if value is None else f"{value:.3g}" for value in variances),
                f"{np.mean(qualities):.3f}" if qualities else MISSING,
                ", ".join(f"{quality:.3f}" for quality in qualities),
            ]
        )
    head = ["estimator", "variance for one evaluation, early", "late"]
    return table([*head, "quality after as many evaluations", "each seed"], rows)


def speed(records: Records) -> str:
    """Return the seconds of many inputs together, and of the black box's predictions of them."""
    rows = []
    for box in BOXES:
        timings = record(records, f"{box} timings")
        if timings is not None:
            together = timings["together"]
            ours, plain = together["magnex"], together["prediction"]
            cells = [together["device"], str(together["inputs"]), f"{plain:.2f} s", f"{ours:.2f} s"]
            rows.append([NAMES[box], *cells, f"{ours / plain:.2f}×"])
    return table(["", "device", "inputs", "predictions alone", "magnex, with predictions", "ratio"], rows)


# -- why SQuAD misses ---------------------------------------------------------------------------


def windows(records: Records) -> str:
    """Return the sufficiency of the words of a reader's answer, with the words around it."""
    rows = []
    for reader in READERS:
        own = record(records, f"windows {reader}") or {}
        for name in (*(f"± {w}" for w in AROUND), "its sentence"):
            if name in own:
                cells = [f"{np.mean(own[name][each]):.3f}" for each in (SUFFICIENCY, SPARSITY)]
                rows.append([reader, name, *cells])
    return table(["reader", "words of the answer", "sufficiency", "sparsity"], rows)


def readers(records: Records) -> str:
    """Return how good the readers are."""
    rows = []
    for reader in READERS:
        own = record(records, f"reader {reader}")
        if own is not None:
            cells = [f"{own['epochs']:.1f}", f"{own['exact match']:.1%}", f"{own['F1']:.1%}"]
            rows.append([reader, *cells])
    return table(["reader", "epochs", "exact match", "F1"], rows)


def squad(records: Records) -> str:
    """Return how sufficient and sparse the selections of each variant are."""
    rows = []
    for variant in VARIANTS["squad"]:
        own = runs(records, "squad", variant)
        if own:
            rows.append(
                [
                    variant,
                    *(mean(own, "magnex", name) for name in (SUFFICIENCY, SPARSITY)),
                    reaches(own, "squad"),
                    dev_questions(own),
                    " ".join(str(run["steps"]) for run in own),
                    mean(own, f"magnex, {AS_PAPER}", SUFFICIENCY),
                    *(mean(own[:1], row, SUFFICIENCY) for row in ("lime", "integrated-gradients")),
                    str(len(own)),
                ]
            )
    head = ["variant", "sufficiency", "sparsity", "0.88 at 0.76 is reached", "on dev questions", "steps"]
    head += ["of the top 24%", "lime, as many words", "integrated-gradients", "seeds"]
    return table(head, rows)


def dev_questions(several: Sequence[Any]) -> str:
    """Return the sufficiency at the sparsity of dev questions, which are of those that are learned from."""
    names = ("dev_sufficiency", "dev_share_removed")
    dev = [np.mean([run["dev"][name] for run in several]) for name in names]
    return f"{dev[0]:.3f} at {dev[1]:.3f}"


def causes(records: Records) -> str:
    """Return how much of the missing sufficiency each cause explains."""
    rows = []
    first = runs(records, "squad", "as before")
    if not first:
        return ""
    reached = values(first, "magnex", SUFFICIENCY)
    missing = GOALS["squad"][0] - reached.mean()
    on_dev = np.mean([run["dev"]["dev_sufficiency"] for run in first])
    of_reader = {"the reader has not seen the questions: dev − test": on_dev - reached.mean()}
    if (readings := record(records, "windows as before")) is not None:
        name = f"the reader is right too seldom: {EXACT:.0%} instead"
        of_reader[name] = weigh(reached, is_right(readings)) - reached.mean()
    for cause, gap in of_reader.items():
        rows.append([cause, "as before", f"{gap:.3f}", MISSING, f"{min(1.0, gap / missing):.0%}"])
    for cause, pair in CAUSES.items():
        with_it, without = (runs(records, "squad", variant) for variant in pair)
        if with_it and without:
            gaps = [difference(with_it, without, name) for name in (SUFFICIENCY, SPARSITY)]
            share = explained_share(gaps[0], missing, means(with_it)[1])
            rows.append([cause, f"{pair[0]} − {pair[1]}", *map(str, gaps), share])
    return table(["cause", "compared", "sufficiency", "sparsity", "explains what is missing"], rows)


def explained_share(gap: Difference, missing: float, sparsity: float) -> str:
    """Return whether a difference of sufficiency is clear, and which share of the missing one it is.

    A variant that is less sparse than the paper's explainer explains nothing.
    """
    if gap.high <= 0:
        return "no"
    if sparsity < GOALS["squad"][1]:
        return f"no: a sparsity of {sparsity:.2f}"
    if gap.p_value < CLEAR:
        return f"{min(1.0, gap.mean / missing):.0%}"
    return f"not clearly, at most {min(1.0, gap.high / missing):.0%}"


def by_rightness(records: Records) -> str:
    """Return the sufficiency of selections where the reader is right and where it is not.

    The last column weighs both as if the reader were right as often as the paper's.
    """
    rows = []
    for variant, fit in VARIANTS["squad"].items():
        own, readings = runs(records, "squad", variant), record(records, f"windows {fit.reader}")
        if not own or readings is None or means(own)[1] < SPARSE:
            continue
        right = is_right(readings)
        for row in ("magnex", "lime"):
            several = own if row == "magnex" else own[:1]
            if row in several[0]:
                each = values(several, row, SUFFICIENCY)
                cells = [str(bootstrap(each[:, mask])) for mask in (right, ~right)]
                rows.append([variant, row, f"{right.mean():.1%}", *cells, f"{weigh(each, right):.3f}"])
    head = ["variant", "method", "answered rightly", "sufficiency, of these", "of the others"]
    return table([*head, f"if {EXACT:.0%} were right"], rows)


def is_right(readings: Any) -> Masks:
    """Return which questions the reader answers correctly."""
    return np.array([each["exact match"] for each in readings["readings"]]) > 0


def weigh(sufficiency: Floats, right: Masks) -> float:
    """Return the mean over seeds and questions as if the reader were right as often as the paper's."""
    return float(EXACT * sufficiency[:, right].mean() + (1 - EXACT) * sufficiency[:, ~right].mean())


def difference(own: Sequence[Any], other: Sequence[Any], name: str) -> Difference:
    """Return the difference of two variants on the same inputs, each the mean over its seeds."""
    return paired_difference(*(values(each, "magnex", name).mean(axis=0) for each in (own, other)))


def by_certainty(records: Records) -> str:
    """Return the sufficiency of the words around an answer, by certainty and correctness of the reader."""
    rows = []
    for reader in READERS:
        own = record(records, f"windows {reader}")
        if own is None:
            continue
        certainty, right = np.array([each["certainty"] for each in own["readings"]]), is_right(own)
        low, high = np.quantile(certainty, [1 / 3, 2 / 3])
        parts = {
            f"certainty below {low:.2f}": certainty < low,
            f"{low:.2f} to {high:.2f}": (certainty >= low) & (certainty < high),
            f"above {high:.2f}": certainty >= high,
            "answered rightly": right,
            "wrongly": ~right,
        }
        for name, mask in parts.items():
            each = [np.array([own[window][SUFFICIENCY]])[:, mask] for window in WINDOWS]
            rows.append([reader, name, str(int(mask.sum())), *(str(bootstrap(one)) for one in each)])
    return table(["reader", "questions", "number", *(f"the answer {w} words" for w in WINDOWS)], rows)


def question_words(records: Records) -> str:
    """Return the sparsity of questions and of contexts where both may be removed."""
    rows = []
    for variant, fit in VARIANTS["squad"].items():
        several = [] if fit.fix_question else runs(records, "squad", variant)
        if several and means(several)[1] >= SPARSE:
            names = ("in the question", "of the question", "features")
            inside, question, features = (values(several, "magnex", name) for name in names)
            kept = features * (1 - values(several, "magnex", SPARSITY))
            shares = [inside.sum() / question.sum(), (kept - inside).sum() / (features - question).sum()]
            rows.append([variant, *(f"{1 - share:.3f}" for share in shares)])
    return table(["variant", "sparsity of the question", "of the context"], rows)


# -- estimators, hindsight bias and seconds -----------------------------------------------------


def papers_estimator(records: Records) -> str:
    """Return the paper's estimator and ours, for every table."""
    rows = []
    for box in VARIANTS:
        ours, papers = (runs(records, box, name) for name in ("as before", "paper's estimator"))
        for name, own in (("leave one out", ours), ("moving average, one mask (paper)", papers)):
            if own:
                rows.append(
                    [
                        NAMES[box],
                        name,
                        *(mean(own, "magnex", each) for each in (SUFFICIENCY, SPARSITY)),
                        reaches(own, box),
                        f"{np.mean([np.mean(run['history'][-3:]) for run in own]):.3f}",
                        " ".join(str(run["steps"]) for run in own),
                        f"{np.mean([run['fit seconds'] for run in own]):.0f}",
                        str(len(own)),
                    ]
                )
        if ours and papers:
            gaps = [str(difference(papers, ours, name)) for name in (SUFFICIENCY, SPARSITY)]
            rows.append([NAMES[box], "difference", *gaps, "", MISSING, "", MISSING, ""])
    head = ["", "estimator", "sufficiency", "sparsity", "the paper's is reached", "quality, dev", "steps"]
    return table([*head, "seconds of a fit", "seeds"], rows)


def hindsight(records: Records) -> str:
    """Return how much depends on one feature, and what is lost without the selection."""
    rows = []
    for box in TEXTS:
        several = runs(records, box, "as before")
        for row in ("magnex", *other_methods(box)):
            own = several if row == "magnex" else several[:1]
            if not own or row not in own[0]:
                continue
            kept = values(own, row, "features") * (1 - values(own, row, SPARSITY))
            leads = [
                "" if row == "magnex" else lead(several[0], row, name)
                for name in ("of one", "comprehensiveness")
            ]
            rows.append(
                [
                    NAMES[box],
                    row,
                    f"{np.mean(kept):.1f}",
                    f"{np.mean(kept < 1.5):.1%}",
                    f"{np.mean(values(own, row, 'of one') > ENOUGH):.1%}",
                    f"{np.median(values(own, row, 'large')):.0f}",
                    mean(own, row, "comprehensiveness"),
                    *leads,
                ]
            )
    head = ["", "method", "features kept", "inputs with one", f"one alone is enough (above {ENOUGH})"]
    head += ["scores of at least half the largest, median", "comprehensiveness"]
    return table([*head, "of one: magnex − it", "comprehensiveness: magnex − it"], rows)


def lead(run: Any, row: str, name: str) -> str:
    """Return by how much magnex is ahead of another method on the same inputs."""
    return str(paired_difference(*(values([run], each, name)[0] for each in ("magnex", row))))


def seconds(records: Records) -> str:
    """Return seconds for one input at a time: medians, with other work on the machine."""
    rows = []
    for box in VARIANTS:
        several = [own for own in runs(records, box, "as before") if "seconds" in own]
        for row in ("prediction", "magnex", *other_methods(box)) if several else ():
            printed = PUBLISHED.get(box, {}).get(row)
            paper = MISSING if printed is None else f"{printed[2][0]:.2f}"
            rows.append([NAMES[box], row, paper, f"{np.median(several[0]['seconds'][row]):.3f}"])
    return table(["", "method", "seconds, paper", "here"], rows)


def together(records: Records) -> str:
    """Return seconds of many texts, with one pass of the encoder and with two."""
    rows = []
    for box in TEXTS:
        several = [own["together"] for own in runs(records, box, "as before") if "together" in own]
        for own in several[:1]:
            plain = own["prediction"]
            names = ("magnex", "magnex, two passes")
            cells = [f"{own[name]:.2f} s, {own[name] / plain:.2f}×" for name in names]
            rows.append([NAMES[box], str(own["inputs"]), f"{plain:.2f} s", *cells])
    return table(["", "inputs", "predictions alone", "magnex, one pass", "two passes"], rows)


def lime_images(records: Records) -> str:
    """Return LIME's variants on the convolutional network."""
    rows, stored = [], records.get("lime_images", {})
    for name in [name for name in LIME_VARIANTS if name in stored]:
        own = stored[name]
        rows.append([name, str(bootstrap(np.array([own["sufficiency"]]))), f"{np.mean(own['used']):.0f}"])
    return table(["LIME", "sufficiency of its top pixels", "pixels with a score"], rows)


PARTS: dict[str, Callable[[Records], str]] = {
    "goals": goals,
    "grid": grid,
    "tables": main_tables,
    "differences": differences,
    "estimators": estimators,
    "speed": speed,
    "readers": readers,
    "windows": windows,
    "squad": squad,
    "causes": causes,
    "rightness": by_rightness,
    "certainty": by_certainty,
    "question": question_words,
    "paper's estimator": papers_estimator,
    "hindsight": hindsight,
    "one by one": seconds,
    "together": together,
    "lime on images": lime_images,
}

"""Tables on texts (Tables 1, 2, 3 and 9)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.hsieh2021 import paper
from experiments.hsieh2021.comparisons import OPTIMIZED
from experiments.hsieh2021.records import Records
from experiments.hsieh2021.text_criteria import WORDS
from experiments.hsieh2021.texts import METHODS, MODELS, experiment
from experiments.shared.intervals import (
    count_verdicts,
    difference,
    holds,
    interval,
    number,
    show,
    show_mean,
    verdict,
)
from experiments.shared.pages import MISSING, table
from pertinent.array_types import Floats

Criterion = tuple[str, str]
"""A metric, and the removal if it is not that of zero vectors."""
CRITERIA: dict[Criterion, tuple[str, int, str]] = {
    ("robustness of irrelevant", ""): ("Robustness-S̄r", +1, "radii of attacks on all but the first words"),
    ("robustness of relevant", ""): ("Robustness-Sr", -1, "radii of attacks on the first words alone"),
    ("insertion", "random-token"): ("Insertion, random words", +1, "the first words among random ones"),
    ("deletion", "random-token"): ("Deletion, random words", -1, "the first words replaced by random ones"),
    ("insertion", ""): ("Insertion, zero vectors", +1, "all but the first words zero vectors"),
    ("deletion", ""): ("Deletion, zero vectors", -1, "the first words zero vectors"),
}
"""Title, the sign by which larger is better, and what is measured."""
N_EXAMPLES = 4
SHOWN = ("greedy-as", "greedy-as, relevant", "gradient", "integrated-gradients", "shapley", "counterfactual")
Verdicts = Mapping[str, Mapping[Criterion, str]]
"""Win, draw or loss against each row, by each criterion."""


@dataclass(frozen=True)
class Results:
    """Measures of one model."""

    records: Records
    kind: str

    @property
    def name(self) -> str:
        """Return the name of the model."""
        return MODELS[self.kind]

    def values(self, row: str, metric: str, **settings: object) -> Floats | None:
        """Return the values of each text."""
        return self.records.values(experiment(self.kind), row, metric, **settings)

    def number(self, row: str, metric: str) -> float:
        """Return the mean over texts; NaN if nothing was measured."""
        values = self.values(row, metric)
        return np.nan if values is None else float(np.mean(values))

    def curves(self, row: str, criterion: Criterion, *, limited: bool = True) -> Floats | None:
        """Return the curve (texts, 5) over one to five words.

        A `limited` radius is at most the norm of the text's word embeddings.
        """
        metric, removal = criterion
        curves = self.values(row, metric, **({"removal": removal} if removal else {}))
        if curves is not None and metric.startswith("robustness") and limited:
            norms = self.values(MISSING, "norm")
            assert norms is not None
            curves = np.minimum(np.where(np.isnan(curves), np.inf, curves), norms[:, None])
        return curves

    def areas(self, row: str, criterion: Criterion, *, limited: bool = True) -> Floats | None:
        """Return the area under the curve of each text."""
        curves = self.curves(row, criterion, limited=limited)
        return None if curves is None else np.asarray(np.trapezoid(curves, np.arange(1, WORDS + 1), axis=1))

    def limited_share(self, row: str) -> float:
        """Return the share of attacks on relevant words whose radius is limited."""
        curves, norms = self.values(row, "robustness of relevant"), self.values(MISSING, "norm")
        if curves is None or norms is None:
            return np.nan
        return float((np.where(np.isnan(curves), np.inf, curves) > norms[:, None]).mean())

    @property
    def rows(self) -> list[str]:
        """Return the methods that were measured."""
        return [row for row in METHODS if self.areas(row, ("deletion", "random-token")) is not None]

    def verdicts(self, one: str, *, limited: bool = True) -> Verdicts:
        """Return a row against every other but Greedy-AS, by the paired bootstrap at 95%."""
        others = [other for other in self.rows if other not in OPTIMIZED]
        found: dict[str, dict[Criterion, str]] = {other: {} for other in others}
        for other in others:
            for criterion, (_, sign, _) in CRITERIA.items():
                a, b = (self.areas(row, criterion, limited=limited) for row in (one, other))
                word = verdict(difference(a, b))
                reverse = {"win": "loss", "loss": "win"}
                found[other][criterion] = word if sign > 0 else reverse.get(word, word)
        return found


def count(verdicts: Verdicts, criterion: Criterion, rows: Collection[str] | None = None) -> str:
    """Return text such as ``7 wins, 2 draws, 0 losses``."""
    return count_verdicts([own[criterion] for row, own in verdicts.items() if rows is None or row in rows])


def every_model(records: Records) -> list[Results]:
    """Return the results of all models."""
    return [Results(records, kind) for kind in MODELS]


def models(records: Records) -> str:
    """Return the accuracy of the models, the number of texts, and the limit of radii."""
    rows = []
    for own in every_model(records):
        norms = own.values(MISSING, "norm")
        if norms is not None:
            shares = [own.limited_share(row) for row in ("random", "greedy-as")]
            cells = [f"{own.number(MISSING, 'accuracy'):.1%}", str(len(norms)), f"{norms.mean():.1f}"]
            rows.append([own.name, *cells, *(f"{share:.1%}" for share in shares)])
    head = ["model", "accuracy", "texts explained", "norm of a text's embeddings, on average"]
    return table([*head, "attacks on words of `random` beyond it", "of `greedy-as`"], rows)


def conclusions(records: Records) -> str:
    """Return what the verdicts say: Greedy-AS by the criterion that it optimizes, and by the others."""
    rows = []
    for own in every_model(records):
        for one, metric in OPTIMIZED.items():
            if one not in own.rows:
                continue
            verdicts, unlimited = (own.verdicts(one, limited=limited) for limited in (True, False))
            for criterion, (title, _, _) in CRITERIA.items():
                name = f"{title}, its own" if criterion[0] == metric else title
                cells = count(verdicts, criterion), count(verdicts, criterion, paper.OF_TEXTS)
                rows.append([own.name, one, name, *cells, count(unlimited, criterion)])
    head = ["model", "method", "criterion", "against all", "against the paper's rows", "radii without limit"]
    return table(head, rows)


def ranks(records: Records) -> str:
    """Return the order of the methods by each criterion, and the paper's."""
    rows = []
    for criterion, (title, sign, _) in CRITERIA.items():
        cells = []
        for own in every_model(records):
            means = {
                row: sign * mean.mean
                for row in own.rows
                if (mean := interval(own.areas(row, criterion))) is not None
            }
            cells.append(ends(sorted(means, key=lambda row: -means[row])))
        known = {row: sign * (paper.area_of_texts(*criterion, row) or 0.0) for row in paper.OF_TEXTS}
        rows.append([title, ends(sorted(known, key=lambda row: -known[row])), *cells])
    return table(["criterion", "paper: best three, and last", *MODELS.values()], rows)


def ends(order: Sequence[str]) -> str:
    """Return the first three and the last."""
    return f"{', '.join(f'`{row}`' for row in order[:3])}; last `{order[-1]}`" if order else MISSING


def criteria(records: Records) -> str:
    """Return a table for each criterion: the paper and all models."""
    parts = []
    for criterion, (title, sign, text) in CRITERIA.items():
        rows = []
        for row in METHODS:
            published = number(paper.area_of_texts(*criterion, row), missing=MISSING)
            cells = [show_mean(own.areas(row, criterion)) for own in every_model(records)]
            rows.append([row, published, *cells])
        better = "the higher the better" if sign > 0 else "the lower the better"
        head = ["method", "paper (Yahoo!, BiLSTM)", *MODELS.values()]
        parts.append(f"### {title}\n\n{text[0].upper()}{text[1:]}; {better}.\n\n{table(head, rows)}")
    return "\n".join(parts)


def verdict_tables(records: Records) -> str:
    """Return Greedy-AS against every other method, as in the paper's Table 4."""
    parts = []
    for own in every_model(records):
        for one in [one for one in OPTIMIZED if one in own.rows]:
            rows = [[other, *words.values()] for other, words in own.verdicts(one).items()]
            head = [f"{one} against", *(title for title, _, _ in CRITERIA.values())]
            parts.append(f"**{own.name}**\n\n{table(head, rows)}")
    return "\n".join(parts)


def ablation(records: Records) -> str:
    """Return Greedy-AS against its variants, by the criterion that both optimize (Table 3)."""
    rows = []
    for own in every_model(records):
        for one, metric in OPTIMIZED.items():
            title, sign, _ = CRITERIA[metric, ""]
            for variant in ("one-step-banzhaf", "greedy"):
                other = variant + one.removeprefix("greedy-as")
                areas = [own.areas(row, (metric, "")) for row in (one, other)]
                gap = difference(*(None if each is None else sign * each for each in areas))
                if gap is not None:
                    claim = f"`{one}` is better than `{other}`"
                    rows.append([own.name, claim, title, show(gap, "+.2f"), holds(gap)])
    return table(["model", "finding", "criterion", "ahead by", "holds"], rows)


def cost(records: Records) -> str:
    """Return the passes and seconds of each method."""
    rows = []
    for row in METHODS:
        cells = []
        for own in every_model(records):
            passes, seconds = (own.number(row, metric) for metric in ("passes", "seconds"))
            is_measured = row in own.rows
            cells += [f"{passes:,.0f}", f"{seconds:.3f}"] if is_measured else [MISSING, MISSING]
        rows.append([row, *cells])
    names = [f"{name}, {unit}" for name in MODELS.values() for unit in ("passes a text", "seconds a text")]
    return table(["method", *names], rows)


def examples(records: Records) -> str:
    """Return sentences with their five first words in bold."""
    parts = []
    for own in every_model(records):
        texts = records.raw(experiment(own.kind), MISSING, "text")
        for index in sorted(texts)[:N_EXAMPLES]:
            text, rows = texts[index], []
            for row in SHOWN:
                top = records.raw(experiment(own.kind), row, "top words").get(index)
                if top is not None:
                    words = [f"**{w}**" if i in top else w for i, w in enumerate(text["words"])]
                    rows.append([row, " ".join(words).replace("|", "\\|")])
            title = f"{own.name}, predicted {text['predicted']} ({text['probability']:.2f})"
            parts.append(f"**{title}**\n\n{table(['method', 'first five words'], rows)}")
    return "\n".join(parts)


PARTS: dict[str, Callable[[Records], str]] = {
    "models": models,
    "conclusions": conclusions,
    "ranks": ranks,
    "criteria": criteria,
    "verdicts": verdict_tables,
    "ablation": ablation,
    "cost": cost,
    "examples": examples,
}

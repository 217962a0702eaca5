"""Make the page on texts from the records of `text.py`.

python experiments/hsieh2021/text_report.py --results RESULTS --out experiments/hsieh2021/text.md
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import text_paper as paper
from conclusions import holds
from records import Records, difference, interval, shown, table
from text import DEFAULT, METHODS, MODELS
from text_models import TRAINING
from text_page import PAGE

from pertinent.array_types import Floats

CRITERIA: dict[tuple[str, str], tuple[str, int, str]] = {
    ("robustness of irrelevant", ""): ("Robustness-S̄r", +1, "radii of attacks on all but the first words"),
    ("robustness of relevant", ""): ("Robustness-Sr", -1, "radii of attacks on the first words alone"),
    ("insertion", "random-token"): ("Insertion, random words", +1, "the first words among random ones"),
    ("deletion", "random-token"): ("Deletion, random words", -1, "the first words replaced by random ones"),
    ("insertion", ""): ("Insertion, zero vectors", +1, "all but the first words zero vectors"),
    ("deletion", ""): ("Deletion, zero vectors", -1, "the first words zero vectors"),
}
"""Title, whether more is better, and what is measured."""

OWN = {"greedy-as": "robustness of irrelevant", "greedy-as, relevant": "robustness of relevant"}
"""The criterion that each kind of Greedy-AS makes large or small."""
GREEDY = tuple(OWN)
VECTORS = "BiLSTM, pretrained vectors"
N_EXAMPLES = 4
SHOWN = ("greedy-as", "greedy-as, relevant", "gradient", "integrated-gradients", "shapley", "counterfactual")


@dataclass(frozen=True)
class Results:
    """What was measured."""

    records: Records
    texts: dict[str, list[dict[str, Any]]]
    top: dict[tuple[str, str], dict[str, list[int]]]

    @classmethod
    def from_folder(cls, folder: Path) -> Results:
        """Read a folder of results."""
        texts: dict[str, list[dict[str, Any]]] = {}
        for one in _lines(folder, "texts.json"):
            texts.setdefault(one["experiment"], []).append(one)
        top = {(one["experiment"], one["method"]): one["top"] for one in _lines(folder, "top_words.json")}
        return cls(Records(folder, "**/text.jsonl"), texts, top)

    def areas(
        self, model: str, row: str, metric: str, reference: str, *, limited: bool = True
    ) -> Floats | None:
        """The area under the curve of each text."""
        curves = self.curves(model, row, metric, reference, limited=limited)
        return None if curves is None else np.asarray(np.trapezoid(curves, np.arange(1, 6), axis=1))

    def curves(
        self, model: str, row: str, metric: str, reference: str, *, limited: bool = True
    ) -> Floats | None:
        """The curve (texts, 5) over one to five words; `limited` radii count for the text's norm at most."""
        settings = {"removal": reference} if reference else {}
        curves = self.records.values(MODELS[model], row, metric, **settings)
        if curves is not None and metric.startswith("robustness") and limited:
            curves = np.minimum(np.where(np.isnan(curves), np.inf, curves), self.norms(model)[:, None])
        return curves

    def norms(self, model: str) -> Floats:
        """The norm of the word embeddings of each text, the most that a radius counts for."""
        found = self.records.values(MODELS[model], "–", "norm")
        assert found is not None
        return found

    def capped(self, model: str, row: str) -> float:
        """The share of attacks on relevant words that count as the norm of the text."""
        curves = self.records.values(MODELS[model], row, "robustness of relevant")
        assert curves is not None
        return float((np.where(np.isnan(curves), np.inf, curves) > self.norms(model)[:, None]).mean())

    def number(self, model: str, row: str, metric: str) -> float:
        """A figure that is one for all texts."""
        found = self.records.values(MODELS[model], row, metric)
        return np.nan if found is None else float(found[0])

    def rows(self, model: str) -> list[str]:
        """The methods that were measured in full."""
        last = list(CRITERIA)[3]
        return [row for row in METHODS if self.areas(model, row, *last) is not None]


def _lines(folder: Path, name: str) -> list[dict[str, Any]]:
    """What the files of a name hold, a line each, also in folders below."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob(f"**/{name}"))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


Verdicts = dict[str, dict[tuple[str, str], str]]
"""Win, draw or loss against each row, by each criterion."""


def verdicts(results: Results, model: str, one: str, *, limited: bool = True) -> Verdicts:
    """A row against every other but Greedy-AS, by the paired bootstrap at 95%."""
    found: Verdicts = {}
    for other in results.rows(model):
        for criterion, (_, sign, _) in CRITERIA.items() if other not in GREEDY else ():
            rows = [results.areas(model, row, *criterion, limited=limited) for row in (one, other)]
            gap = difference(*rows)
            assert gap is not None
            low, high = sorted((sign * gap.low, sign * gap.high))
            verdict = "win" if low > 0 else "loss" if high < 0 else "draw"
            found.setdefault(other, {})[criterion] = verdict
    return found


def counted(found: Verdicts, criterion: tuple[str, str], rows: Collection[str] | None = None) -> str:
    """As ``7 wins, 2 draws, 0 losses``."""
    own = [v[criterion] for row, v in found.items() if rows is None or row in rows]
    kinds = ("win", "wins"), ("draw", "draws"), ("loss", "losses")
    return ", ".join(f"{own.count(one)} {one if own.count(one) == 1 else several}" for one, several in kinds)


def criterion_tables(results: Results) -> str:
    """A table for each criterion: the paper beside both models."""
    parts = []
    for criterion, (title, sign, what) in CRITERIA.items():
        rows = []
        for row in METHODS:
            own = paper.value(*criterion, row)
            cells = [shown(results.areas(model, row, *criterion)) for model in MODELS]
            rows.append([row, "–" if own is None else f"{own:.2f}", *cells])
        better = "the higher the better" if sign > 0 else "the lower the better"
        head = ["method", "paper (Yahoo!, BiLSTM)", *MODELS]
        parts.append(f"### {title}\n\n{what[0].upper()}{what[1:]}; {better}.\n\n{table(head, rows)}")
    return "\n".join(parts)


def verdict_tables(results: Results) -> str:
    """Greedy-AS against every other method, as in the paper's Table 4."""
    parts = []
    for model in MODELS:
        for one in GREEDY:
            if one not in results.rows(model):
                continue
            found = verdicts(results, model, one)
            rows = [[other, *(own[criterion] for criterion in CRITERIA)] for other, own in found.items()]
            head = [f"{one} against", *(title for title, _, _ in CRITERIA.values())]
            parts.append(f"**{model}**\n\n{table(head, rows)}")
    return "\n".join(parts)


def conclusions(results: Results) -> str:
    """What the verdicts say: Greedy-AS by its own criterion, and by insertion and deletion."""
    rows = []
    for model in MODELS:
        for one, metric in OWN.items():
            if one not in results.rows(model):
                continue
            found, unlimited = (verdicts(results, model, one, limited=limited) for limited in (True, False))
            for criterion, (title, _, _) in CRITERIA.items():
                what = f"{title}, its own" if criterion[0] == metric else title
                cells = counted(found, criterion), counted(found, criterion, paper.NAMES)
                rows.append([model, one, what, *cells, counted(unlimited, criterion)])
    head = ["model", "method", "criterion", "against all", "against the paper's rows", "radii without limit"]
    return table(head, rows)


def ablation(results: Results) -> str:
    """Table 3: Greedy-AS against its variants, by the criterion that both optimise."""
    rows = []
    for model in MODELS:
        for one, metric in OWN.items():
            title, sign, _ = CRITERIA[metric, ""]
            for variant in ("one-step-banzhaf", "greedy"):
                other = variant + one.removeprefix("greedy-as")
                gap = difference(*(_signed_areas(results, model, row, metric, sign) for row in (one, other)))
                if gap is not None:
                    ahead = f"{gap.mean:+.2f} [{gap.low:+.2f}, {gap.high:+.2f}]"
                    rows.append([model, f"`{one}` is better than `{other}`", title, ahead, holds(gap)])
    return table(["model", "finding", "criterion", "ahead by", "holds"], rows)


def _signed_areas(results: Results, model: str, row: str, metric: str, sign: int) -> Floats | None:
    """The areas of a row, larger being better."""
    found = results.areas(model, row, metric, "")
    return None if found is None else sign * found


def ranks(results: Results) -> str:
    """The order of the methods by each criterion, the paper's beside it."""
    rows = []
    for criterion, (title, sign, _) in CRITERIA.items():
        cells = []
        for model in MODELS:
            means = {
                row: sign * interval(areas).mean
                for row in results.rows(model)
                if (areas := results.areas(model, row, *criterion)) is not None
            }
            order = sorted(means, key=lambda row: -means[row])
            cells.append(_ends(order))
        papers = sorted(paper.NAMES, key=lambda row: -sign * (paper.value(*criterion, row) or 0.0))
        rows.append([title, _ends(papers), *cells])
    return table(["criterion", "paper: best three, and last", *MODELS], rows)


def _ends(order: Sequence[str]) -> str:
    """The first three and the last; "–" if there are none."""
    return "–" if not order else f"{', '.join(f'`{row}`' for row in order[:3])}; last `{order[-1]}`"


def examples(results: Results) -> str:
    """Sentences with their five first words in bold."""
    parts = []
    for model, experiment in MODELS.items():
        for text in results.texts.get(experiment, [])[:N_EXAMPLES]:
            rows = []
            for row in SHOWN:
                top = results.top.get((experiment, row), {}).get(str(text["input"]))
                if top is not None:
                    words = [f"**{w}**" if i in top else w for i, w in enumerate(text["words"])]
                    rows.append([row, " ".join(words).replace("|", "\\|")])
            title = f"{model}, predicted {text['predicted']} ({text['probability']:.2f})"
            parts.append(f"**{title}**\n\n{table(['method', 'first five words'], rows)}")
    return "\n".join(parts)


def cost_table(results: Results) -> str:
    """Seconds and passes of each method."""
    rows = []
    for row in METHODS:
        cells = []
        for model in MODELS:
            passes, seconds = (results.number(model, row, name) for name in ("passes", "seconds"))
            cells += [f"{passes:,.0f}", f"{seconds:.3f}"] if row in results.rows(model) else ["–", "–"]
        rows.append([row, *cells])
    return table(
        ["method", *(f"{m}, {w}" for m in MODELS for w in ("passes a text", "seconds a text"))], rows
    )


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    results = Results.from_folder(arguments.results)
    missing = [row for row in DEFAULT if any(row not in results.rows(model) for model in MODELS)]
    page = PAGE.format(
        training=TRAINING,
        counts="; ".join(f"{model} {len(results.norms(model))}" for model in MODELS),
        lstm=results.number("BiLSTM", "–", "accuracy"),
        vectors=results.number(VECTORS, "–", "accuracy"),
        minilm=results.number("MiniLM", "–", "accuracy"),
        papers=paper.ACCURACY,
        norm_lstm=results.norms("BiLSTM").mean(),
        norm_vectors=results.norms(VECTORS).mean(),
        norm_minilm=results.norms("MiniLM").mean(),
        capped_lstm=results.capped("BiLSTM", "random"),
        capped_minilm=results.capped("MiniLM", "random"),
        capped_greedy=results.capped("MiniLM", "greedy-as"),
        conclusions=conclusions(results),
        ranks=ranks(results),
        criteria=criterion_tables(results),
        verdicts=verdict_tables(results),
        ablation=ablation(results),
        missing=f"Not measured everywhere: {', '.join(f'`{row}`' for row in missing)}." if missing else "",
        cost=cost_table(results),
        examples=examples(results),
        table_3=", ".join(f"{row} {value:.2f}" for row, value in paper.TABLE_3.items()),
    )
    arguments.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Tables of the paper's game."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from experiments.shared.intervals import difference, number, show, show_mean
from experiments.shared.pages import MISSING, table
from experiments.yang2023 import paper
from experiments.yang2023.conclusions import halves
from experiments.yang2023.game_record import MEASURES, REFERENCE, TRUTH, GameRecord, squared_difference
from experiments.yang2023.results import show_error
from experiments.yang2023.sets import SETS, TARGETS
from pertinent.stats import Difference

METHODS = [
    ("SVS-25", "SVS-25"),
    *(
        (f"{name}, {whose}", name)
        for name in ("KS-25", "KS-100", "KS-200", "KS-2000")
        for whose in ("captum", "ours")
    ),
    ("amortized", "amortized"),
]
"""Methods, each with its name in the paper."""
COUNTERPARTS = {"yelp": paper.YELP} | paper.COUNTERPARTS
Records = Mapping[str, GameRecord]


def rows_of(records: Records) -> Iterator[tuple[str, GameRecord, str, str]]:
    """Yield each data set that has a record, the record, and each method with its name in the paper."""
    for dataset in COUNTERPARTS:
        for method, name in METHODS if dataset in records else ():
            yield dataset, records[dataset], method, name


def stability(records: Records) -> str:
    """Return Tables 1 and 2, and of Table 4 the row of all training texts."""
    rows = []
    for dataset, record, method, name in rows_of(records):
        values = {key: record.stability(dataset, method, measure) for key, measure in MEASURES.items()}
        if values["ρ"] is None:
            continue
        counterpart = COUNTERPARTS[dataset]
        published: tuple[float | None, ...] = paper.STABILITY[counterpart].get(name, (None,) * 4)
        if name == "amortized":
            published = (paper.TRAINING[counterpart]["100"], None, None, None)
        ours = [show_error(own) if key == "MSE" else show_mean(own) for key, own in values.items()]
        cells = [cell for pair in zip(map(number, published), ours, strict=False) for cell in pair]
        cells.insert(2, show_mean(record.stability(dataset, method, special=True)))
        seeds = len(record.seeds(dataset, method))
        rows.append([f"{SETS[dataset].name}, {method}", str(len(values["ρ"])), str(seeds), *cells])
    head = ["", "texts", "seeds", "ρ: paper", "ours", "with special tokens"]
    return table([*head, "top 5: paper", "ours", "top 10: paper", "ours", "MSE: paper", "ours"], rows)


def approximation(records: Records) -> str:
    """Return Table 3."""
    rows = []
    for dataset, record, method, name in rows_of(records):
        values = record.agreement(dataset, method)
        if values is not None:
            published = paper.APPROXIMATION[COUNTERPARTS[dataset]].get(name, (None, None))
            errors = record.agreement(dataset, method, measure=squared_difference)
            cells = [number(published[0]), *agreements(record, dataset, method)]
            cells += [number(published[1], ".1e"), show_error(errors)]
            rows.append([f"{SETS[dataset].name}, {method}", str(len(values)), *cells])
    head = ["", "texts", "ρ with SVS-25: paper", "ours", "SD over seeds", "with special tokens"]
    return table([*head, "ρ with the reference", "MSE: paper", "ours"], rows)


def transfer(records: Records) -> str:
    """Return the table of Section 6.4, with the lead of the amortized model over each method."""
    rows = []
    for dataset, target in TARGETS.items():
        record = records.get(dataset)
        for method, name in METHODS if record else ():
            values = record.agreement(target, method)
            if values is not None:
                published = number(paper.TRANSFER.get(name, (None,))[0])
                leads = [lead(record, target, method, special=special) for special in (False, True)]
                label = f"{SETS[dataset].name} → {SETS[target].name}, {method}"
                rows.append([label, str(len(values)), published, *agreements(record, target, method), *leads])
    head = ["", "texts", "paper", "ρ with SVS-25", "SD over seeds", "with special tokens"]
    return table([*head, "ρ with the reference", "amortized − this", "with special tokens"], rows)


def agreements(record: GameRecord, texts: str, method: str) -> list[str]:
    """Return the agreement with SVS-25, its deviation, with special tokens, and with the reference."""
    return [
        show_mean(record.agreement(texts, method)),
        number(record.spread(texts, method), ".3f"),
        show_mean(record.agreement(texts, method, special=True)),
        show_mean(record.agreement(texts, method, truth=REFERENCE)),
    ]


def lead(record: GameRecord, target: str, method: str, *, special: bool) -> str:
    """Return by how much the amortized model agrees more with SVS-25."""
    if method == "amortized":
        return MISSING
    both = (record.agreement(target, name, special=special) for name in ("amortized", method))
    return show(difference(*both), "+.2f")


def findings(records: Records) -> str:
    """Return the paper's claims as differences over the same texts, positive where they hold."""
    rows = []
    for dataset in COUNTERPARTS:
        record = records.get(dataset)
        if record is None:
            continue
        unstable = record.stability(dataset, "KS-200, captum")
        between = (record.stability(dataset, name) for name in ("SVS-25", "KS-2000, captum"))
        amortized = record.agreement(dataset, "amortized")
        others = ("KS-200, captum", "KS-2000, captum", "KS-200, ours", "KS-2000, ours")
        gaps = [
            None if unstable is None else difference(np.full(len(unstable), 0.4), unstable),
            shorter(record, dataset),
            difference(*between),
            *(difference(amortized, record.agreement(dataset, other)) for other in others),
        ]
        rows.append([SETS[dataset].name, *(show(gap, "+.2f") for gap in gaps)])
    head = ["", "KS-200 is unstable: 0.40 − ρ between seeds", "more stable on the shorter half of the texts"]
    head += ["SVS-25 is more stable than KS-2000", "amortized is better than KS-200", "than KS-2000"]
    return table([*head, "than our KS-200", "than our KS-2000"], rows)


def shorter(record: GameRecord, dataset: str) -> Difference | None:
    """Return ρ of captum's KS-200 between seeds on the shorter half of the texts minus the longer half."""
    values = record.stability(dataset, "KS-200, captum")
    if values is None:
        return None
    scores = record.seeds(dataset, "KS-200, captum")[0][: len(values)]
    return halves(values, np.array([len(row) for row in scores]))


def seconds(records: Records) -> str:
    """Return the seconds of texts one by one (Sec. 6.1)."""
    rows = []
    for dataset, counterpart in COUNTERPARTS.items():
        times = records[dataset].meta.get("seconds") if dataset in records else None
        if times is None:
            continue
        slow, batch, fast, once = (
            np.array(times[name])
            for name in ("KS-200, one mask per pass", "KS-200, one batch", "amortized", "one pass")
        )
        published = paper.STABILITY[counterpart]["KS-200"][4] / paper.AMORTIZED_SECONDS
        cells = [show_error(own) for own in (slow, batch, fast, once)]
        ratios = [show_mean(ratio, ".1f") for ratio in (slow / fast, batch / fast, slow / once)]
        rows.append([SETS[dataset].name, str(len(slow)), *cells, *ratios, f"{published:.0f}"])
    head = ["", "texts", "KS-200, one mask per pass", "KS-200, one batch", "amortized", "one pass"]
    head += ["one mask per pass / amortized", "one batch / amortized", "one mask per pass / one pass"]
    return table([*head, "paper"], rows)


def models(records: Records) -> str:
    """Return the accuracy of the classifiers, and what amortized models learned from."""
    rows = []
    for dataset in COUNTERPARTS:
        meta = records[dataset].meta if dataset in records else {}
        if "model" in meta and "learned" in meta:
            learned = meta["learned"]
            texts = records[dataset].scores(f"{dataset}/{TRUTH}")
            rows.append(
                [
                    SETS[dataset].name,
                    f"{100 * meta['model']['test accuracy']:.1f}%",
                    f"{len(texts)}, {np.mean([len(row) for row in texts]):.0f} tokens on average",
                    f"{learned['texts']:,}",
                    f"{learned['evaluations']:,.0f}",
                    f"{learned['seconds']:.0f} s",
                ]
            )
    head = ["set", "accuracy", "test texts", "texts learned from", "evaluations of each", "they took"]
    return table(head, rows)


PARTS = {
    "models": models,
    "findings": findings,
    "stability": stability,
    "approximation": approximation,
    "transfer": transfer,
    "seconds": seconds,
}

"""Tables of README.md on texts and images (Tables 2, 5, 7 to 9, 11 and 12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from experiments.shared.intervals import show
from experiments.shared.pages import MISSING, table
from experiments.shared.stages import Run, read_record
from experiments.vo2023.forms import ALPHA_BETA, ALPHAS
from experiments.vo2023.images import AIM, KEPT, OTHERS
from experiments.vo2023.results import (
    PUBLISHED,
    K,
    Runs,
    mean_of,
    read_records,
    runs_of,
    show_percent,
    show_runs,
)
from experiments.vo2023.sets import CLASSES, IMAGES, TEXTS, read
from experiments.vo2023.words import word_table
from pertinent.stats import bootstrap, paired_difference

ROWS = {
    "aim": AIM["aim"],
    "aim, 20 epochs": "explainer alone, 20 epochs",
    "aim, with a selector": AIM["aim, with a selector"],
    **{
        name: name
        for name in (
            "l2x",
            "vibi",
            "lime",
            "functional-information",
            "kernel-shap",
            "parallel-local-search",
            "thompson-search",
            "random",
        )
    },
}
"""Forms of the rows of Table 2, by their names."""
SETTINGS = {
    "aim": AIM["aim"],
    "aim, no context": "explainer alone, own, no context",
    "aim, with a selector": AIM["aim, with a selector"],
    "aim, with a selector, no context": "both, no context",
    "aim, with a selector, explore 0": "both, explore 0",
    "aim, inferred from the selector": "from the selector",
    "aim, selector alone": "selector alone",
}
"""Forms of the rows of Table 7."""
SIZES = (5, 10, 20)
PAIRED = {
    "class-faithfulness": 100.0,
    "positive-delta-log-odds": 1.0,
    "negative-delta-log-odds": 1.0,
    "sufficiency": 1.0,
    "comprehensiveness": 1.0,
}
"""Metrics in which AIM and LIME are compared, and the factor of their values."""
JUDGED = "faithfulness (paper), here, class faithfulness, +Δ log-odds, −Δ log-odds"
Records = Mapping[str, Any]


def rows_of(records: Records, dataset: str) -> dict[str, list[Any]]:
    """Return the records of each row of a data set that was measured."""
    found = {row: runs_of(records, dataset, form) for row, form in ROWS.items()}
    return {row: runs for row, runs in found.items() if runs}


def published_name(row: str) -> str:
    """Return the name by which the paper has numbers of a row: one name for all forms of AIM."""
    return "aim" if row.startswith("aim") else row


def n_shared(rows: Mapping[str, Runs]) -> int:
    """Return the number of texts that every row has."""
    return min(len(run["words"]) for runs in rows.values() for run in runs)


def texts(records: Records) -> str:
    """Return Table 2."""
    lines = []
    for dataset in TEXTS:
        rows = rows_of(records, dataset)
        for row, runs in rows.items():
            name = published_name(row)
            positive, negative = PUBLISHED["log_odds"][dataset].get(name, (MISSING, MISSING))
            lines.append(
                [
                    dataset,
                    f"`{row}`",
                    str(PUBLISHED["faithfulness"][dataset].get(name, MISSING)),
                    show_percent(runs, "faithfulness"),
                    show_percent(runs, "faithfulness", n_shared(rows)),
                    str(positive),
                    show_runs(runs, "positive-delta-log-odds"),
                    str(negative),
                    show_runs(runs, "negative-delta-log-odds"),
                    str(len(runs[0]["words"])),
                    str(len(runs)),
                ]
            )
    head = "set, method, faithfulness (paper), here, of the texts of all rows, "
    head += "+Δ log-odds (paper), here, −Δ log-odds (paper), here, texts, seeds"
    return table(head.split(", "), lines)


def classes(records: Records) -> str:
    """Return Table 5."""
    lines = []
    for dataset in TEXTS:
        rows = rows_of(records, dataset)
        for row in [*list(ROWS)[:3], "lime", "kernel-shap"]:
            runs = rows.get(row)
            if not runs:
                continue
            name = published_name(row)
            columns = range(len(CLASSES[dataset]))
            paper = PUBLISHED["class_faithfulness"][dataset].get(name)
            many = mean_of(runs, "class-faithfulness", more_words_than=K)
            lines.append(
                [
                    dataset,
                    f"`{row}`",
                    " / ".join(map(str, paper)) if paper else MISSING,
                    " / ".join(show_percent(runs, f"class-faithfulness {c}") for c in columns),
                    f"{np.mean(paper):.1f}" if paper else MISSING,
                    show_percent(runs, "class-faithfulness"),
                    show_percent(runs, "class-faithfulness", n_shared(rows)),
                    show(many, ".1f", 100),
                    str(PUBLISHED["class_iou"][dataset].get(name, MISSING)),
                    show_percent(runs, "class-iou"),
                ]
            )
    head = "set, method, of each class (paper), here, mean (paper), here, of the texts of all rows, "
    head += "of texts with more than 10 words, IoU of classes (paper), here"
    return table(head.split(", "), lines)


def cost(records: Records) -> str:
    """Return sufficiency and comprehensiveness, which the paper does not have, and the cost."""
    lines = []
    for dataset in TEXTS:
        for row, runs in rows_of(records, dataset).items():
            is_fitted = any(run["steps"] for run in runs)
            minutes = f"{np.mean([run['fit seconds'] for run in runs]) / 60:.1f}" if is_fitted else MISSING
            values = [show_runs(runs, metric) for metric in ("sufficiency", "comprehensiveness")]
            evaluations = f"{np.mean([run['evaluations'] for run in runs]):,.0f}"
            paper = str(PUBLISHED["minutes"][dataset].get(published_name(row), MISSING))
            lines.append([dataset, f"`{row}`", *values, evaluations, minutes, paper])
    head = "set, method, sufficiency at 10% ↓, comprehensiveness at 10% ↑, evaluations an input, "
    return table(f"{head}minutes of fitting, paper".split(", "), lines)


def judged(runs: Runs) -> list[str]:
    """Return faithfulness, that of classes, and both log-odds."""
    shares = [show_percent(runs, metric) for metric in ("faithfulness", "class-faithfulness")]
    return shares + [show_runs(runs, f"{sign}-delta-log-odds") for sign in ("positive", "negative")]


def settings(records: Records) -> str:
    """Return Table 7, and other settings."""
    lines = []
    for dataset in TEXTS:
        for row, form in SETTINGS.items():
            runs = runs_of(records, dataset, form)
            paper = PUBLISHED["ablations"].get(form, MISSING) if dataset == "imdb" else MISSING
            if runs:
                lines.append([dataset, f"`{row}`", str(paper), *judged(runs), str(len(runs))])
    return table(f"set, row, {JUDGED}, seeds".split(", "), lines)


def alphas(records: Records) -> str:
    """Return Table 12."""
    lines = []
    for dataset in TEXTS:
        for alpha in ALPHAS:
            is_default = alpha == ALPHA_BETA[dataset][0]
            runs = runs_of(records, dataset, "both, explore .5" if is_default else f"both, alpha {alpha}")
            if runs:
                faithfulness, *log_odds = PUBLISHED["alphas"][dataset][f"{alpha:g}"]
                share, of_class, *deltas = judged(runs)
                pairs = [f"({paper}) {here}" for paper, here in zip(log_odds, deltas, strict=True)]
                lines.append(
                    [dataset, str(alpha), str(faithfulness), share, of_class, *pairs, str(len(runs))]
                )
    return table(f"set, α, {JUDGED}, seeds".split(", "), lines)


def by_size(records: Records) -> str:
    """Return Table 11: L2X is fitted for every K."""
    lines = []
    for dataset in TEXTS:
        aim, l2x = (runs_of(records, dataset, form) for form in (AIM["aim"], "l2x"))
        for i, k in enumerate(SIZES if aim else ()):
            papers = [PUBLISHED["by_k"][dataset][row][i] for row in ("aim", "l2x")]
            metric, own = f"faithfulness of {k}", l2x if k == K else runs_of(records, dataset, f"l2x, K {k}")
            cells = [show_percent(runs, metric) for runs in (aim, own, l2x)]
            papers_cells = [f"({paper}) {cell}" for paper, cell in zip(papers, cells, strict=False)]
            lines.append([dataset, str(k), *papers_cells, cells[2]])
    return table(["set", "K", "`aim`", "`l2x`, fitted with this K", "`l2x`, fitted with K = 10"], lines)


def differences(records: Records) -> str:
    """Return AIM (the mean over seeds) against LIME on the texts that both explained."""
    lines = []
    for dataset in TEXTS:
        rows = rows_of(records, dataset)
        for metric, factor in PAIRED.items() if {"aim", "lime"} <= set(rows) else ():
            n = n_shared(rows)
            ours, theirs = (
                np.mean([run["values"][metric][:n] for run in rows[row]], axis=0) for row in ("aim", "lime")
            )
            gap, form = paired_difference(ours, theirs), ".1f" if factor > 1 else ".2f"
            means = [f"{factor * each.mean():{form}}" for each in (ours, theirs)]
            lines.append([dataset, metric, *means, show(gap, form, factor), gap.p_text])
    return table(["set", "metric", "`aim`", "`lime`", "difference", ""], lines)


def images(run: Run) -> str:
    """Return Tables 8 and 9."""
    lines = []
    for dataset in IMAGES:
        for features, sizes in KEPT.items():
            name = features.partition(":")[0]
            for row in (*AIM, *OTHERS):
                stem = f"{dataset}_{name}_{(row if row in AIM else 'aim').replace(',', '').replace(' ', '_')}"
                paths = sorted((run.results / "images").glob(f"{stem}_[0-9].json"))
                records = [own for own in map(read_record, paths) if published_name(row) in own]
                own = [record[published_name(row)] for record in records]
                if own:
                    values = [np.array([each[str(k)] for each in own]) for k in sizes]
                    cells = [show(bootstrap(each, within=(0, 1)), ".1f", 100) for each in values]
                    printed = PUBLISHED["images"][dataset][name].get(published_name(row), ())
                    paper = " / ".join(f"{value:.1f}" for value in printed) or MISSING
                    kept = " / ".join(map(str, sizes))
                    cells = [paper, " / ".join(cells), str(len(own))]
                    lines.append([dataset, name, kept, f"`{row}`", *cells])
    return table(["set", "features", "K", "method", "faithfulness (paper)", "here", "seeds"], lines)


def seconds(run: Run) -> str:
    """Return how long the predictions for many inputs take, and explanations with them."""
    lines = []
    for dataset in (*TEXTS, *IMAGES):
        path = run.results / "timings" / f"{dataset}.json"
        if path.is_file() and "aim" in (own := read_record(path)):
            black_box, aim = (min(own[row]) for row in ("black box", "aim"))
            cells = [f"{own['inputs']:,}", f"{black_box:.2f} s", f"{aim:.2f} s", f"{aim / black_box:.2f}×"]
            lines.append([dataset, *cells])
    return table(["set", "inputs", "predictions alone", "`aim`, with predictions", "ratio"], lines)


def words(run: Run, records: Records) -> str:
    """Return purity, brevity and stability of the words of each data set."""
    parts = []
    for dataset in TEXTS:
        rows = {row: runs for row, runs in rows_of(records, dataset).items() if not row.startswith("aim, ")}
        sizes = {k: runs_of(records, dataset, f"l2x, K {k}") for k in SIZES if k != K}
        if rows:
            inputs = read(run.data, dataset, "test").inputs if run.data.is_dir() else None
            parts.append(word_table(rows, sizes, dataset, inputs))
    return "\n".join(parts)


def parts(run: Run) -> dict[str, Callable[[], str]]:
    """Return the parts of README.md that are made from the stages on texts and images."""
    records = read_records(run.results, "texts")
    tables = {
        "texts": texts,
        "classes": classes,
        "differences": differences,
        "cost": cost,
        "settings": settings,
        "alphas": alphas,
        "sizes": by_size,
    }
    made: dict[str, Callable[[], str]] = {name: partial(make, records) for name, make in tables.items()}
    made |= {"words": partial(words, run, records)}
    return made | {"images": partial(images, run), "seconds": partial(seconds, run)}

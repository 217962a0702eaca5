"""Tables of the forms of AIM on paper_form.md, and of tuned methods and settings on README.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from experiments.shared.intervals import show
from experiments.shared.pages import MISSING, escape, table
from experiments.shared.stages import Run
from experiments.vo2023.extra import FI, SETTINGS, stays
from experiments.vo2023.fitting import DEV, SIZES
from experiments.vo2023.forms import BOXES, FORMS, TUNED, Fit
from experiments.vo2023.results import (
    PUBLISHED,
    Runs,
    read_records,
    runs_of,
    show_percent,
    show_points,
    show_runs,
    show_share,
    word_measures,
)
from experiments.vo2023.sets import CLASSES, TEXTS
from pertinent.stats import Difference, paired_difference

BOX = BOXES[0]
AIM = "from probabilities"
"""The form of AIM that tuned methods are compared with."""
LEVEL = 0.05
"""Level of p-values."""
EXAMPLES = {"imdb": 2, "hatexplain": 0, "ag_news": 1}
"""Texts whose words are shown; those of HateXplain are offensive."""
LONGEST = 600
"""Characters of a text that are shown."""
SHOWN = {
    "faithfulness": "faithfulness",
    "+Δ log-odds": "positive-delta-log-odds",
    "−Δ log-odds": "negative-delta-log-odds",
    "comprehensiveness at 10%": "comprehensiveness",
}
FORM_COLUMNS = {
    "faithfulness": "faithfulness",
    "class faithfulness": "class-faithfulness",
    "+Δ log-odds": "positive-delta-log-odds",
    "comprehensiveness at 10%": "comprehensiveness",
    "true words": "true words",
    "true signs": "true signs",
    "π kept": "kept",
}
Records = Mapping[str, Any]


# -- paper_form.md ------------------------------------------------------------------------------


def form_table(records: Records, dataset: str, box: str) -> str:
    """Return a row for each form: means over seeds with their standard deviation."""
    rows = []
    for form in FORMS:
        prefix = f"{dataset} | {box} | {form} | "
        runs = [own for name, own in records.items() if name.startswith(prefix)]
        cells = [over_seeds(runs, name) for name in FORM_COLUMNS.values()]
        rows.append([f"`{form}`", *cells, str(len(runs)) if runs else MISSING])
    head = ["form", *FORM_COLUMNS, "seeds"]
    shown = [i for i in range(len(head)) if any(row[i] != MISSING for row in rows)]
    return table([head[i] for i in shown], [[row[i] for i in shown] for row in rows])


def over_seeds(runs: Runs, name: str) -> str:
    """Return the mean of a number over seeds, and its standard deviation if there are several."""
    values = [run[name] for run in runs if run.get(name) is not None]
    if not values:
        return MISSING
    spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


def paper_form(run: Run) -> dict[str, Callable[[], str]]:
    """Return the parts of paper_form.md."""
    records = read_records(run.results, "made")
    return {
        f"{dataset}, {box}": partial(form_table, records, dataset, box) for dataset in TEXTS for box in BOXES
    }


# -- tuned methods ------------------------------------------------------------------------------


def tried_forms(records: Records, dataset: str, method: str) -> dict[str, Any]:
    """Return the record of each setting of a method with the first seed."""
    tried = {form: records.get(Fit(dataset, BOX, form, 0).name) for form in TUNED[method]}
    return {form: record for form, record in tried.items() if record is not None}


def best_form(records: Records, dataset: str, method: str) -> str | None:
    """Return the form that keeps most decisions of validation texts; ``None`` if none was tried."""
    tried = tried_forms(records, dataset, method)
    return max(tried, key=lambda form: tried[form][DEV], default=None)


def tuned_forms(records: Records, dataset: str) -> dict[str, str]:
    """Return the forms that are shown, by name."""
    forms = {"aim": AIM}
    for method in TUNED:
        forms |= {method: method}
        form = best_form(records, dataset, method)
        if form is not None:
            forms[f"{method}, tuned: {form.partition(', ')[2]}"] = form
    return forms


def gap(runs: Runs, others: Runs) -> Difference:
    """Return by how much runs are more faithful than others, over as many seeds as both have."""
    n = min(len(runs), len(others))
    pair = (np.array([run["values"]["faithfulness"] for run in each[:n]]) for each in (runs, others))
    return paired_difference(*pair)


def tuned(records: Records) -> str:
    """Return the rows of Table 2 with and without tuning."""
    rows = []
    for dataset in TEXTS:
        aim = runs_of(records, dataset, AIM)
        for name, form in tuned_forms(records, dataset).items():
            runs = runs_of(records, dataset, form)
            if runs:
                values = [
                    (show_percent if metric == "faithfulness" else show_runs)(runs, metric)
                    for metric in SHOWN.values()
                ]
                rows.append(
                    [
                        dataset,
                        f"`{name}`",
                        str(PUBLISHED["faithfulness"][dataset][name.partition(",")[0]]),
                        f"{100 * np.mean([run[DEV] for run in runs]):.1f}",
                        *values,
                        "" if form == AIM or not aim else show_points(gap(aim, runs)),
                        str(len(runs)),
                    ]
                )
    head = ["set", "method", "faithfulness (paper)", "of validation texts", *SHOWN, "`aim` − it", "seeds"]
    return table(head, rows)


def tuned_verdict(records: Records) -> str:
    """Return how far AIM is ahead of L2X and VIBI on each data set, and the effect of tuning."""
    lines = []
    for dataset in TEXTS:
        runs = {name: runs_of(records, dataset, form) for name, form in tuned_forms(records, dataset).items()}
        aim = runs.pop("aim")
        gaps = [gap(aim, own) for own in runs.values() if own and aim]
        if not gaps:
            continue
        points = [100 * each.mean for each in gaps]
        ahead = sum(each.mean > 0 and each.p_value < LEVEL for each in gaps)
        line = (
            f"- {dataset}: AIM keeps {min(points):.1f} to {max(points):.1f} points more decisions than L2X "
        )
        line += f"and VIBI, tuned or not (ahead in {ahead} of {len(gaps)} rows)."
        for method in TUNED:
            best = [own for name, own in runs.items() if name.startswith(f"{method}, tuned") and own]
            if best and runs[method]:
                line += f" Tuning changes {method} by {show_points(gap(best[0], runs[method]))}."
        lines.append(f"{line}\n")
    return "".join(lines)


def grids(records: Records) -> str:
    """Return the faithfulness of validation and test texts by setting, one seed each."""
    rows = []
    for dataset in TEXTS:
        for method in TUNED:
            chosen = best_form(records, dataset, method)
            for form, record in tried_forms(records, dataset, method).items():
                cells = [f"{100 * record[name]:.1f}" for name in (DEV, "faithfulness")]
                paper = f"{PUBLISHED['tuned'][dataset][form][2]:.1f}"
                rows.append([dataset, f"`{form}`", paper, *cells, "chosen" if form == chosen else ""])
    head = ["set", "setting", "faithfulness (paper)", "of validation texts", "of test texts", ""]
    return table(head, rows)


def words_as_published(records: Records) -> str:
    """Return purity and brevity of fitted methods, tuned ones included, and of AIM's ablations (Table 7)."""
    rows = []
    for dataset in TEXTS:
        forms = {name: (form, name.partition(",")[0]) for name, form in tuned_forms(records, dataset).items()}
        forms |= {f"aim, {form}": (form, form) for form in PUBLISHED["ablated"]}
        for name, (form, published) in forms.items():
            runs = runs_of(records, dataset, form)
            if runs:
                measures, (purity, brevity) = word_measures(runs), paper_words(dataset, published)
                cells = {
                    measure: show(own, *((".1f", 100) if "purity" in measure else ()))
                    for measure, own in measures.items()
                }
                rows.append(
                    [
                        dataset,
                        f"`{name}`",
                        purity,
                        cells["purity as published"],
                        cells["purity"],
                        brevity,
                        cells["brevity as published"],
                        cells["brevity"],
                        show_percent(runs, "faithfulness"),
                        str(len(runs)),
                    ]
                )
    head = "set, method, purity (paper), here as published, every occurrence counted, brevity (paper), "
    return table(f"{head}here as published, by synonyms, faithfulness, seeds".split(", "), rows)


def paper_words(dataset: str, row: str) -> tuple[str, str]:
    """Return the paper's purity in percent, and brevity."""
    if row in PUBLISHED["ablated"]:
        purity, brevity, _ = PUBLISHED["ablated"][row]
        return (str(purity), str(brevity)) if dataset == "imdb" else (MISSING, MISSING)
    printed = [PUBLISHED[name][dataset].get(row) for name in ("purity", "brevity")]
    numbers = [MISSING if own is None else str(own[1] if len(own) > 1 else own[0]) for own in printed]
    return numbers[0], numbers[1]


# -- classes, sizes and settings ----------------------------------------------------------------


def every_class(extra: Records) -> str:
    """Return the rows of functional information in Table 5."""
    rows = []
    for dataset in [dataset for dataset in TEXTS if f"{dataset} classes" in extra]:
        values = extra[f"{dataset} classes"]["values"]
        columns = range(len(CLASSES[dataset]))
        paper = PUBLISHED["class_faithfulness"][dataset][FI]
        rows.append(
            [
                dataset,
                " / ".join(map(str, paper)),
                " / ".join(show_share(values[f"class-faithfulness {c}"]) for c in columns),
                f"{np.mean(paper):.1f}",
                show_share(values["class-faithfulness"]),
                str(PUBLISHED["class_iou"][dataset][FI]),
                show_share(values["class-iou"]),
                str(len(values["class-iou"])),
            ]
        )
    head = "set, of each class (paper), here, mean (paper), here, IoU of classes (paper), here, texts"
    return table(head.split(", "), rows)


def by_samples(extra: Records) -> str:
    """Return LIME by its number of samples (Figure 5, without seconds)."""
    rows = [
        [dataset, f"{int(samples):,}", show_share(one["faithfulness"])]
        for dataset in TEXTS
        for samples, one in extra.get(f"{dataset} samples", {}).items()
        if samples.isdigit()
    ]
    return table(["set", "samples", "faithfulness"], rows)


def by_size(extra: Records) -> str:
    """Return the faithfulness of L2X fitted with each K, and the words that stay for a larger K (App. G)."""
    rows = []
    for dataset in [dataset for dataset in TEXTS if f"{dataset} sizes" in extra]:
        record = extra[f"{dataset} sizes"]
        for i, k in enumerate(SIZES):
            shares = [stays(record).get(f"{row} {k}") for row in ("l2x", "aim")]
            cells = [MISSING if share is None else f"{100 * share:.1f}" for share in shares]
            paper = str(PUBLISHED["by_k"][dataset]["l2x"][i])
            rows.append([dataset, str(k), paper, show_share(record["faithfulness"][f"l2x {k}"]), *cells])
    head = "set, K, faithfulness of `l2x` (paper), here, its words that stay for the next K (%), of `aim`"
    return table(head.split(", "), rows)


def by_setting(extra: Records) -> str:
    """Return LIME by the width of its kernel, and functional information by its draws (Tables 14 and 18)."""
    rows = []
    for dataset in TEXTS:
        for part, name in (("widths", "lime, width {}"), ("draws", f"{FI}, draws {{}}")):
            record = extra.get(f"{dataset} {part}", {})
            for value in [str(value) for value in SETTINGS[part][2] if str(value) in record]:
                paper, one = PUBLISHED["tuned"][dataset][name.format(value)], record[value]
                measures = word_measures([one])
                rows.append(
                    [
                        dataset,
                        f"`{name.format(value)}`",
                        f"{paper[2]:.2f}",
                        show_share(one["faithfulness"]),
                        f"{paper[0]:.2f}",
                        show(measures["purity as published"], ".1f", 100),
                        f"{paper[1]:.2f}",
                        show(measures["brevity as published"]),
                    ]
                )
    head = "set, setting, faithfulness (paper), here, purity (paper), here, brevity (paper), here"
    return table(head.split(", "), rows)


def words_by_size(extra: Records) -> str:
    """Return a few texts, and the words of L2X for each K (App. G)."""
    parts = []
    for dataset, n in EXAMPLES.items():
        record = extra.get(f"{dataset} sizes")
        for i in range(n if record is not None else 0):
            rows = [[str(k), list_words(record["words"][f"l2x {k}"][i])] for k in SIZES]
            text = escape(shorten(record["texts"][i]))
            parts.append(f"{text}\n\n{table(['K', 'words of `l2x`'], rows)}")
    return "\n".join(parts)


def shorten(text: str) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + " …"


def list_words(words: list[str]) -> str:
    """Return words in order, each once, with how often it was chosen."""
    counts = {word: words.count(word) for word in dict.fromkeys(words)}
    return " · ".join(escape(word) + (f" ×{n}" if n > 1 else "") for word, n in counts.items())


def parts(run: Run) -> dict[str, Callable[[], str]]:
    """Return the parts of README.md that are made from tuned methods and settings."""
    made, extra = (read_records(run.results, name) for name in ("made", "extra"))
    of_made = {
        "tuned": tuned,
        "tuned verdict": tuned_verdict,
        "grids": grids,
        "words as published": words_as_published,
    }
    of_extra = {
        "functional information": every_class,
        "l2x by K": by_size,
        "l2x's words": words_by_size,
        "by setting": by_setting,
        "figure 5": by_samples,
    }
    return {name: partial(make, made) for name, make in of_made.items()} | {
        name: partial(make, extra) for name, make in of_extra.items()
    }

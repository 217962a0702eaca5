"""Tables 4 to 6 and the numbers of Figures 4 and 5: amortized models, and what explanations are used for."""

from __future__ import annotations

import numpy as np
import paper
from collect import (
    LEARNED,
    NAMES,
    WHOLE,
    Results,
    difference,
    number,
    shown,
    shown_difference,
    table,
)
from measure import REMOVALS, SHARES
from sets import SETS, TARGETS
from stages import ADAPTED, PROPORTIONS, TRANSFERRED


def training(results: Results) -> str:
    """Table 4, and the numbers of Figure 4."""
    rows = []
    for share in (*PROPORTIONS, WHOLE):
        row = [f"{share}%", *(f"{paper.TRAINING[of][share]:.2f}" for of in (paper.YELP, paper.MNLI))]
        for which in results.sets:
            stage, texts = results.curve(which, share)
            row += [
                "–" if texts is None else f"{texts:,}",
                shown(results.column(which, stage, "spearman")),
                shown(results.column(which, stage, "svs spearman")),
            ]
        rows.append(row)
    head = ["training texts", "between trainings: paper, Yelp", "MNLI"]
    for which in results.sets:
        head += [f"{SETS[which].name}: texts", "between trainings", "with SVS-25"]
    return table(head, rows)


def fastshap(results: Results) -> str:
    """The rows of Table 3 that are trained, with what each asks of the model."""
    rows = []
    for which in results.sets:
        run, beside = results.having(which, "method-FastSHAP-fresh"), paper.APPROXIMATION[paper.BESIDE[which]]
        if run.stage(which, "method-FastSHAP-fresh") is None:
            continue
        for name, label in LEARNED.items():
            stage = f"method-{name}"
            rows.append(
                [
                    f"{SETS[which].name}, {label}",
                    asked(run, which, name),
                    number(beside.get(name, (None,))[0]),
                    shown(run.column(which, stage, "svs spearman")),
                    number(run.spread(which, stage, "svs spearman"), ".3f"),
                    shown(run.column(which, stage, "reference spearman")),
                    shown(run.column(which, stage, "reference mse"), 4),
                ]
            )
    head = ["", "evaluations of a training text", "ρ with SVS-25: paper", "ours", "SD over trainings"]
    return table([*head, "ρ with the reference", "MSE"], [row for row in rows if row[3] != "–"])


def asked(results: Results, which: str, name: str) -> str:
    """Evaluations of the model that a training takes for each text; a surrogate learns from one of them."""
    if name == "amortized":
        found = results.stage(which, "learned")
        return "–" if found is None else f"{found['evaluations']:,.0f}"
    found = results.stage(which, f"{name}-0")
    if found is None:
        return "–"
    if found.get("surrogate"):
        return "1"
    times = 1 + found["epochs"] if name.endswith("fresh") else 1
    return f"{2 + times * found['samples']:,.0f}"


def adaption(results: Results) -> str:
    """Table 5."""
    parts = []
    kinds = ("SVS", "alg. 1", "SVS-antithetic", "ours")
    for which in results.sets:
        beside, rows = paper.BESIDE[which], []
        run = results.having(which, f"adapted-{ADAPTED[0]}")
        for m in sorted(ADAPTED):
            stage = f"adapted-{m}"
            found = {kind: run.column(which, stage, "svs spearman", kind) for kind in kinds}
            rows.append(
                [
                    str(m),
                    number(paper.SVS[beside].get(m)),
                    number(paper.ADAPTED[beside].get(m)),
                    shown(found["SVS"]),
                    shown(found["alg. 1"]),
                    shown_difference(difference(found["alg. 1"], found["SVS"])),
                    number(run.spread(which, stage, "svs spearman", "alg. 1"), ".3f"),
                    shown(found["SVS-antithetic"]),
                    shown(found["ours"]),
                    shown_difference(difference(found["ours"], found["SVS-antithetic"])),
                    *(shown(run.column(which, stage, "reference mse", kind), 4) for kind in kinds),
                ]
            )
        rows = [row for row in rows if row[3] != "–"]
        if not rows:
            continue
        head = ["m", "ρ with SVS-25: paper, SVS", "paper, Alg. 1", "SVS", "Alg. 1", "difference"]
        head += ["SD over runs", "with reverses", "ours", "difference"]
        head += ["MSE to the reference: SVS", "Alg. 1", "with reverses", "ours"]
        stage = f"adapted-{next(m for m in ADAPTED if run.stage(which, f'adapted-{m}'))}"
        alone = run.column(which, stage, "svs spearman", "prediction")
        error = shown(run.column(which, stage, "reference mse", "prediction"), 4)
        texts = 0 if alone is None else len(alone)
        spread = number(run.spread(which, stage, "svs spearman", "prediction"), ".3f")
        name = (
            f"**{SETS[which].name}**, {texts} texts, beside {beside}. The prediction alone: ρ {shown(alone)}"
        )
        parts.append(f"{name} (SD over trainings {spread}), MSE {error}\n\n{table(head, rows)}")
    return "\n".join(parts)


def transfer(results: Results) -> str:
    """Section 6.4."""
    rows = []
    for which, target in TARGETS.items():
        stage = f"transfer-{target}"
        found = results.stage(which, stage)
        name = f"{SETS[which].name} → {SETS[target].name}"
        for method in TRANSFERRED if found else ():
            values = [
                shown(results.column(which, stage, measure, method))
                for measure in ("svs spearman", "reference spearman")
            ]
            published = number(paper.TRANSFER.get(method, (None,))[0])
            right = f"{100 * np.mean(found['right']):.0f}%"
            spread = number(results.spread(which, stage, "svs spearman", method), ".3f")
            rows.append([name, right, NAMES.get(method, method), published, values[0], spread, *values[1:]])
    head = ["model and explainer → texts", "accuracy", "method", "paper (Yelp → SST-2)", "ρ with SVS-25"]
    rows = [row for row in rows if row[4] != "–"]
    return table([*head, "SD over runs", "ρ with the reference"], rows)


def selection(results: Results) -> str:
    """The numbers of Figure 5."""
    paper_removal, own_removal = REMOVALS[::-1]
    rows = []
    for which in results.sets:
        for name, label in (NAMES | LEARNED).items():
            stage = f"method-{name}"
            found = [results.right(which, stage, paper_removal, share) for share in ("0", *map(str, SHARES))]
            found.append(results.right(which, stage, own_removal, str(SHARES[-1])))
            texts = "–" if found[0] is None else str(len(found[0]))
            rows.append([f"{SETS[which].name}, {label}", texts, *(shown(each, 0, 100) for each in found)])
    head = ["", "texts", "nothing", *(f"{share:.0%}" for share in SHARES)]
    return table([*head, f"{SHARES[-1]:.0%}, not attended to"], rows)


def calibration(results: Results, stage: str = "calibration") -> str:
    """Table 6."""
    found = results.stage("mnli", stage)
    if found is None:
        return "Not measured.\n"
    plain = found["uncalibrated"]
    accuracy = f"{100 * plain['mean']:.1f} [{100 * plain['low']:.1f}, {100 * plain['high']:.1f}]"
    rows = [["the model as it is", "", accuracy, "–", "–", "–"]]
    for name, row in found["rows"].items():
        with_ks = next((key for key in row if key.startswith("beside KS-2000")), "")
        rows.append(
            [
                name
                if name in ("majority", "probabilities", "BOW")
                else f"ShapCal ({NAMES.get(name, name)})",
                number(paper.CALIBRATION.get(name), ".1f"),
                f"{100 * row['mean']:.1f} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]",
                *(
                    "–" if other == f"beside {name}" else _in_percent(row.get(other))
                    for other in ("beside BOW", with_ks)
                ),
                "–" if row["auc"] is None else f"{100 * row['auc']:.1f}",
            ]
        )
    text = f"{found['pairs']:,} pairs, {found['splits']} splits with {found['train']} to learn from.\n\n"
    return text + table(["", "accuracy: paper", "ours", "beside BOW", "beside KS-2000", "AUC"], rows)


def _in_percent(found: dict[str, float] | None) -> str:
    if found is None:
        return "–"
    return f"{100 * found['mean']:+.1f} [{100 * found['low']:+.1f}, {100 * found['high']:+.1f}]"

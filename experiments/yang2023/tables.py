"""Tables of the game of only the tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.shared.intervals import difference, number, show, show_mean
from experiments.shared.pages import MISSING, table
from experiments.yang2023 import conclusions, paper
from experiments.yang2023.measure import REMOVALS, SHARES
from experiments.yang2023.measuring import ADAPTED, PADDED, PROPORTIONS, TRANSFERRED
from experiments.yang2023.results import LEARNED, NAMES, WHOLE, Results, show_error
from experiments.yang2023.sets import SETS, SIZES, TARGETS

WITH_SVS, WITH_REFERENCE = "svs spearman", "reference spearman"


def overview(results: Results) -> str:
    """Return the models, the texts and the references."""
    rows = []
    for name in [name for name in SIZES if results.stage(name, "model")]:
        model, reference = results.stage(name, "model"), results.stage(name, "reference")
        learned, trained = results.stage(name, "learned"), results.stage(name, "amortized-0")
        tokens = reference and np.mean(reference["features"])
        rows.append(
            [
                SETS[name].name,
                f"{100 * model['test accuracy']:.1f}%",
                MISSING if reference is None else f"{reference['texts']}, {tokens:.0f} tokens on average",
                MISSING if reference is None else f"{reference['squared error']:.1e}",
                MISSING if learned is None else f"{learned['texts']:,}",
                MISSING if learned is None else f"{learned['reference seconds']:.0f} s",
                MISSING if trained is None else f"{trained['training seconds']:.0f} s",
            ]
        )
    head = ["set", "accuracy", "test texts", "squared error of the reference", "texts learned from"]
    return table([*head, "their references took", "training took"], rows)


def findings(results: Results) -> str:
    """Return which of the paper's findings hold."""
    return table(conclusions.head(), [row for row in conclusions.rows(results) if row[-1] != MISSING])


def stability(results: Results) -> str:
    """Return Tables 1 and 2."""
    parts = []
    for dataset in results.sets:
        rows = []
        for name, label in (NAMES | {"amortized": "amortized, between trainings"}).items():
            stage = f"method-{name}"
            published = paper.STABILITY[paper.COUNTERPARTS[dataset]].get(name, (None,) * 5)
            spent = results.column(dataset, stage, "evaluations")
            if spent is not None:
                ours = [
                    show_mean(results.column(dataset, stage, "spearman")),
                    show_mean(results.column(dataset, stage, "top_5"), factor=5),
                    show_mean(results.column(dataset, stage, "top_10"), factor=10),
                    show_error(results.column(dataset, stage, "mse")),
                ]
                pairs = [c for pair in zip(map(number, published), ours, strict=False) for c in pair]
                rows.append([label, str(len(spent)), *pairs, f"{np.mean(spent):,.0f}"])
        head = ["method", "texts", "ρ: paper", "ours", "top 5: paper", "ours", "top 10: paper", "ours"]
        head += ["MSE: paper", "ours", "evaluations"]
        note = f"Correlation of MSE with ρ over methods and texts: {mse_and_spearman(results, dataset):.2f}"
        note += f" (paper, Yelp-Polarity: {paper.MSE_AND_SPEARMAN}).\n"
        parts.append(f"{title(dataset)}\n\n{table(head, rows)}\n{note}")
    return "\n".join(parts)


def title(dataset: str) -> str:
    """Return the name of a data set and of the paper's that it is compared with."""
    return f"**{SETS[dataset].name}**, beside {paper.COUNTERPARTS[dataset]}"


def seconds(results: Results) -> str:
    """Return the seconds of one text, and how many times as fast the amortized model is (Sec. 6.1)."""
    rows = []
    for dataset, counterpart in paper.COUNTERPARTS.items():
        for stage, device in (("seconds-alone", "H200"), ("seconds-cpu", "one core of a CPU")):
            alone = (results.having(dataset, stage).stage(dataset, stage) or {}).get("alone", {})
            for name in [name for name in ("KS-200", "KS-2000") if name in alone]:
                slow, fast = np.array(alone[name]), np.array(alone["amortized"])
                published = paper.STABILITY[counterpart][name][4] / paper.AMORTIZED_SECONDS
                cells = [show_mean(slow, ".3f"), show_mean(fast, ".3f"), show_mean(slow / fast, ".1f")]
                label = f"{SETS[dataset].name}, {device}, {name}"
                rows.append([label, str(len(slow)), *cells, f"{published:.0f}"])
    return table(["", "texts", "its seconds", "seconds of amortized", "times as fast", "paper"], rows)


def mse_and_spearman(results: Results, dataset: str) -> float:
    """Return Pearson's correlation between a text's mean squared difference and its rank correlation."""
    pairs = [
        [results.column(dataset, f"method-{name}", measure) for measure in ("mse", "spearman")]
        for name in NAMES
    ]
    known: list[Any] = [np.stack(pair) for pair in pairs if pair[0] is not None and pair[1] is not None]
    both = np.concatenate(known, axis=1) if known else np.zeros((2, 0))
    both = both[:, np.isfinite(both).all(axis=0)]
    return float(np.asarray(np.corrcoef(both))[0, 1]) if both.shape[1] > 1 else np.nan


def padding(results: Results) -> str:
    """Return the stability of the tokens' ranks where padding plays but is not attended to."""
    rows = []
    for dataset in results.sets:
        for name in PADDED:
            run = results.having(dataset, f"padded-{name}")
            padded = run.column(dataset, f"padded-{name}", "spearman")
            alone = run.column(dataset, f"method-{name}", "spearman")
            published = f"{paper.STABILITY[paper.COUNTERPARTS[dataset]][name][0]:.2f}"
            if padded is not None:
                same = MISSING if alone is None else show_mean(alone[: len(padded)])
                rows.append([f"{SETS[dataset].name}, {name}", published, show_mean(padded), same])
    return table(["", "paper", "512 players, ρ of the tokens", "tokens alone, the same texts"], rows)


def approximation(results: Results) -> str:
    """Return Table 3."""
    parts = []
    for dataset in results.sets:
        rows = []
        for name, label in (NAMES | {"amortized": LEARNED["amortized"]}).items():
            stage = f"method-{name}"
            published = paper.APPROXIMATION[paper.COUNTERPARTS[dataset]].get(name, (None, None))
            rows.append(
                [
                    label,
                    number(published[0]),
                    show_mean(results.column(dataset, stage, WITH_SVS)),
                    number(results.spread(dataset, stage, WITH_SVS), ".3f"),
                    number(published[1], ".1e"),
                    show_error(results.column(dataset, stage, "svs mse")),
                    show_mean(results.column(dataset, stage, WITH_REFERENCE)),
                    show_error(results.column(dataset, stage, "reference mse")),
                    show_mean(results.column(dataset, stage, "coverage"), ".0f", factor=100),
                ]
            )
        head = ["method", "ρ with SVS-25: paper", "ours", "SD over runs", "MSE: paper", "ours"]
        head += ["ρ with the reference", "MSE", "% within ±1.96 SE"]
        kept = [row for row in rows if row[2] != MISSING]
        parts.append(f"{title(dataset)}\n\n{table(head, kept)}")
    return "\n".join(parts)


def training(results: Results) -> str:
    """Return Table 4, and the numbers of Figure 4."""
    rows = []
    for share in (*PROPORTIONS, WHOLE):
        row = [f"{share}%", *(f"{paper.TRAINING[name][str(share)]:.2f}" for name in (paper.YELP, paper.MNLI))]
        for dataset in results.sets:
            stage, texts = results.curve(dataset, share)
            measures = ("spearman", WITH_SVS)
            row += [MISSING if texts is None else f"{texts:,}"]
            row += [show_mean(results.column(dataset, stage, measure)) for measure in measures]
        rows.append(row)
    head = ["training texts", "between trainings: paper, Yelp", "MNLI"]
    for dataset in results.sets:
        head += [f"{SETS[dataset].name}: texts", "between trainings", "with SVS-25"]
    return table(head, rows)


def fastshap(results: Results) -> str:
    """Return the rows of Table 3 that are trained, with the evaluations of each."""
    rows = []
    for dataset in results.sets:
        run = results.having(dataset, "method-FastSHAP-fresh")
        published = paper.APPROXIMATION[paper.COUNTERPARTS[dataset]]
        if run.stage(dataset, "method-FastSHAP-fresh") is None:
            continue
        for name, label in LEARNED.items():
            stage = f"method-{name}"
            rows.append(
                [
                    f"{SETS[dataset].name}, {label}",
                    training_evaluations(run, dataset, name),
                    number(published.get(name, (None,))[0]),
                    show_mean(run.column(dataset, stage, WITH_SVS)),
                    number(run.spread(dataset, stage, WITH_SVS), ".3f"),
                    show_mean(run.column(dataset, stage, WITH_REFERENCE)),
                    show_error(run.column(dataset, stage, "reference mse")),
                ]
            )
    head = ["", "evaluations of a training text", "ρ with SVS-25: paper", "ours", "SD over trainings"]
    head += ["ρ with the reference", "MSE"]
    return table(head, [row for row in rows if row[3] != MISSING])


def training_evaluations(results: Results, dataset: str, name: str) -> str:
    """Return the evaluations of the model that a training takes for each text; a surrogate takes one."""
    if name == "amortized":
        learned = results.stage(dataset, "learned")
        return MISSING if learned is None else f"{learned['evaluations']:,.0f}"
    record = results.stage(dataset, f"{name}-0")
    if record is None:
        return MISSING
    if record.get("surrogate"):
        return "1"
    times = 1 + record["epochs"] if name.endswith("fresh") else 1
    return f"{2 + times * record['samples']:,.0f}"


def adaption(results: Results) -> str:
    """Return Table 5."""
    parts = []
    kinds = ("SVS", "alg. 1", "SVS-antithetic", "ours")
    head = ["m", "ρ with SVS-25: paper, SVS", "paper, Alg. 1", "SVS", "Alg. 1", "difference"]
    head += ["SD over runs", "with reverses", "ours", "difference"]
    head += ["MSE to the reference: SVS", "Alg. 1", "with reverses", "ours"]
    for dataset in results.sets:
        counterpart, rows = paper.COUNTERPARTS[dataset], []
        run = results.having(dataset, f"adapted-{ADAPTED[0]}")
        measured = [m for m in ADAPTED if run.stage(dataset, f"adapted-{m}")]
        for m in sorted(measured):
            stage = f"adapted-{m}"
            values = {kind: run.column(dataset, stage, WITH_SVS, kind) for kind in kinds}
            rows.append(
                [
                    str(m),
                    number(paper.SVS[counterpart].get(str(m))),
                    number(paper.ADAPTED[counterpart].get(str(m))),
                    show_mean(values["SVS"]),
                    show_mean(values["alg. 1"]),
                    show(difference(values["alg. 1"], values["SVS"]), "+.2f"),
                    number(run.spread(dataset, stage, WITH_SVS, "alg. 1"), ".3f"),
                    show_mean(values["SVS-antithetic"]),
                    show_mean(values["ours"]),
                    show(difference(values["ours"], values["SVS-antithetic"]), "+.2f"),
                    *(show_error(run.column(dataset, stage, "reference mse", kind)) for kind in kinds),
                ]
            )
        if rows:
            stage = f"adapted-{measured[0]}"
            alone = run.column(dataset, stage, WITH_SVS, "prediction")
            error = show_error(run.column(dataset, stage, "reference mse", "prediction"))
            texts = 0 if alone is None else len(alone)
            spread = number(run.spread(dataset, stage, WITH_SVS, "prediction"), ".3f")
            name = f"**{SETS[dataset].name}**, {texts} texts, beside {counterpart}."
            note = f"The prediction alone: ρ {show_mean(alone)} (SD over trainings {spread}), MSE {error}"
            parts.append(f"{name} {note}\n\n{table(head, rows)}")
    return "\n".join(parts)


def transfer(results: Results) -> str:
    """Return the table of Section 6.4."""
    rows = []
    for dataset, target in TARGETS.items():
        stage = f"transfer-{target}"
        record = results.stage(dataset, stage)
        for method in TRANSFERRED if record else ():
            values = [
                show_mean(results.column(dataset, stage, measure, method))
                for measure in (WITH_SVS, WITH_REFERENCE)
            ]
            published = number(paper.TRANSFER.get(method, (None,))[0])
            right = f"{100 * np.mean(record['right']):.0f}%"
            spread = number(results.spread(dataset, stage, WITH_SVS, method), ".3f")
            name = f"{SETS[dataset].name} → {SETS[target].name}"
            rows.append([name, right, NAMES.get(method, method), published, values[0], spread, values[1]])
    head = ["model and explainer → texts", "accuracy", "method", "paper (Yelp → SST-2)", "ρ with SVS-25"]
    head += ["SD over runs", "ρ with the reference"]
    return table(head, [row for row in rows if row[4] != MISSING])


def selection(results: Results) -> str:
    """Return the numbers of Figure 5."""
    paper_removal, own_removal = REMOVALS[::-1]
    rows = []
    for dataset in results.sets:
        for name, label in (NAMES | LEARNED).items():
            stage = f"method-{name}"
            shares = ("0", *map(str, SHARES))
            values = [results.right(dataset, stage, paper_removal, share) for share in shares]
            values.append(results.right(dataset, stage, own_removal, str(SHARES[-1])))
            if values[0] is not None:
                cells = [show_mean(own, ".0f", 100) for own in values]
                rows.append([f"{SETS[dataset].name}, {label}", str(len(values[0])), *cells])
    head = ["", "texts", "nothing", *(f"{share:.0%}" for share in SHARES)]
    return table([*head, f"{SHARES[-1]:.0%}, not attended to"], rows)


def calibration(results: Results, stage: str = "calibration") -> str:
    """Return Table 6."""
    record = results.stage("mnli", stage)
    if record is None:
        return ""
    rows = [["the model as it is", "", percent(record["uncalibrated"]), *[MISSING] * 3]]
    for name, row in record["rows"].items():
        with_ks = next((key for key in row if key.startswith("beside KS-2000")), "")
        gaps = [
            MISSING if other == f"beside {name}" or other not in row else percent(row[other], "+")
            for other in ("beside BOW", with_ks)
        ]
        plain = name in ("majority", "probabilities", "BOW")
        rows.append(
            [
                name if plain else f"ShapCal ({NAMES.get(name, name)})",
                number(paper.CALIBRATION.get(name), ".1f"),
                percent(row),
                *gaps,
                MISSING if row["auc"] is None else f"{100 * row['auc']:.1f}",
            ]
        )
    text = f"{record['pairs']:,} pairs, {record['splits']} splits with {record['train']} to learn from.\n\n"
    return text + table(["", "accuracy: paper", "ours", "beside BOW", "beside KS-2000", "AUC"], rows)


def percent(interval: dict[str, float], sign: str = "") -> str:
    """Return a mean with its interval in percent."""
    mean, low, high = (f"{100 * interval[key]:{sign}.1f}" for key in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"


PARTS = {
    "overview": overview,
    "findings": findings,
    "stability": stability,
    "seconds": seconds,
    "padding": padding,
    "approximation": approximation,
    "fastshap": fastshap,
    "training": training,
    "adaption": adaption,
    "transfer": transfer,
    "selection": selection,
    "calibration": calibration,
}

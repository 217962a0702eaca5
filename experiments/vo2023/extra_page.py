"""Write what extra.py, baselines.py and paper_form.py found into README.md, between its markers.

python experiments/vo2023/extra_page.py --records RECORDS

RECORDS is records.tar.xz, unpacked, or what records.py wrote.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from baselines import grids_table, named, runs_of, tuned_table, tuned_verdict
from extra import DRAWS, FI, SIZES, WIDTHS
from paper import ABLATED, CLASS_FAITHFULNESS, CLASS_IOU, TABLE_11, TUNED
from pictures import escaped, marked
from records import EXAMPLES, MEASURES, read_all
from results import fill_in, shown, table
from sets import CLASSES, TEXTS
from words import BREVITY, PURITY

from pertinent.stats import Interval, bootstrap

HERE = Path(__file__).parent
README = HERE / "README.md"
LONGEST = 600
"""Characters of a text that are shown."""
Found = Mapping[str, Any]


def every_class(extra: Found) -> str:
    """Table 5's rows of functional information."""
    rows = []
    for which in TEXTS:
        own = extra.get(f"{which} classes")
        if own is not None:
            values = own["values"]
            each = [share(values[f"class-faithfulness {c}"]) for c in range(len(CLASSES[which]))]
            paper = CLASS_FAITHFULNESS[which][FI]
            rows.append(
                [
                    which,
                    " / ".join(map(str, paper)),
                    " / ".join(each),
                    f"{np.mean(paper):.1f}",
                    share(values["class-faithfulness"]),
                    str(CLASS_IOU[which][FI]),
                    share(values["class-iou"]),
                    str(len(values["class-iou"])),
                ]
            )
    head = "set, of each class (paper), here, mean (paper), here, IoU of classes (paper), here, texts"
    return table(head.split(", "), rows)


def share(values: Sequence[float]) -> str:
    """A mean in percent with its interval."""
    return shown(bootstrap(np.array([values]), within=(0.0, 1.0)), 100)


def by_samples(extra: Found) -> str:
    """Figure 5, without seconds: LIME by its number of samples."""
    rows = []
    for which in TEXTS:
        own = extra.get(f"{which} samples", {})
        rows += [[which, f"{int(samples):,}", share(one["faithfulness"])] for samples, one in own.items()]
    return table(["set", "samples", "faithfulness"], rows)


def by_size(extra: Found) -> str:
    """App. G: how faithful L2X is when fitted with each K, and how many of its words stay for a larger K."""
    rows = []
    for which in TEXTS:
        own = extra.get(f"{which} sizes")
        for place, k in enumerate(SIZES) if own is not None else ():
            stay = [own["stay"].get(f"{row} {k}") for row in ("l2x", "aim")]
            cells = ["–" if share is None else f"{100 * share:.1f}" for share in stay]
            paper = TABLE_11[which]["l2x"][place]
            rows.append([which, str(k), str(paper), share(own["faithfulness"][f"l2x {k}"]), *cells])
    head = "set, K, faithfulness of `l2x` (paper), here, its words that stay for the next K (%), of `aim`"
    return table(head.split(", "), rows)


def by_setting(extra: Found) -> str:
    """Tables 14 and 18: LIME by the width of its kernel, functional information by its draws."""
    rows = []
    for which in TEXTS:
        for part, values, name in (
            ("widths", WIDTHS, "lime, width {}"),
            ("draws", DRAWS, f"{FI}, draws {{}}"),
        ):
            own = extra.get(f"{which} {part}", {})
            for value in [str(value) for value in values if str(value) in own]:
                paper, one = TUNED[which][name.format(value)], own[value]
                found = {measure: np.array([one["counted"][measure]]) for measure in MEASURES}
                rows.append(
                    [
                        which,
                        f"`{name.format(value)}`",
                        f"{paper[2]:.2f}",
                        share(one["faithfulness"]),
                        f"{paper[0]:.2f}",
                        shown(bootstrap(found["purity as published"]), 100),
                        f"{paper[1]:.2f}",
                        shown(bootstrap(found["brevity as published"])),
                    ]
                )
    head = "set, setting, faithfulness (paper), here, purity (paper), here, brevity (paper), here"
    return table(head.split(", "), rows)


def words_by_size(extra: Found) -> str:
    """App. G: a few texts, and the words of L2X for each K."""
    parts = []
    for which, n in EXAMPLES.items():
        own = extra.get(f"{which} sizes")
        for number in range(n if own is not None else 0):
            text = own["texts"][number]
            text = text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + " …"
            rows = [[str(k), marked(own["words"][f"l2x {k}"][number])] for k in SIZES]
            parts.append(f"{escaped(text)}\n\n{table(['K', 'words of `l2x`'], rows)}")
    return "\n".join(parts)


def measures(runs: Sequence[Any]) -> dict[str, Interval]:
    """Purity and brevity of the top ten words, over texts and seeds."""
    return {name: bootstrap(np.array([run["counted"][name] for run in runs])) for name in MEASURES}


def words_table(made: Found) -> str:
    """Purity and brevity of methods that are fitted, tuned ones too, and of AIM's ablations (Table 7)."""
    rows = []
    for which in TEXTS:
        forms = {name: (form, name.partition(",")[0]) for name, form in named(made, which).items()}
        forms |= {f"aim, {form}": (form, form) for form in ABLATED}
        for name, (form, published) in forms.items():
            runs = [own for own in runs_of(made, which, form) if "counted" in own]
            if not runs:
                continue
            own, (purity, brevity) = measures(runs), paper_figures(which, published)
            rows.append(
                [
                    which,
                    f"`{name}`",
                    purity,
                    shown(own["purity as published"], 100),
                    shown(own["purity"], 100),
                    brevity,
                    shown(own["brevity as published"]),
                    shown(own["brevity"]),
                    shown(faithfulness(runs), 100),
                    str(len(runs)),
                ]
            )
    head = "set, method, purity (paper), here as published, every occurrence counted, brevity (paper), "
    return table(f"{head}here as published, by synonyms, faithfulness, seeds".split(", "), rows)


def faithfulness(runs: Sequence[Any]) -> Interval:
    """The share of decisions that the top ten words keep."""
    return bootstrap(np.array([run["values"]["faithfulness"] for run in runs]), within=(0.0, 1.0))


def paper_figures(which: str, row: str) -> tuple[str, str]:
    """What the paper has: purity in percent, and brevity."""
    if row in ABLATED:
        return (str(ABLATED[row][0]), str(ABLATED[row][1])) if which == "imdb" else ("–", "–")
    found = [published[which].get(row) for published in (PURITY, BREVITY)]
    figures = ["–" if own is None else str(own[1] if len(own) > 1 else own[0]) for own in found]
    return figures[0], figures[1]


def main() -> None:
    """Fill in the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--page", type=Path, default=README)
    arguments = parser.parse_args()
    made, extra = (read_all([arguments.records / f"{name}.json"]) for name in ("made", "extra"))
    tables = {
        "tuned": tuned_table(made),
        "tuned verdict": tuned_verdict(made),
        "grids": grids_table(made),
        "functional information": every_class(extra),
        "l2x by K": by_size(extra),
        "l2x's words": words_by_size(extra),
        "words as published": words_table(made),
        "by setting": by_setting(extra),
        "figure 5": by_samples(extra),
    }
    fill_in(arguments.page, tables)


if __name__ == "__main__":
    main()

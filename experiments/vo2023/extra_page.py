"""Write what extra.py, baselines.py and paper_form.py found into README.md, between its markers.

    NLTK_DATA=NLTK python experiments/vo2023/extra_page.py --extra FOLDER [FOLDER ...] --words FILE [FILE ...]

FOLDERs are what extra.py wrote, FILEs what baselines.py and paper_form.py did.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from baselines import BOX, named
from extra import SAMPLES, SIZES, nested
from paper import ABLATED, CLASS_FAITHFULNESS, CLASS_IOU, TABLE_11
from pictures import escaped, marked
from results import fill_in, shown, table
from sets import CLASSES, TEXTS
from words import BREVITY, PURITY, K

from pertinent.intervals import Interval, bootstrap
from pertinent.metric.english_words import clusters, distinct_contaminated, share_contaminated
from pertinent.metric.top_features import lower
from pertinent.report.plots import LINES, new_figure

HERE = Path(__file__).parent
README = HERE / "README.md"
FI = "functional-information"
EXAMPLES = {"imdb": 2, "ag_news": 1}
"""Texts whose words are shown; those of HateXplain are offensive."""
LONGEST = 600
"""Characters of a text that are shown."""
Found = Mapping[str, Any]


def read(folders: Sequence[Path]) -> dict[str, Any]:
    """What extra.py wrote, by name."""
    return {path.stem: json.loads(path.read_text()) for own in folders for path in sorted(own.glob("*.json"))}


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
    """Figure 5: LIME by its number of samples."""
    rows = []
    for which in TEXTS:
        own = extra.get(f"{which} samples")
        for samples in map(str, SAMPLES) if own is not None else ():
            one = own[samples]
            rows.append([which, f"{int(samples):,}", share(one["faithfulness"]), f"{one['seconds']:.4f}"])
    return table(["set", "samples", "faithfulness", "seconds a text"], rows)


def draw_samples(extra: Found, path: Path) -> None:
    """Figure 5 as a picture: faithfulness, and seconds for each text."""
    figure = new_figure(5.5, 3.2)
    left = figure.subplots()
    right = left.twinx()
    own = extra["imdb samples"]
    faithfulness = [100 * np.mean(own[str(n)]["faithfulness"]) for n in SAMPLES]
    left.plot(SAMPLES, faithfulness, marker="o", color=LINES[0], label="faithfulness, %")
    right.plot(SAMPLES, [own[str(n)]["seconds"] for n in SAMPLES], marker="s", ls="--", color=LINES[1])
    left.set_xscale("log")
    left.set_xlabel("samples of LIME for each text")
    left.set_ylabel("faithfulness, %", color=LINES[0])
    right.set_ylabel("seconds for each text", color=LINES[1])
    left.grid(alpha=0.25)
    figure.savefig(path, dpi=110)


def by_size(extra: Found) -> str:
    """App. G: how faithful L2X is when fitted with each K, and how many of its words stay for a larger K."""
    rows = []
    for which in TEXTS:
        own = extra.get(f"{which} sizes")
        for place, k in enumerate(SIZES) if own is not None else ():
            words = own["words"]
            stay = ["–", "–"]
            if k != SIZES[-1]:
                stay = [
                    f"{100 * nested(words[f'{row} {k}'], words[f'{row} {SIZES[place + 1]}']):.1f}"
                    for row in ("l2x", "aim")
                ]
            paper = TABLE_11[which]["l2x"][place]
            rows.append([which, str(k), str(paper), share(own["faithfulness"][f"l2x {k}"]), *stay])
    head = "set, K, faithfulness of `l2x` (paper), here, its words that stay for the next K (%), of `aim`"
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
    """Purity, each occurrence counted and as published, and brevity, of the top ten words."""
    top = [[[lower(word) for word in own[:K]] for own in run["words"]] for run in runs]
    own: dict[str, Callable[[Sequence[str]], float]] = {
        "purity": share_contaminated,
        "as published": lambda words: distinct_contaminated(words, K),
        "brevity": lambda words: float(len(clusters(words))),
    }
    return {
        name: bootstrap(np.array([[measure(words) for words in run] for run in top]))
        for name, measure in own.items()
    }


def words_table(made: Found) -> str:
    """Purity and brevity of methods that are fitted, tuned ones too, and of AIM's ablations (Table 7)."""
    rows = []
    for which in TEXTS:
        forms = {name: (form, name.partition(",")[0]) for name, form in named(made, which).items()}
        forms |= {f"aim, {form}": (form, form) for form in ABLATED if which == "imdb"}
        for name, (form, published) in forms.items():
            runs = [own for key, own in made.items() if key.startswith(f"{which} | {BOX} | {form} | ")]
            if not runs:
                continue
            own, (purity, brevity) = measures(runs), paper_figures(which, published)
            rows.append(
                [
                    which,
                    f"`{name}`",
                    purity,
                    shown(own["as published"], 100),
                    shown(own["purity"], 100),
                    brevity,
                    shown(own["brevity"]),
                    shown(faithfulness(runs), 100),
                    str(len(runs)),
                ]
            )
    head = "set, method, purity (paper), here as published, every occurrence counted, brevity (paper), here, "
    return table(f"{head}faithfulness, seeds".split(", "), rows)


def faithfulness(runs: Sequence[Any]) -> Interval:
    """The share of decisions that the top ten words keep."""
    return bootstrap(np.array([run["values"]["faithfulness"] for run in runs]), within=(0.0, 1.0))


def paper_figures(which: str, row: str) -> tuple[str, str]:
    """What the paper has: purity in percent, and brevity."""
    if row in ABLATED:
        return str(ABLATED[row][0]), str(ABLATED[row][1])
    found = [published[which].get(row) for published in (PURITY, BREVITY)]
    figures = ["–" if own is None else str(own[1] if len(own) > 1 else own[0]) for own in found]
    return figures[0], figures[1]


def main() -> None:
    """Fill in the tables, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--extra", type=Path, nargs="+", required=True)
    parser.add_argument("--words", type=Path, nargs="+", required=True)
    parser.add_argument("--page", type=Path, default=README)
    parser.add_argument("--out", type=Path, default=HERE, help="a folder for figure5.png")
    arguments = parser.parse_args()
    extra = read(arguments.extra)
    made = {k: v for path in arguments.words for k, v in json.loads(path.read_text()).items()}
    tables = {
        "functional information": every_class(extra),
        "l2x by K": by_size(extra),
        "l2x's words": words_by_size(extra),
        "words as published": words_table(made),
    }
    fill_in(arguments.page, tables)
    if "imdb samples" in extra:
        print(by_samples(extra))
        draw_samples(extra, arguments.out / "figure5.png")


if __name__ == "__main__":
    main()

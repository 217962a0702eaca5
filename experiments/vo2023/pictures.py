"""Draw what run.py found: faithfulness against K (Figure 2), quality against cost, and examples.

    python experiments/vo2023/pictures.py --results RESULTS

Writes ``figure2.png`` and ``cost.png``, and into examples.md the words that methods choose of the same texts.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from paper import TABLE_11
from results import ROWS, fill_in, of, over, read_results, table
from sets import TEXTS

from pertinent.rendering.plots import LINES, MARKERS, QUIET, new_figure

HERE = Path(__file__).parent
SIZES = (5, 10, 20)
COMPARED = ("aim", "l2x", "lime", "vibi")
NAMES = {"imdb": "IMDB", "hatexplain": "HateXplain", "ag_news": "AG News"}
DOTS = dict(zip(ROWS, zip((*LINES, "#8c564b", QUIET), MARKERS + "p*", strict=True), strict=True))
"""The colour and marker of each method."""
SHOWN = ("imdb", "ag_news")
"""Not HateXplain: its texts are offensive."""
EXAMPLES = 3
LONGEST = 600
"""Characters of a text that are shown."""


def draw_figure_2(found: dict[str, Any], sets: Sequence[str], path: Path) -> None:
    """Faithfulness against K; L2X is fitted anew for each K. The paper's values are dashed."""
    figure = new_figure(1 + 3 * len(sets), 3.2)
    for axes, which in zip(figure.subplots(1, len(sets), sharey=True, squeeze=False)[0], sets, strict=True):
        for method, published in TABLE_11[which].items():
            colour, marker = DOTS[method]
            axes.plot(SIZES, published, ls="--", marker=marker, mfc="none", color=colour, alpha=0.6, lw=1)
            own = {k: faithfulness(found, which, method, k) for k in SIZES}
            known = {k: each for k, each in own.items() if each is not None}
            mean, low, high = (
                100 * np.array([getattr(each, bound) for each in known.values()])
                for bound in ("mean", "low", "high")
            )
            bounds = np.nan_to_num([mean - low, high - mean])
            axes.errorbar(
                list(known), mean, bounds, marker=marker, color=colour, capsize=2, label=method, lw=1.6
            )
        axes.set_title(NAMES[which], loc="left", fontsize=10)
        axes.set_xticks(SIZES)
        axes.set_xlabel("K, words kept")
        axes.grid(alpha=0.25)
    figure.axes[0].set_ylabel("faithfulness, %")
    figure.axes[0].plot([], [], ls="--", color=QUIET, lw=1, label="paper")
    figure.axes[0].legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=110)


def faithfulness(found: dict[str, Any], which: str, method: str, k: int) -> Any:
    """Of the top K words; of L2X that was fitted with this K."""
    runs = of(found, which, method if method != "l2x" or k == 10 else f"l2x {k}")
    return over(runs, f"faithfulness of {k}")


def draw_cost(found: dict[str, Any], sets: Sequence[str], path: Path, sparsity: float = 0.1) -> None:
    """Sufficiency (lower is better) and comprehensiveness (higher is) against evaluations for each text."""
    figure = new_figure(2.2 + 3 * len(sets), 5.6)
    panels = figure.subplots(2, len(sets), sharex="col", squeeze=False)
    for column, which in enumerate(sets):
        for axes, metric in zip(panels[:, column], ("sufficiency", "comprehensiveness"), strict=True):
            for row in ROWS:
                runs = of(found, which, row)
                own = over(runs, f"{metric} {sparsity}")
                if own is None:
                    continue
                cost = max(1.0, float(np.mean([run["evaluations"] for run in runs])))
                colour, marker = DOTS[row]
                bounds = np.nan_to_num([[own.mean - own.low], [own.high - own.mean]])
                axes.errorbar(cost, own.mean, bounds, fmt=marker, color=colour, ms=6, capsize=2, label=row)
            axes.set_xscale("log")
            axes.grid(alpha=0.25)
        panels[0, column].set_title(NAMES[which], loc="left", fontsize=10)
        panels[1, column].set_xlabel("evaluations for each text")
    for axes, metric in zip(panels[:, 0], ("sufficiency ↓", "comprehensiveness ↑"), strict=True):
        axes.set_ylabel(f"{metric} at {sparsity:.0%}")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8, frameon=False)
    figure.savefig(path, dpi=110)


def examples(found: dict[str, Any], which: str) -> str:
    """The first texts that every method explained: its top words, and those that AIM has for each class."""
    first = {row: own[0]["examples"] for row in COMPARED if (own := of(found, which, row))}
    parts = []
    for number in range(min(EXAMPLES, *map(len, first.values()))):
        shared = {row: each[number] for row, each in first.items()}
        aim = shared.get("aim") or next(iter(shared.values()))
        rows = [[f"`{row}`", marked(own["top"][own["predicted"]])] for row, own in shared.items()]
        rows += [[f"`aim` for {name}", marked(words)] for name, words in aim["top"].items()]
        text = aim["text"] if len(aim["text"]) <= LONGEST else aim["text"][:LONGEST].rpartition(" ")[0] + " …"
        title = f"{number + 1}. {escaped(text)} — **{aim['predicted']}**"
        parts.append(f"{title}\n\n{table(['method', f'top {SIZES[1]} words'], rows)}")
    return f"### {NAMES[which]}\n\n" + "\n".join(parts)


def marked(words: Sequence[str]) -> str:
    """Words in their order; each once, with how often it was chosen."""
    counts = {word: words.count(word) for word in dict.fromkeys(words)}
    return " · ".join(escaped(word) + (f" ×{n}" if n > 1 else "") for word, n in counts.items())


def escaped(text: str) -> str:
    """As it is, in Markdown."""
    for sign in "\\*_|`<[]#":
        text = text.replace(sign, f"\\{sign}")
    return text


def main() -> None:
    """Draw what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=HERE, help="a folder, with examples.md")
    arguments = parser.parse_args()
    found = read_results(arguments.results)
    sets = [which for which in TEXTS if of(found, which, "aim")]
    draw_figure_2(found, sets, arguments.out / "figure2.png")
    draw_cost(found, sets, arguments.out / "cost.png")
    shown = "\n".join(examples(found, which) for which in sets if which in SHOWN)
    fill_in(arguments.out / "examples.md", {"examples": shown})


if __name__ == "__main__":
    main()

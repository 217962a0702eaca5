"""Pages of the experiments of Yang et al. 2023: both games' tables, and figures."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from experiments.shared.pages import Content, Page
from experiments.shared.stages import Run
from experiments.yang2023 import game_tables, tables
from experiments.yang2023.figures import figure_1, figure_3, figure_4, figure_5, panels
from experiments.yang2023.game_record import GameRecord
from experiments.yang2023.results import Results

results_of = lru_cache(maxsize=1)(Results)


@lru_cache(maxsize=1)
def records_of(folder: Path) -> dict[str, GameRecord]:
    """Return the records of the paper's game in a folder, by data set."""
    return {path.stem: GameRecord(path) for path in sorted(folder.glob("*.npz"))}


def readme(run: Run) -> Content:
    """Return the parts of README.md."""
    return {name: partial(make, results_of(run.results)) for name, make in tables.PARTS.items()}


def paper_game(run: Run) -> Content:
    """Return the parts of paper_game.md."""
    records = records_of(run.results)
    parts: dict[str, Callable[[], str]] = {
        name: partial(make, records) for name, make in game_tables.PARTS.items()
    }
    results = results_of(run.results)
    return parts | {"calibration": lambda: tables.calibration(results, "calibration-game")}


def figure(fill: Callable[[Any, Results, str], None], run: Run) -> Content:
    """Return a figure with a panel for each data set, if there are records."""
    results = results_of(run.results)
    return panels(fill, results) if results.sets else None


PAGES = {
    # These parts and figures are of a longer run, of which only some records were kept.
    "README.md": Page(readme, not_kept=("padding", "training")),
    "paper_game.md": Page(paper_game),
    "figure1.png": Page(lambda run: figure_1(results_of(run.results)), dpi=150),
    **{
        f"figure{number}.png": Page(partial(figure, fill), kept=False, dpi=150)
        for number, fill in ((3, figure_3), (4, figure_4), (5, figure_5))
    },
}

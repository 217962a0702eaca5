"""Page of the experiments of MAGNEx."""

from __future__ import annotations

from functools import partial

from experiments.magnex.pictures import draw, examples
from experiments.magnex.tables import PARTS
from experiments.shared.pages import Content, Page
from experiments.shared.stages import Run, read_record


def readme(run: Run) -> Content:
    """Return the parts of README.md, from the records in a folder and the folders below it."""
    paths = [path for path in sorted(run.results.rglob("*.json")) if path.parent.name != "logs"]
    records = {path.stem: read_record(path) for path in paths}
    tables = {name: partial(make, records) for name, make in PARTS.items()}
    return tables | {"examples": partial(examples, run)}


PAGES = {
    "README.md": Page(readme),
    **{f"{box}.png": Page(partial(draw, box=box), kept=False, dpi=110) for box in ("forest", "cnn")},
}

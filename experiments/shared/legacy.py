"""Stages and pages of the papers whose experiments have no runner yet."""

from __future__ import annotations

import json
import multiprocessing
import re
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

Stage = Callable[[], dict[str, Any]]


def is_made(path: Path) -> bool:
    """Whether a stage was carried out, and did not fail."""
    return path.is_file() and "error" not in json.loads(path.read_text())


def carry_out(made: Path, stage: Stage, tf32: bool) -> None:
    """Run one stage, and write what it found, or why it failed."""
    import torch

    if tf32:
        torch.set_float32_matmul_precision("high")
    torch.set_num_threads(1)
    start = time.perf_counter()
    try:
        result = stage()
    except Exception:  # noqa: BLE001 (the others go on)
        result = {"error": traceback.format_exc()[-2000:]}
    result["wall seconds"] = round(time.perf_counter() - start, 2)
    unfinished = made.with_suffix(".part")
    unfinished.write_text(json.dumps(result))
    unfinished.rename(made)


class Pool:
    """Stages that run side by side, at most so many `processes` at a time, until the time `last`."""

    def __init__(self, processes: int, last: float, *, tf32: bool = False) -> None:
        self.processes, self.last, self.tf32 = processes, last, tf32
        self.running: dict[Path, tuple[BaseProcess, float]] = {}

    @property
    def in_time(self) -> bool:
        """Whether there is time left."""
        return time.time() < self.last

    @property
    def is_full(self) -> bool:
        """Whether no more may be begun now."""
        return len(self.running) >= self.processes

    def begin(self, made: Path, stage: Stage) -> None:
        """Start a stage."""
        start = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        process = start.Process(target=carry_out, args=(made, stage, self.tf32))
        process.start()
        self.running[made] = process, time.time()

    def collect(self) -> None:
        """Wait a little, and say which are done."""
        time.sleep(0.3)
        for made, (process, since) in list(self.running.items()):
            if not process.is_alive():
                del self.running[made]
                state = "done" if is_made(made) else "FAILED"
                print(f"{made.stem}: {state} ({time.time() - since:.0f} s)", flush=True)

    def stop(self) -> None:
        """End what is still running."""
        for made, (process, since) in self.running.items():
            process.kill()
            print(f"{made.stem}: stopped, time is up ({time.time() - since:.0f} s)", flush=True)

    def run(self, stages: Mapping[Path, Stage], needs: Mapping[Path, Path] | None = None) -> None:
        """Run the stages that are not made, in their order, until all are done or time is up.

        A stage that `needs` the file of another one is passed over until that is made.
        """
        waiting = {made: stage for made, stage in stages.items() if not is_made(made)}
        needed = needs or {}
        while self.in_time:
            ready = [made for made in waiting if made not in needed or is_made(needed[made])]
            for made in ready[: max(0, self.processes - len(self.running))]:
                self.begin(made, waiting.pop(made))
            if not self.running:
                break
            self.collect()
        self.stop()
        why = "what it needs is missing" if self.in_time else "time is up"
        for made in waiting:
            print(f"{made.stem}: left out, {why}", flush=True)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; rows with nothing behind their first cell are left out."""
    kept = [row for row in rows if set(row[1:]) - {"–", ""}]
    return "".join(f"| {' | '.join(line)} |\n" for line in [head, ["---"] * len(head), *kept])


def fill_in(page: Path, texts: Mapping[str, str]) -> None:
    """Write texts into a page, each between ``<!-- its name -->`` and ``<!-- end -->``.

    A text ends with a line break, as a table does.
    """
    content = page.read_text(encoding="utf-8")
    for name, text in texts.items():
        place = re.search(rf"<!-- {re.escape(name)} -->\n(.*?)<!-- end -->", content, re.DOTALL)
        if place is None:
            raise ValueError(f"{page} has no place for {name}: <!-- {name} --> and <!-- end -->.")
        content = f"{content[: place.start(1)]}\n{text}\n{content[place.end(1) :]}"
    page.write_text(content, encoding="utf-8")

"""Scheduler of jobs: each runs in its own process, on one of several devices, until a deadline."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from experiments.shared.stages import Job, Run, carry_out, is_complete


@dataclass(frozen=True)
class Pool:
    """Runs jobs in their order, each as soon as the records that it needs are complete.

    Attributes
    ----------
    processes
        Number of jobs that run at the same time; 0 runs them in this process.
    devices
        Torch devices that the jobs are distributed over.
    tf32
        Whether matrices are multiplied in TF32.
    """

    run: Run
    processes: int = 1
    devices: Sequence[str] = ("cpu",)
    tf32: bool = False
    _running: dict[BaseProcess, tuple[Job, str, float]] = field(default_factory=dict)

    def carry_out(self, jobs: Sequence[Job]) -> list[str]:
        """Run the jobs whose records are not complete; return the names of those that still are not."""
        waiting = [job for job in jobs if not job.is_done(self.run.results)]
        while self._in_time and (waiting or self._running):
            job = next((job for job in waiting if self._is_ready(job)), None)
            if job is not None and len(self._running) < max(1, self.processes):
                waiting.remove(job)
                self._start(job)
            elif self._running:
                self._collect()
            else:
                break
        self._stop()
        reason = "a record that it needs is missing" if self._in_time else "time is up"
        for job in waiting:
            print(f"{job.name}: skipped, {reason}", flush=True)
        return [job.name for job in jobs if not job.is_done(self.run.results)]

    @property
    def _in_time(self) -> bool:
        return time.time() < self.run.end

    def _is_ready(self, job: Job) -> bool:
        return all(is_complete(self.run.results / record) for record in job.needs)

    def _start(self, job: Job) -> None:
        busy, start = [device for _, device, _ in self._running.values()], time.time()
        device = min(self.devices, key=busy.count)
        run = replace(self.run, device=device)
        if self.processes == 0:
            succeeded = attempt(job, run)
            _report(job, start, "done" if succeeded else "failed")
            return
        arguments = job, run, self._log(job), self.tf32
        # CUDA does not survive a fork.
        process = multiprocessing.get_context("spawn").Process(target=run_process, args=arguments)
        process.start()
        self._running[process] = job, device, start

    def _collect(self) -> None:
        """Wait until a process ends or the deadline has passed, and report the processes that have ended."""
        seconds = max(0.0, min(self.run.end - time.time(), 3600.0))
        wait([process.sentinel for process in self._running], timeout=seconds)
        for process in [process for process in self._running if not process.is_alive()]:
            job, _, start = self._running.pop(process)
            _report(job, start, "failed, see " + str(self._log(job)) if process.exitcode else "done")

    def _stop(self) -> None:
        for process, (job, _, start) in self._running.items():
            process.kill()
            _report(job, start, "stopped, time is up")
        self._running.clear()

    def _log(self, job: Job) -> Path:
        return self.run.results / "logs" / f"{job.name}.log"


def attempt(job: Job, run: Run) -> bool:
    """Run a job, print the traceback if it fails, and return whether it succeeded."""
    try:
        carry_out(job, run)
    except Exception:  # noqa: BLE001  the other jobs continue
        print(traceback.format_exc(), flush=True)
        return False
    return True


def run_process(job: Job, run: Run, log: Path, tf32: bool) -> None:
    """Run a job on one thread, write its output to a file, and exit with status 1 if it fails."""
    import torch

    torch.set_num_threads(1)
    if tf32:
        torch.set_float32_matmul_precision("high")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file, redirect_stdout(file), redirect_stderr(file):
        succeeded = attempt(job, run)
    if not succeeded:
        raise SystemExit(1)


def _report(job: Job, start: float, state: str) -> None:
    print(f"{job.name}: {state} ({time.time() - start:.0f} s)", flush=True)

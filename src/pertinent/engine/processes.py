"""Arithmetic in processes of its own: Python runs one thread at a time, and one has to feed the device.

Processes are started by a plain command, so a program needs no guard around its main part. They end with the
program, because its ends of their pipes do.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection
from typing import Any

WORTH_A_START = 0.4
"""Seconds of arithmetic for each process that is started: about as long as a start takes."""

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_COMMAND = "import sys; from pertinent.engine.processes import serve; serve(*map(int, sys.argv[1:]))"


class Process:
    """A process that calls functions."""

    def __init__(self) -> None:
        (there_read, here_write), (here_read, there_write) = os.pipe(), os.pipe()
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", _COMMAND, str(there_read), str(there_write)],
            env=os.environ | _ONE_THREAD | {"PYTHONPATH": paths},
            pass_fds=(there_read, there_write),
            stdin=subprocess.DEVNULL,
        )
        os.close(there_read)
        os.close(there_write)
        self._requests = Connection(here_write, readable=False)
        self._answers = Connection(here_read, writable=False)

    def call(self, compute: Callable[[], Any]) -> Any:
        """What the function returns there; raises what it raises, or OSError if the process has ended."""
        self._requests.send(compute)
        try:
            result, error = self._answers.recv()
        except EOFError:
            raise OSError("The process has ended.") from None
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """End the process."""
        self._requests.close()
        self._answers.close()
        self._process.wait()


class Processes:
    """Calls functions in the thread that asks or, if there was much to compute, in processes.

    Parameters
    ----------
    most
        The largest number of processes.
    """

    def __init__(self, most: int) -> None:
        self.most = most if hasattr(os, "fork") else 0
        self._lock = threading.Lock()
        self._seconds = 0.0
        self._started = 0
        self._idle: list[Process] = []

    def call(self, compute: Callable[[], Any]) -> Any:
        """What the function returns, wherever it is called."""
        process = self._take()
        if process is None:
            begin = time.perf_counter()
            result = compute()
            with self._lock:
                self._seconds += time.perf_counter() - begin
            return result
        try:
            return process.call(compute)
        except OSError:
            process.close()
            process = None
            return compute()
        finally:
            with self._lock:
                if process is None:
                    self._started -= 1
                else:
                    self._idle.append(process)

    def close(self) -> None:
        """End the processes that have nothing to do."""
        while self._idle:
            self._idle.pop().close()
            self._started -= 1

    def _take(self) -> Process | None:
        """A process that has nothing to do; a new one, if that seems worth its start; or None."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._started == self.most or self._seconds < WORTH_A_START * (self._started + 1):
                return None
            self._started += 1
        return Process()


def serve(requests: int, answers: int) -> None:
    """Call the functions that come through one pipe, and send what they return through another."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program ends it
    inbox, outbox = Connection(requests, writable=False), Connection(answers, readable=False)
    while True:
        try:
            compute = inbox.recv()
        except EOFError:
            return
        result, failure = None, None
        try:
            result = compute()
        except Exception as error:  # noqa: BLE001  raised where it was asked for
            failure = error
        outbox.send((result, failure))


def n_cores() -> int:
    """Number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def shared() -> Processes:
    """The processes of all engines: one core is left to the thread that feeds the device."""
    found = Processes(n_cores() - 1)
    atexit.register(found.close)
    os.register_at_fork(after_in_child=shared.cache_clear)
    return found

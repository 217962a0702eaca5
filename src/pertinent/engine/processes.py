"""Runs arithmetic in other processes: a Python process runs one thread at a time, which must feed the device.

Processes are started by a plain command, so programs need no ``if __name__ == "__main__"``. They end when the
program closes its end of the connection.
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
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

WORTH_A_START = 0.4
"""Seconds of arithmetic per started process: approximately the duration of a start."""

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_COMMAND = "import sys; from pertinent.engine.processes import serve; serve(int(sys.argv[1]))"


class Process:
    """A process that calls functions."""

    def __init__(self) -> None:
        self._connection, other_end = Pipe()
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", _COMMAND, str(other_end.fileno())],
            env=os.environ | _ONE_THREAD | {"PYTHONPATH": paths},
            pass_fds=[other_end.fileno()],
            stdin=subprocess.DEVNULL,
        )
        other_end.close()

    def call(self, compute: Callable[[], Any]) -> Any:
        """Return the function's result or raise its error; raise an OSError if the process has ended."""
        self._connection.send(compute)
        try:
            result, error = self._connection.recv()
        except EOFError:
            raise OSError("The process has ended.") from None
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """Terminate the process."""
        self._connection.close()
        self._process.wait()


class Processes:
    """Calls functions in the calling thread, or after enough arithmetic in at most `limit` processes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit if hasattr(os, "fork") else 0
        self._lock = threading.Lock()
        self._seconds = 0.0
        self._started = 0
        self._idle: list[Process] = []

    def call(self, compute: Callable[[], Any]) -> Any:
        """Return the function's result."""
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
        """Terminate all idle processes."""
        while self._idle:
            self._idle.pop().close()
            self._started -= 1

    def _take(self) -> Process | None:
        """Return an idle process, a new one if a start seems worthwhile, or None."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._started == self.limit or self._seconds < WORTH_A_START * (self._started + 1):
                return None
            self._started += 1
        return Process()


def serve(file: int) -> None:
    """Call the functions that arrive through a connection, and send back results or errors."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main program terminates this process
    connection = Connection(file)
    while True:
        try:
            compute = connection.recv()
        except EOFError:
            return
        result, failure = None, None
        try:
            result = compute()
        except Exception as error:  # noqa: BLE001  raised where it was called
            failure = error
        connection.send((result, failure))


def n_cores() -> int:
    """Return the number of CPU cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def shared() -> Processes:
    """Return the processes shared by all engines: one per core, except the one that feeds the device."""
    processes = Processes(n_cores() - 1)
    atexit.register(processes.close)
    os.register_at_fork(after_in_child=shared.cache_clear)
    return processes

"""Connecting to Ray or starting it locally; problems are reported within seconds."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pertinent._optional import optional
from pertinent.errors import ClusterError

SECONDS = 5.0
"""Seconds within which a cluster must answer."""

_PORTS = {"ray://": 10001, "": 6379}

_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""Start of an HTTP/2 connection, which Ray uses: its first line, and a frame of type 4 (settings)."""


@contextmanager
def connected(address: str | None, n_cpus: int | None) -> Iterator[Any]:
    """Yield the Ray module, connected to the cluster at `address`.

    Without an address, Ray is started on this machine with `n_cpus` CPUs, and stopped at the end. An existing
    connection of this process is reused and left open.
    """
    ray = optional("ray")
    if ray.is_initialized():
        yield ray
        return
    options: dict[str, Any] = {"logging_level": logging.ERROR}
    if address is None:
        options["num_cpus"] = n_cpus
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # usage reporting is opt-in
    else:
        _check_reachable(address)
    with _same_signals():
        try:
            ray.init(address=address or "local", **options)
        except Exception as error:
            ray.shutdown()
            if address is None:
                raise ClusterError(f"Ray cannot be started here: {error}") from error
            raise ClusterError(
                f"Cannot use Ray at {address!r}: {error} (If it requires a token, set RAY_AUTH_MODE=token "
                "and RAY_AUTH_TOKEN.)"
            ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _same_signals() -> Iterator[None]:
    """Restore the process's SIGTERM handler, which Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_reachable(address: str) -> None:
    """Raise an error unless a server that may be Ray answers at ``host:port`` or ``ray://host:port``.

    Without this check, Ray would try to connect for minutes.
    """
    if address in ("auto", "local"):
        return
    match = re.fullmatch(r"(ray://|)([^\s/:]+|\[[^\s/]+\])(?::(\d{1,5}))?", address)
    if match is None:
        raise ClusterError(f"`address` must be HOST:PORT, such as 10.0.0.1:6379, but got {address!r}.")
    host, port = match[2].strip("[]"), int(match[3] or _PORTS[match[1]])
    try:
        with socket.create_connection((host, port), timeout=SECONDS) as connection:
            connection.sendall(_HELLO)
            answer = connection.recv(9) if os.environ.get("RAY_USE_TLS") != "1" else _HELLO[-9:]
    except (OSError, OverflowError) as error:
        raise ClusterError(
            f"Nothing answers at {address!r} ({error}): start Ray there with `ray start --head`, or omit "
            "`address` to use only this machine."
        ) from error
    if answer[3:4] != _HELLO[-6:-5]:
        raise ClusterError(f"The server at {address!r} is not Ray: use the address that `ray start` printed.")

"""Start the web app of a study."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pertinent._optional import optional
from pertinent.app.participant_cookies import read_secret
from pertinent.app.serve import Port, run_app
from pertinent.config.settings import checked
from pertinent.errors import FileError, require
from pertinent.files import make_folder
from pertinent.study.design import ANSWERS, Study

_TOKEN = "token.txt"  # noqa: S105  the name of a file
_ALL_INTERFACES = ("", "0.0.0.0", "::")  # noqa: S104  refused


@checked
def serve_study(
    study: str | Path,
    *,
    host: str = "127.0.0.1",
    port: Port = 8765,
    started: Callable[[str], object] | None = None,
) -> None:
    """Serve the questions of a study to participants' browsers, until it is interrupted.

    Each answer is written to disk before the next question is shown. Participants who return continue where
    they stopped, also after a restart, which keeps the address. Only a nickname and the answers are stored.

    Parameters
    ----------
    study
        The folder of the study.
    host
        The address to listen on; by default only this machine can connect. With the network address of this
        machine, people at other machines can participate, over an unencrypted connection.
    port
        The port to listen on; 0 for any free port.
    started
        Called with the address of the app, token included; by default the address is printed.
    """
    optional("uvicorn")
    optional("fastapi")
    from pertinent.app.study_site import StudySite
    from pertinent.app.token_auth import LOCAL

    require(host not in _ALL_INTERFACES, "host", "the address under which participants open the page", host)
    is_local = host in ("localhost", "::1") or host.startswith("127.")
    opened = Study.read(study)
    make_folder(opened.folder / ANSWERS)
    with _exclusive_lock(opened.folder / ANSWERS):
        token = read_secret(
            opened.folder / _TOKEN, 16
        )  # the same after a restart, so that addresses stay valid
        hosts = LOCAL if is_local else (f"[{host}]" if ":" in host else host,)
        run_app(StudySite(opened).app(token, hosts), token, host, port, started)


@contextmanager
def _exclusive_lock(folder: Path) -> Iterator[None]:
    """Lock the study: a second process that serves it would not see the answers of this one."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise FileError(f"The study in {str(folder.parent)!r} is being served already.") from error
    finally:
        os.close(descriptor)

"""Start the web page of a study."""

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
_EVERY = ("", "0.0.0.0", "::")  # noqa: S104  they are refused


@checked
def serve_study(
    study: str | Path,
    *,
    host: str = "127.0.0.1",
    port: Port = 8765,
    started: Callable[[str], object] | None = None,
) -> None:
    """Ask people the questions of a study in their browsers, until it is interrupted.

    Each answer is on disk before the next question comes. Who comes back goes on where they stopped, also
    after a restart, which has the same address. Nothing is kept of a person but a nickname and the answers.

    Parameters
    ----------
    study
        The folder of the study.
    host
        The address to listen on; by default that of this machine alone. With the address that this machine
        has in its network, people at other machines can take part; what they send is not encrypted.
    port
        The port to listen on; 0 for any that is free.
    started
        Called with the address of the page, token included; by default it is printed.
    """
    optional("uvicorn")
    optional("fastapi")
    from pertinent.app.study_site import StudySite
    from pertinent.app.token_auth import LOCAL

    require(host not in _EVERY, "host", "the one address under which people open the page", host)
    is_local = host in ("localhost", "::1") or host.startswith("127.")
    own = Study.read(study)
    make_folder(own.folder / ANSWERS)
    with _alone(own.folder / ANSWERS):
        token = read_secret(own.folder / _TOKEN, 16)  # the same after a restart, so that addresses stay valid
        names = LOCAL if is_local else (f"[{host}]" if ":" in host else host,)
        run_app(StudySite(own).app(token, names), token, host, port, started)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let no other process serve the same study: it would not see the answers of this one."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise FileError(f"The study in {str(folder.parent)!r} is being served already.") from error
    finally:
        os.close(opened)

"""Start the web app."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated, Any

from pertinent._optional import optional
from pertinent.app.explain_form import Limits
from pertinent.config.settings import Count, Range, checked
from pertinent.errors import SettingError
from pertinent.models.base import Model
from pertinent.models.embedded.load import installed_kinds, load
from pertinent.results.explanation import Explanations
from pertinent.runs.model_names import load_or_wrap

if TYPE_CHECKING:
    from pertinent.app.served_model import ServedModel

_HOST = "127.0.0.1"
Port = Annotated[int, Range(at_least=0, at_most=65535)]


@checked
def serve(
    model: Any = None,
    *,
    browse: str | Path | None = None,
    answers: Sequence[Any] | None = None,
    port: Port = 8765,
    max_concurrent: Count = 8,
    max_waiting: Count = 128,
    max_text_length: Count = 20_000,
    max_budget: Count = 10_000,
    time_limit: Annotated[float, Range(above=0)] = 600.0,
    started: Callable[[str], object] | None = None,
) -> None:
    """Serve the web app, in which inputs are explained, until it is interrupted.

    It listens on this machine only (127.0.0.1) and answers only requests with the token of its address. It
    loads nothing from other hosts and stores nothing that users send.

    Parameters
    ----------
    model
        A model of any kind, or a mapping of names to models; by default the embedded models, each of which is
        loaded when it is first used.
    browse
        A file of saved explanations to search, sort and summarize; no other file is readable.
    answers
        The true class or value of each input of `browse`, to evaluate the model with; ``None`` for unknown
        ones.
    port
        The port to listen on; 0 for any free port.
    max_concurrent
        Maximum number of explanations that run simultaneously; further ones wait.
    max_waiting
        Maximum number of explanations that wait; further requests get status 429.
    max_text_length
        Maximum number of characters of a text.
    max_budget
        Maximum number of evaluations of an explanation.
    time_limit
        Seconds after which a request is cancelled.
    started
        Called with the address of the app, token included; by default the address is printed.
    """
    optional("uvicorn")
    optional("fastapi")
    from pertinent.app.admission_queue import AdmissionQueue
    from pertinent.app.explanation_browser import ExplanationBrowser
    from pertinent.app.site import Site

    limits = Limits(text=max_text_length, budget=max_budget, seconds=time_limit)
    token = token_urlsafe(16)
    if answers is not None and browse is None:
        raise SettingError("`answers` requires `browse`.")
    saved = (
        None if browse is None else ExplanationBrowser(Explanations.read(browse), Path(browse).name, answers)
    )
    app = Site(served_models(model, limits), AdmissionQueue(max_concurrent, max_waiting), saved).app(token)
    run_app(app, token, _HOST, port, started)


def run_app(
    app: Any, token: str, host: str, port: int, started: Callable[[str], object] | None = None
) -> None:
    """Run an app until it is interrupted; pass its address to `started`, or print it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            raise SettingError(
                f"The port {port} cannot be used ({error.strerror}): choose another, or 0 for any free port."
            ) from error
        listening.listen()  # a browser that opens the address before the server runs waits for the answer
        url_host = f"[{host}]" if ":" in host else host
        (started or _print_address)(f"http://{url_host}:{listening.getsockname()[1]}/?token={token}")
        make_server(app).run(sockets=[listening])


def make_server(app: Any) -> Any:
    """Return a uvicorn server of an application."""
    uvicorn = optional("uvicorn")
    from pertinent.app.timed_connection import TimedConnection

    settings = {"log_level": "warning", "timeout_graceful_shutdown": 1, "server_header": False}
    return uvicorn.Server(uvicorn.Config(app, ws="none", http=TimedConnection, **settings))


def _print_address(address: str) -> None:
    sys.stdout.write(f"Open {address}\nPress Ctrl-C to stop.\n")
    sys.stdout.flush()


def served_models(model: Any, limits: Limits) -> list[ServedModel]:
    """Return the models of the app: the installed ones if `model` is ``None``."""
    from pertinent.app.served_model import ServedModel

    if model is None:
        return [
            ServedModel(name, partial(load, name), limits, _EXAMPLES[name], kind)
            for name, kind in installed_kinds().items()
        ]
    models = dict(model) if isinstance(model, Mapping) else {"model": model}
    if not models:
        raise SettingError("`model` must have at least one model, got an empty mapping.")
    return [
        ServedModel(
            str(name), partial(load_or_wrap, each), limits, _EXAMPLES.get(str(name), tuple), _kind_of(each)
        )
        for name, each in models.items()
    ]


def _kind_of(model: Any) -> str:
    return (model.kind or "") if isinstance(model, Model) else ""


def _texts(*texts: str) -> Callable[[], list[dict[str, Any]]]:
    return lambda: [{"text": text} for text in texts]


def _digits() -> list[dict[str, Any]]:
    from pertinent.inputs.image import image_input
    from pertinent.inputs.image_files import data_uri
    from pertinent.models.embedded.digits import example_digit

    return [{"image": data_uri(image_input(example_digit()).picture)}]


def _wines() -> list[dict[str, Any]]:
    from pertinent.models.embedded.tables import example_row

    return [{"row": example_row()}]


def _patients() -> list[dict[str, Any]]:
    from pertinent.models.embedded.tables import example_patient

    return [{"row": example_patient()}]


_CHAT = (
    "The museum was built in 1902. Tickets cost 12 euros. The cafe is small. What does a ticket cost? "
    "Answer briefly."
)

_EXAMPLES: Mapping[str, Callable[[], list[dict[str, Any]]]] = {
    "sentiment": _texts(
        "The first half drags, but the acting is superb and the ending is a quiet triumph.",
        "A clumsy script and flat jokes waste a talented cast and a lovely score.",
        "The best part was when it ended.",
    ),
    "topics": _texts(
        "The chip maker's shares rose 4 percent after it raised its sales forecast for the year.",
        "The goalkeeper saved two penalties and the home side won the cup final in extra time.",
    ),
    "recall": _texts(
        "Ann keeps the key. Bob keeps the map. Carl keeps the lamp. Who keeps the map? Answer:",
        "Nora lives in Rome. Omar lives in Oslo. It rains today. Where does Omar live? Answer:",
    ),
    "smollm2": lambda: [{"text": _CHAT, "chat": True}],
    "digits": _digits,
    "table": _wines,
    "diabetes": _patients,
}
"""Form fields of example inputs, by the name of a model."""

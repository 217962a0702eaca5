"""The web app: its models, saved explanations and page views."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse

from pertinent.app.admission_queue import AdmissionQueue, QueueFull
from pertinent.app.explain_form import Limits
from pertinent.app.explanation_browser import ExplanationBrowser
from pertinent.app.served_model import ServedModel
from pertinent.app.token_auth import TokenAuth
from pertinent.app.views import views
from pertinent.errors import PertinentError
from pertinent.rendering.html import read_asset, style

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_MEDIA_TYPES = {"css": "text/css", "js": "text/javascript"}
_GRACE = 10.0
"""Seconds between the timeout of an event stream and the closing of its connection."""


class Site:
    """Models, the queue of their explanations, and optional saved explanations."""

    def __init__(
        self, models: Sequence[ServedModel], queue: AdmissionQueue, saved: ExplanationBrowser | None = None
    ) -> None:
        self.models = {served.name: served for served in models}
        self.queue, self.saved = queue, saved
        available = [view for view in (cls(self) for cls in views.all().values()) if view.is_available]
        self.views = sorted(available, key=lambda view: view.order)
        self.files = {
            "report.css": str(style("page.css")),
            "app.css": read_asset("static/app.css", __package__),
        }
        for path in ("pertinent.app:static/app.css", *(path for view in self.views for path in view.files)):
            package, _, file = path.partition(":")
            self.files[file.rpartition("/")[2]] = read_asset(file, package)

    def app(self, token: str) -> ASGIApp:
        """Return the ASGI application, which answers only clients with the token."""

        @asynccontextmanager
        async def close_models(_: FastAPI) -> AsyncIterator[None]:
            yield
            for served in self.models.values():
                served.close()

        app = FastAPI(openapi_url=None, redirect_slashes=False, lifespan=close_models)
        app.add_exception_handler(PertinentError, _error_response)
        app.get("/static/{name}")(self.file)
        for view in self.views:
            for (method, path), endpoint in view.routes().items():
                app.add_api_route(path, endpoint, methods=[method])
        limits = [served.limits for served in self.models.values()] or [Limits()]
        body, seconds = max(limit.body for limit in limits), max(limit.seconds for limit in limits)
        return TokenAuth(app, token, body, time_limit=seconds + _GRACE)

    async def file(self, name: str) -> Response:
        """Return a style sheet or script of a view."""
        if name not in self.files:
            return PlainTextResponse("There is no such file.", 404)
        return Response(self.files[name], media_type=_MEDIA_TYPES[name.rpartition(".")[2]])


async def _error_response(_: Request, error: Exception) -> Response:
    """Return the message of an error: 429 if the queue is full, else 422."""
    if isinstance(error, QueueFull):
        return PlainTextResponse(str(error), 429, {"Retry-After": "5"})
    return PlainTextResponse(str(error), 422)

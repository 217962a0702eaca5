"""The web page: its addresses, and what each of them answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse

from pertinent.app.admission_queue import Admission, AdmissionQueue, QueueFull
from pertinent.app.explain_form import ExplainForm, Limits, fields_of, read_form
from pertinent.app.explanation_browser import ExplanationBrowser, Filter
from pertinent.app.method_comparison import MethodComparison
from pertinent.app.served_model import ServedModel
from pertinent.app.token_auth import TokenAuth
from pertinent.app.views import explanation_view, input_view, prediction_view
from pertinent.config.serialization import json_text
from pertinent.errors import InputError, PertinentError, unknown
from pertinent.inputs.base import Input
from pertinent.rendering.html import from_template, own_file, style
from pertinent.results.explanation import Explanation

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_PACKAGE = "pertinent.app"
_FILES = ("app.css", "explain.js", "inputs.js", "drawings.js", "page.js")
_KINDS = {"css": "text/css", "js": "text/javascript"}
_PATIENCE = 0.1
"""Seconds between two partial findings that are sent to the page."""

_GRACE = 10.0
"""Seconds in which a stream of events that took too long can say so before its connection is closed."""


class Site:
    """The page: some models, the desk at which they explain, and perhaps saved explanations."""

    def __init__(
        self, hosted: Sequence[ServedModel], desk: AdmissionQueue, saved: ExplanationBrowser | None = None
    ) -> None:
        self.hosted = {each.name: each for each in hosted}
        self.desk, self.saved = desk, saved
        self.compared = None if saved is None else MethodComparison(saved.explanations)
        self.views = {"Explain": "/"} | ({} if saved is None else {"Browse": "/browse"})
        if saved is not None and saved.has_answers:
            self.views["Model"] = "/model"
        if self.compared is not None and self.compared.is_there:
            self.views["Compare"] = "/compare"
        self.files = {
            "report.css": str(style("page.css")),
            **{name: own_file(f"static/{name}", _PACKAGE) for name in _FILES},
        }

    def app(self, token: str) -> ASGIApp:
        """The application, behind its guard."""

        @asynccontextmanager
        async def closing(_: FastAPI) -> AsyncIterator[None]:
            yield
            for each in self.hosted.values():
                each.close()

        app = FastAPI(openapi_url=None, redirect_slashes=False, lifespan=closing)
        app.add_exception_handler(PertinentError, _told)
        app.get("/")(self.explain_page)
        if self.saved is not None:
            app.get("/browse")(self.browse_page)
            app.get("/browse/{number}")(self.one_page)
            app.get("/api/saved/{number}")(self.saved_input)
        if "Model" in self.views:
            app.get("/model")(self.model_page)
        if "Compare" in self.views:
            app.get("/compare")(self.compare_page)
        app.get("/static/{name}")(self.file)
        app.get("/api/choices")(self.choices)
        app.post("/api/explain")(self.explain)
        app.post("/api/predict")(self.predict)
        limits = [each.limits for each in self.hosted.values()] or [Limits()]
        body, seconds = max(each.body for each in limits), max(each.seconds for each in limits)
        return TokenAuth(app, token, body, time_limit=seconds + _GRACE)

    async def explain_page(self) -> Response:
        """The page on which one input is explained."""
        return self._page("explain.html", "Explain", models=self.hosted.values())

    async def browse_page(self, request: Request) -> Response:
        """The page on which saved explanations are searched."""
        assert self.saved is not None
        wanted = Filter.from_query(dict(request.query_params))
        return self._page("browse.html", "Browse", **await asyncio.to_thread(self.saved.list_view, wanted))

    async def one_page(self, number: int) -> Response:
        """The page of one saved explanation."""
        assert self.saved is not None
        return self._page("one.html", "Browse", **await asyncio.to_thread(self.saved.one_view, number))

    async def model_page(self, column: str = "", target: str = "") -> Response:
        """The page about the model beside the right answers."""
        assert self.saved is not None
        found = await asyncio.to_thread(self.saved.model_view, column, target)
        return self._page("model.html", "Model", **found)

    async def compare_page(self, metric: str = "") -> Response:
        """The page on which methods stand beside each other."""
        assert self.compared is not None
        return self._page("compare.html", "Compare", **await asyncio.to_thread(self.compared.view, metric))

    def _page(self, file: str, view: str, **content: Any) -> Response:
        """A page from a template, with the way to the other views."""
        return HTMLResponse(from_template(f"{_PACKAGE}:{file}", views=self.views, view=view, **content))

    async def file(self, name: str) -> Response:
        """A style sheet or script: one of a few, whatever lies beside them."""
        if name not in self.files:
            return PlainTextResponse("There is no such file.", 404)
        return Response(self.files[name], media_type=_KINDS[name.rpartition(".")[2]])

    async def choices(self, model: str) -> Response:
        """What may be chosen for a model."""
        return _json(await asyncio.to_thread(self._hosted(model).choices))

    async def saved_input(self, number: int) -> Response:
        """The input of a saved explanation, to be edited and asked about again."""
        assert self.saved is not None
        input = self.saved.explanation(number).input
        return _json({"kind": input.kind, "fields": await asyncio.to_thread(fields_of, input)})

    async def predict(self, request: Request) -> Response:
        """What the model answers without some features."""
        hosted, question = await asyncio.to_thread(self._question, await request.body())
        turn = self.desk.enter()
        try:
            async for _ in turn.positions():
                pass
            input = await asyncio.to_thread(hosted.prepare, question)
            future = await asyncio.to_thread(hosted.predict, question, input)
            answer = await asyncio.wrap_future(future)
            return _json(await asyncio.to_thread(prediction_view, hosted.model, input, answer))
        finally:
            turn.leave()

    async def explain(self, request: Request) -> Response:
        """An explanation while it is refined, as server-sent events; who goes away cancels it."""
        hosted, question = await asyncio.to_thread(self._question, await request.body())
        turn = self.desk.enter()
        events = _limited(_explained(hosted, question, turn), hosted.limits.seconds)
        return _EventStream(events, turn.leave)

    def _question(self, body: bytes) -> tuple[ServedModel, ExplainForm]:
        """Decode a question and find its model."""
        try:
            plain = json.loads(body)
            json.dumps(plain, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InputError("The request holds half a character (a lone surrogate): replace it.") from error
        except (ValueError, RecursionError) as error:
            raise InputError("The request is not JSON.") from error
        name = plain.get("model") if isinstance(plain, dict) else None
        limits = self.hosted[name].limits if isinstance(name, str) and name in self.hosted else Limits()
        question = read_form(plain, limits)
        return self._hosted(question.model), question

    def _hosted(self, name: str) -> ServedModel:
        if name not in self.hosted:
            raise unknown("model", name, self.hosted)
        return self.hosted[name]


class _EventStream(StreamingResponse):
    """Server-sent events; `at_end` is called however they end, even before the first."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[str], at_end: Callable[[], None]) -> None:
        super().__init__(events)
        self.at_end = at_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.at_end()


async def _explained(
    hosted: ServedModel, question: ExplainForm, turn: Admission
) -> AsyncGenerator[str, None]:
    """The events of one explanation: its place in line, the input, partial findings, the explanation."""
    async for position in turn.positions():
        yield _event("queued", {"position": position})
    try:
        input = await asyncio.to_thread(hosted.prepare, question)
        yield _event("input", await asyncio.to_thread(input_view, input))
        prediction = await asyncio.wrap_future(await asyncio.to_thread(hosted.predict, question, input))
        view = await asyncio.to_thread(prediction_view, hosted.model, input, prediction)
        yield _event("prediction", view)
        async for explanation, is_done in _explanations(hosted, question, input):
            view = await asyncio.to_thread(explanation_view, explanation, is_done=is_done)
            yield _event("done" if is_done else "partial", view)
    except PertinentError as error:
        yield _event("failed", {"reason": str(error)})


async def _limited(events: AsyncGenerator[str, None], seconds: float) -> AsyncIterator[str]:
    """Yield events; after some seconds cancel what makes them and say so."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    try:
        while True:
            yield await asyncio.wait_for(anext(events), end - loop.time())
    except StopAsyncIteration:
        return
    except TimeoutError:
        yield _event("failed", {"reason": f"It took more than {seconds:g} seconds: choose a smaller budget."})
    finally:
        await events.aclose()


async def _explanations(
    hosted: ServedModel, question: ExplainForm, input: Input
) -> AsyncIterator[tuple[Explanation, bool]]:
    """Yield partial explanations, as often as the page can use them, and the final one; say which it is."""
    loop, partial = asyncio.get_running_loop(), asyncio.Queue[Explanation | None]()

    def publish(explanation: Explanation | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(partial.put_nowait, explanation)

    future = await asyncio.to_thread(hosted.explain, question, input, publish)
    try:
        future.add_done_callback(lambda _: publish(None))
        while (explanation := await partial.get()) is not None:
            if partial.empty():  # only the latest
                yield explanation, False
                await asyncio.sleep(_PATIENCE)
        yield future.result(), True
    finally:
        future.cancel()


async def _told(_: Request, error: Exception) -> Response:
    """An error in words: 429 if there is no room, else 422."""
    if isinstance(error, QueueFull):
        return PlainTextResponse(str(error), 429, {"Retry-After": "5"})
    return PlainTextResponse(str(error), 422)


def _event(name: str, data: Mapping[str, Any]) -> str:
    return f"event: {name}\ndata: {json_text(data)}\n\n"


def _json(plain: Any) -> Response:
    return Response(json_text(plain), media_type="application/json")

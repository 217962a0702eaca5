"""View that explains one input: a form, and a result that is refined while it is shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse

from pertinent.app.admission_queue import Admission
from pertinent.app.explain_form import ExplainForm, Limits, read_form
from pertinent.app.open_results import OpenResult, OpenResults
from pertinent.app.served_model import ServedModel
from pertinent.app.views import Routes, View, views
from pertinent.config.serialization import Index, PlainData, json_text
from pertinent.errors import InputError, PertinentError, unknown
from pertinent.inputs.base import Input
from pertinent.inputs.modality import modality_named
from pertinent.number_format import count
from pertinent.rendering.html import from_template
from pertinent.results.explanation import Explanation

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_UPDATE_INTERVAL = 0.25
"""Minimum number of seconds between two partial results."""


@views.register("explain")
class ExplainView(View):
    """Explains one input with a model of the web app."""

    title, path, order = "Explain", "/", 1
    files = ("pertinent.app:static/explain.js", "pertinent.rendering.html:overlay.js")

    def __init__(self, site: Any) -> None:
        super().__init__(site)
        self.results = OpenResults()

    def routes(self) -> Routes:
        """Return the routes of the page, its form and its results."""
        return {
            ("GET", self.path): self.page,
            ("POST", "/api/form"): self.form,
            ("POST", "/api/methods"): self.methods,
            ("POST", "/api/explain"): self.explain,
            ("POST", "/api/without"): self.without,
            ("GET", "/api/results/{id}/{column}"): self.column,
            ("GET", "/api/difference/{id}/{other}"): self.difference,
        }

    async def page(self, text: str | None = None, saved: int | None = None) -> Response:
        """Return the page, filled with a text or with the input of a saved explanation if requested."""
        start: dict[str, Any] = {}
        if text is not None:
            start = {"input": {"text": text}}
        if saved is not None and self.site.saved is not None:
            input = self.site.saved.explanation(saved).input
            modality = modality_named(input.kind)
            start = {"kind": input.kind, "input": await asyncio.to_thread(modality.to_fields, input)}
        return self.render("pertinent.app:explain.html", start=json_text(start))

    async def form(self, request: Request) -> Response:
        """Return the form for a model and an input."""
        body = await request.body()

        def render() -> Response:
            plain = _plain(body)
            kind = plain.pop("kind", None)
            fitting = [served.name for served in self.site.models.values() if served.reads == kind]
            is_new, first = "model" not in plain, next(iter([*fitting, *self.site.models]), "")
            served, form = self._read({"model": first} | plain)
            context = served.form_context(form, kind)
            return _html("explain_form.html", models=self.site.models.values(), is_new=is_new, **context)

        return await asyncio.to_thread(render)

    async def methods(self, request: Request) -> Response:
        """Return the options of methods; those that cannot explain the input are disabled."""
        served, form = await asyncio.to_thread(self._form, await request.body())
        methods = await asyncio.to_thread(served.methods, form)
        return _html("methods.html", methods=methods, form=form)

    async def explain(self, request: Request) -> Response:
        """Stream an explanation while it is refined, as server-sent events; a disconnect cancels it."""
        served, form = await asyncio.to_thread(self._form, await request.body())
        admission = self.site.queue.enter()
        events = _limited(self._events(served, form, admission), served.limits.seconds)
        return _EventStream(events, admission.leave)

    async def without(self, request: Request) -> Response:
        """Return the prediction for the input of a result with some features removed."""
        plain = PlainData(await asyncio.to_thread(_plain, await request.body()), "request")
        result = self.results.get(plain.value("id"))
        features = list(plain.value("features", tuple[Annotated[int, Index], ...]))
        admission = self.site.queue.enter()
        try:
            async for _ in admission.positions():
                pass
            future = await asyncio.to_thread(
                result.served.predict, result.form, result.explanation.input, features
            )
            values = await asyncio.wrap_future(future)
            return HTMLResponse(await asyncio.to_thread(result.without, features, values))
        finally:
            admission.leave()

    async def column(self, id: str, column: int) -> Response:
        """Return a result with its scores for a class or an answer token."""
        return HTMLResponse(await asyncio.to_thread(self.results.get(id).card, column))

    async def difference(self, id: str, other: str) -> Response:
        """Return the difference between the predictions of two results."""
        return PlainTextResponse(self.results.get(id).difference(self.results.get(other)))

    def _form(self, body: bytes) -> tuple[ServedModel, ExplainForm]:
        return self._read(_plain(body))

    def _read(self, plain: Mapping[str, Any]) -> tuple[ServedModel, ExplainForm]:
        """Return a decoded form and its model."""
        models, name = self.site.models, plain.get("model")
        limits = models[name].limits if isinstance(name, str) and name in models else Limits()
        form = read_form(plain, limits)
        if form.model not in models:
            raise unknown("model", form.model, models)
        return models[form.model], form

    async def _events(
        self, served: ServedModel, form: ExplainForm, admission: Admission
    ) -> AsyncGenerator[str, None]:
        """Yield the events of one explanation: its position in the queue, its progress and its results."""
        async for position in admission.positions():
            yield _status(f"Waiting: number {position} in the queue.")
        try:
            yield _status("Reading the input …")
            input = await asyncio.to_thread(served.prepare, form)
            budget = served.budget(form, input)
            prediction = await asyncio.wrap_future(await asyncio.to_thread(served.predict, form, input))
            result = OpenResult(served, form, served.unexplained(form, input, prediction))
            self.results.add(result)
            yield _status(f"Explaining {count(input.n_features, 'feature')} …", 0.0)
            yield await _result(result, is_done=False)
            async for update in _updates(served, form, input):
                if isinstance(update, int):
                    share = min(1.0, update / budget)
                    yield _status(f"{min(update, budget):,} of {count(budget, 'evaluation')} …", share)
                else:
                    result.explanation, is_done = update
                    result.is_begun = True
                    yield await _result(result, is_done=is_done)
            cost = result.explanation.cost
            yield _status(
                f"Done: {count(cost.evaluations, 'evaluation')}, {cost.seconds:.2g} s of model time."
            )
        except PertinentError as error:
            yield _event("failed", reason=str(error))


class _EventStream(StreamingResponse):
    """Server-sent events; `at_end` is called when they end, even before the first."""

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


async def _updates(
    served: ServedModel, form: ExplainForm, input: Input
) -> AsyncIterator[int | tuple[Explanation, bool]]:
    """Yield the number of evaluations so far, and pairs of an explanation and whether it is final.

    Only the latest update is kept, so that a slow client skips intermediate ones.
    """
    loop, changed = asyncio.get_running_loop(), asyncio.Event()
    latest: dict[str, Any] = {}

    def update(name: str, value: Any) -> None:
        def put() -> None:
            latest[name] = value
            changed.set()

        if not loop.is_closed():
            loop.call_soon_threadsafe(put)

    future = await asyncio.to_thread(
        served.explain, form, input, lambda e: update("partial", e), lambda n: update("progress", n)
    )
    try:
        future.add_done_callback(lambda _: update("done", True))
        while True:
            await changed.wait()
            changed.clear()
            if "done" in latest:
                break
            if "progress" in latest:
                yield latest.pop("progress")
            if "partial" in latest:
                yield latest.pop("partial"), False
            await asyncio.sleep(_UPDATE_INTERVAL)
        yield future.result(), True
    finally:
        future.cancel()


async def _limited(events: AsyncGenerator[str, None], seconds: float) -> AsyncIterator[str]:
    """Yield events; after `seconds`, cancel their source and yield a failure."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    try:
        while True:
            yield await asyncio.wait_for(anext(events), end - loop.time())
    except StopAsyncIteration:
        return
    except TimeoutError:
        yield _event(
            "failed", reason=f"It took longer than the limit of {seconds:g} seconds: reduce the budget."
        )
    finally:
        await events.aclose()


def _plain(body: bytes) -> dict[str, Any]:
    """Return the JSON object in the body of a request."""
    try:
        plain = json.loads(body)
        json.dumps(plain, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError("The request contains a lone surrogate: replace it.") from error
    except (ValueError, RecursionError) as error:
        raise InputError("The request is not JSON.") from error
    if not isinstance(plain, dict):
        raise InputError("The request must be a JSON object.")
    return plain


async def _result(result: OpenResult, *, is_done: bool) -> str:
    html = await asyncio.to_thread(result.card, is_done=is_done)
    return _event("result", id=result.id, html=str(html), done=is_done)


def _status(text: str, share: float | None = None) -> str:
    return _event("status", text=text, share=share)


def _event(name: str, **data: Any) -> str:
    return f"event: {name}\ndata: {json_text(data)}\n\n"


def _html(template: str, **context: Any) -> Response:
    return HTMLResponse(from_template(f"pertinent.app:{template}", **context))

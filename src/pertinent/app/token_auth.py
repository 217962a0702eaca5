"""ASGI middleware: token authentication, request limits and security headers."""

from __future__ import annotations

import re
from asyncio import timeout
from collections.abc import Sequence
from hmac import compare_digest
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL = ("127.0.0.1", "localhost", "[::1]")
"""Host names of this machine. Requests with another host (DNS rebinding) are refused."""

COOKIE = "pertinent-token"
TOKEN = "token"  # noqa: S105  name of the query parameter

BODY_SECONDS = 30.0
"""Seconds in which the whole body of a request must arrive."""

_HEADERS = {
    # Style attributes hold the widths of bars. Only the policy "fragments" of explain.js may create HTML,
    # which the server has escaped.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "style-src-attr 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types fragments",
    "X-Content-Type-Options": "nosniff",
    # With "no-referrer" browsers would submit forms without an origin.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class TokenAuth:
    """ASGI middleware that passes on same-origin requests to this machine with a valid token.

    The first request has the token in the address; later ones have it in a cookie. The application receives
    complete bodies of at most `body_limit` bytes. A request is cancelled after `time_limit` seconds.
    `hosts` are the valid values of the Host header, without a port.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str,
        body_limit: int,
        hosts: Sequence[str] = LOCAL,
        time_limit: float = 600.0,
    ) -> None:
        self.app, self.token, self.body_limit, self.hosts = app, token, body_limit, hosts
        self.time_limit = time_limit
        self._host = re.compile(f"(?:{'|'.join(map(re.escape, hosts))})(?::[0-9]{{1,5}})?")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on a request; add the security headers to the answer."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # the server refuses web sockets
        has_started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        try:
            async with timeout(self.time_limit) as limit:
                await self._answer(scope, receive, send_with_headers)
        except TimeoutError:
            if not limit.expired():
                raise
            if not has_started:  # else the server closes the connection
                reason = f"The request took longer than the limit of {self.time_limit:g} seconds."
                await _refuse(reason, 503)(scope, receive, send_with_headers)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it to the application with its complete body."""
        answer = self._check_origin(scope) or self._check_token(scope)
        if answer is None and scope["method"] not in ("GET", "HEAD"):
            body = await self._body(scope, receive)
            if body is None:
                return  # the client disconnected
            if isinstance(body, Response):
                answer = body
            else:
                receive = _replay(body, receive)
        await (answer or self.app)(scope, receive, send)

    def _check_origin(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._host.fullmatch(host):
            return _refuse(f"This page answers only on {' and '.join(self.hosts[:2])}.")
        if origin is not None and origin != f"http://{host}":
            return _refuse("Requests from other pages are refused.")
        return None

    def _check_token(self, scope: Scope) -> Response | None:
        """Return None for a valid cookie, a redirect that sets it for a valid token, else a 403 response."""
        query = QueryParams(scope["query_string"])
        if self._is_token(query.get(TOKEN)):
            rest = urlencode([(name, value) for name, value in query.multi_items() if name != TOKEN])
            path = "/" + scope["path"].lstrip("/")  # //name would redirect to another site
            redirect = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            redirect.set_cookie(COOKIE, self.token, httponly=True, samesite="lax")
            return redirect
        if self._is_token(HTTPConnection(scope).cookies.get(COOKIE)):
            return None
        return _refuse("Open the address that was printed at the start of the server: it contains the token.")

    def _is_token(self, text: str | None) -> bool:
        return text is not None and compare_digest(text.encode(), self.token.encode())

    async def _body(self, scope: Scope, receive: Receive) -> bytes | Response | None:
        """Return the complete body, an error response, or ``None`` if the client disconnects."""
        chunks, size, more = list[bytes](), 0, True
        try:
            async with timeout(BODY_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    chunks.append(message.get("body", b""))
                    size += len(chunks[-1])
                    more = message.get("more_body", False)
                    if size > self.body_limit:
                        return _refuse(f"The request is larger than {self.body_limit:,} bytes.", 413)
        except TimeoutError:
            return _refuse(f"The request did not arrive within {BODY_SECONDS:g} seconds.", 408)
        declared = Headers(scope=scope).get("content-length", str(size))
        if declared != str(size):
            return _refuse(f"The request has {size} bytes, but its Content-Length is {declared}.", 400)
        return b"".join(chunks)


def _refuse(message: str, status: int = 403) -> Response:
    """Return an error response that closes the connection without reading the rest of the request."""
    return PlainTextResponse(message, status, {"Connection": "close"})


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that yields a body that was already read, then further messages."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay

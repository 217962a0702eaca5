"""Who may use the page, and what a browser may do with it: checked before anything else sees a request."""

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
"""The names of this machine. A page of another name that leads here (DNS rebinding) is refused."""

COOKIE = "pertinent-token"
TOKEN = "token"  # noqa: S105  the name, not the secret

BODY_SECONDS = 30.0
"""Seconds in which the whole body of a request must arrive."""

_HEADERS = {
    # Style attributes hold the widths of bars. Only the policy "fragments" of explain.js may make HTML,
    # which the server has escaped.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "style-src-attr 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types fragments",
    "X-Content-Type-Options": "nosniff",
    # With "no-referrer" browsers would send the forms of the page without its origin.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class TokenAuth:
    """Lets through requests to this machine, from the page itself, of people who know the token.

    The token comes once in the address, and then in a cookie. The application sees only whole bodies of at
    most `body_limit` bytes. `names` are the hosts that the page answers as. A request is ended after
    `time_limit` seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str,
        body_limit: int,
        names: Sequence[str] = LOCAL,
        time_limit: float = 600.0,
    ) -> None:
        self.app, self.token, self.body_limit, self.names = app, token, body_limit, names
        self.time_limit = time_limit
        self._host = re.compile(f"(?:{'|'.join(map(re.escape, names))})(?::[0-9]{{1,5}})?")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on; answers get the headers that restrict the browser."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no web sockets: the server refuses them
        has_started = False

        async def send_guarded(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        try:
            async with timeout(self.time_limit) as limit:
                await self._answer(scope, receive, send_guarded)
        except TimeoutError:
            if not limit.expired():
                raise
            if not has_started:  # else the server closes the connection
                reason = f"The request took more than {self.time_limit:g} seconds, the most on this page."
                await _refused(reason, 503)(scope, receive, send_guarded)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it to the application with its whole body."""
        answer = self._refusal(scope) or self._admission(scope)
        if answer is None and scope["method"] not in ("GET", "HEAD"):
            body = await self._body(scope, receive)
            if body is None:
                return  # nobody is left to answer
            if isinstance(body, Response):
                answer = body
            else:
                receive = _replayed(body, receive)
        await (answer or self.app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._host.fullmatch(host):
            return _refused(f"This page answers on {' and '.join(self.names[:2])} alone.")
        if origin is not None and origin != f"http://{host}":
            return _refused("Another page may not ask this one.")
        return None

    def _admission(self, scope: Scope) -> Response | None:
        """Nothing for who has the cookie, a redirect that sets it for who has the token, else a refusal."""
        query = QueryParams(scope["query_string"])
        if self._is_token(query.get(TOKEN)):
            rest = urlencode([(name, value) for name, value in query.multi_items() if name != TOKEN])
            path = "/" + scope["path"].lstrip("/")  # never another site, as //name would be
            found = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            found.set_cookie(COOKIE, self.token, httponly=True, samesite="lax")
            return found
        if self._is_token(HTTPConnection(scope).cookies.get(COOKIE)):
            return None
        return _refused("Open the address that was printed when the page was started: it has a token.")

    def _is_token(self, given: str | None) -> bool:
        return given is not None and compare_digest(given.encode(), self.token.encode())

    async def _body(self, scope: Scope, receive: Receive) -> bytes | Response | None:
        """Return the whole body, a refusal, or ``None`` if the client disconnects before its end."""
        parts, size, more = list[bytes](), 0, True
        try:
            async with timeout(BODY_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    more = message.get("more_body", False)
                    if size > self.body_limit:
                        return _refused(f"The request is larger than {self.body_limit:,} bytes.", 413)
        except TimeoutError:
            return _refused(f"The request did not arrive within {BODY_SECONDS:g} seconds.", 408)
        declared = Headers(scope=scope).get("content-length", str(size))
        if declared != str(size):
            return _refused(f"The request has {size} bytes, but its Content-Length is {declared}.", 400)
        return b"".join(parts)


def _refused(said: str, status: int = 403) -> Response:
    """A refusal that ends the connection: what else the request holds is not read."""
    return PlainTextResponse(said, status, {"Connection": "close"})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """What hands out a body that was read, and then what comes after it."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay

"""Requests that no browser sends: ASGI messages one by one, and files that claim to be large."""

import asyncio
import struct
import zlib
from dataclasses import dataclass, field

from pertinent.app.token_auth import COOKIE
from tests.app.served import TOKEN

COOKIES = ((b"host", b"127.0.0.1"), (b"cookie", f"{COOKIE}={TOKEN}".encode()))


def png_head(width, height):
    """The head of a PNG file of many pixels, without the pixels."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 64)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


@dataclass
class Sent:
    """What an application sent: the status (``None`` if nothing), the headers and the body."""

    status: int | None = None
    headers: list = field(default_factory=list)
    body: bytes = b""

    def cookie(self, name):
        """Return the value that a cookie was set to, or ``None``."""
        for header, value in self.headers:
            key, _, rest = value.decode().partition("=")
            if header.lower() == b"set-cookie" and key == name:
                return rest.partition(";")[0]
        return None


def whole(body):
    """The messages of a whole body."""
    return [{"type": "http.request", "body": body, "more_body": False}]


def cut_off(body):
    """The messages of a body whose sender goes away before its end."""
    return [{"type": "http.request", "body": body, "more_body": True}, {"type": "http.disconnect"}]


async def call(app, method, path, messages=(), *, query=b"", headers=COOKIES):
    """Send a request to an application, message by message; the client stays until the answer ends."""
    sent, pending = Sent(), list(messages)

    async def receive():
        if pending:
            return pending.pop(0)
        await asyncio.sleep(3600)  # until the answer ends
        return {"type": "http.disconnect"}

    async def send(message):
        if message["type"] == "http.response.start":
            sent.status, sent.headers = message["status"], list(message["headers"])
        else:
            sent.body += message.get("body", b"")

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 50_000),
        "scheme": "http",
        "method": method,
        "root_path": "",
        "path": path,
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": query,
        "headers": list(headers),
        "state": {},
    }
    await app(scope, receive, send)
    return sent

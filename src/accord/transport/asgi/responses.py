"""Responses that are sent at once: a status, headers and a body."""

from __future__ import annotations

from collections.abc import Sequence

from accord.transport.asgi.request import Send

Headers = Sequence[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")
TEXT = (b"content-type", b"text/plain; charset=utf-8")


async def send_json(send: Send, status: int, body: bytes, headers: Headers = ()) -> None:
    """Send a JSON response."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def send_text(send: Send, status: int, text: str, headers: Headers = ()) -> None:
    """Send a text response; the text may be empty."""
    body = text.encode()
    head = [TEXT] if body else []
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [*head, length, *headers]})
    await send({"type": "http.response.body", "body": body})

"""What right servers that are made by hand share: messages over lines, and the ends of a POST."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from accord.transport.base import Transport

Say = Callable[[Any], None]


async def over_lines(transport: Transport, opened: Callable[[Say], Callable[[Any], Awaitable[Any]]]) -> None:
    """Serve until the client closes. `opened` is given a way to say more, and gives what answers a message."""
    await transport.open()

    def say(message: Any) -> None:
        transport.send(json.dumps(message).encode())
        transport.flush()

    answer = opened(say)

    async def handle(raw: bytes) -> None:
        said = await answer(json.loads(raw))
        if said is not None:
            say(said)

    async with asyncio.TaskGroup() as group:
        while messages := await transport.receive():
            for message in messages:
                if isinstance(message, bytes):
                    group.create_task(handle(message))


async def posted(scope: Any, receive: Any) -> bytes:
    """The body of a POST; nothing for another method."""
    body = b""
    while scope["method"] == "POST" and (event := await receive()).get("body") is not None:
        body += event["body"]
        if not event.get("more_body"):
            break
    return body


async def respond(send: Any, status: int, said: Any, headers: dict[bytes, bytes] | None = None) -> None:
    """A response of JSON, or without a body."""
    lines = {b"content-type": b"application/json", **(headers or {})}
    await send({"type": "http.response.start", "status": status, "headers": list(lines.items())})
    await send({"type": "http.response.body", "body": json.dumps(said).encode() if said else b""})

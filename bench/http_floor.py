"""The floor of a server over HTTP: an ASGI function that decodes, runs the tool, and encodes.

    python http_floor.py PORT

It runs on uvicorn with httptools and uvloop. It checks nothing and has no state; a stream is one event in one chunk.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import uvicorn

sys.path.append(str(Path(__file__).parents[1]))
from bench import floor

floor.TOOLS["count"] = floor.echo

FIXED = floor.known(many=False)
JSON = [(b"content-type", b"application/json"), (b"mcp-session-id", b"floor")]
EVENTS = [(b"content-type", b"text/event-stream"), (b"mcp-session-id", b"floor")]


async def app(scope: Any, receive: Any, send: Any) -> None:
    body = (await receive())["body"]
    answer = floor.answer(body, FIXED)
    headers = JSON
    if b'"count"' in body:
        headers, answer = EVENTS, b"event: message\ndata: %b\n\n" % answer
    length = (b"content-length", b"%d" % len(answer))
    await send({"type": "http.response.start", "status": 200 if answer else 202, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": answer})


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), lifespan="off", ws="none", access_log=False, log_level="warning")

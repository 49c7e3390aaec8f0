"""Why no answer came, in words: what HTTP said instead, and what a process wrote before it ended."""

from __future__ import annotations

import re

from accord.check.message_log import LoggedResponse
from accord.transport.http.redaction import without_credentials

_BODY = 300
"""At most so many bytes of a body are shown."""
_STDERR = 400
"""Characters of what a process wrote last, in whole lines; of one that is longer, its end."""
_UNDERLINE = re.compile(r"[\s^~]*").fullmatch
"""What tracebacks put below a line of code."""


def describe_refusal(reply: LoggedResponse) -> str:
    """Describe a response that holds no answer: `HTTP 307 to https://example.com/mcp`, `HTTP 404: not here`."""
    if not reply.status:
        return reply.error
    said = f"HTTP {reply.status}"
    if "location" in reply.headers:
        said += f" to {without_credentials(reply.headers['location'])}"
    if reply.events:
        return f"{said}, and the stream ended without an answer"
    if reply.error:
        said += f", and the response broke off ({reply.error})"
    body = reply.body[:_BODY].decode(errors="replace").strip()
    kind = reply.headers.get("content-type", "").partition(";")[0]
    return f"{said}, {kind or 'no content type'}: {body}" if body else f"{said} without a body"


def stderr_tail(stderr: str) -> str:
    """Return the end of the stderr of a process, after a semicolon; empty if there is none."""
    kept: list[str] = []
    for line in reversed(stderr.splitlines()):
        if _UNDERLINE(line):
            continue
        if kept and sum(map(len, kept)) + len(line) > _STDERR:
            break
        kept.insert(0, line[-_STDERR:])
    return "; its last words:\n" + "\n".join(kept) if kept else ""

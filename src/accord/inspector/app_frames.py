"""MCP Apps (extension `io.modelcontextprotocol/ui`, 2026-01-26): pages of a server, shown in frames.

A frame has another origin than the inspector (`localhost` instead of 127.0.0.1), an opaque one at that, and no token.
It reaches its server only through the page, which asks the user before a call that may change something. What it loads
is bounded by the content security policy that the resource declares (`_meta.ui.csp`), which the browser enforces.
"""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from accord.inspector.commands import InspectorError
from accord.inspector.transfers import UncountedBody
from accord.limits import HTTPLimits, Limits
from accord.messages.extension import Extension
from accord.messages.tools import Tool
from accord.transport.asgi.request import ASGIRequest, RequestRejected, send_text
from accord.visible_text import single_line, truncate

MIME_TYPE = "text/html;profile=mcp-app"
EXTENSION = Extension(name="io.modelcontextprotocol/ui", settings={"mimeTypes": [MIME_TYPE]})
"""The declaration that a client shows apps."""

PATH = "/app/"
_NONE = "'none'"
_REPORT_LIMITS = Limits(http=HTTPLimits(body_bytes=64 << 10))
_MAX_FRAMES = 20
_MAX_BLOCKED = 100
_MAX_DOMAINS = 100
_MAX_SOURCE = 300
"""Characters of a source: a name has at most 253 (RFC 1035, 3.1). The header has all of them, some several times."""
_SOURCE = re.compile(r"(?:https?|wss?)://(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::(?:[0-9]{1,5}|\*))?", re.IGNORECASE)
"""A source of a policy: an origin, whose first label may be a wildcard. Nothing else can be written into the header."""


class AppFrame:
    """The frame of one app: its document, its policy, and what that blocked."""

    def __init__(self, server: str, uri: str, document: bytes, policy: Sequence[str]) -> None:
        self.server: str = server
        self.uri: str = uri
        self.document: bytes = document
        self.policy: Sequence[str] = policy
        self.blocked: deque[str] = deque(maxlen=_MAX_BLOCKED)
        self.tools: Mapping[str, Tool] = {}
        """The tools of its server when they were last listed."""
        self.listed_at: float | None = None


class AppFrames:
    """The frames of all apps, by their unguessable id; the oldest is dropped beyond a limit."""

    def __init__(self) -> None:
        self._frames: dict[str, AppFrame] = {}

    def add(self, frame: AppFrame) -> str:
        """Return the id of a new frame."""
        if len(self._frames) >= _MAX_FRAMES:
            del self._frames[next(iter(self._frames))]
        id = secrets.token_urlsafe(24)
        self._frames[id] = frame
        return id

    def forget(self, server: str) -> None:
        """Drop the frames of a server: another one may get its name."""
        self._frames = {id: each for id, each in self._frames.items() if each.server != server}

    def find(self, id: str) -> AppFrame | None:
        """Return a frame by id."""
        return self._frames.get(id)

    def frame(self, id: str) -> AppFrame:
        """Return a frame by id. Raises `InspectorError`."""
        found = self._frames.get(id)
        if found is None:
            raise InspectorError("the app was closed", "open it again", status=404)
        return found


def content_policy(csp: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the directives for the `_meta.ui.csp` of a resource, and the sources that are not valid.

    What is not declared is not loaded; scripts and styles inside the document are, because it has no other origin.
    """
    ignored: list[str] = []

    def sources(name: str) -> str:
        declared = csp.get(name)
        found = [each for each in declared if isinstance(each, str)] if isinstance(declared, list) else []
        ignored.extend(truncate(single_line(each), 200) for each in found if not _is_source(each))
        return " ".join(each for each in found[:_MAX_DOMAINS] if _is_source(each))

    resources, connections = sources("resourceDomains"), sources("connectDomains")
    directives = [
        "default-src 'none'",
        f"script-src 'unsafe-inline' {resources}",
        f"style-src 'unsafe-inline' {resources}",
        f"img-src data: blob: {resources}",
        f"font-src data: {resources}",
        f"media-src data: blob: {resources}",
        f"connect-src {connections or _NONE}",
        f"frame-src {sources('frameDomains') or _NONE}",
        f"base-uri {sources('baseUriDomains') or _NONE}",
        "form-action 'none'",
        "sandbox allow-scripts",
    ]
    return [each.strip() for each in directives], ignored


def _is_source(text: str) -> bool:
    return len(text) <= _MAX_SOURCE and _SOURCE.fullmatch(text) is not None


def allowed_connections(policy: Sequence[str]) -> str:
    """Return the value of `Connection-Allowlist` for a policy: the hosts that it names, and no other. A policy alone
    does not bound WebRTC.

    A source with http or ws stands for https and wss too, as in the policy.
    """
    sources = {word for directive in policy for word in directive.split() if _SOURCE.fullmatch(word)}
    sources |= {re.sub("^(http|ws):", r"\1s:", source, flags=re.IGNORECASE) for source in sources}
    return " ".join(["(response-origin", *(f'"{source}/*"' for source in sorted(sources))]) + ")"


async def send_frame(request: ASGIRequest, frames: AppFrames) -> None:
    """Send the document of an app, `/app/ID`, to its frame; or store a report of its policy, `/app/ID/blocked`."""
    id, _, rest = request.path.removeprefix(PATH).partition("/")
    frame = frames.find(id)
    if frame is None or rest not in ("", "blocked"):
        raise RequestRejected(404, "there is no such app: open it again")
    if rest:
        report = await request.body(_REPORT_LIMITS, UncountedBody())
        frame.blocked.append(_blocked_load(report))
        return await send_text(request.send, 204, "")
    page = b"http://127.0.0.1" + request.headers[b"host"].removeprefix(b"localhost")
    policy = "; ".join([*frame.policy, f"report-uri {request.root}{PATH}{id}/blocked"]).encode()
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", b"%d" % len(frame.document)),
        (b"content-security-policy", policy + b"; frame-ancestors " + page),
        (b"connection-allowlist", allowed_connections(frame.policy).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
    ]
    await request.send({"type": "http.response.start", "status": 200, "headers": headers})
    return await request.send({"type": "http.response.body", "body": frame.document})


def _blocked_load(report: bytes) -> str:
    """Return a report of the browser as text: the directive, and what was blocked."""
    try:
        found = msgspec.json.decode(report)["csp-report"]
        text = f"{found.get('effective-directive', '')}: {found.get('blocked-uri', '')}"
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError):
        text = "a report that cannot be read"
    return truncate(single_line(text), 500)

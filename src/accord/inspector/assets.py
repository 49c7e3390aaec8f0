"""The files of the page, as they are in `static/`: their types, their security headers, compressed once."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from accord.transport.asgi.request import ASGIRequest, Headers

STATIC: Path = Path(__file__).parent / "static"

_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob:; media-src blob:; "
    "frame-src {frames}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types lit-html"
)
SECURITY_HEADERS: Headers = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Headers of every response."""
PRIVATE_HEADERS: Headers = ((b"cache-control", b"no-store"), *SECURITY_HEADERS)
"""Headers of every response with data."""


class Asset(msgspec.Struct, frozen=True):
    """One file."""

    type: bytes
    body: bytes
    compressed: bytes
    etag: bytes


@cache
def assets() -> Mapping[str, Asset]:
    """Return the files by their path below the page; the page itself is the empty path."""
    found = {
        path.relative_to(STATIC).as_posix(): _read(path)
        for path in sorted(STATIC.rglob("*"))
        if path.suffix in _TYPES and path.is_file()
    }
    return {**found, "": found["index.html"]}


def _read(path: Path) -> Asset:
    body = path.read_bytes()
    etag = b'"' + hashlib.sha256(body).hexdigest()[:32].encode() + b'"'
    return Asset(_TYPES[path.suffix], body, gzip.compress(body, mtime=0), etag)


async def send_asset(request: ASGIRequest, asset: Asset, frames: str) -> None:
    """Send a file; `frames` is the origin of the frames that the page may show."""
    headers = [
        (b"content-type", asset.type),
        (b"content-security-policy", _POLICY.format(frames=frames).encode()),
        (b"cache-control", b"no-cache"),
        (b"vary", b"Accept-Encoding"),
        (b"etag", asset.etag),
        *SECURITY_HEADERS,
    ]
    status, body = 200, asset.body
    if request.headers.get(b"if-none-match") == asset.etag:
        status, body = 304, b""
    elif b"gzip" in request.headers.get(b"accept-encoding", b""):
        headers.append((b"content-encoding", b"gzip"))
        body = asset.compressed
    headers.append((b"content-length", b"%d" % len(body)))
    await request.send({"type": "http.response.start", "status": status, "headers": headers})
    await request.send({"type": "http.response.body", "body": body})

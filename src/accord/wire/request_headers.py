"""Checks of the headers of a Streamable HTTP request, and the HTTP status: the server's side, without I/O.

The era of a POST (2026-07-28, Protocol Version Header, Server Validation; 2025-11-25, Protocol Version Header):

    header      `_meta`      meaning
    2026-07-28  the same     a request without a session
    other       2026-07-28   -32020: "The header value MUST match"
    unknown     the same     -32022, with the supported revisions
    2026-07-28  none         -32602: requests carry `_meta`
    older       none         part of a session
    none        none         the revision of the session, or 2025-03-26
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from accord.errors import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    HeaderMismatch,
    UnsupportedVersion,
)
from accord.messages.methods import METHODS
from accord.messages.revision import PER_REQUEST
from accord.messages.tasks import NAMED_BY_ID
from accord.wire.headers import METHOD, NAME, PROTOCOL_VERSION, decode_value

NAME_FIELDS: dict[str, str] = {row.name: row.named_by for row in METHODS if row.named_by is not None} | NAMED_BY_ID
"""The field of the params that `Mcp-Name` repeats, by method."""

_SENTINEL = b"=?"
_ACCEPT_BYTES = 1 << 10
"""Limit of an `Accept` header: a longer one takes time to parse, and no client needs it."""
_EXCERPT_LENGTH = 100

_STATUS = {HEADER_MISMATCH: 400, MISSING_CLIENT_CAPABILITY: 400, UNSUPPORTED_VERSION: 400, METHOD_NOT_FOUND: 404}
_STATUS_OF_REFUSAL = {**_STATUS, PARSE_ERROR: 400, INVALID_REQUEST: 400, INVALID_PARAMS: 400, INTERNAL_ERROR: 200}


def status_of(code: int) -> int:
    """Return the HTTP status of a 2026-07-28 response, by the code of its error; 0 means a result."""
    return _STATUS.get(code, 200)


def status_of_refusal(code: int) -> int:
    """Return the HTTP status of a refused request: an error of the request is an error of the POST."""
    return _STATUS_OF_REFUSAL.get(code, 200)


@lru_cache(256)
def accepts(header: bytes | None) -> tuple[bool, bool]:
    """Return whether `Accept` includes JSON, and whether it includes event streams. Without a header, both are
    accepted."""
    if header is None:
        return True, True
    if len(header) > _ACCEPT_BYTES:
        return False, False
    types = {_type(part) for part in header.lower().split(b",") if not _refuses(part)}
    accepts_all = b"*/*" in types
    return (
        accepts_all or bool(types & {b"application/json", b"application/*"}),
        accepts_all or bool(types & {b"text/event-stream", b"text/*"}),
    )


@lru_cache(256)
def is_json(content_type: bytes | None) -> bool:
    """Return whether a `Content-Type` is JSON in UTF-8."""
    if content_type is None or _type(content_type.lower()) != b"application/json":
        return False
    charset = content_type.lower().partition(b"charset=")[2].split(b";")[0].strip(b' "')
    return charset in (b"", b"utf-8", b"utf8", b"us-ascii")


def _type(part: bytes) -> bytes:
    return part.split(b";")[0].strip()


def _refuses(part: bytes) -> bool:
    quality = part.replace(b" ", b"").partition(b";q=")[2].split(b";")[0]
    return quality != b"" and quality.strip(b"0.") == b""


def check_version(
    headers: Mapping[bytes, bytes], meta_revision: str | None, supported_revisions: Sequence[str]
) -> None:
    """Check that the revision in the header is supported; `named` is the one in the `_meta` of a request, if any.

    Raises `HeaderMismatch` if they differ, `UnsupportedVersion` if the revision is not supported.
    """
    header = headers.get(PROTOCOL_VERSION)
    text = None if header is None else header.decode("latin-1")
    if meta_revision is not None and meta_revision != text:
        raise HeaderMismatch(f"MCP-Protocol-Version is {_quote(header)}, and _meta says {meta_revision!r:.100}")
    if text is not None and text not in supported_revisions:
        supported = [revision for revision in PER_REQUEST if revision in supported_revisions] or list(
            supported_revisions
        )
        raise UnsupportedVersion(
            f"revision {text!r:.100} is not supported here",
            data={"supported": supported, "requested": text[:_EXCERPT_LENGTH]},
        )


def check_method(headers: Mapping[bytes, bytes], method: str) -> None:
    """Raise `HeaderMismatch` unless `Mcp-Method` is the method of the body: "These headers are REQUIRED"."""
    header = headers.get(METHOD)
    if header != method.encode():
        raise HeaderMismatch(f"Mcp-Method is {_quote(header)}, and the method of the body is {method!r:.100}")


def check_name(headers: Mapping[bytes, bytes], subject: str) -> None:
    """Raise `HeaderMismatch` unless `Mcp-Name` is the name, or the URI, in the body."""
    header = headers.get(NAME)
    if header == subject.encode() and header.isascii() and not header.startswith(_SENTINEL):
        return
    if header is not None:
        try:
            if decode_value(header) == subject:
                return
        except ValueError as exc:
            raise HeaderMismatch(f"Mcp-Name cannot be read: {exc}") from exc
    raise HeaderMismatch(f"Mcp-Name is {_quote(header)}, and the body has {subject!r:.100}")


def _quote(header: bytes | None) -> str:
    return "missing" if header is None else repr(header[:_EXCERPT_LENGTH].decode("latin-1"))

"""Choice of the revision from the lists of the two sides (Versioning; Lifecycle)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from accord.errors import HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION, ProtocolError
from accord.messages.revision import HANDSHAKE, PER_REQUEST, REVISIONS

OPENING_METHODS = frozenset(("initialize", "server/discover"))
"""The requests of a client that open a connection."""


def answer_initialize(requested: str, supported: Collection[str]) -> str | None:
    """Return the revision in a server's response to `initialize`, or None if it supports none with a handshake.

    "If the server supports the requested protocol version, it MUST respond with the same version. Otherwise [...]
    another protocol version it supports. This SHOULD be the latest version" (2025-11-25, Lifecycle). Only revisions
    with a handshake count: `initialize` never selects one without it.
    """
    candidates = [revision for revision in HANDSHAKE if revision in supported]
    if requested in candidates:
        return requested
    return candidates[-1] if candidates else None


def choose_revision(offered: Collection[Any], supported: Collection[str]) -> str | None:
    """Return the newest revision without a handshake that both sides support, or None."""
    common = [revision for revision in PER_REQUEST if revision in supported and revision in offered]
    return common[-1] if common else None


def newest_handshake(supported: Collection[str]) -> str | None:
    """Return the revision that a client proposes in `initialize`: its newest with a handshake, or None."""
    candidates = [revision for revision in HANDSHAKE if revision in supported]
    return candidates[-1] if candidates else None


def revisions_in_error(error: ProtocolError) -> list[str] | None:
    """Return the revisions in the error of a 2026-07-28 server to the probe; None for any other error.

    Only -32020, -32021 and -32022 with well-formed data identify such a server (stdio, Backward Compatibility); for the
    first two, the server supports the revision of the probe. After -32020 the client also tries `initialize`.
    """
    data = error.data
    if error.code == UNSUPPORTED_VERSION and isinstance(data, dict):
        supported = data.get("supported")
        if isinstance(supported, list) and all(isinstance(item, str) for item in supported):
            return supported
        return None
    if error.code == MISSING_CLIENT_CAPABILITY:
        well_formed = isinstance(data, dict) and isinstance(data.get("requiredCapabilities"), dict)
        return list(PER_REQUEST) if well_formed else None
    return list(PER_REQUEST) if error.code == HEADER_MISMATCH else None


def check_revisions(revisions: Sequence[str]) -> tuple[str, ...]:
    """Return `revisions` in order. Raise `ValueError`, with the known ones, for an unknown revision or an empty
    list."""
    unknown = [revision for revision in revisions if revision not in REVISIONS]
    if unknown or not revisions:
        raise ValueError(f"unknown revision {unknown or revisions}; known are {', '.join(REVISIONS)}")
    return tuple(revision for revision in REVISIONS if revision in revisions)

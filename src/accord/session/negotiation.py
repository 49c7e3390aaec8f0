"""Which revision two sides speak, as functions of what they said (Versioning; Lifecycle)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from accord.errors import HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION, ProtocolError
from accord.messages.revision import HANDSHAKE, PER_REQUEST, REVISIONS

OPENING_METHODS = frozenset(("initialize", "server/discover"))
"""The requests of a client that open a connection."""


def answer_initialize(requested: str, spoken: Collection[str]) -> str | None:
    """The revision a server answers `initialize` with, or None when it speaks none that has a handshake.

    "If the server supports the requested protocol version, it MUST respond with the same version. Otherwise [...]
    another protocol version it supports. This SHOULD be the latest version" (2025-11-25, Lifecycle). Only revisions
    with a handshake count: one without it is never agreed on by `initialize`.
    """
    usable = [revision for revision in HANDSHAKE if revision in spoken]
    if requested in usable:
        return requested
    return usable[-1] if usable else None


def choose_revision(offered: Collection[Any], spoken: Collection[str]) -> str | None:
    """The newest revision without a handshake that both sides speak."""
    both = [revision for revision in PER_REQUEST if revision in spoken and revision in offered]
    return both[-1] if both else None


def newest_handshake(spoken: Collection[str]) -> str | None:
    """What a client asks for in `initialize`: the newest revision it speaks that has a handshake."""
    usable = [revision for revision in HANDSHAKE if revision in spoken]
    return usable[-1] if usable else None


def revisions_in_error(error: ProtocolError) -> list[str] | None:
    """What a server of 2026-07-28 says that it speaks, by an error to the probe; None when this is no such error.

    Only -32020, -32021 and -32022 with well-formed data tell such a server (stdio, Backward Compatibility); for the
    first two the revision that was asked with is the one it speaks. Who gets -32020 tries `initialize` all the same.
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
    """`revisions` in order, each known. Raises ValueError with the known ones."""
    unknown = [revision for revision in revisions if revision not in REVISIONS]
    if unknown or not revisions:
        raise ValueError(f"unknown revision {unknown or revisions}; known are {', '.join(REVISIONS)}")
    return tuple(revision for revision in REVISIONS if revision in revisions)

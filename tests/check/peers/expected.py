"""What the checker finds in well-known servers: each was looked at with the bytes and the specification, and is true.

The evidence is in docs/known-issues-in-servers.md. Anything else that is found there is a defect of the checker, or
a new fault.
"""

from __future__ import annotations

from typing import NamedTuple

from accord.check.engine.report import TransportName

ALL = ("2025-03-26", "2025-06-18", "2025-11-25")
LAST = ("2025-11-25",)
MODERN = ("2026-07-28",)

Found = frozenset[tuple[str, str]]
"""The broken rules, each with a revision in which it is broken."""


class Peer(NamedTuple):
    """One server, and what is found in it, by rule: the revisions."""

    name: str
    over: TransportName
    revisions: tuple[str, ...]
    broken: dict[str, tuple[str, ...]]
    calls: tuple[str, ...] = ()
    """Tools that may be called: they change nothing."""
    sdk: str = "TypeScript SDK 1.x"
    """What it is recognised to be made with."""

    @property
    def found(self) -> Found:
        return frozenset((rule, revision) for rule, revisions in self.broken.items() for revision in revisions)


PEERS: tuple[Peer, ...] = (
    Peer(
        "everything",
        "http",
        ALL,
        {
            "envelope/json-rpc": LAST,
            "http/session-ended": ALL,
            "http/origin": ALL,
            "http/replay": ALL,
            "codes/one-sentence": ALL,
            "batch/empty": ("2025-03-26",),
            "tools/unknown-name-code": ALL,
            "resources/missing-code": ALL,
            "resources/template-type": ALL,
            "completion/missing-argument": ALL,
            "logging/unknown-level": ALL,
            "pagination/invalid-cursor": ALL,
            "tasks/forbidden": LAST,
        },
        ("echo",),
    ),
    Peer(
        "mcp1",
        "http",
        ALL,
        {
            "errors/unreadable-id": LAST,
            "batch/served": ("2025-03-26",),
            "logging/declared": ALL,
            "errors/method-not-found": ALL,
            "codes/one-sentence": ALL,
            "lifecycle/bad-hello": ALL,
            "tools/unknown-name-code": ALL,
            "resources/missing-code": ALL,
            "prompts/unknown-name": ALL,
            "prompts/required-arguments": ALL,
            "pagination/invalid-cursor": ALL,
            "http/primed": LAST,
        },
        sdk="mcp 1.30.0",
    ),
    Peer(
        "mcp2",
        "http",
        (*ALL, *MODERN),
        {
            "batch/served": ("2025-03-26",),
            "http/version-mismatch": MODERN,
            "codes/one-sentence": ALL,
            "tools/unknown-name-code": (*ALL, *MODERN),
            "resources/missing-code": ALL,
            "prompts/unknown-name": (*ALL, *MODERN),
            "prompts/required-arguments": (*ALL, *MODERN),
            "pagination/invalid-cursor": (*ALL, *MODERN),
            "http/primed": LAST,
        },
        sdk="mcp 2.3.0",
    ),
    Peer(
        "memory",
        "stdio",
        LAST,
        {
            "errors/invalid-request": LAST,
            "codes/one-sentence": LAST,
            "tools/unknown-name-code": LAST,
            "resources/missing-code": LAST,
            "pagination/invalid-cursor": LAST,
        },
    ),
)

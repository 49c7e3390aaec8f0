"""The five revisions, and what differs in behaviour between them as a row of named facts.

Code asks for a fact (`rules.batches`), never for a revision: no other module compares revisions.
Differences of shape are not here: they are the life of a field (`base.since`) and the rows of `methods`.
"""

from __future__ import annotations

import msgspec

from accord.errors import INVALID_PARAMS, INVALID_REQUEST, MISSING_CLIENT_CAPABILITY, RESOURCE_NOT_FOUND

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""Every revision, the oldest first."""

LATEST = REVISIONS[-1]


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How one revision behaves."""

    revision: str
    handshake: bool = True
    """Opened by `initialize`; otherwise every request carries revision and capabilities in `_meta`."""
    server_requests: bool = True
    """A server may send requests; otherwise it asks by answering `input_required`."""
    client_progress: bool = True
    """A client may send progress (for a server's request)."""
    sessions: bool = True
    """Requests belong to a session: the client may be asked, told of changes, and remembered between two of them."""
    streamable: bool = True
    """Over HTTP it is Streamable HTTP; otherwise HTTP+SSE."""
    batches: bool = False
    """A message may be an array of messages (2025-03-26, basic, Batching)."""
    result_type: bool = False
    """A result says what it is in `resultType`, and who gave it in `_meta`."""
    cache_hints: bool = False
    """A result may say how long it may be kept, and by whom."""
    null_id: bool = True
    """An error for a message whose id could not be read has `id: null`; otherwise no id at all."""
    structured_objects_only: bool = True
    """`structuredContent` and the root of `outputSchema` are objects."""
    primes_streams: bool = False
    """A stream over HTTP begins with an event that holds nothing but an id to come back with (SEP-1699)."""
    mirrors_arguments: bool = False
    """Arguments of a tool stand in headers of HTTP too, where its schema says so."""
    sampling_tools: bool = False
    """A model may be given tools, and a message to it may hold several blocks."""
    elicitation_urls: bool = False
    """A person may be asked to visit a page; otherwise only to fill in a form."""
    form_defaults: bool = False
    """A field of a form may have a default, whatever its kind; otherwise only yes or no may."""
    form_titled_choices: bool = False
    """Titles of a choice stand beside its values in `oneOf`; otherwise apart, in `enumNames`."""
    form_multi_select: bool = False
    """A form may ask for several choices at once."""
    resource_not_found: int = RESOURCE_NOT_FOUND
    missing_capability: int = INVALID_REQUEST
    """The error for a request that needs what the client did not declare."""


_ROWS = (
    Rules(revision="2024-11-05", streamable=False),
    Rules(revision="2025-03-26", batches=True),
    Rules(revision="2025-06-18"),
    Rules(
        revision="2025-11-25",
        null_id=False,
        primes_streams=True,
        sampling_tools=True,
        elicitation_urls=True,
        form_defaults=True,
        form_titled_choices=True,
        form_multi_select=True,
    ),
    Rules(
        revision="2026-07-28",
        handshake=False,
        server_requests=False,
        sessions=False,
        client_progress=False,
        result_type=True,
        cache_hints=True,
        null_id=False,
        structured_objects_only=False,
        mirrors_arguments=True,
        sampling_tools=True,
        elicitation_urls=True,
        form_defaults=True,
        form_titled_choices=True,
        form_multi_select=True,
        resource_not_found=INVALID_PARAMS,
        missing_capability=MISSING_CLIENT_CAPABILITY,
    ),
)

RULES = {rules.revision: rules for rules in _ROWS}

NO_SESSIONS = "this server keeps no sessions before 2026-07-28: HTTPOptions(stateless=True)"
"""Why something that needs a session is refused in a revision that has them."""

SESSIONLESS = {
    rules.revision: msgspec.structs.replace(rules, sessions=False, server_requests=False, primes_streams=False)
    for rules in _ROWS
    if rules.handshake
}
"""Revisions with a handshake as they are served without sessions (`HTTPOptions(stateless=True)`)."""

BEFORE_OPENING = Rules(revision="", server_requests=False)
"""What holds before anything is agreed: an unreadable id is `null`, nothing is batched."""

HANDSHAKE = tuple(rules.revision for rules in _ROWS if rules.handshake)
"""Revisions that are opened by `initialize`, the oldest first."""

PER_REQUEST = tuple(rules.revision for rules in _ROWS if not rules.handshake)
"""Revisions in which every request carries its revision, the oldest first."""


def is_in_revision(revision: str, since: str | None, until: str | None) -> bool:
    """Whether something that came with `since` and went with `until` is part of `revision`."""
    at = REVISIONS.index(revision)
    born = REVISIONS.index(since) if since else 0
    return born <= at and (until is None or at < REVISIONS.index(until))

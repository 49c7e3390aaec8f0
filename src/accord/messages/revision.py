"""The five revisions, and their differences in behaviour as a row of named facts.

Code reads a fact (`rules.batches`) and never a revision: no other module compares revisions. Differences of shape
are elsewhere: in the annotations of a field (`base.since`) and in the rows of `methods`.
"""

from __future__ import annotations

import msgspec

from accord.errors import INVALID_PARAMS, INVALID_REQUEST, MISSING_CLIENT_CAPABILITY, RESOURCE_NOT_FOUND

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""All revisions, the oldest first."""

LATEST = REVISIONS[-1]


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The behaviour of one revision."""

    revision: str
    handshake: bool = True
    """A connection opens with `initialize`; otherwise every request carries revision and capabilities in `_meta`."""
    server_requests: bool = True
    """A server may send requests; otherwise it answers with `input_required`."""
    client_progress: bool = True
    """A client may send progress (for a server's request)."""
    sessions: bool = True
    """Requests belong to a session: between two requests, the server may send to the client and keep state for it."""
    streamable: bool = True
    """The HTTP transport is Streamable HTTP; otherwise HTTP+SSE."""
    batches: bool = False
    """A message may be an array of messages (2025-03-26, basic, Batching)."""
    result_type: bool = False
    """A result has its kind in `resultType`, and its server in `_meta`."""
    cache_hints: bool = False
    """A result may say how long it may be cached, and by whom."""
    null_id: bool = True
    """An error for a message whose id could not be read has `id: null`; otherwise it has no id."""
    definition_meta: bool = True
    """Tools, prompts and resources have `_meta` in their lists."""
    structured_objects_only: bool = True
    """`structuredContent` and the root of `outputSchema` are objects."""
    primes_streams: bool = False
    """An event stream begins with an event that holds only an id for resumption (SEP-1699)."""
    disconnect_cancels: bool = False
    """A client that closes the response to a request cancels it; otherwise the request goes on (Streamable HTTP)."""
    mirrors_arguments: bool = False
    """Arguments of a tool are also sent as HTTP headers, where its schema says so."""
    sampling_tools: bool = False
    """A sampling request may offer tools to the model, and a message to it may hold several blocks."""
    elicitation_urls: bool = False
    """A server may ask the user to visit a page; otherwise only to fill in a form."""
    form_defaults: bool = False
    """A form field of any kind may have a default; otherwise only a boolean field may."""
    form_titled_choices: bool = False
    """Titles of a choice are beside its values in `oneOf`; otherwise apart, in `enumNames`."""
    form_multi_select: bool = False
    """A form field may accept several choices at once."""
    requested_tasks: bool = False
    """A request may ask to run as a task (`task` in its params); tasks are a capability of the core."""
    extension_tasks: bool = False
    """The server decides which calls become tasks, for clients that declare the extension."""
    resource_not_found: int = RESOURCE_NOT_FOUND
    missing_capability: int = INVALID_REQUEST
    """The code of the error for a request that needs a capability that the client did not declare."""


_ROWS = (
    Rules(revision="2024-11-05", streamable=False, definition_meta=False),
    Rules(revision="2025-03-26", batches=True, definition_meta=False),
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
        requested_tasks=True,
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
        disconnect_cancels=True,
        mirrors_arguments=True,
        sampling_tools=True,
        elicitation_urls=True,
        form_defaults=True,
        form_titled_choices=True,
        form_multi_select=True,
        extension_tasks=True,
        resource_not_found=INVALID_PARAMS,
        missing_capability=MISSING_CLIENT_CAPABILITY,
    ),
)

RULES = {rules.revision: rules for rules in _ROWS}

NO_SESSIONS = "this server keeps no sessions before 2026-07-28: HTTPOptions(stateless=True)"
"""Why a request that needs a session is refused in a revision that has sessions."""

SESSIONLESS = {
    rules.revision: msgspec.structs.replace(rules, sessions=False, server_requests=False, primes_streams=False)
    for rules in _ROWS
    if rules.handshake
}
"""Revisions with a handshake as a server without sessions serves them (`HTTPOptions(stateless=True)`)."""

BEFORE_OPENING = Rules(revision="", server_requests=False)
"""The rules before the handshake: an unreadable id is `null`, and there are no batches."""

HANDSHAKE = tuple(rules.revision for rules in _ROWS if rules.handshake)
"""Revisions that open with `initialize`, the oldest first."""

PER_REQUEST = tuple(rules.revision for rules in _ROWS if not rules.handshake)
"""Revisions in which every request carries its revision, the oldest first."""


def is_in_revision(revision: str, since: str | None, until: str | None) -> bool:
    """Return whether something that exists from `since` until `until` is part of `revision`."""
    position = REVISIONS.index(revision)
    first = REVISIONS.index(since) if since else 0
    return first <= position and (until is None or position < REVISIONS.index(until))

"""Every bound that protects, and its default, in one frozen value."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on what a peer controls. Sizes in bytes, times in seconds; `None` means no bound.

    Give your own to `Server(limits=...)` or `Client(limits=...)`: `Limits(line_bytes=1 << 20)`.
    """

    line_bytes: int = 64 << 20
    """One message on a stdio line; a longer one is skipped in linear time and answered with one error.
    Client: one message of a server over HTTP; a longer one fails the request that it belongs to."""
    pending_bytes: int = 1 << 20
    """Unsent bytes to one peer before senders wait (back-pressure)."""
    depth: int = 128
    """Nesting of a value that is checked against a JSON Schema."""

    requests_in_flight: int = 256
    """Requests of one peer being worked on at once; one more is refused with an error that says so."""
    subscriptions: int = 10_000
    """Server: subscriptions of one peer; one more is refused with an error that says so."""
    subscribed_bytes: int = 8 << 20
    """Server: memory for what one peer subscribes to, and all connections of one principal together; more is refused
    with an error that says so."""
    subscribed_total_bytes: int = 128 << 20
    """Server: the same for all those together whom nobody vouches for."""
    uri_bytes: int = 8 << 10
    """Server: the URI of a resource that a peer subscribes to; a longer one is refused."""
    hello_bytes: int = 64 << 10
    """Server: the params of `initialize`, which are kept as long as the client is there; more is refused."""
    batch_items: int = 1_000
    """Messages in one batch (2025-03-26); a larger one is refused whole."""
    workers: int = 40
    """Threads for plain `def` handlers: of a server, and those that answer for a client."""
    worker_queue: int = 128
    """Calls that may wait for a thread; one more is refused with an error that says so."""
    tool_seconds: float | None = None
    """Time for the handler of one call: a tool, a resource, a prompt or a completion; none by default over stdio."""
    answer_seconds: float = 600
    """Time for an answer to what a handler asks: a person's, or a model's. It is outside the time of a tool, and of
    the request that waits for it; a client gives its own handlers as long."""
    provider_seconds: float = 30
    """Server: time for a provider to say what it has; then its things are left out."""
    parked: int = 32
    """Handlers of one principal that wait for answers with no request in flight (2026-07-28); one more ends the oldest.
    """
    state_bytes: int = 16 << 10
    """Server: a `requestState`; what does not fit is kept in memory, and the state refers to it."""
    kept_bytes: int = 64 << 20
    """Server: results and states that are kept for a request that may be sent again."""
    events_bytes: int = 8 << 20
    """Server: events of one session that are kept for a client that comes back; the oldest are dropped first."""
    events_total_bytes: int = 256 << 20
    """Server: events of all sessions; those of the address or principal go first that has most, and of these the ones
    of the session that was not written to for the longest time."""
    events_seconds: float = 600
    """Server: how long the events of a stream are kept after it has ended."""
    session_kept_seconds: float = 86_400
    """Server: how long a store keeps a session that nobody writes to: the server that had it may be gone."""
    http_body_bytes: int = 4 << 20
    """Server: the body of one HTTP request; a larger one is answered with 413."""
    http_nodes: int = 100_000
    """Server: arrays, objects and members of objects in the body of one HTTP request, and twice as many items of
    its arrays; more is refused."""
    http_bodies_bytes: int = 256 << 20
    """Server: memory of larger bodies of HTTP requests, as it is estimated, from their first byte until they are
    answered, or until the handler has ended that a body is an answer to; one more is answered with 503, unless its
    address or principal has less than a 256th. As much is for what sessions keep of `initialize` and of roots; for
    handlers that wait for answers with no request in flight: there one more ends the oldest; and for answers that wait
    for the rest of their batch: there one more is an error."""
    http_bodies_bytes_per_address: int = 128 << 20
    """Server: the same for one address, and for one principal."""
    http_requests: int = 4_096
    """Server: requests being worked on at once for all those whom nobody vouches for (HTTP, all sessions together)."""
    http_requests_per_address: int = 2_048
    """Server: those of one address, or of one principal in all its sessions; one more is refused."""
    http_parked: int = 4_096
    """Server: `parked` for all those together; one more ends the oldest of the address that has most."""
    http_parked_per_address: int = 2_048
    """Server: those of one address; one more ends its oldest."""
    http_completions_per_second: float = 2_000
    """Server: `completions_per_second` for those of one address together."""
    body_seconds: float = 30
    """Server: time for the body of a request to be there; then it is answered with 408."""
    write_seconds: float = 30
    """Server: time for a client to take what is sent to it; then its connection is given up."""
    stream_bytes: int = 8 << 20
    """Server: unsent bytes of one stream of events; a client that takes that little is cut off."""
    streams: int = 1_000
    """Server: streams of one session, or of one principal, that are open at once."""
    keep_alive_seconds: float = 15
    """Server: silence on a stream before a comment is sent, so that nobody takes it for dead."""
    patience_seconds: float = 1
    """Server: how long the answer to a POST may take before it becomes a stream that can be taken up again."""
    http_tool_seconds: float | None = 300
    """`tool_seconds` over HTTP, where that is not set."""
    sessions: int = 10_000
    """Server: sessions over HTTP. One more ends the one that was idle for the longest time, of the principal or address
    that has most: idle for `session_unused_seconds`, or for any time where that one has over 100 sessions and more than
    its share of the room; there also one that only has streams open. Where there is none, it is answered with 503."""
    sessions_per_principal: int = 100
    """Server: sessions of one principal, where it is known who asks; one more ends its own that was idle for the
    longest time, or is answered with 503."""
    sessions_per_address: int = 5_000
    """Server: the same for one address, where nobody vouches for who asks. Behind a proxy it is the address that the
    proxy tells, where `public_url` says that there is one."""
    session_idle_seconds: float = 1_800
    """Server: how long a session over HTTP may have nothing to do and no stream open before it ends."""
    session_unused_seconds: float = 60
    """Server: the same for a session that was not used at all after `initialize`. Where there is no room for another
    session, the oldest of these makes room."""
    session_seconds: float = 86_400
    """Server: how long a session over HTTP may last."""
    principals: int = 10_000
    """Server: principals of which something is remembered between requests (rates); the one heard of the longest ago
    is forgotten for one more."""
    progress_per_second: float = 20
    """Progress notifications per request and second; beyond one second's worth they are coalesced, the last is kept."""
    tool_calls_per_second: float | None = 1_000
    """Tool calls of one principal, where it is known who asks (HTTP with `auth`), and as many at once; one more is
    refused with an error that says when to come back (`RateLimited`). Over stdio the client is the one that started the
    server, and is not bounded."""
    completions: int = 100
    """Values of one completion; the protocol allows 100."""
    completions_per_second: float = 50
    """Completions that one peer may ask for; one more is refused with an error that says when to come back."""
    logs_per_second: float = 50
    """Log messages to one peer; those beyond are dropped, and the client is told how many."""
    upstream_bytes: int = 16 << 20
    """Server: an answer of an HTTP API that was imported (OpenAPI); a larger one is an error of its call."""
    auth_seconds: float = 30
    """Server: time for `Auth.authenticate` to say who asks; then the request is refused."""
    grace_seconds: float = 4
    """At SIGTERM, Ctrl-C or end of input: time for calls in flight to finish."""

    http_connections: int = 20_000
    """Server over HTTP: connections at once, or what leaves 256 file descriptors if that is less; one more is answered
    503."""
    http_connections_per_address: int | None = 10_000
    """Server over HTTP: connections of one address, or half of all where file descriptors leave fewer than
    `http_connections` and that is less; one more is answered 503. No bound where `public_url` says that a proxy stands
    in front."""
    http_unsent_bytes: int = 256 << 20
    """Server over HTTP: bytes of answers, in all, that clients are slow to take; beyond it a connection of the address
    that has most of them is cut, the slow one first that is so for the longest time. As much is for streams of
    events; and for what clients send before the server can take it, as behind a request that is being answered."""
    http_head_bytes: int = 32 << 10
    """Server over HTTP: the line and the headers of a request, with the extensions of its chunks and its trailers; more
    is answered 431."""
    http_head_fields: int = 200
    """Server over HTTP: header and trailer fields of a request; more is answered 431."""
    http_head_seconds: float = 30
    """Server over HTTP: time for the line and the headers of a request; then the connection is closed."""
    http_idle_seconds: float = 75
    """Server over HTTP: time that a connection may wait for its next request."""
    http_unread_seconds: float = 30
    """Server over HTTP: time in which a client takes nothing of what is sent to it; then the connection is cut."""

    request_seconds: float | None = None
    """Client: time without an answer or progress before a request fails; `None` waits."""
    total_seconds: float | None = None
    """Client: time for one request, whatever progress it reports."""
    connect_seconds: float = 60
    """Client: time for the whole opening."""
    probe_seconds: float = 5
    """Client: silence after `server/discover` before `initialize` is sent as well."""
    close_seconds: float = 2
    """Client: time the server has to exit after its input closed, before SIGTERM; and again before SIGKILL.
    Both sides: half of it is what handlers have to clean up when they are cancelled at the end."""

    retry_seconds: float = 300
    """Client: the longest pause that a server may ask for before a stream is taken up again (`retry`, HTTP); one that
    asks for more is not waited for."""

    form_fields: int = 1_000
    """Client: fields of a form that a server asks a person to fill in; a larger one is refused."""
    rounds: int = 16
    """Client: how often one request is sent again because its answer asked for input (2026-07-28)."""
    pages: int = 1_000
    """Client: pages of one list that are followed."""
    items: int = 100_000
    """Client: items of one list that are taken, on one page or on all."""
    list_bytes: int = 64 << 20
    """Client: bytes of all pages of one list."""
    notices: int = 1_000
    """Notifications that wait for one callback or one reader; one more drops the oldest, with a count."""
    notice_bytes: int = 16 << 20
    """The same in bytes of their params."""
    callback_seconds: float = 5
    """Client: time that async callbacks of a request have to finish once it is answered; then they are cancelled."""
    cache_entries: int = 1_000
    """Client: results that a cache keeps."""
    cache_bytes: int = 16 << 20
    """Client: bytes of results that a cache keeps."""
    cache_seconds: float = 86_400
    """Client: how long a result is kept at most, whatever its `ttlMs`."""
    page_size: int = 1_000
    """Server: items of one page."""

    schema_depth: int = 64
    """Nesting of a JSON Schema."""
    schema_nodes: int = 5_000
    """Subschemas of a JSON Schema, references counted as often as they expand."""
    stderr_lines: int = 20
    """Client: last lines of a server's stderr kept for errors."""

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in msgspec.structs.fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"Limits({', '.join(changed)})"


DEFAULT_LIMITS = Limits()

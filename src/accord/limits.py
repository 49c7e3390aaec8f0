"""The limits on what a peer may use, with their defaults, in one frozen value."""

from __future__ import annotations

import msgspec


class _LimitGroup(msgspec.Struct, frozen=True, kw_only=True):
    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in msgspec.structs.fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


class HTTPLimits(_LimitGroup, frozen=True, kw_only=True):
    """Limits of a server over HTTP. Sizes are in bytes, times in seconds; `None` means no limit."""

    events_bytes: int = 8 << 20
    """Events of one session that are kept for resumption; the oldest are dropped first."""
    events_total_bytes: int = 256 << 20
    """Events of all sessions. The oldest are dropped first, of the address or principal that has the most, and of its
    session with the oldest last write."""
    events_seconds: float = 600
    """How long the events of a stream are kept after its end."""
    session_kept_seconds: float = 86_400
    """How long a store keeps a session without writes; the server that had the session may be gone."""
    body_bytes: int = 4 << 20
    """The body of one HTTP request; a larger one is answered with 413."""
    body_nodes: int = 100_000
    """Arrays, objects and members of objects in the body of one HTTP request, and twice as many items of its arrays; a
    body with more is refused, and so is one with more than 1,000 numbers with an exponent of three digits. Bodies of up
    to 64 KiB are not counted, because they are decoded fast."""
    bodies_bytes: int = 256 << 20
    """Estimated memory of larger bodies of HTTP requests, from the first byte until the response, or, for a body that
    answers a request of a handler, until the end of that handler. A further body is answered with 503, unless its
    address or principal has less than a 256th of this, or beyond twice this less than an 8192nd. The same limit
    applies, each on its own, to what sessions keep of `initialize` and of roots; to arguments and answers of running
    tasks (a further task, or answer, is refused); to handlers that wait for answers with no request in flight (a
    further one ends the oldest); and to answers that wait for the rest of their batch (a further one is an error)."""
    bodies_bytes_per_address: int = 128 << 20
    """`bodies_bytes` for one address, and for one principal."""
    requests: int = 4_096
    """Requests in flight of all unauthenticated clients together (HTTP, all sessions); a further one is refused, unless
    its address has fewer than 256, or beyond twice this fewer than 8. The same limit, on its own, applies to requests
    that wait for authentication. No limit counts the memory of results: where they have megabytes, lower this one."""
    requests_per_address: int = 2_048
    """Requests in flight of one address, or of one principal in all its sessions; a further one is refused. The same
    limit, on its own, applies to requests of one address that wait for authentication. For large results see
    `requests`."""
    parked: int = 4_096
    """`Limits.parked` for all principals together; a further one ends the oldest of the address that has the
    most."""
    parked_per_address: int = 2_048
    """`parked` for one address; a further one ends the oldest of that address."""
    completions_per_second: float = 2_000
    """`Limits.completions_per_second` for all clients of one address together."""
    body_seconds: float = 30
    """Time to receive the body of a request; after it, the server answers with 408."""
    write_seconds: float = 30
    """Time for a client to read what the server sends; after it, the server closes the connection."""
    stream_bytes: int = 8 << 20
    """Unsent bytes of one event stream; beyond it, the server cuts the stream of the slow client."""
    streams: int = 1_000
    """Streams of one session, or of one principal, that are open at once."""
    keep_alive_seconds: float = 15
    """Silence on a stream before the server sends a comment, so that no proxy or client takes it for dead."""
    patience_seconds: float = 1
    """How long the response to a POST may take before it becomes a stream that can be resumed."""
    tool_seconds: float | None = 300
    """`Limits.tool_seconds` over HTTP, where `Limits.tool_seconds` is not set."""
    sessions: int = 10_000
    """Sessions over HTTP. A further session ends the one with the longest idle time, of the principal or network that
    has the most; a network is an address, or all IPv6 addresses with the same first 48 bits. It must have been idle for
    `session_unused_seconds`; any idle time is enough where its principal or network has over 100 sessions and more than
    its share of this limit, and there a session that only has open streams counts as idle. If there is no such session,
    the server answers 503."""
    sessions_per_principal: int = 100
    """Sessions of one authenticated principal; a further one ends the one of its own with the longest idle time, or is
    answered with 503."""
    sessions_per_address: int = 5_000
    """`sessions_per_principal` for one address, without authentication. Behind a proxy it is the address that
    the proxy reports, if `public_url` is set."""
    session_idle_seconds: float = 1_800
    """How long a session over HTTP may be without work and without open streams before it ends."""
    session_unused_seconds: float = 60
    """`session_idle_seconds` for a session without any request after `initialize`. If the limit on sessions is
    reached, the oldest of these ends."""
    session_seconds: float = 86_400
    """How long a session over HTTP may last."""
    auth_seconds: float = 30
    """Time for `Auth.authenticate` to return the principal; after it, the request is refused."""
    connections: int = 20_000
    """Connections at once, or as many as leave 256 file descriptors if that is less. A further one replaces an idle one
    of the network that has the most (see `sessions`); if that has more than its share, also one that sends a request or
    receives a stream. If there is no such connection, it is answered with 503."""
    connections_per_address: int | None = 10_000
    """Connections of one address, or half of all connections if file descriptors leave fewer than `connections` and
    half is less; a further one is answered with 503. No limit where `public_url` declares a proxy."""
    unsent_bytes: int = 256 << 20
    """Unsent bytes of all responses together. Beyond it, the server cuts a connection of the address that has the most:
    the one that has been slow for the longest time. The same limit applies, each on its own, to event streams, and to
    what clients send before the server can read it, such as requests behind one in flight."""
    head_bytes: int = 32 << 10
    """The request line and headers of a request, with the extensions of its chunks and its trailers; a larger head is
    answered with 431."""
    head_fields: int = 200
    """Header and trailer fields of a request; more are answered with 431."""
    head_seconds: float = 30
    """Time to receive the request line and the headers; after it, the server closes the connection."""
    idle_seconds: float = 75
    """Time that a connection may wait for its next request."""
    unread_seconds: float = 30
    """Time during which a client reads nothing of what the server sends; after it, the server cuts the connection."""


class ClientLimits(_LimitGroup, frozen=True, kw_only=True):
    """Limits of a client. Sizes are in bytes, times in seconds; `None` means no limit."""

    request_seconds: float | None = None
    """Time without a response or progress before a request fails; `None` waits without limit."""
    total_seconds: float | None = None
    """Time for one request, regardless of its progress."""
    connect_seconds: float = 60
    """Time to open the connection, handshake included."""
    probe_seconds: float = 5
    """Silence after `server/discover` before the client also sends `initialize`."""
    retry_seconds: float = 300
    """The longest pause before a stream is resumed that a server may set (`retry`, HTTP); the client does not wait for
    a longer one."""
    form_fields: int = 1_000
    """Fields of a form that a server sends for a user to fill in; a larger form is refused."""
    rounds: int = 16
    """How often one request is sent again because the server asked for input (2026-07-28). Through 2025-11-25, how
    many requests of the server suspend the timeouts of a request, times the requests in flight; further ones are
    answered while the timeouts run."""
    pages: int = 1_000
    """Pages of one list that the client requests."""
    items: int = 100_000
    """Items of one list, on one page or on all."""
    list_bytes: int = 64 << 20
    """Bytes of all pages of one list."""
    callback_seconds: float = 5
    """Time for the async callbacks of a request to finish after its response; then they are cancelled."""
    cache_entries: int = 1_000
    """Results in the cache."""
    cache_bytes: int = 16 << 20
    """Bytes of results in the cache."""
    cache_seconds: float = 86_400
    """The longest time that a result stays in the cache, whatever its `ttlMs`."""
    stderr_lines: int = 20
    """Last lines of a server's stderr that are kept for errors."""


class TaskLimits(_LimitGroup, frozen=True, kw_only=True):
    """Limits of the tasks of a server, and of those that it requests of a client. Sizes: bytes, times: seconds."""

    tasks: int = 10_000
    """Tasks that the server keeps, running or ended; a further one is refused with an error that says so."""
    tasks_per_principal: int = 1_000
    """`tasks` of one principal, or of one address without authentication. Client: tasks of one connection."""
    running_per_principal: int = 1_000
    """Tasks of one principal, or of one address without authentication, that run on one event loop and have not ended;
    a further one is refused with an error that says so. Each worker process, and each event loop, counts its own."""
    ttl_seconds: float = 86_400
    """The longest time that a task is kept after its creation, whatever its tool declares or its client requests; then
    it is cancelled."""
    result_bytes: int = 16 << 20
    """The result of a task; a task with a larger one fails."""
    kept_bytes: int = 256 << 20
    """Arguments, answers and results of all tasks in memory, or in the file of `SQLiteTasks`; beyond it, a further task
    is refused, an answer is refused, and a task with a larger result fails, each with an error that says so, unless its
    address or principal has less than a 256th of this, or beyond twice this less than an 8192nd. A store that you make
    takes its own: `SQLiteTasks(path, limits)`."""
    polls_per_second: float = 100
    """`tasks/get` requests of one principal, or of one address without authentication; a further one is refused with an
    error that says when to retry."""


class Limits(_LimitGroup, frozen=True, kw_only=True):
    """Limits on what a peer controls. Sizes are in bytes, times in seconds; `None` means no limit.

    Pass your own to `Server(limits=...)` or `Client(limits=...)`: `Limits(line_bytes=1 << 20)`,
    `Limits(http=HTTPLimits(sessions=100))`.
    """

    http: HTTPLimits = HTTPLimits()
    """Limits of a server over HTTP."""
    client: ClientLimits = ClientLimits()
    """Limits of a client alone."""
    tasks: TaskLimits = TaskLimits()
    """Limits of tasks."""

    line_bytes: int = 64 << 20
    """One message on a stdio line; a longer one is skipped in linear time and answered with one error. Client: one
    message of a server over HTTP; a longer one fails its request."""
    pending_bytes: int = 1 << 20
    """Unsent bytes to one peer before senders wait (back-pressure)."""
    depth: int = 128
    """Nesting depth of a value that is validated against a JSON Schema."""
    requests_in_flight: int = 256
    """Requests of one peer in flight at once; a further one is refused with an error that says so."""
    subscriptions: int = 10_000
    """Server: subscriptions of one peer; a further one is refused with an error that says so."""
    subscribed_bytes: int = 8 << 20
    """Server: memory for the subscriptions of one peer, and for those of all connections of one principal; a further
    subscription is refused with an error that says so."""
    subscribed_total_bytes: int = 128 << 20
    """Server: `subscribed_bytes` for all unauthenticated clients together."""
    uri_bytes: int = 8 << 10
    """Server: length of the URI of a resource that a peer subscribes to; a longer one is refused."""
    hello_bytes: int = 64 << 10
    """Server: the params of `initialize`, which are kept as long as the client is connected; larger ones are
    refused."""
    batch_items: int = 1_000
    """Messages in one batch (2025-03-26); a larger batch is refused as a whole."""
    workers: int = 40
    """Threads for plain `def` handlers of a server, and for those of a client."""
    worker_queue: int = 128
    """Calls that may wait for a thread; a further one is refused with an error that says so."""
    tool_seconds: float | None = None
    """Time for the handler of one call (tool, resource, prompt or completion); no limit by default over stdio."""
    answer_seconds: float = 600
    """Time for the response to a request of a handler, from a user or a model. It does not count towards the time of
    the tool, nor of the request in flight. A client gives its own handlers the same time."""
    provider_seconds: float = 30
    """Server: time for a provider to list what it offers; after it, the list leaves out that provider."""
    parked: int = 32
    """Handlers of one principal that wait for answers with no request in flight (2026-07-28); a further one ends the
    oldest."""
    state_bytes: int = 16 << 10
    """Server: size of a `requestState`; a larger state is kept in memory, and the `requestState` refers to it."""
    kept_bytes: int = 64 << 20
    """Server: results and states that are kept for a request that may be sent again; beyond it, the oldest of the
    address or principal that has most are dropped."""
    principals: int = 10_000
    """Server: principals whose rates are remembered between requests; a further one replaces the one with the oldest
    last request."""
    progress_per_second: float = 20
    """Progress notifications per request and second; beyond one second's worth they are coalesced, and the last is
    kept."""
    tool_calls_per_second: float | None = 1_000
    """Tool calls of one authenticated principal (HTTP with `auth`) per second, and as many at once; a further one is
    refused with an error that says when to retry (`RateLimited`). No limit over stdio, where the client started the
    server."""
    completions: int = 100
    """Values of one completion; the protocol allows 100."""
    completions_per_second: float = 50
    """Completions of one peer; a further one is refused with an error that says when to retry."""
    logs_per_second: float = 50
    """Log messages to one peer; further ones are dropped, and the server reports their number to the client."""
    upstream_bytes: int = 16 << 20
    """Server: a response of an imported HTTP API (OpenAPI); a larger one is an error of its call."""
    grace_seconds: float = 4
    """Time for calls in flight to finish after SIGTERM, Ctrl-C or end of input."""
    close_seconds: float = 2
    """Client: time for the server to exit after its input is closed, before SIGTERM; and again before SIGKILL. Both
    sides: cancelled handlers have half of it to clean up at the end."""
    notices: int = 1_000
    """Notifications that wait for one callback or one reader; a further one drops the oldest, and the drops are
    counted."""
    notice_bytes: int = 16 << 20
    """Bytes of the params of the notifications in `notices`."""
    page_size: int = 1_000
    """Server: items of one page."""
    schema_depth: int = 64
    """Nesting depth of a JSON Schema."""
    schema_nodes: int = 5_000
    """Subschemas of a JSON Schema; references count as often as they expand."""


DEFAULT_LIMITS = Limits()

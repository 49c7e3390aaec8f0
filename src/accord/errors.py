"""The exceptions of accord, in one tree, and the conversion between exceptions and JSON-RPC error codes.

    AccordError
    ├── DeclarationError              a tool, resource or prompt is declared in a way that cannot work (also TypeError)
    ├── PolicyError                   a policy with an invalid rule (also ValueError)
    ├── TargetError                   a target (command, URL, FILE.py) that is invalid or not found (also ValueError)
    ├── LocalProtocolError            this side would have broken the protocol; nothing was sent
    │   ├── NotSupported              the revision or the peer's capabilities do not have this
    │   └── NotConnected              the connection is not open, or was closed
    ├── RemoteProtocolError           the peer broke the protocol
    │   └── InvalidResult             a result that does not have the shape its method prescribes
    ├── ConnectError                  the connection could not be opened
    ├── ConnectionLost                the connection ended with requests in flight: exit code, last lines of stderr
    │   ├── OutcomeUnknown            a call was in flight, was not sent again, and may or may not have taken effect
    │   └── NotExecuted               the request was not executed: it may be sent again
    │       └── SessionEnded          the server no longer knows the session (HTTP 404)
    ├── HTTPError                     an HTTP response without an MCP message: status, excerpt of the body, challenge
    ├── AuthorizationError            a step of authorization failed: the step, the reason, and what to do
    │   ├── LoginNeeded               the user has to log in, and is not present
    │   └── OAuthError                an authorization server answered with an error: its code and description
    ├── RequestTimeout                no response in time (also TimeoutError)
    ├── AnswerError                   the client answered a request of a handler with an error
    ├── SchemaError                   a JSON Schema that cannot or may not be used
    ├── Mismatch                      a value that does not match a JSON Schema (also ValueError)
    ├── LifespanError                 the lifespan of a server failed, or the server is not running
    ├── StoreError                    a store of sessions and events failed: a broken file, a full disk
    │   ├── EventsGone                the events needed to resume a stream are no longer stored
    │   └── StoreFull                 a store has no room for what it should keep
    ├── ModelError                    a language model of a host did not answer: refused, overloaded, not reached
    ├── SkillChanged                  a file of a skill is not what its entry says
    ├── ToolError                     a tool failed: raised in a tool, its text goes to the model without a traceback
    └── ProtocolError                 a JSON-RPC error, sent or received: code, message, data
        ├── ParseError                -32700
        ├── InvalidRequest            -32600
        ├── MethodNotFound            -32601
        ├── InvalidParams             -32602
        │   └── InvalidArguments      arguments that do not match a tool's parameters; a model can correct them
        ├── InternalError             -32603
        ├── ResourceNotFound          -32002 through 2025-11-25, -32602 with the URI from 2026-07-28
        ├── HeaderMismatch            -32020
        ├── MissingClientCapability   -32021
        ├── UnsupportedVersion        -32022
        ├── UrlElicitationRequired    -32042: the user must visit pages first (2025-11-25)
        ├── RateLimited               429: too many recent requests; `retry_after` says when to retry
        └── SamplingDeclined          -1: the user declined a sampling request

A `ProtocolError` raised in a handler is sent unchanged; the client's methods raise those received.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
URL_ELICITATION_REQUIRED = -32042
SAMPLING_DECLINED = -1
RATE_LIMITED = 429

_LOG_CHARACTERS = 500


class AccordError(Exception):
    """The base class of all exceptions that accord raises."""


class DeclarationError(AccordError, TypeError):
    """An invalid declaration of a tool, resource or prompt; the text says how to write it."""


class PolicyError(AccordError, ValueError):
    """A policy that is refused because a rule of it is invalid; the text names the rule and what was expected."""


class TargetError(AccordError, ValueError):
    """A target that is invalid or cannot be found."""


class LocalProtocolError(AccordError):
    """A message that would have broken the protocol; it was not sent."""


class NotSupported(LocalProtocolError):
    """A feature that the negotiated revision or the peer's capabilities do not include."""


class NotConnected(LocalProtocolError):
    """The connection is not open, or was closed."""


class RemoteProtocolError(AccordError):
    """The peer broke the protocol."""


class InvalidResult(RemoteProtocolError):
    """A result that does not have the shape its method prescribes. `raw` holds its bytes."""

    def __init__(self, message: str, *, raw: bytes = b"") -> None:
        super().__init__(message)
        self.raw = raw


class ConnectError(AccordError):
    """The connection could not be opened; the text lists each step that was tried."""


class ConnectionLost(AccordError):
    """The connection ended. `exit_code` and `stderr` (last lines) are set if the peer was a child process of this
    one."""

    def __init__(self, message: str, *, exit_code: int | None = None, stderr: str = "") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stderr = stderr


class OutcomeUnknown(ConnectionLost):
    """The connection ended with a call in flight that is not known to be safe to send again.

    The call may or may not have taken effect. Clients that reconnect raise it; others raise `ConnectionLost`.
    """


class NotExecuted(ConnectionLost):
    """The peer did not execute the request: it had no effect, and may be sent again."""


class SessionEnded(NotExecuted):
    """The server no longer knows the session. It refused the request; the client may open a new session."""


class HTTPError(AccordError):
    """An HTTP response without an MCP message where one is required.

    `status` is its status, `body` the beginning of its body, `challenge` its `WWW-Authenticate`; in both texts, control
    characters and the client's own credentials are removed.
    """

    def __init__(self, message: str, *, status: int, body: str = "", challenge: str = "") -> None:
        super().__init__(message)
        self.status: int = status
        self.body: str = body
        self.challenge: str = challenge

    @property
    def final(self) -> bool:
        """Return whether a retry would fail too: the status concerns the credentials, the URL, or the state of the
        server."""
        return 300 <= self.status < 400 or self.status in (401, 403, 407, 421, 429) or self.status >= 500


class AuthorizationError(AccordError):
    """A step of authorization failed: `step` names it, `reason` has what was found and expected, `cure` what to do.

    The text never contains a token, a code or a secret.
    """

    def __init__(self, step: str, reason: str, cure: str = "") -> None:
        super().__init__(f"{step}: {reason}" + (f"; {cure}" if cure else ""))
        self.step: str = step
        self.reason: str = reason
        self.cure: str = cure


class LoginNeeded(AuthorizationError):
    """The user has to log in, and no user is present: run `accord login URL`."""

    refusal: Any = None
    """The response that refused a request, from which a login begins."""


class OAuthError(AuthorizationError):
    """An error of an authorization server: `error` is its code (RFC 6749, 5.2), `description` its text."""

    def __init__(self, step: str, error: str, description: str = "", cure: str = "") -> None:
        self.error: str = visible(error)[:100]
        self.description: str = visible(description)[:_LOG_CHARACTERS]
        answer = f"the authorization server answered {self.error}"
        super().__init__(step, f"{answer}: {self.description}" if self.description else answer, cure)


class RequestTimeout(AccordError, TimeoutError):
    """No response in time. Where the protocol allows it, the request was cancelled."""


class AnswerError(AccordError):
    """The client answered a request of a handler with `error`: the user declined, or the client failed."""

    def __init__(self, message: str, error: ProtocolError) -> None:
        super().__init__(message)
        self.error = error


class SchemaError(AccordError):
    """A JSON Schema that is not valid, too costly, in an unknown dialect, or refers outside itself."""


class Mismatch(AccordError, ValueError):
    """A value that does not match a JSON Schema: `path` in the value (`$.days[0]`), `reason`."""

    def __init__(self, reason: str, path: str = "$") -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class LifespanError(AccordError):
    """The lifespan of a server failed, or the server is not running."""


class StoreError(AccordError):
    """A store of sessions and events failed; the text names the file and says what to do."""


class EventsGone(StoreError):
    """A stream cannot be resumed: it has ended, has expired, or has lost events that were not read in time."""


class StoreFull(StoreError):
    """A store has no room for what it should keep; the text names the limit."""


class ModelError(AccordError):
    """A language model of a host did not answer. The text names the model and the provider, what happened, and what to
    do; it never contains the API key.

    `status` is the HTTP status of the provider, None without a response; `code` the provider's name of the error, such
    as "overloaded_error"; `retry_after` the number of seconds after which the provider allows a retry, None if it does
    not say. The text has the provider's own words: do not pass it on to a server.
    """

    def __init__(
        self, message: str, *, status: int | None = None, code: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status: int | None = status
        self.code: str = code
        self.retry_after: float | None = retry_after


class SkillChanged(AccordError):
    """A file of a skill is not what its entry says: the skill has changed since, or the server is wrong. `uri` is that
    of its `SKILL.md`. Use nothing of it: get the entry with `get_skill(uri)`, have it approved, and load it again.
    """

    def __init__(self, message: str, *, uri: str) -> None:
        super().__init__(f"{message}; get the entry again with get_skill({uri!r:.200}), and have it approved again")
        self.uri: str = uri


class ToolError(AccordError):
    """A tool failed. Raise it in a tool to answer `isError` with this text and nothing else.

    A client raises it for such a result if `call_tool` has `raise_on_error=True` or `type=`; then `result` is the
    `ToolResult`, else None.
    """

    def __init__(self, *args: object, result: Any = None) -> None:
        super().__init__(*args)
        self.result: Any = result


class ProtocolError(AccordError):
    """A JSON-RPC error.

    Attributes: `code` (int), `message` (str), `data` (any JSON value, or None where there is none).
    """

    default_code: ClassVar[int] = INTERNAL_ERROR

    def __init__(self, message: str, *, code: int | None = None, data: Any = None) -> None:
        super().__init__(message)
        self.code: int = self.default_code if code is None else code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class ParseError(ProtocolError):
    """-32700: the message is not JSON."""

    default_code = PARSE_ERROR


class InvalidRequest(ProtocolError):
    """-32600: JSON, but not a message that this connection allows."""

    default_code = INVALID_REQUEST


class MethodNotFound(ProtocolError):
    """-32601: no such method in this revision, or its capability was not advertised."""

    default_code = METHOD_NOT_FOUND


class InvalidParams(ProtocolError):
    """-32602: params that do not match the method, or that name something that does not exist."""

    default_code = INVALID_PARAMS


class InvalidArguments(InvalidParams):
    """Arguments that do not match a tool's parameters; the text names the place, the expected and the actual value."""


class InternalError(ProtocolError):
    """-32603: the peer (or a handler of this side) failed."""

    default_code = INTERNAL_ERROR


class ResourceNotFound(ProtocolError):
    """-32002 through 2025-11-25, -32602 from 2026-07-28. `uri` is the requested resource."""

    default_code = RESOURCE_NOT_FOUND

    def __init__(self, message: str = "", *, uri: str = "", code: int | None = None, data: Any = None) -> None:
        super().__init__(message or f"no resource {uri!r:.200}", code=code, data={"uri": uri} if data is None else data)
        self.uri = uri


class HeaderMismatch(ProtocolError):
    """-32020: an HTTP header contradicts the body."""

    default_code = HEADER_MISMATCH


class MissingClientCapability(ProtocolError):
    """-32021: the request needs a capability that the client did not declare; `data.requiredCapabilities`."""

    default_code = MISSING_CLIENT_CAPABILITY


class UnsupportedVersion(ProtocolError):
    """-32022: `data.supported` lists the versions of the server, `data.requested` is the version of the request."""

    default_code = UNSUPPORTED_VERSION


class UrlElicitationRequired(ProtocolError):
    """-32042 (2025-11-25): the user must visit pages before the request can be served; then it may be sent again.

    `elicitations` are the pages from the server, each with `url`, `message` and `elicitationId`; a client leaves out
    those with an unsafe scheme, such as `javascript:` and `file:` (`data` has them). Show the whole URL and ask before
    opening it.
    """

    default_code = URL_ELICITATION_REQUIRED

    def __init__(
        self,
        message: str = "the person must visit a page first",
        *,
        elicitations: Sequence[Mapping[str, Any]] = (),
        code: int | None = None,
        data: Any = None,
    ) -> None:
        super().__init__(message, code=code, data={"elicitations": list(elicitations)} if data is None else data)
        listed = self.data.get("elicitations") if isinstance(self.data, dict) else None
        self.elicitations: list[Mapping[str, Any]] = [
            each for each in (listed if isinstance(listed, list) else ()) if isinstance(each, Mapping)
        ]


class RateLimited(ProtocolError):
    """429: too many recent requests. `retry_after` is the number of seconds after which to retry, or None if a retry
    would never succeed; it is `data.retryAfter` on the wire.

    The specification has no code for it. This one is outside the range that JSON-RPC reserves, and equals the status of
    HTTP for the same.
    """

    default_code = RATE_LIMITED

    def __init__(
        self, message: str, *, retry_after: float | None = None, code: int | None = None, data: Any = None
    ) -> None:
        if data is None and retry_after is not None:
            data = {"retryAfter": retry_after}
        super().__init__(message, code=code, data=data)
        found = data.get("retryAfter") if isinstance(data, dict) else None
        self.retry_after: float | None = found if isinstance(found, int | float) else None


class SamplingDeclined(ProtocolError):
    """-1: "User rejected sampling request" (client, Sampling). Raise it in a sampling handler to decline."""

    default_code = SAMPLING_DECLINED

    def __init__(self, message: str = "User rejected sampling request", **rest: Any) -> None:
        super().__init__(message, **rest)


# Codes -32000 to -32019 have no meaning for a receiver, apart from -32002 (2026-07-28, basic, Error Codes).
_BY_CODE: dict[int, type[ProtocolError]] = {
    cls.default_code: cls
    for cls in (
        ParseError, InvalidRequest, MethodNotFound, InvalidParams, InternalError,
        HeaderMismatch, MissingClientCapability, UnsupportedVersion, UrlElicitationRequired, RateLimited,
    )
}  # fmt: skip


def from_wire(code: int, message: str, data: Any = None) -> ProtocolError:
    """Return the exception for a received JSON-RPC error; an unknown code becomes a plain `ProtocolError`."""
    if code == RESOURCE_NOT_FOUND:
        uri = data.get("uri") if isinstance(data, dict) else None
        return ResourceNotFound(message, uri=uri if isinstance(uri, str) else "", data=data)
    return _BY_CODE.get(code, ProtocolError)(message, code=code, data=data)


def innermost(exc: BaseException) -> BaseException:
    """Return the only leaf of an exception group with one, at any depth; return any other exception unchanged."""
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    return exc


def describe(exc: BaseException) -> str:
    """Return an exception in one line, for a peer: its type and text. A group of one exception is described as that
    one."""
    exc = innermost(exc)
    try:
        text = str(exc)
    except BaseException:  # a handler may raise anything, in `__str__` too
        text = ""
    if isinstance(exc, AccordError):
        return text
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__


def log_line(text: object) -> str:
    """Return a text from a peer as one log line of at most 500 characters, without characters that control a
    terminal."""
    whole = str(text)
    line = whole if len(whole) <= _LOG_CHARACTERS else f"{whole[: _LOG_CHARACTERS - 1]}…"
    return visible(line)


def visible(text: str) -> str:
    """Return a text with its control characters, and those that change its direction, escaped."""
    return text if text.isprintable() else "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def copy_error(error: AccordError) -> AccordError:
    """Return a copy of an error: one object raised in two places would collect the traces of both."""
    other: AccordError = type(error).__new__(type(error), *error.args)
    other.__dict__.update(error.__dict__)
    other.__cause__ = error.__cause__
    return other

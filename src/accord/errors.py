"""Everything accord raises, in one tree, and the JSON-RPC codes both ways.

    AccordError
    ├── DeclarationError              a tool, resource or prompt is declared in a way that cannot work (also TypeError)
    ├── TargetError                   a target (command, URL, FILE.py) cannot be understood (also ValueError)
    ├── LocalProtocolError            we were about to break the protocol; nothing was sent
    │   ├── NotSupported              the revision or the peer's capabilities do not have this
    │   └── NotConnected              the connection is not open (any more)
    ├── RemoteProtocolError           the peer broke the protocol
    │   └── InvalidResult             an answer does not have the shape its method prescribes
    ├── ConnectError                  the connection could not be opened
    ├── ConnectionLost                the connection ended with requests in flight: exit code, last lines of stderr
    │   ├── OutcomeUnknown            so it did, and a call that was not sent again may or may not have taken effect
    │   └── NotExecuted               a request that did not reach who executes it: it may be sent again
    │       └── SessionEnded          the server does not know our session any more (HTTP 404)
    ├── HTTPError                     an HTTP response in the place of an answer: status, excerpt of the body, challenge
    ├── RequestTimeout                no answer in time (also TimeoutError)
    ├── AnswerError                   what a handler asked was answered with an error
    ├── SchemaError                   a JSON Schema that cannot or may not be used
    ├── Mismatch                      a value that does not fit a JSON Schema (also ValueError)
    ├── LifespanError                 what a server needs as long as it runs could not be had
    ├── StoreError                    a store of sessions and events cannot do its work: a broken file, a full disk
    │   └── EventsGone                what was to be continued is no longer kept
    ├── ToolError                     a tool failed: raised in a tool, its text goes to the model without a traceback
    └── ProtocolError                 a JSON-RPC error, sent or received: code, message, data
        ├── ParseError                -32700
        ├── InvalidRequest            -32600
        ├── MethodNotFound            -32601
        ├── InvalidParams             -32602
        │   └── InvalidArguments      arguments that do not fit a tool's parameters, told so that a model can act on it
        ├── InternalError             -32603
        ├── ResourceNotFound          -32002 through 2025-11-25, -32602 with the URI from 2026-07-28
        ├── HeaderMismatch            -32020
        ├── MissingClientCapability   -32021
        ├── UnsupportedVersion        -32022
        ├── UrlElicitationRequired    -32042: the person must visit pages first (2025-11-25)
        ├── RateLimited               429: too many requests of late; `retry_after` says when to come back
        └── SamplingDeclined          -1: the person does not let the model be asked

A `ProtocolError` raised in a handler is answered as it is; received ones are raised by the client's verbs.
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
    """The root: `except AccordError` catches whatever this library raises on its own account."""


class DeclarationError(AccordError, TypeError):
    """A declaration that cannot work; the text says how to write it."""


class TargetError(AccordError, ValueError):
    """A target that cannot be understood or found."""


class LocalProtocolError(AccordError):
    """We were about to break the protocol. Nothing was sent."""


class NotSupported(LocalProtocolError):
    """The revision in use, or the peer by its capabilities, does not have this."""


class NotConnected(LocalProtocolError):
    """The connection is not open yet, or not any more."""


class RemoteProtocolError(AccordError):
    """The peer broke the protocol."""


class InvalidResult(RemoteProtocolError):
    """An answer that does not have the shape its method prescribes. `raw` holds the bytes of the result."""

    def __init__(self, message: str, *, raw: bytes = b"") -> None:
        super().__init__(message)
        self.raw = raw


class ConnectError(AccordError):
    """The connection could not be opened; the text tells each step that was tried."""


class ConnectionLost(AccordError):
    """The connection ended. `exit_code` and `stderr` (last lines) are set where the peer was our child process."""

    def __init__(self, message: str, *, exit_code: int | None = None, stderr: str = "") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stderr = stderr


class OutcomeUnknown(ConnectionLost):
    """The connection ended with a call in flight that is not known to be safe to send again.

    It may or may not have taken effect. Raised by clients that reconnect; others raise `ConnectionLost`.
    """


class NotExecuted(ConnectionLost):
    """The request did not reach who would execute it: it had no effect, and may be sent again."""


class SessionEnded(NotExecuted):
    """The server does not know our session any more. What was sent in it was refused; a new session may be opened."""


class HTTPError(AccordError):
    """An HTTP response that holds no answer, where one belongs.

    `status` is its status, `body` how its body begins, `challenge` its `WWW-Authenticate`, both shown without
    control characters and without credentials of ours.
    """

    def __init__(self, message: str, *, status: int, body: str = "", challenge: str = "") -> None:
        super().__init__(message)
        self.status: int = status
        self.body: str = body
        self.challenge: str = challenge

    @property
    def final(self) -> bool:
        """Whether another request would fare no better: it is about who asks, where to, or how the server is."""
        return 300 <= self.status < 400 or self.status in (401, 403, 407, 421, 429) or self.status >= 500


class RequestTimeout(AccordError, TimeoutError):
    """No answer in time. Where the protocol allows it, the peer has been told to stop."""


class AnswerError(AccordError):
    """The client answered what a handler asked with an error, `error`: it declined, or it failed."""

    def __init__(self, message: str, error: ProtocolError) -> None:
        super().__init__(message)
        self.error = error


class SchemaError(AccordError):
    """A JSON Schema that is not valid, too costly, in an unknown dialect, or refers outside itself."""


class Mismatch(AccordError, ValueError):
    """A value that does not fit a JSON Schema: `path` in the value (`$.days[0]`), `reason`."""

    def __init__(self, reason: str, path: str = "$") -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class LifespanError(AccordError):
    """What a server needs as long as it runs could not be had: its lifespan failed, or it does not run."""


class StoreError(AccordError):
    """A store of sessions and events cannot do its work; the text names the file and says what to do."""


class EventsGone(StoreError):
    """A stream was to be continued that has ended, was forgotten, or has lost events that were not read in time."""


class ToolError(AccordError):
    """A tool failed. Raise it in a tool to answer `isError` with this text and nothing else.

    A client raises it for such an answer where `call_tool` has `raise_on_error=True` or `type=`; then `result` is the
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
    """-32700: not JSON."""

    default_code = PARSE_ERROR


class InvalidRequest(ProtocolError):
    """-32600: JSON, but not a message this connection allows."""

    default_code = INVALID_REQUEST


class MethodNotFound(ProtocolError):
    """-32601: no such method in this revision, or its capability was not advertised."""

    default_code = METHOD_NOT_FOUND


class InvalidParams(ProtocolError):
    """-32602: params that do not fit the method, or name nothing that exists."""

    default_code = INVALID_PARAMS


class InvalidArguments(InvalidParams):
    """Arguments that do not fit a tool's parameters: where, what was expected, what came."""


class InternalError(ProtocolError):
    """-32603: the peer (or our own handler) failed."""

    default_code = INTERNAL_ERROR


class ResourceNotFound(ProtocolError):
    """-32002 through 2025-11-25, -32602 from 2026-07-28. `uri` is the resource asked for."""

    default_code = RESOURCE_NOT_FOUND

    def __init__(self, message: str = "", *, uri: str = "", code: int | None = None, data: Any = None) -> None:
        super().__init__(message or f"no resource {uri!r:.200}", code=code, data={"uri": uri} if data is None else data)
        self.uri = uri


class HeaderMismatch(ProtocolError):
    """-32020: an HTTP header says something else than the body."""

    default_code = HEADER_MISMATCH


class MissingClientCapability(ProtocolError):
    """-32021: the request needs a capability that the client did not declare; `data.requiredCapabilities`."""

    default_code = MISSING_CLIENT_CAPABILITY


class UnsupportedVersion(ProtocolError):
    """-32022: `data.supported` lists what the server speaks, `data.requested` what was asked for."""

    default_code = UNSUPPORTED_VERSION


class UrlElicitationRequired(ProtocolError):
    """-32042 (2025-11-25): the person must visit pages before the request can be served; then it may be sent again.

    `elicitations` are the pages as the server names them, each with `url`, `message` and `elicitationId`; a client
    leaves out those that no person may be sent to, such as `javascript:` and `file:` (`data` has them). Show the whole
    URL and ask before opening it.
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
    """429: too many requests of late. `retry_after` is in how many seconds one more may come, None where it never may;
    `data.retryAfter` on the wire.

    The specification has no code for it. This one is outside the range that JSON-RPC reserves, and the status that
    HTTP has for the same.
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
    """-1: "User rejected sampling request" (client, Sampling). Raise it in a sampling handler to say no."""

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
    """The exception for an error that came over the wire; an unknown code stays a plain `ProtocolError`."""
    if code == RESOURCE_NOT_FOUND:
        uri = data.get("uri") if isinstance(data, dict) else None
        return ResourceNotFound(message, uri=uri if isinstance(uri, str) else "", data=data)
    return _BY_CODE.get(code, ProtocolError)(message, code=code, data=data)


def innermost(exc: BaseException) -> BaseException:
    """Return the only exception of a group of one, however deep; any other exception as it is."""
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    return exc


def describe(exc: BaseException) -> str:
    """An exception in one line, for a peer: its type and text; a group of one is that one."""
    exc = innermost(exc)
    try:
        text = str(exc)
    except BaseException:  # a handler may raise anything, in `__str__` too
        text = ""
    if isinstance(exc, AccordError):
        return text
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__


def log_line(text: object) -> str:
    """Return what a peer may have written as a log takes it: one line of at most 500 characters, none of which steers a
    terminal."""
    whole = str(text)
    line = whole if len(whole) <= _LOG_CHARACTERS else f"{whole[: _LOG_CHARACTERS - 1]}…"
    return visible(line)


def visible(text: str) -> str:
    """Return a text with its control characters, and those that turn its direction, written out."""
    return text if text.isprintable() else "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def copy_error(error: AccordError) -> AccordError:
    """The same error once more: raised in two places, one object would collect the traces of both."""
    other: AccordError = type(error).__new__(type(error), *error.args)
    other.__dict__.update(error.__dict__)
    other.__cause__ = error.__cause__
    return other

"""A scenario: how the scripted server differs from an ordinary one, and the rules that judge what the client does.

LATE_ANSWER = Scenario("late-answer", "a call is answered after the client has cancelled it")

@LATE_ANSWER.on("tools/call")
async def answer_late(request: IncomingRequest) -> ScriptedAnswer:
    await request.wait_for_cancellation(seconds=30.0)
    return await request.default_result()

@LATE_ANSWER.rule("client-cancel/late-answer", "should", case="a response after a cancellation", at="basic/...")
def client_cancel_late_answer(run: ClientRun) -> None:
    \"\"\"A client ignores a response that arrives after it cancelled the request.\"\"\"
    run.require_ordinary_behavior()
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from accord.check.clients.authorization_plan import AuthorizationPlan
from accord.check.clients.features import ScriptedFeatures
from accord.check.engine.report import Level, TransportName
from accord.check.engine.rule import ALL_TRANSPORTS, Case, CaseVariant, Rule
from accord.messages.base import JSONObject, Life
from accord.messages.revision import is_in_revision

if TYPE_CHECKING:
    from accord.check.clients.http_listener import ClientExchange, ScriptedResponse
    from accord.check.clients.incoming_request import IncomingRequest
    from accord.check.clients.run import ClientRun


class RawMessage(msgspec.Struct, frozen=True):
    """A whole message instead of a result."""

    message: Any


class ScriptedError(Exception):
    """Respond with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code: int = code
        self.message: str = message
        self.data: Any = data


ScriptedAnswer: TypeAlias = "JSONObject | bytes | RawMessage | None"
"""A result, the bytes of a response, a whole message, or no response."""

RequestHandler: TypeAlias = "Callable[[IncomingRequest], Awaitable[ScriptedAnswer]]"
HTTPHandler: TypeAlias = "Callable[[Any, ClientExchange, ScriptedResponse], Awaitable[bool]]"
"""Handles an HTTP request instead of the server, which is the first argument: a `ScriptedHTTPServer`, or over HTTP+SSE
a `ScriptedSSEServer`. Returns false to leave the request to the server.
"""

RunCheck: TypeAlias = "Callable[[ClientRun], Any]"

FIRST_REQUEST = "*"
"""Stands for a method: the first request after the handshake, except pings."""


class Scenario:
    """One scenario. It runs in the newest revision with a handshake that the client speaks, over HTTP+SSE too, and in
    2026-07-28, within its own limits (`since`, `until`, `over`).

    `path` is its path over HTTP, if it is not the usual one. With `stream`, responses over HTTP are event streams.
    With `deaf`, the server stays over stdio when its stdin ends. `stderr` is what the server writes there. With `asks`,
    the server sends requests, so that there are responses to read. `patience` is the number of seconds of silence
    after which the client is ended, at least. With an `authorization`, the server demands access tokens.
    """

    def __init__(
        self,
        name: str,
        says: str,
        *,
        since: str | None = None,
        until: str | None = None,
        over: frozenset[TransportName] = ALL_TRANSPORTS,
        features: ScriptedFeatures | None = None,
        stream: bool = False,
        deaf: bool = False,
        stderr: str = "",
        asks: bool = False,
        patience: float = 0.0,
        path: str = "",
        authorization: AuthorizationPlan | None = None,
    ) -> None:
        self.name: str = name
        self.says: str = says
        self.life: Life = Life(since, until)
        self.over: frozenset[TransportName] = over
        self.features: ScriptedFeatures = features or ScriptedFeatures()
        self.stream: bool = stream
        self.patience: float = patience
        self.path: str = path
        self.authorization: AuthorizationPlan | None = authorization
        self.handlers: dict[str, RequestHandler] = {}
        self.http: HTTPHandler | None = None
        self.deaf: bool = deaf
        self.stderr: str = stderr
        self.asks: bool = asks
        self.cases: list[tuple[Rule, Case]] = []

    def __repr__(self) -> str:
        return f"Scenario({self.name!r})"

    def runs_in(self, revision: str, transport: TransportName) -> bool:
        """Return whether the scenario runs in a revision over a transport."""
        return is_in_revision(revision, *self.life) and transport in self.over

    def on(self, *methods: str) -> Callable[[RequestHandler], RequestHandler]:
        """Return a decorator: the function handles requests with these methods; `FIRST_REQUEST` means the first one of
        any.
        """

        def add(handler: RequestHandler) -> RequestHandler:
            self.handlers |= dict.fromkeys(methods, handler)
            return handler

        return add

    def on_http(self, handler: HTTPHandler) -> HTTPHandler:
        """Handle HTTP requests with the function first."""
        self.http = handler
        return handler

    def rule(
        self,
        id: str,
        level: Level,
        *,
        at: str | Sequence[str],
        cause: str = "",
        since: str | None = None,
        until: str | None = None,
        over: frozenset[TransportName] = ALL_TRANSPORTS,
        case: str = "",
        variants: Sequence[CaseVariant] = (),
    ) -> Callable[[Callable[..., Any]], Rule]:
        """Return a decorator that makes a function a rule about clients, which judges the runs of this scenario."""

        def define(check: Callable[..., Any]) -> Rule:
            made = Rule(id, level, check, at=at, cause=cause, role="client", since=since, until=until, over=over)
            for each in variants or (CaseVariant(case),):
                limits = {"since": each.since, "until": each.until, "over": each.over or self.over}
                self.case(made, each.says, **limits)(each.bind(check))
            return made

        return define

    def case(self, rule: Rule, says: str, **options: Any) -> Callable[[RunCheck], RunCheck]:
        """Return a decorator that adds a case to a rule: the function judges a run of this scenario."""

        def add(judge: RunCheck) -> RunCheck:
            rule.case(says, kind="own", **{"over": self.over, **options})(judge)
            self.cases.append((rule, rule.cases[-1]))
            return judge

        return add

"""The evidence of one step: what was sent and received, which values were compared, and what is wrong.

A record has the evidence as it happened, with its secrets; it never leaves this process. Its view, made for each
answer, has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from accord.auth.steps import OAuthRequest, OAuthResponse
from accord.errors import AuthorizationError
from accord.host.login_explanation import default_cure
from accord.inspector.authorization.redaction import EvidenceRedaction, JWTContent
from accord.inspector.authorization.sentences import SENTENCES, SpecificationSentence
from accord.visible_text import single_line, truncate, visible

StepState: TypeAlias = Literal["pending", "running", "waiting", "done", "failed", "stopped"]

_EXCHANGES = 20
"""Limit of the exchanges of a step of which there is evidence."""
_BODY_BYTES = 64 << 10
"""Limit of a body of which there is evidence: a longer one would take long to redact."""
_TEXT_CHARACTERS = 4_096
_HEADERS = 100


class ComparedValue(msgspec.Struct, frozen=True, rename="camel"):
    """A value that was compared: `expected` by the specification or by the request before, and `found`."""

    name: str
    expected: str
    found: str
    is_as_expected: bool


class HTTPEvidence(msgspec.Struct, rename="camel", kw_only=True):
    """One HTTP request with its response. In a record it has secrets, in a view none."""

    method: str
    url: str
    request_headers: Mapping[str, str] = {}
    request_body: str = ""
    status: int | None = None
    """None if there was no response."""
    response_headers: Mapping[str, str] = {}
    response_body: str = ""
    error: str = ""
    """Why there was no response."""
    jwts: list[JWTContent] = []
    """The content of the JSON Web Tokens in it."""


class StepEvidence(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The view of a step."""

    step: str
    state: StepState
    text: str
    """What was found."""
    failed_at: str = ""
    """The part of the step that failed, as `accord auth explain` names it."""
    cure: str = ""
    exchanges: list[HTTPEvidence] = []
    omitted: int = 0
    """The number of further exchanges."""
    comparisons: list[ComparedValue] = []
    sentences: Sequence[SpecificationSentence] = ()


class ObservedOAuth(msgspec.Struct, frozen=True):
    """One exchange of the flow."""

    request: OAuthRequest
    outcome: OAuthResponse | AuthorizationError

    def __repr__(self) -> str:
        return f"ObservedOAuth({self.request!r})"

    def view(self, redaction: EvidenceRedaction) -> HTTPEvidence:
        """Return what may be seen of the exchange."""
        request, outcome = self.request, self.outcome
        headers = dict(request.headers)
        if request.form is not None:
            body = redaction.form(request.form)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        else:
            body = "" if request.json is None else _body(msgspec.json.encode(request.json), redaction)
        found = HTTPEvidence(
            method=request.method,
            url=_line(redaction.url(request.url)),
            request_headers=_sent(headers, redaction),
            request_body=body,
            jwts=_jwts(_sent_tokens(request), redaction),
        )
        if isinstance(outcome, AuthorizationError):
            found.error = _line(redaction.text(outcome.reason))
            return found
        found.status = outcome.status
        found.response_headers = _received(outcome.headers, redaction)
        found.response_body = _body(outcome.body, redaction, request)
        found.jwts += _jwts(redaction.tokens_in(outcome.body), redaction)
        return found


class StepRecord:
    """The events of one step."""

    def __init__(self, step: str) -> None:
        self.step = step
        self.state: StepState = "pending"
        self.text: str = ""
        self.failed_at: str = ""
        self.cure: str = ""
        self.comparisons: list[ComparedValue] = []
        self.exchanges: list[ObservedOAuth | HTTPEvidence] = []
        self._omitted = 0

    def add(self, exchange: ObservedOAuth | HTTPEvidence) -> None:
        """Add an exchange."""
        if len(self.exchanges) < _EXCHANGES:
            self.exchanges.append(exchange)
        else:
            self._omitted += 1

    @property
    def last_status(self) -> int | None:
        """The status of the last MCP response, or None."""
        last = self.exchanges[-1] if self.exchanges else None
        return last.status if isinstance(last, HTTPEvidence) else None

    def compare(self, name: str, expected: str, found: str | None, is_as_expected: bool | None = None) -> None:
        """Add a compared value; `found` is None if there is none."""
        equal = expected == found if is_as_expected is None else is_as_expected
        self.comparisons.append(ComparedValue(name, expected, "nothing" if found is None else found, equal))

    def fail(self, step: str, reason: str, cure: str) -> None:
        """End the step with what is wrong, and what to do."""
        self.state, self.failed_at, self.text = "failed", step, reason
        self.cure = cure or default_cure(reason)

    def evidence(self, redaction: EvidenceRedaction) -> StepEvidence:
        """Return the view without secrets."""
        return StepEvidence(
            step=self.step,
            state=self.state,
            text=_line(redaction.text(self.text)),
            failed_at=_line(redaction.text(self.failed_at)),
            cure=_line(redaction.text(self.cure)),
            exchanges=[_exchange(each, redaction) for each in self.exchanges],
            omitted=self._omitted,
            comparisons=[_compared(each, redaction) for each in self.comparisons],
            sentences=SENTENCES[self.step],
        )


def _compared(value: ComparedValue, redaction: EvidenceRedaction) -> ComparedValue:
    expected, found = (_line(redaction.text(each)) for each in (value.expected, value.found))
    return ComparedValue(value.name, expected, found, value.is_as_expected)


def _exchange(found: ObservedOAuth | HTTPEvidence, redaction: EvidenceRedaction) -> HTTPEvidence:
    return found.view(redaction) if isinstance(found, ObservedOAuth) else _mcp_exchange(found, redaction)


def _mcp_exchange(exchange: HTTPEvidence, redaction: EvidenceRedaction) -> HTTPEvidence:
    bodies = [_body(each.encode(), redaction) for each in (exchange.request_body, exchange.response_body)]
    return HTTPEvidence(
        method=exchange.method,
        url=_line(redaction.url(exchange.url)),
        request_headers=_sent(exchange.request_headers, redaction),
        request_body=bodies[0],
        status=exchange.status,
        response_headers=_received(exchange.response_headers, redaction),
        response_body=bodies[1],
        error=_line(redaction.text(exchange.error)),
        jwts=_jwts(_header_tokens(exchange.request_headers), redaction),
    )


def _line(text: str) -> str:
    """Return a text of a peer on one line, with hidden characters escaped."""
    return truncate(single_line(text), _TEXT_CHARACTERS)


def _body(data: bytes, redaction: EvidenceRedaction, request: OAuthRequest | None = None) -> str:
    """Return what may be seen of a body. One that is too long is left out: a secret at its cut would not be found."""
    return f"({len(data):,} bytes)" if len(data) > _BODY_BYTES else visible(redaction.body(data, request))


def _sent_tokens(request: OAuthRequest) -> dict[str, str]:
    """Return the texts of a request that may be JSON Web Tokens, by name."""
    return {
        **_header_tokens(request.headers),
        **{name: value for name, value in (request.form or {}).items() if name.endswith("assertion")},
    }


def _header_tokens(headers: Mapping[str, str]) -> dict[str, str]:
    names = ("authorization", "dpop")
    return {name: value.rpartition(" ")[2] for name, value in headers.items() if name.lower() in names}


def _jwts(tokens: Mapping[str, str], redaction: EvidenceRedaction) -> list[JWTContent]:
    found = (redaction.jwt(name, token) for name, token in tokens.items())
    return [each for each in found if each is not None]


def _sent(headers: Mapping[str, str], redaction: EvidenceRedaction) -> dict[str, str]:
    return {_line(name): _line(redaction.sent_header(name, value)) for name, value in headers.items()}


def _received(headers: Mapping[str, str], redaction: EvidenceRedaction) -> dict[str, str]:
    some = list(headers.items())[:_HEADERS]
    return {_line(redaction.text(name)): _line(redaction.received_header(name, value)) for name, value in some}

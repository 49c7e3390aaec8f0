"""Streamable HTTP: the MCP-Protocol-Version header, and the validation of Origin and Host."""

from __future__ import annotations

from urllib.parse import urlsplit

from accord.check.engine.rule import HTTP, HTTP_TRANSPORTS, CaseVariant, NotApplicable, Violation, rule
from accord.check.probes.client_messages import initialize_params
from accord.check.probes.message_log import LoggedResponse
from accord.check.probes.probe import Probe
from accord.check.probes.raw_http import (
    FIRST_ERROR_STATUS,
    describe_response,
    error_of,
    harmless_request,
    has_result,
    http_evidence,
    is_event_stream,
    require_refusal,
)
from accord.errors import HEADER_MISMATCH, UNSUPPORTED_VERSION
from accord.messages.meta import PROTOCOL_VERSION

NEVER = "2099-12-31"
"""A revision that does not exist."""

_PLACE = "basic/transports#protocol-version-header"
_PLACE_2026 = "basic/transports/streamable-http#protocol-version-header"


@rule(
    "http/version-unsupported",
    "must",
    variants=[
        CaseVariant("an unknown revision", until="2026-07-28", version=NEVER),
        CaseVariant("a header that is not a revision", until="2026-07-28", version="yes"),
    ],
    at=(_PLACE, _PLACE_2026),
    since="2025-06-18",
    over=HTTP,
    cause="MCP-Protocol-Version is not validated.",
)
async def http_version_unsupported(probe: Probe, version: str) -> None:
    """A request with an unsupported revision in MCP-Protocol-Version gets status 400."""
    response = await probe.post(harmless_request(probe), {"MCP-Protocol-Version": version})
    require_refusal(probe, response, f"MCP-Protocol-Version: {version}", status=400)


@http_version_unsupported.case("an unknown revision in the header and in `_meta`", since="2026-07-28")
async def http_version_unsupported_in_meta(probe: Probe) -> None:
    message = probe.build_request("server/discover", meta={PROTOCOL_VERSION: NEVER})
    response = await probe.post(message, {"MCP-Protocol-Version": NEVER})
    require_refusal(probe, response, f"revision {NEVER}", status=400, code=UNSUPPORTED_VERSION)
    data = error_of(response).get("data")
    supported = data.get("supported") if isinstance(data, dict) else None
    if not isinstance(supported, list) or probe.revision not in supported:
        raise Violation("the error does not list the supported revisions", evidence=http_evidence(response))


@rule(
    "http/version-absent",
    "should",
    case="a request without the header",
    at=_PLACE,
    since="2025-06-18",
    until="2026-07-28",
    over=HTTP,
    cause="The header is required, but clients of 2025-03-26 do not know it.",
)
async def http_version_absent(probe: Probe) -> None:
    """The server answers a request without MCP-Protocol-Version: the handshake negotiated the revision."""
    response = await probe.post(harmless_request(probe), {"MCP-Protocol-Version": None})
    if not has_result(response):
        raise Violation(
            f"a request without the header returned {describe_response(response)}",
            evidence=http_evidence(response),
        )


@rule(
    "http/version-mismatch",
    "must",
    case="an older revision in the header",
    at=_PLACE_2026,
    since="2026-07-28",
    over=HTTP,
    cause="Only one of the two values is read: a proxy that reads the header sees another revision than the server.",
)
async def http_version_mismatch(probe: Probe) -> None:
    """A request with different revisions in header and `_meta` gets status 400 and error -32020."""
    response = await probe.post(harmless_request(probe), {"MCP-Protocol-Version": "2025-11-25"})
    require_refusal(
        probe, response, "an older revision in the header than in `_meta`", status=400, code=HEADER_MISMATCH
    )


@http_version_mismatch.case("an unknown revision in the header")
async def http_version_mismatch_unknown(probe: Probe) -> None:
    response = await probe.post(harmless_request(probe), {"MCP-Protocol-Version": NEVER})
    require_refusal(probe, response, "another revision in the header than in `_meta`", status=400)
    if error_of(response).get("code") not in (HEADER_MISMATCH, UNSUPPORTED_VERSION):
        raise Violation(f"the server answered with {describe_response(response)}", evidence=http_evidence(response))


@rule(
    "http/version-missing",
    "must",
    case="a request without the header",
    at=_PLACE_2026,
    since="2026-07-28",
    over=HTTP,
    cause="The header is not required: a proxy that filters by the header lets the request pass.",
)
async def http_version_missing(probe: Probe) -> None:
    """A server without older revisions answers a request without MCP-Protocol-Version with status 400."""
    hello = {
        "jsonrpc": "2.0",
        "id": probe.next_id(),
        "method": "initialize",
        "params": initialize_params("2025-03-26", {}),
    }
    headers = {"MCP-Protocol-Version": None, "Mcp-Method": None}
    if has_result(await probe.post(hello, headers)):
        raise NotApplicable("the server supports older revisions, too")
    response = await probe.post(harmless_request(probe), {"MCP-Protocol-Version": None})
    require_refusal(probe, response, "a request without MCP-Protocol-Version", status=400)


PLACES = ("basic/transports#security-warning", "basic/transports/streamable-http#security-endpoint")
_LOCAL = ("127.0.0.1", "localhost", "::1", "[::1]")

FOREIGN_ORIGINS = (
    "https://evil.example",
    "http://evil.example:8080",
    "null",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "http://evil.example#http://localhost",
    "http://localhost@evil.example",
    "http://evil-localhost",
    "https://xn--lcalhost-g1a.example",
    "file://",
    "http://[::ffff:203.0.113.7]",
    "http://203.0.113.7",
    "not an origin",
)
"""Origins that no server on this machine may allow."""

FOREIGN_HOSTS = (
    "evil.example",
    "evil.example:80",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.1@evil.example",
    "203.0.113.7",
    "evil.example:{port}",
)


@rule(
    "http/origin",
    "must",
    variants=[CaseVariant("a POST from a page of another site", over=HTTP)],
    at=PLACES,
    over=HTTP_TRANSPORTS,
    cause="The Origin header is not validated: any page in a browser can send requests to this "
    "server (DNS rebinding). Enable the protection of your SDK, with your hosts and origins.",
)
async def http_origin(probe: Probe) -> None:
    """The server refuses a request with a foreign Origin."""
    _require_refused(await probe.post(harmless_request(probe), {"Origin": FOREIGN_ORIGINS[0]}), FOREIGN_ORIGINS[0])


@http_origin.case("a GET from a page of another site")
async def http_origin_get(probe: Probe) -> None:
    assert probe.http is not None, "the transport is HTTP"
    headers = {"Origin": FOREIGN_ORIGINS[0], "Accept": "text/event-stream", "Content-Type": None}
    response = probe.http.open_stream({**headers, "MCP-Protocol-Version": probe.revision})
    await probe.fence()
    probe.http.close_stream(response.stream)
    if response.status in (404, 405, 501):
        raise NotApplicable(f"the server has no GET ({describe_response(response)})")
    if is_event_stream(response):
        raise Violation(f"a GET with Origin {FOREIGN_ORIGINS[0]} opened a stream", evidence=http_evidence(response))


@http_origin.case("initialize from a page of another site", kind="raw", over=HTTP)
async def http_origin_initialize(probe: Probe) -> None:
    if not probe.rules.handshake:
        raise NotApplicable("this revision has no initialize")
    hello = probe.build_request(
        "initialize",
        {"protocolVersion": probe.revision, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    )
    _require_refused(await probe.post(hello, {"Origin": FOREIGN_ORIGINS[0]}), FOREIGN_ORIGINS[0])


@rule(
    "http/origin-forms",
    "must",
    case="thirteen forms of foreign origins",
    at=PLACES,
    over=HTTP,
    cause="Origins are compared by prefix or with a loose pattern: parse them, and compare scheme, host and port.",
)
async def http_origin_forms(probe: Probe) -> None:
    """The server compares the whole Origin, not only its beginning or end."""
    if has_result(await probe.post(harmless_request(probe), {"Origin": FOREIGN_ORIGINS[0]})):
        raise NotApplicable("the server allows any Origin: see http/origin")
    for origin in FOREIGN_ORIGINS[1:]:
        _require_refused(await probe.post(harmless_request(probe), {"Origin": origin}), origin)


@rule(
    "http/origin-status",
    "must",
    case="a POST from a page of another site",
    at=PLACES,
    since="2025-11-25",
    over=HTTP,
    cause="The status is 400 or 401, which does not explain the refusal.",
)
async def http_origin_status(probe: Probe) -> None:
    """A request that is refused for its Origin gets status 403."""
    response = await probe.post(harmless_request(probe), {"Origin": FOREIGN_ORIGINS[0]})
    if response.status < FIRST_ERROR_STATUS:
        raise NotApplicable("the server allows any Origin: see http/origin")
    if response.status != 403:
        raise Violation(
            f"the server refused the request with {describe_response(response)}", evidence=http_evidence(response)
        )


@rule(
    "http/host",
    "may",
    case="seven forms of foreign hosts",
    at=PLACES,
    over=HTTP,
    cause="The Host header is not validated: a page can reach this server by a name that resolves to 127.0.0.1.",
)
async def http_host(probe: Probe) -> None:
    """A local server answers only requests for its own host names."""
    assert probe.http is not None, "the transport is HTTP"
    url = urlsplit(probe.http.url)
    if url.hostname not in _LOCAL:
        raise NotApplicable("the server is not on this machine")
    for host in FOREIGN_HOSTS:
        name = host.format(port=url.port or 80)
        response = await probe.post(harmless_request(probe), {"Host": name})
        if has_result(response):
            raise Violation(f"the server answered a request with Host {name}", evidence=http_evidence(response))


def _require_refused(response: LoggedResponse, origin: str) -> None:
    if response.status and response.status < FIRST_ERROR_STATUS:
        raise Violation(
            f"a request with Origin {origin} returned {describe_response(response)}",
            evidence=http_evidence(response),
        )

"""Streamable HTTP: the header that names the revision, through all of them."""

from __future__ import annotations

from accord.check.client_messages import initialize_params
from accord.check.http_responses import (
    describe_response,
    error_of,
    harmless_request,
    has_result,
    http_evidence,
    require_refusal,
)
from accord.check.probe import Probe
from accord.check.rule import HTTP, NotApplicable, Rule, Violation
from accord.errors import HEADER_MISMATCH, UNSUPPORTED_VERSION
from accord.messages.meta import PROTOCOL_VERSION

NEVER = "2099-12-31"
"""A revision that does not exist."""

_PLACE = "basic/transports#protocol-version-header"
_PLACE_2026 = "basic/transports/streamable-http#protocol-version-header"

VERSION_UNSUPPORTED = Rule(
    "http/version-unsupported",
    "must",
    "A request that names a revision the server does not have gets status 400.",
    at=(_PLACE, _PLACE_2026),
    since="2025-06-18",
    over=HTTP,
    cause="MCP-Protocol-Version is not looked at.",
)


@VERSION_UNSUPPORTED.case("a revision that there is not", until="2026-07-28")
async def check_version_unsupported_revision_not(talk: Probe) -> None:
    reply = await talk.post(harmless_request(talk), {"MCP-Protocol-Version": NEVER})
    require_refusal(talk, reply, f"MCP-Protocol-Version: {NEVER}", status=400)


@VERSION_UNSUPPORTED.case("a header that is no revision", until="2026-07-28")
async def check_version_unsupported_header_revision(talk: Probe) -> None:
    reply = await talk.post(harmless_request(talk), {"MCP-Protocol-Version": "yes"})
    require_refusal(talk, reply, "MCP-Protocol-Version: yes", status=400)


@VERSION_UNSUPPORTED.case("a revision that there is not, in the header and in `_meta`", since="2026-07-28")
async def check_version_unsupported_revision_not_header_meta(talk: Probe) -> None:
    message = talk.build_request("server/discover", meta={PROTOCOL_VERSION: NEVER})
    reply = await talk.post(message, {"MCP-Protocol-Version": NEVER})
    require_refusal(talk, reply, f"revision {NEVER}", status=400, code=UNSUPPORTED_VERSION)
    data = error_of(reply).get("data")
    supported = data.get("supported") if isinstance(data, dict) else None
    if not isinstance(supported, list) or talk.revision not in supported:
        raise Violation("the error does not list the revisions that the server has", evidence=http_evidence(reply))


VERSION_ABSENT = Rule(
    "http/version-absent",
    "should",
    "A request without MCP-Protocol-Version is served: the handshake has said which revision it is.",
    at=_PLACE,
    since="2025-06-18",
    until="2026-07-28",
    over=HTTP,
    cause="The header is demanded: clients of 2025-03-26 do not know it.",
)


@VERSION_ABSENT.case("a request without the header")
async def check_version_absent(talk: Probe) -> None:
    reply = await talk.post(harmless_request(talk), {"MCP-Protocol-Version": None})
    if not has_result(reply):
        raise Violation(
            f"a request without the header is answered with {describe_response(reply)}", evidence=http_evidence(reply)
        )


VERSION_MISMATCH = Rule(
    "http/version-mismatch",
    "must",
    "A request whose header and `_meta` name different revisions gets status 400 and error -32020.",
    at=_PLACE_2026,
    since="2026-07-28",
    over=HTTP,
    cause="One of the two is trusted alone: what a proxy sees in the header is not what the server does.",
)


@VERSION_MISMATCH.case("an older revision in the header")
async def check_version_mismatch_older_revision_header(talk: Probe) -> None:
    reply = await talk.post(harmless_request(talk), {"MCP-Protocol-Version": "2025-11-25"})
    require_refusal(talk, reply, "an older revision in the header than in `_meta`", status=400, code=HEADER_MISMATCH)


@VERSION_MISMATCH.case("a revision in the header that there is not")
async def check_version_mismatch_revision_header_not(talk: Probe) -> None:
    reply = await talk.post(harmless_request(talk), {"MCP-Protocol-Version": NEVER})
    require_refusal(talk, reply, "another revision in the header than in `_meta`", status=400)
    if error_of(reply).get("code") not in (HEADER_MISMATCH, UNSUPPORTED_VERSION):
        raise Violation(f"it is refused with {describe_response(reply)}", evidence=http_evidence(reply))


VERSION_MISSING = Rule(
    "http/version-missing",
    "must",
    "A server without older revisions refuses a request that has no MCP-Protocol-Version, with status 400.",
    at=_PLACE_2026,
    since="2026-07-28",
    over=HTTP,
    cause="The header is not demanded: what a proxy lets through for lack of it is served.",
)


@VERSION_MISSING.case("a request without the header")
async def check_version_missing(talk: Probe) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": talk.next_id(),
        "method": "initialize",
        "params": initialize_params("2025-03-26", {}),
    }
    headers = {"MCP-Protocol-Version": None, "Mcp-Method": None}
    if has_result(await talk.post(hello, headers)):
        raise NotApplicable("it serves older revisions, too")
    reply = await talk.post(harmless_request(talk), {"MCP-Protocol-Version": None})
    require_refusal(talk, reply, "a request without MCP-Protocol-Version", status=400)

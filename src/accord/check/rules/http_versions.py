"""Streamable HTTP: the header that names the revision, through all of them."""

from __future__ import annotations

from accord.check.posting import described, error_of, evidence, harmless, refused, served
from accord.check.rule import HTTP, Broken, NotApplicable, Rule
from accord.check.speech import hello_params
from accord.check.talk import Talk
from accord.errors import HEADER_MISMATCH, UNSUPPORTED_VERSION
from accord.messages.meta import PROTOCOL_VERSION

NEVER = "2099-12-31"
"""A revision that does not exist."""

_PLACE = "basic/transports#protocol-version-header"
_PLACE_2026 = "basic/transports/streamable-http#protocol-version-header"

UNSUPPORTED = Rule(
    "http/version-unsupported",
    "must",
    "A request that names a revision the server does not have gets status 400.",
    at=(_PLACE, _PLACE_2026),
    since="2025-06-18",
    over=HTTP,
    cause="MCP-Protocol-Version is not looked at.",
)


@UNSUPPORTED.case("a revision that there is not", until="2026-07-28")
async def _(talk: Talk) -> None:
    reply = await talk.post(harmless(talk), {"MCP-Protocol-Version": NEVER})
    refused(talk, reply, f"MCP-Protocol-Version: {NEVER}", status=400)


@UNSUPPORTED.case("a header that is no revision", until="2026-07-28")
async def _(talk: Talk) -> None:
    reply = await talk.post(harmless(talk), {"MCP-Protocol-Version": "yes"})
    refused(talk, reply, "MCP-Protocol-Version: yes", status=400)


@UNSUPPORTED.case("a revision that there is not, in the header and in `_meta`", since="2026-07-28")
async def _(talk: Talk) -> None:
    message = talk.message("server/discover", meta={PROTOCOL_VERSION: NEVER})
    reply = await talk.post(message, {"MCP-Protocol-Version": NEVER})
    refused(talk, reply, f"revision {NEVER}", status=400, code=UNSUPPORTED_VERSION)
    data = error_of(reply).get("data")
    supported = data.get("supported") if isinstance(data, dict) else None
    if not isinstance(supported, list) or talk.revision not in supported:
        raise Broken("the error does not list the revisions that the server has", evidence=evidence(reply))


ABSENT = Rule(
    "http/version-absent",
    "should",
    "A request without MCP-Protocol-Version is served: the handshake has said which revision it is.",
    at=_PLACE,
    since="2025-06-18",
    until="2026-07-28",
    over=HTTP,
    cause="The header is demanded: clients of 2025-03-26 do not know it.",
)


@ABSENT.case("a request without the header")
async def _(talk: Talk) -> None:
    reply = await talk.post(harmless(talk), {"MCP-Protocol-Version": None})
    if not served(reply):
        raise Broken(f"a request without the header is answered with {described(reply)}", evidence=evidence(reply))


MISMATCH = Rule(
    "http/version-mismatch",
    "must",
    "A request whose header and `_meta` name different revisions gets status 400 and error -32020.",
    at=_PLACE_2026,
    since="2026-07-28",
    over=HTTP,
    cause="One of the two is trusted alone: what a proxy sees in the header is not what the server does.",
)


@MISMATCH.case("an older revision in the header")
async def _(talk: Talk) -> None:
    reply = await talk.post(harmless(talk), {"MCP-Protocol-Version": "2025-11-25"})
    refused(talk, reply, "an older revision in the header than in `_meta`", status=400, code=HEADER_MISMATCH)


@MISMATCH.case("a revision in the header that there is not")
async def _(talk: Talk) -> None:
    reply = await talk.post(harmless(talk), {"MCP-Protocol-Version": NEVER})
    refused(talk, reply, "another revision in the header than in `_meta`", status=400)
    if error_of(reply).get("code") not in (HEADER_MISMATCH, UNSUPPORTED_VERSION):
        raise Broken(f"it is refused with {described(reply)}", evidence=evidence(reply))


MISSING = Rule(
    "http/version-missing",
    "must",
    "A server without older revisions refuses a request that has no MCP-Protocol-Version, with status 400.",
    at=_PLACE_2026,
    since="2026-07-28",
    over=HTTP,
    cause="The header is not demanded: what a proxy lets through for lack of it is served.",
)


@MISSING.case("a request without the header")
async def _(talk: Talk) -> None:
    hello = {"jsonrpc": "2.0", "id": talk.next_id(), "method": "initialize", "params": hello_params("2025-03-26", {})}
    headers = {"MCP-Protocol-Version": None, "Mcp-Method": None}
    if served(await talk.post(hello, headers)):
        raise NotApplicable("it serves older revisions, too")
    reply = await talk.post(harmless(talk), {"MCP-Protocol-Version": None})
    refused(talk, reply, "a request without MCP-Protocol-Version", status=400)

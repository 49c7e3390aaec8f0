"""Without a handshake (2026-07-28): server/discover, the revision in each request, and no memory of earlier ones."""

from __future__ import annotations

from typing import Any

from accord.check.rule import NotApplicable, Rule
from accord.check.rules.meta import NAME, PREFIX
from accord.check.speech import INFO, LISTS, envelope_of, hello_params
from accord.check.talk import Talk
from accord.check.values import shown
from accord.check.waiting import Answer
from accord.errors import INVALID_PARAMS, UNSUPPORTED_VERSION
from accord.messages.base import JSONObject
from accord.messages.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from accord.messages.revision import HANDSHAKE

SINCE = "2026-07-28"
VERSIONING = "basic/versioning"
NEGOTIATION = f"{VERSIONING}#protocol-version-negotiation"
META = "basic/index#meta"

ANSWERED = Rule(
    "discover/answered",
    "must",
    "server/discover is answered with the revisions that the server speaks, and its capabilities.",
    at=("server/discover", NEGOTIATION),
    since=SINCE,
    cause="The method was left out because clients need not call it: servers must have it.",
)


@ANSWERED.case("the revisions and the capabilities")
async def _(talk: Talk) -> None:
    result = await talk.result("server/discover")
    spoken = result.get("supportedVersions")
    if not isinstance(spoken, list) or talk.revision not in spoken:
        raise talk.broken(f"supportedVersions is {shown(spoken)}, and {talk.revision} is spoken")
    if not isinstance(result.get("capabilities"), dict):
        raise talk.broken(f"capabilities are {shown(result.get('capabilities'))}")


UNSUPPORTED = Rule(
    "discover/unsupported-version",
    "must",
    "A request in a revision that the server does not speak gets the error -32022, with those that it speaks.",
    at=NEGOTIATION,
    since=SINCE,
    cause="The revision in _meta is not looked at, or the request is taken for one of an earlier revision.",
)


@UNSUPPORTED.case("server/discover and a list in revisions that nobody knows")
async def _(talk: Talk) -> None:
    for method in ("server/discover", *_lists(talk)[:1]):
        for version in ("1900-01-01", "2999-12-31"):
            answer = await talk.request(
                method, meta={PROTOCOL_VERSION: version}, headers={"MCP-Protocol-Version": version}
            )
            data = (answer.error or {}).get("data")
            named = data.get("supported") if isinstance(data, dict) else None
            if answer.code != UNSUPPORTED_VERSION or not isinstance(named, list) or talk.revision not in named:
                raise talk.broken(f"{method} in {version} is answered with {shown(answer.error or answer.result)}")


MISSING = Rule(
    "discover/missing-meta",
    "must",
    "A request without the revision or the capabilities of the client in _meta is refused.",
    at=META,
    since=SINCE,
    cause="What is missing is taken from an earlier request, or replaced by a default.",
)
MISSING_CODE = Rule(
    "discover/missing-capabilities-code",
    "must",
    "A request without the capabilities of the client in _meta gets the error -32602.",
    at=META,
    since=SINCE,
    cause="What is missing is told by another code, or replaced by a default.",
)


@MISSING.case("without the one, without the other, without _meta, without params")
async def _(talk: Talk) -> None:
    for method in ("server/discover", *_lists(talk)[:1]):
        whole = envelope_of(talk, method, None, None)
        for what, params in _lacking(whole["params"]).items():
            message = {"jsonrpc": "2.0", "id": talk.next_id(), "method": method, **params}
            answer = await talk.send(message).answer()
            if answer.error is None:
                raise talk.broken(f"{method} without {what} is answered with {shown(answer.result)}")


def _lacking(params: JSONObject) -> dict[str, JSONObject]:
    meta = params["_meta"]
    return {
        "the revision": {"params": {"_meta": _without(meta, PROTOCOL_VERSION)}},
        "the capabilities": {"params": {"_meta": _without(meta, CLIENT_CAPABILITIES)}},
        "anything in _meta": {"params": {"_meta": {}}},
        "_meta": {"params": {}},
        "params": {},
    }


@MISSING.case("a number in the place of each")
async def _(talk: Talk) -> None:
    for name in (PROTOCOL_VERSION, CLIENT_CAPABILITIES):
        answer = await talk.request(talk.harmless, meta={name: 7})
        if answer.error is None:
            raise talk.broken(f"with the number 7 as {name} the answer is {shown(answer.result)}")


@MISSING_CODE.case("a request with everything else")
async def _(talk: Talk) -> None:
    params = envelope_of(talk, talk.harmless, None, None)["params"]
    meta = _without(params["_meta"], CLIENT_CAPABILITIES)
    message = {"jsonrpc": "2.0", "id": talk.next_id(), "method": talk.harmless, "params": {"_meta": meta}}
    answer = await talk.send(message).answer()
    if answer.code != INVALID_PARAMS:
        raise talk.broken(f"the answer is {shown(answer.error or answer.result)}")


NO_INFO = Rule(
    "discover/anonymous-client",
    "must",
    "A request without clientInfo is answered like any other.",
    at=META,
    since=SINCE,
    cause="clientInfo is required, as it was in initialize.",
)


@NO_INFO.case("a request without clientInfo")
async def _(talk: Talk) -> None:
    params = envelope_of(talk, talk.harmless, None, None)["params"]
    meta = _without(params["_meta"], CLIENT_INFO)
    message = {"jsonrpc": "2.0", "id": talk.next_id(), "method": talk.harmless, "params": {"_meta": meta}}
    answer = await talk.send(message, misbehaved=False).answer()
    if answer.error is not None:
        raise talk.broken(f"the answer is {shown(answer.error)}")


STATELESS = Rule(
    "discover/stateless",
    "must",
    "The answer to a request depends only on the request, not on earlier messages of the connection.",
    at="basic/index#statelessness",
    since=SINCE,
    cause="Revision, client or capabilities are kept from the first request of a connection.",
)


@STATELESS.case("a list as the first request of a connection", kind="raw")
async def _(talk: Talk) -> None:
    for method in _lists(talk) or ["server/discover"]:
        await talk.result(method)


@STATELESS.case("requests after one that was refused, by another client", kind="own", shares=True)
async def _(talk: Talk) -> None:
    wrong = "1900-01-01"
    await talk.request(talk.harmless, meta={PROTOCOL_VERSION: wrong}, headers={"MCP-Protocol-Version": wrong})
    await talk.result(talk.harmless)
    other = {CLIENT_INFO: {"name": "another", "version": "2"}, CLIENT_CAPABILITIES: {}}
    first, second = await talk.result(talk.harmless), await talk.result(talk.harmless, meta=other)
    if first.get("capabilities") != second.get("capabilities"):
        raise talk.broken("the server declares other capabilities to another client on the same connection", since=0)


AT_ONCE = Rule(
    "discover/many-at-once",
    "should",
    "Requests of several clients on one connection are answered at the same time, each for itself.",
    at="basic/index#statelessness",
    since=SINCE,
    cause="A connection is taken for one conversation.",
)


@AT_ONCE.case("twenty requests of twenty clients")
async def _(talk: Talk) -> None:
    clients = [{CLIENT_INFO: {**INFO, "name": f"accord-check-{number}"}} for number in range(20)]
    waiting = [talk.begin(talk.harmless, meta=client) for client in clients]
    for pending in waiting:
        answer = await pending.answer()
        if answer.error is not None:
            raise talk.broken(f"one of them is answered with {shown(answer.error)}", since=0)


TOLD = Rule(
    "discover/initialize-names-versions",
    "should",
    "A server without a handshake names the revisions that it speaks in its answer to initialize.",
    at=f"{VERSIONING}#backward-compatibility-with-initialization-based-versions",
    since=SINCE,
    cause="initialize is an unknown method like any other: its sender learns nothing by which it could help itself.",
)


@TOLD.case("initialize of the last revision that has it", kind="raw")
async def _(talk: Talk) -> None:
    hello = {"method": "initialize", "params": hello_params(HANDSHAKE[-1], {})}
    left_out = {"MCP-Protocol-Version": None, "Mcp-Method": None}
    pending = talk.send({"jsonrpc": "2.0", "id": "accord-check-hello", **hello}, headers=left_out)
    answer = await pending.answer(talk.settings.opening)
    if answer.error is None:
        raise NotApplicable("the server has a handshake as well")
    if not _names(talk, answer):
        raise talk.broken(f"the answer is {shown(answer.error)}", since=0)


def _names(talk: Talk, answer: Answer) -> bool:
    spoken = talk.hello.get("supportedVersions")
    return any(str(version) in shown(answer.error, 10_000) for version in spoken or [talk.revision])


EXTENSIONS = Rule(
    "discover/extension-names",
    "must",
    "The name of an extension is a prefix, a slash and a name: com.example/thing.",
    at=f"{VERSIONING}#extension-negotiation",
    since=SINCE,
    cause="Extensions are declared by a plain name, without the domain of who defines them.",
)


@EXTENSIONS.case("the extensions that the server declares")
async def _(talk: Talk) -> None:
    declared = talk.capabilities.get("extensions")
    if not declared or not isinstance(declared, dict):
        raise NotApplicable("the server declares no extensions")
    for name, value in declared.items():
        prefix, slash, rest = name.rpartition("/")
        if not (slash and PREFIX.fullmatch(prefix) and NAME.fullmatch(rest)) or not isinstance(value, dict):
            raise talk.broken(f"it declares {name!r}: {shown(value)}")


CORE = Rule(
    "discover/unknown-extension",
    "must",
    "A client with an extension or a capability that the server does not know is served as any other.",
    at=f"{VERSIONING}#extension-negotiation",
    since=SINCE,
    cause="The capabilities of the client are read with a closed type.",
)


@CORE.case("a request that declares one of each")
async def _(talk: Talk) -> None:
    more: JSONObject = {"extensions": {f"com.example/{talk.nobody}": {"any": 1}}, "accordCheckNobody": {}}
    answer = await talk.request(talk.harmless, meta={CLIENT_CAPABILITIES: {**talk.declared, **more}})
    if answer.error is not None:
        raise talk.broken(f"it is answered with {shown(answer.error)}")


ONCE = Rule(
    "discover/instructions",
    "should",
    "The instructions do not repeat what the descriptions of tools say.",
    at="schema#discoverresult",
    since=SINCE,
    cause="They are made of the descriptions, which a model reads anyway: say how the tools belong together.",
)
_DESCRIPTION = 40
"""A description with at least so many characters says more than the name of the tool."""


@ONCE.case("the description of each tool", needs="tools")
async def _(talk: Talk) -> None:
    said = talk.hello.get("instructions")
    if not isinstance(said, str):
        raise NotApplicable("it gives no instructions")
    for tool in await talk.tools():
        description = " ".join(str(tool.get("description") or "").split())
        if len(description) >= _DESCRIPTION and description in " ".join(said.split()):
            raise talk.broken(f"the instructions hold the whole description of {shown(tool.get('name'))}")


def _lists(talk: Talk) -> list[str]:
    """The methods that list what this server has."""
    return [method for capability, method in LISTS.items() if talk.has(capability)]


def _without(meta: JSONObject, name: str) -> dict[str, Any]:
    return {key: value for key, value in meta.items() if key != name}

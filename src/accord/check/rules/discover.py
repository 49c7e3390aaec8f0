"""Without a handshake (2026-07-28): server/discover, the revision in each request, and no state of the connection."""

from __future__ import annotations

from functools import partial
from typing import Any

from accord.check.engine.rule import NotApplicable, rule
from accord.check.probes.client_messages import INFO, LIST_METHODS, initialize_params, request_body
from accord.check.probes.content import preview_json
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe
from accord.check.rules.meta import NAME, PREFIX
from accord.errors import INVALID_PARAMS, UNSUPPORTED_VERSION
from accord.messages.base import JSONObject
from accord.messages.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from accord.messages.revision import HANDSHAKE

SINCE = "2026-07-28"
VERSIONING = "basic/versioning"
NEGOTIATION = f"{VERSIONING}#protocol-version-negotiation"
META = "basic/index#meta"


_rule = partial(rule, since=SINCE)


@_rule(
    "discover/answered",
    "must",
    case="the revisions and the capabilities",
    at=("server/discover", NEGOTIATION),
    cause="The method is missing because clients need not call it: servers must have it.",
)
async def discover_answered(probe: Probe) -> None:
    """server/discover returns the revisions that the server supports, and its capabilities."""
    result = await probe.result("server/discover")
    spoken = result.get("supportedVersions")
    if not isinstance(spoken, list) or probe.revision not in spoken:
        raise probe.violation(f"supportedVersions is {preview_json(spoken)}, without {probe.revision}")
    if not isinstance(result.get("capabilities"), dict):
        raise probe.violation(f"capabilities are {preview_json(result.get('capabilities'))}")


@_rule(
    "discover/unsupported-version",
    "must",
    case="server/discover and a list method in unknown revisions",
    at=NEGOTIATION,
    cause="The revision in `_meta` is not read, or the request is taken for one of an earlier revision.",
)
async def discover_unsupported_version(probe: Probe) -> None:
    """A request in an unsupported revision returns error -32022 with the supported revisions."""
    for method in ("server/discover", *_lists(probe)[:1]):
        for version in ("1900-01-01", "2999-12-31"):
            answer = await probe.request(
                method, meta={PROTOCOL_VERSION: version}, headers={"MCP-Protocol-Version": version}
            )
            data = (answer.error or {}).get("data")
            named = data.get("supported") if isinstance(data, dict) else None
            if answer.code != UNSUPPORTED_VERSION or not isinstance(named, list) or probe.revision not in named:
                raise probe.violation(f"{method} in {version} returned {preview_json(answer.error or answer.result)}")


@_rule(
    "discover/missing-meta",
    "must",
    case="without the revision, the capabilities, `_meta`, or params",
    at=META,
    cause="A missing value is taken from an earlier request, or replaced by a default.",
)
async def discover_missing_meta(probe: Probe) -> None:
    """The server refuses a request without the revision or the client capabilities in `_meta`."""
    for method in ("server/discover", *_lists(probe)[:1]):
        whole = request_body(probe, method, None, None)
        for what, params in _params_without_meta(whole["params"]).items():
            message = {"jsonrpc": "2.0", "id": probe.next_id(), "method": method, **params}
            answer = await probe.send(message).wait()
            if answer.error is None:
                raise probe.violation(f"{method} without {what} returned {preview_json(answer.result)}")


def _params_without_meta(params: JSONObject) -> dict[str, JSONObject]:
    meta = params["_meta"]
    return {
        "the revision": {"params": {"_meta": _without(meta, PROTOCOL_VERSION)}},
        "the capabilities": {"params": {"_meta": _without(meta, CLIENT_CAPABILITIES)}},
        "any field in _meta": {"params": {"_meta": {}}},
        "_meta": {"params": {}},
        "params": {},
    }


@discover_missing_meta.case("a number instead of each value")
async def discover_missing_meta_numbers(probe: Probe) -> None:
    for name in (PROTOCOL_VERSION, CLIENT_CAPABILITIES):
        answer = await probe.request(probe.harmless_method, meta={name: 7})
        if answer.error is None:
            raise probe.violation(f"a request with the number 7 as {name} returned {preview_json(answer.result)}")


@_rule(
    "discover/missing-capabilities-code",
    "must",
    case="a request without the client capabilities only",
    at=META,
    cause="The error has another code, or the missing value is replaced by a default.",
)
async def discover_missing_capabilities_code(probe: Probe) -> None:
    """A request without the client capabilities in `_meta` returns error -32602."""
    params = request_body(probe, probe.harmless_method, None, None)["params"]
    meta = _without(params["_meta"], CLIENT_CAPABILITIES)
    message = {"jsonrpc": "2.0", "id": probe.next_id(), "method": probe.harmless_method, "params": {"_meta": meta}}
    answer = await probe.send(message).wait()
    probe.require_error(answer, INVALID_PARAMS)


@_rule(
    "discover/anonymous-client",
    "must",
    case="a request without clientInfo",
    at=META,
    cause="clientInfo is required, as in initialize.",
)
async def discover_anonymous_client(probe: Probe) -> None:
    """The server answers a request without clientInfo."""
    params = request_body(probe, probe.harmless_method, None, None)["params"]
    meta = _without(params["_meta"], CLIENT_INFO)
    message = {"jsonrpc": "2.0", "id": probe.next_id(), "method": probe.harmless_method, "params": {"_meta": meta}}
    answer = await probe.send(message, misbehaved=False).wait()
    if answer.error is not None:
        raise probe.violation(f"the server answered with {preview_json(answer.error)}")


@_rule(
    "discover/stateless",
    "must",
    case="a list method as the first request of a connection",
    kind="raw",
    at="basic/index#statelessness",
    cause="Revision, client or capabilities are stored from the first request of a connection.",
)
async def discover_stateless(probe: Probe) -> None:
    """A response depends only on its request, not on earlier messages of the connection."""
    for method in _lists(probe) or ["server/discover"]:
        await probe.result(method)


@discover_stateless.case("requests of another client after a refused one", kind="own", shares=True)
async def discover_stateless_other_client(probe: Probe) -> None:
    wrong = "1900-01-01"
    await probe.request(probe.harmless_method, meta={PROTOCOL_VERSION: wrong}, headers={"MCP-Protocol-Version": wrong})
    await probe.result(probe.harmless_method)
    other = {CLIENT_INFO: {"name": "another", "version": "2"}, CLIENT_CAPABILITIES: {}}
    first, second = await probe.result(probe.harmless_method), await probe.result(probe.harmless_method, meta=other)
    if first.get("capabilities") != second.get("capabilities"):
        raise probe.violation(
            "the server declares other capabilities to another client on the same connection", since=0
        )


@_rule(
    "discover/many-at-once",
    "should",
    case="twenty requests of twenty clients",
    at="basic/index#statelessness",
    cause="A connection is taken for one session.",
)
async def discover_many_at_once(probe: Probe) -> None:
    """The server answers concurrent requests of several clients on one connection."""
    clients = [{CLIENT_INFO: {**INFO, "name": f"accord-check-{number}"}} for number in range(20)]
    waiting = [probe.begin(probe.harmless_method, meta=client) for client in clients]
    for pending in waiting:
        answer = await pending.wait()
        if answer.error is not None:
            raise probe.violation(f"one request returned {preview_json(answer.error)}", since=0)


@_rule(
    "discover/initialize-names-versions",
    "should",
    case="initialize in the last revision that has it",
    kind="raw",
    at=f"{VERSIONING}#backward-compatibility-with-initialization-based-versions",
    cause="initialize is handled as an unknown method, so that the client does not learn the supported revisions.",
)
async def discover_initialize_names_versions(probe: Probe) -> None:
    """A server without a handshake answers initialize with an error that lists its revisions."""
    hello = {"method": "initialize", "params": initialize_params(HANDSHAKE[-1], {})}
    left_out = {"MCP-Protocol-Version": None, "Mcp-Method": None}
    pending = probe.send({"jsonrpc": "2.0", "id": "accord-check-hello", **hello}, headers=left_out)
    answer = await pending.wait(probe.settings.opening)
    if answer.error is None:
        raise NotApplicable("the server supports the handshake, too")
    if not _names_revision(probe, answer):
        raise probe.violation(f"the server answered with {preview_json(answer.error)}", since=0)


def _names_revision(probe: Probe, answer: Answer) -> bool:
    spoken = probe.handshake_result.get("supportedVersions")
    return any(str(version) in preview_json(answer.error, 10_000) for version in spoken or [probe.revision])


@_rule(
    "discover/extension-names",
    "must",
    case="the declared extensions",
    at=f"{VERSIONING}#extension-negotiation",
    cause="The name of the extension has no domain as its prefix.",
)
async def discover_extension_names(probe: Probe) -> None:
    """The name of an extension is a prefix, a slash and a name: com.example/thing."""
    declared = probe.capabilities.get("extensions")
    if not declared or not isinstance(declared, dict):
        raise NotApplicable("the server declares no extensions")
    for name, value in declared.items():
        prefix, slash, rest = name.rpartition("/")
        if not (slash and PREFIX.fullmatch(prefix) and NAME.fullmatch(rest)) or not isinstance(value, dict):
            raise probe.violation(f"the server declares {name!r}: {preview_json(value)}")


@_rule(
    "discover/unknown-extension",
    "must",
    case="a request that declares an unknown extension and an unknown capability",
    at=f"{VERSIONING}#extension-negotiation",
    cause="The client capabilities are decoded with a closed type.",
)
async def discover_unknown_extension(probe: Probe) -> None:
    """The server answers a client with unknown extensions or capabilities as any other."""
    more: JSONObject = {"extensions": {f"com.example/{probe.unknown_name}": {"any": 1}}, "accordCheckNobody": {}}
    answer = await probe.request(
        probe.harmless_method, meta={CLIENT_CAPABILITIES: {**probe.client_capabilities, **more}}
    )
    if answer.error is not None:
        raise probe.violation(f"the server answered with {preview_json(answer.error)}")


_DESCRIPTION = 40
"""Minimum number of characters of a description that says more than the name of the tool."""


@_rule(
    "discover/instructions",
    "should",
    case="the description of each tool",
    needs="tools",
    at="schema#discoverresult",
    cause="They are generated from the descriptions, which the model reads anyway: explain how the "
    "tools work together.",
)
async def discover_instructions(probe: Probe) -> None:
    """The instructions do not repeat the descriptions of tools."""
    entry = probe.handshake_result.get("instructions")
    if not isinstance(entry, str):
        raise NotApplicable("the server has no instructions")
    for tool in await probe.tools():
        description = " ".join(str(tool.get("description") or "").split())
        if len(description) >= _DESCRIPTION and description in " ".join(entry.split()):
            raise probe.violation(f"the instructions contain the whole description of {preview_json(tool.get('name'))}")


def _lists(probe: Probe) -> list[str]:
    """Return the methods that list the features of this server."""
    return [method for capability, method in LIST_METHODS.items() if probe.has_capability(capability)]


def _without(meta: JSONObject, name: str) -> dict[str, Any]:
    return {key: value for key, value in meta.items() if key != name}

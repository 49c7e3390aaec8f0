"""Scenarios of 2026-07-28 without a handshake: what each request must say, lists that may be kept, and listening."""

from __future__ import annotations

from typing import Any

from tests.conformance.basics import text_of
from tests.conformance.peer import CAPABILITIES, KEY, Peer
from tests.conformance.scenario import scenario

JSONObject = dict[str, Any]

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


@scenario("server-stateless", since="2026-07-28", opens=False)
async def stateless(peer: Peer) -> None:
    """A server works without a handshake, and refuses removed methods; without HTTP status codes."""
    await _says_what_it_is(peer)
    await _wants_the_meta(peer)
    await _refuses(peer)
    await _sends_no_more_than_asked_for(peer)
    await _listens(peer)


async def _says_what_it_is(peer: Peer) -> None:
    tools = await peer.result("tools/list")  # nothing was opened before
    await peer.open()
    assert "2026-07-28" in peer.opened["supportedVersions"]
    assert peer.opened["_meta"][f"{KEY}serverInfo"] == {"name": "everything", "version": "1.0.0"}
    assert tools["tools"]
    assert (await peer.result("prompts/list"))["prompts"]
    assert set(peer.opened["capabilities"]) >= {"tools", "prompts"}


async def _wants_the_meta(peer: Peer) -> None:
    """A request with incomplete metadata gets an error that names the missing fields; `clientInfo` is optional."""
    whole = peer.meta(CAPABILITIES)
    for missing in ("protocolVersion", "clientCapabilities"):
        meta = {key: value for key, value in whole.items() if key != KEY + missing}
        peer.say({"id": missing, "method": "server/discover", "params": {"_meta": meta}})
        answer = await peer.hear()
        assert (answer["id"], answer["error"]["code"]) == (missing, -32602)
    meta = {key: value for key, value in whole.items() if key != f"{KEY}clientInfo"}
    peer.say({"id": "anonymous", "method": "server/discover", "params": {"_meta": meta}})
    assert (await peer.hear())["result"]["resultType"] == "complete"


async def _refuses(peer: Peer) -> None:
    """Another revision, a missing capability, and methods of other revisions."""
    error = await peer.refused("server/discover", {"_meta": {f"{KEY}protocolVersion": "v999.0.0"}})
    assert error["code"] == -32022
    assert set(error["data"]["supported"]) <= set(peer.opened["supportedVersions"])
    assert error["data"]["requested"] == "v999.0.0"
    call = {"name": "test_missing_capability", "arguments": {}}
    error = await peer.refused("tools/call", call, capabilities={})
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"sampling": {}}})
    removed = ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")
    for method in (*removed, "unknown/method"):
        assert (await peer.refused(method))["code"] == -32601


async def _sends_no_more_than_asked_for(peer: Peer) -> None:
    """The server sends no requests, and no log messages without a level."""
    required = await peer.start("test_streaming_elicitation")
    assert [each["method"] for each in required["inputRequests"].values()] == ["elicitation/create"]
    assert text_of(await peer.call("test_logging_tool")) == "Logging evaluated"
    assert peer.told == []


async def _listens(peer: Peer) -> None:
    """A subscription is acknowledged first; then only its notifications arrive, with the id of their listen request."""
    tools = await _listen(peer, {"toolsListChanged": True})
    prompts = await _listen(peer, {"promptsListChanged": True})
    for _ in range(2):  # what is added by the first is gone after the second
        await _hears(peer, "test_trigger_tool_change", "notifications/tools/list_changed", tools)
        await _hears(peer, "test_trigger_prompt_change", "notifications/prompts/list_changed", prompts)


async def _hears(peer: Peer, tool: str, method: str, id: int) -> None:
    call = peer.send("tools/call", {"name": tool, "arguments": {}}, capabilities={})
    heard = [await peer.hear(), await peer.hear()]
    (answer,) = [each for each in heard if each.get("id") == call]
    assert text_of(answer["result"]) == "Mutation triggered"
    (change,) = [each for each in heard if "method" in each]
    assert (change["method"], change["params"]["_meta"]) == (method, {f"{KEY}subscriptionId": id})


async def _listen(peer: Peer, notifications: JSONObject) -> int:
    id = peer.send("subscriptions/listen", {"notifications": notifications})
    first = await peer.hear()
    assert first["method"] == ACKNOWLEDGED
    assert first["params"]["notifications"] == notifications
    assert first["params"]["_meta"] == {f"{KEY}subscriptionId": id}
    return id


@scenario("caching", since="2026-07-28")
async def caching(peer: Peer) -> None:
    """Every cacheable result has `ttlMs` and `cacheScope`."""
    results = [await peer.result(f"{kind}/list") for kind in ("tools", "prompts", "resources", "resources/templates")]
    results.append(await peer.result("resources/read", {"uri": results[2]["resources"][0]["uri"]}))
    results.append(await peer.result("server/discover"))
    for result in results:
        assert isinstance(result["ttlMs"], int)
        assert result["ttlMs"] >= 0
        assert result["cacheScope"] in ("public", "private")

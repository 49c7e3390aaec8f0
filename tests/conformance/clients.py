"""The suite's scenarios for a client, with a server that is played by hand (see tests/client/raw.py).

Each is a `Host`: what its tools answer, then what a program with accord's client does, and what the server has to have
seen of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from accord import Client, ElicitParams
from accord.messages.revision import REVISIONS, is_in_revision
from accord.schema.forms import fields

from tests.client.raw import RawServer
from tests.conformance.server import SCHEMA

JSONObject = dict[str, Any]

META = "io.modelcontextprotocol/"


class Host:
    """A server by hand: `tools` are listed, and what they answer is `results`, or a function of the request."""

    def __init__(self, raw: RawServer) -> None:
        self.raw = raw
        self.tools: list[JSONObject] = []
        self.results: dict[str, Callable[[JSONObject], Awaitable[None]]] = {}
        self.heard: list[JSONObject] = []
        """The requests of the client."""
        self.address: str = "no address"
        """What is another in each run, and so not written in the transcript."""

    async def serve(self) -> None:
        """Answer whatever the client asks, until cancelled."""
        while True:
            message = await self.raw.hear()
            self.heard.append(message)
            if message.get("method") == "tools/list":
                hints = {"ttlMs": 0, "cacheScope": "private"} if self.raw.revision == "2026-07-28" else {}
                self.raw.answer(message, tools=self.tools, **hints)
            elif message.get("method") == "tools/call":
                await self.results.get(message["params"]["name"], self._done)(message)

    async def _done(self, call: JSONObject) -> None:
        self.raw.done(call)

    def calls(self, tool: str) -> list[JSONObject]:
        """The calls of a tool so far."""
        return [each for each in self.heard if each.get("params", {}).get("name") == tool]


Play = Callable[[Host, Client], Awaitable[None]]
Opening = Callable[[RawServer], Awaitable[None]]


class ClientScenario(NamedTuple):
    """One scenario of the suite for a client, by the suite's name."""

    name: str
    play: Play
    revisions: tuple[str, ...]
    options: Mapping[str, Any]
    """Of the client."""
    opening: Opening | None
    """How the server opens, if that is part of the scenario."""


CLIENT_SCENARIOS: dict[str, ClientScenario] = {}


def scenario(
    name: str, *, since: str | None = None, until: str | None = None, opening: Opening | None = None, **options: Any
) -> Callable[[Play], Play]:
    """Make a function the scenario of that name, as `tests.conformance.scenario.scenario` does."""

    def note(play: Play) -> Play:
        revisions = tuple(revision for revision in REVISIONS if is_in_revision(revision, since, until))
        CLIENT_SCENARIOS[name] = ClientScenario(name, play, revisions, options, opening)
        return play

    return note


def tool(name: str, **properties: JSONObject) -> JSONObject:
    """A tool as a server lists it."""
    return {"name": name, "description": "A tool", "inputSchema": {"type": "object", "properties": properties}}


# --- opening and calling ---------------------------------------------------------------------------------------------


@scenario("initialize", until="2026-07-28", opening=RawServer.open)
async def initialize(host: Host, client: Client) -> None:
    """The client sends its revision and its name in the handshake, then lists."""
    host.tools = [tool("test_tool")]
    assert [each.name for each in await client.list_tools()] == ["test_tool"]
    assert client.revision == host.raw.revision


@scenario("tools_call")
async def tools_call(host: Host, client: Client) -> None:
    """Numbers in arguments arrive as numbers."""
    host.tools = [tool("add_numbers", a={"type": "number"}, b={"type": "number"})]

    async def add(request: JSONObject) -> None:
        a, b = request["params"]["arguments"]["a"], request["params"]["arguments"]["b"]
        host.raw.done(request, f"The sum of {a} and {b} is {a + b}")

    host.results["add_numbers"] = add
    await client.list_tools()
    assert (await client.call_tool("add_numbers", {"a": 5, "b": 3})).text == "The sum of 5 and 3 is 8"


async def refusing_once(raw: RawServer) -> None:
    """Refuse the first request, and name the revision that would do."""
    refused = await raw.hear()
    data = {"supported": ["2026-07-28"], "requested": "2026-07-28"}
    raw.refuse(refused, -32022, "another revision, please", data=data)
    await raw.open()


@scenario(
    "request-metadata", since="2026-07-28", opening=refusing_once, elicitation=lambda params: None, roots=["/srv"]
)
async def request_metadata(host: Host, client: Client) -> None:
    """Every request has the client's revision, capabilities and name; after a refused revision it is sent again."""
    await client.list_tools()
    await client.call_tool("anything")
    assert [request["method"] for request in host.heard] == ["tools/list", "tools/call"]
    for request in host.heard:
        meta = request["params"]["_meta"]
        assert meta[f"{META}protocolVersion"] == "2026-07-28"
        declared = {"elicitation": {"form": {}}, "roots": {}, "extensions": {f"{META}tasks": {}}}
        assert meta[f"{META}clientCapabilities"] == declared
        assert set(meta[f"{META}clientInfo"]) == {"name", "version"}


# --- schemas ---------------------------------------------------------------------------------------------------------


@scenario("json-schema-ref-no-deref")
async def no_dereference(host: Host, client: Client) -> None:
    """The client does not fetch a schema that refers to another host."""
    visitors: list[object] = []

    async def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visitors.append(reader)
        writer.close()

    async with await asyncio.start_server(visited, "127.0.0.1") as elsewhere:
        host.address = "{}:{}".format(*elsewhere.sockets[0].getsockname())
        canary = f"http://{host.address}/canary/profile-schema.json"
        host.tools = [tool("lookup_user", id={"$ref": "#/$defs/userId"}, profile={"$ref": canary})]
        host.tools[0]["inputSchema"]["$defs"] = {"userId": {"type": "string"}}
        (listed,) = await client.list_tools()
        assert listed.input_schema["properties"]["profile"] == {"$ref": canary}
        assert (await client.call_tool("lookup_user", {"id": "a"})).text == "done"
    assert visitors == []


@scenario("json-schema-2020-12-preservation")
async def schema_preservation(host: Host, client: Client) -> None:
    """The program gets a schema unchanged."""
    rich = {"name": "json_schema_2020_12_tool", "description": "A tool", "inputSchema": SCHEMA}
    host.tools = [rich, tool("json_schema_echo", schema={"type": "object"})]
    tools = {each.name: each for each in await client.list_tools()}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})
    (call,) = host.calls("json_schema_echo")
    assert call["params"]["arguments"]["schema"] == SCHEMA


# --- being asked -----------------------------------------------------------------------------------------------------


def from_defaults(params: ElicitParams) -> JSONObject:
    """A person who leaves every field as it is."""
    return {field.name: field.default for field in fields(params.requested_schema or {}) if field.default is not None}


FORM: dict[str, JSONObject] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}


@scenario("elicitation-sep1034-client-defaults", since="2025-11-25", elicitation=from_defaults)
async def client_defaults(host: Host, client: Client) -> None:
    """A form without changes is answered with its defaults."""
    answered: list[JSONObject] = []
    asked = {"message": "Left as it is", "requestedSchema": {"type": "object", "properties": FORM}}

    async def ask(request: JSONObject) -> None:
        if host.raw.revision == "2026-07-28":
            if "inputResponses" not in request["params"]:
                questions = {"form": {"method": "elicitation/create", "params": asked}}
                host.raw.require(request, inputRequests=questions)
                return
            answered.append(request["params"]["inputResponses"]["form"])
        else:
            answered.append((await host.raw.ask("elicitation/create", asked))["result"])
        host.raw.done(request)

    host.results["test_client_elicitation_defaults"] = ask
    await client.call_tool("test_client_elicitation_defaults")
    assert answered == [{"action": "accept", "content": {name: each["default"] for name, each in FORM.items()}}]


CONFIRM = {
    "confirm": {
        "method": "elicitation/create",
        "params": {
            "message": "Please confirm to continue",
            "requestedSchema": {"type": "object", "properties": {"confirmed": {"type": "boolean"}}},
        },
    }
}


@scenario("sep-2322-client-request-state", since="2026-07-28", elicitation=lambda params: {"confirmed": True})
async def request_state(host: Host, client: Client) -> None:
    """The retry has a new id and the unchanged request state; requests and retries without a state have none."""
    state = '{"nonce": "n-1",\t"é": 1}'

    def asking(**fields: Any) -> Callable[[JSONObject], Awaitable[None]]:
        async def answer(request: JSONObject) -> None:
            if "inputResponses" in request["params"]:
                host.raw.done(request, "ok")
            else:
                host.raw.require(request, inputRequests=CONFIRM, **fields)

        return answer

    async def no_result_type(request: JSONObject) -> None:
        host.raw.say({"id": request["id"], "result": {"content": [{"type": "text", "text": "no type"}]}})

    host.results |= {
        "test_mrtr_echo_state": asking(requestState=state),
        "test_mrtr_no_state": asking(),
        "test_mrtr_no_result_type": no_result_type,
    }
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await client.call_tool(f"test_mrtr_{name}")
    first, again = host.calls("test_mrtr_echo_state")
    assert again["params"]["requestState"] == state
    assert again["id"] != first["id"]
    assert again["params"]["inputResponses"] == {"confirm": {"action": "accept", "content": {"confirmed": True}}}
    assert "requestState" not in host.calls("test_mrtr_no_state")[1]["params"]
    (call,) = host.calls("test_mrtr_unrelated")
    assert not {"inputResponses", "requestState"} & set(call["params"])
    assert len(host.calls("test_mrtr_no_result_type")) == 1

"""Other people's clients with accord's server: each plays the story (see servers/story.py), and saw it as it is.

The official client 2.x comes once per revision, and once as it opens by itself; the others as they open by themselves.
Each comes over stdio, over Streamable HTTP ("mcp") and, where it is older than 2026-07-28, over HTTP+SSE ("sse").
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import pytest

from accord import REVISIONS

from tests.interop.conftest import Watch
from tests.interop.peers import PROGRAMS, Sdk, TypeScript
from tests.interop.servers.story import CALLS, PNG
from tests.interop.serving import serving

SERVER = [sys.executable, str(PROGRAMS / "accord_server.py")]

NOTING_ITS_END = ["/bin/sh", "-c", '"$@"; echo $? > "$0"']
"""Runs a command and writes its exit code to a file; when the client has to signal either, nothing is written."""

PEERS: list[tuple[Sdk | TypeScript, str, str | None, str]] = [
    *(("mcp2", way, revision, revision) for way in ("stdio", "mcp") for revision in REVISIONS),
    *(("mcp2", way, None, "2026-07-28") for way in ("stdio", "mcp")),
    *(("mcp1", way, None, "2025-11-25") for way in ("stdio", "mcp", "sse")),
    *(("fastmcp", way, None, "2026-07-28") for way in ("stdio", "mcp")),
    ("fastmcp", "sse", None, "2025-11-25"),
    ("mcp2", "sse", "2024-11-05", "2024-11-05"),
    *(("ts1", way, None, "2025-11-25") for way in ("mcp", "sse")),
    ("ts2", "mcp", None, "2026-07-28"),
    ("ts2", "mcp", "2025-11-25", "2025-11-25"),
    ("ts2", "sse", "2024-11-05", "2024-11-05"),
]
"""A client, its way to the server, the revision it is told to speak, and the one that is spoken then."""

TITLED = STRUCTURED = {"2025-06-18", "2025-11-25", "2026-07-28"}
PER_REQUEST = {"2026-07-28"}

SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


class Saw(NamedTuple):
    """What a peer client saw when it spoke `revision`, and how the server process ended.

    A client that is told 2026-07-28 does not ask the server first (`asks`): it begins with its first request.
    """

    sdk: str
    way: str
    revision: str
    asks: bool
    seen: dict[str, Any]
    ending: str


@pytest.fixture(scope="module", params=PEERS, ids=[f"{sdk}-{way}-{told or 'by-itself'}" for sdk, way, told, _ in PEERS])
def saw(request: pytest.FixtureRequest, watch: Watch, tmp_path_factory: pytest.TempPathFactory) -> Saw:
    sdk, way, told, spoken = request.param
    asks = told is None or told not in PER_REQUEST or sdk == "ts2"
    if way != "stdio":
        with serving(SERVER) as server:
            seen = watch(sdk, [f"{server.url}/{way}"], told)
            return Saw(sdk, way, spoken, asks, seen, str(server.end()))
    end = tmp_path_factory.mktemp("server") / "exit-code"
    seen = watch(sdk, [*NOTING_ITS_END, str(end), *SERVER], told)
    return Saw(sdk, way, spoken, asks, seen, end.read_text().strip() if end.exists() else "ended by a signal")


def test_the_client_connects_with_the_requested_revision(saw: Saw) -> None:
    assert saw.seen["revision"] == saw.revision


def test_the_client_learns_who_the_server_is_and_what_it_offers(saw: Saw) -> None:
    seen = {key: saw.seen[key] for key in ("server", "capabilities", "instructions")}
    if not saw.asks:
        assert seen == {"server": {}, "capabilities": [], "instructions": None}
        return
    title = {"title": "Accord"} if saw.revision in TITLED else {}
    assert seen == {
        "server": {"name": "accord", "version": "1.2.3", **title},
        "capabilities": ["logging", "prompts", "resources", "tools"],
        "instructions": "The story, told by accord.",
    }


def test_ping_is_answered_where_the_revision_has_it(saw: Saw) -> None:
    ping = saw.seen["ping"]
    if saw.revision in PER_REQUEST:
        # ts2 does not even send it.
        assert ping["error"]["code"] == ("METHOD_NOT_SUPPORTED_BY_PROTOCOL_VERSION" if saw.sdk == "ts2" else -32601)
    else:
        assert told(ping) == {}


def test_tools_are_listed_with_their_schemas(saw: Saw) -> None:
    output = {"outputSchema": SUM} if saw.revision in STRUCTURED else {}
    assert saw.seen["tools"] == [
        tool("echo", "Give back the text.", text="string"),
        tool("add", "Add two numbers.", a="integer", b="integer") | output,
        tool("fail", "Fail."),
        tool("slow", "Take a few steps and say so.", steps="integer"),
        tool("picture", "Show a picture."),
    ]


def test_resources_templates_and_prompts_are_listed(saw: Saw) -> None:
    today = {"name": "today", "description": "What there is to do today.", "mimeType": "text/plain"}
    notes = {"name": "notes", "description": "What there is to do on a day.", "mimeType": "text/plain"}
    assert saw.seen["resources"] == [{**today, "uri": "notes://today"}]
    assert saw.seen["resourceTemplates"] == [{**notes, "uriTemplate": "notes://{day}"}]
    city = {"name": "city", "required": True}
    assert saw.seen["prompts"] == [{"name": "plan", "description": "Plan a day.", "arguments": [city]}]


def test_calls_give_what_the_tools_return(saw: Saw) -> None:
    structured = {"structuredContent": {"sum": 5}} if saw.revision in STRUCTURED else {}
    assert {name: told(result) for name, result in saw.seen["calls"].items()} == {
        "echo": {"content": [text(CALLS["echo"]["text"])]},
        "add": {"content": [text('{"sum":5}')], **structured},
        "fail": {"content": [text("ValueError: it went wrong")], "isError": True},
        "slow": {"content": [text("done")]},
        "picture": {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]},
    }


def test_every_step_of_progress_arrives_in_order(saw: Saw) -> None:
    # A client may drop the message: it is there from 2025-03-26 on.
    messages = [None] * 3 if saw.revision == "2024-11-05" else ["step 1", "step 2", "step 3"]
    steps = [[step, 3, message] for step, message in enumerate(messages, 1)]
    if saw.way == "sse" and saw.sdk in ("ts1", "ts2"):
        # Its HTTP+SSE drops progress that arrives together with the answer: it takes the answer before it.
        assert saw.seen["progress"] in ([], steps)
    else:
        assert saw.seen["progress"] == steps


def test_twenty_calls_at_once_get_each_its_own_answer(saw: Saw) -> None:
    answers = [told(result) for result in saw.seen["together"]]
    assert answers == [{"content": [text(str(number))]} for number in range(20)]


def test_resources_and_prompts_give_their_text(saw: Saw) -> None:
    assert {uri: told(result) for uri, result in saw.seen["reads"].items()} == {
        uri: {"contents": [{"uri": uri, "mimeType": "text/plain", "text": words}]}
        for uri, words in {"notes://today": "buy milk", "notes://monday": "notes of monday"}.items()
    }
    assert told(saw.seen["prompt"]) == {
        "description": "Plan a day.",
        "messages": [{"role": "user", "content": text("Plan a day in Oslo.")}],
    }


def test_what_does_not_exist_is_the_error_that_the_revision_prescribes(saw: Saw) -> None:
    missing = saw.seen["missing"]
    assert told(missing["argument"]) == {"content": [text('missing argument "text"')], "isError": True}
    errors = {what: missing[what]["error"] for what in ("tool", "resource", "prompt")}
    newer = saw.revision in PER_REQUEST or saw.sdk == "ts2"  # which tells of either code as of the newer one
    assert {what: (error["code"], error["message"]) for what, error in errors.items()} == {
        "tool": (-32602, "no tool 'nothing'"),
        "resource": (-32602 if newer else -32002, "no resource 'nothing://here'"),
        "prompt": (-32602, "no prompt 'nothing'"),
    }


def test_results_are_signed_where_no_handshake_says_whose_they_are(saw: Saw) -> None:
    results = [*saw.seen["calls"].values(), *saw.seen["reads"].values(), saw.seen["prompt"]]
    key = "io.modelcontextprotocol/serverInfo"
    signed = {result.get("_meta", {}).get(key, {}).get("name") for result in results}
    assert signed == ({"accord"} if saw.revision in PER_REQUEST else {None})


def test_the_server_ends_well_once_the_client_has_closed(saw: Saw) -> None:
    # By itself over stdio, when it is told to over HTTP.
    assert saw.ending == "0"


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool(name: str, description: str, **arguments: str) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key: {"type": type_} for key, type_ in arguments.items()},
        "additionalProperties": False,
    }
    if arguments:
        schema["required"] = [*arguments]
    return {"name": name, "description": description, "inputSchema": schema}


def told(result: dict[str, Any]) -> dict[str, Any]:
    """A result without what a revision, or a client by itself, puts around it."""
    around = {"_meta", "resultType", "ttlMs", "cacheScope"}
    kept = {key: value for key, value in result.items() if key not in around}
    return kept if kept.get("isError", True) else {key: kept[key] for key in kept if key != "isError"}

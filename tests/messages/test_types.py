"""The types themselves: how they read and write, `_meta`, capabilities, unknown content, the table."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from accord import types as messages
from accord.errors import LocalProtocolError
from accord.messages.base import ARMS, LIVES, OPEN
from accord.messages.meta import KNOWN_KEYS, PROTOCOL_VERSION
from accord.messages.methods import METHODS
from accord.messages.revision import REVISIONS
from accord.types import (
    CallToolResult,
    ClientCapabilities,
    CreateMessageParams,
    ElicitationCapability,
    GetPromptResult,
    ListCapability,
    Model,
    ResourceContents,
    ResourcesCapability,
    ServerCapabilities,
    TextContent,
    Tool,
    check_meta,
    check_meta_key,
    declares,
    decode_around_unknown,
    table,
)

MODELS = [
    each for each in vars(messages).values() if isinstance(each, type) and issubclass(each, Model) and each is not Model
]


def encode(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


# Reading and writing


def test_names_are_camel_case_and_what_is_not_set_is_left_out() -> None:
    tool = Tool(name="add", input_schema={"type": "object"}, meta={"com.example/x": 1})
    assert encode(tool) == {"name": "add", "inputSchema": {"type": "object"}, "_meta": {"com.example/x": 1}}


def test_false_is_written_and_null_is_structured_content() -> None:
    result = CallToolResult(content=[], is_error=False, structured_content=None)
    assert encode(result) == {"content": [], "isError": False, "structuredContent": None}
    assert encode(CallToolResult(content=[])) == {"content": []}


def test_values_are_frozen_and_keyword_only() -> None:
    with pytest.raises(TypeError):
        TextContent("hello")  # type: ignore[misc]
    with pytest.raises(AttributeError):
        TextContent(text="hello").text = "bye"  # type: ignore[misc]


def test_unknown_fields_are_ignored() -> None:
    raw = b'{"type":"text","text":"a","colour":"red"}'
    assert msgspec.json.decode(raw, type=TextContent) == TextContent(text="a")


@pytest.mark.parametrize("type_", MODELS, ids=lambda type_: type_.__name__)
def test_every_type_can_be_read_and_says_what_it_is(type_: type) -> None:
    msgspec.json.Decoder(type_)
    assert type_.__doc__


def test_notes_name_only_types_that_are_exported() -> None:
    noted = {type_.__name__ for type_ in (*LIVES, *OPEN, *ARMS)}
    assert not noted - vars(messages).keys()


def test_public_names_are_there() -> None:
    assert all(hasattr(messages, name) for name in messages.__all__)


# Unknown content

VIDEO = {"type": "video", "data": "AAAA"}


def test_unknown_blocks_stay_as_they_came() -> None:
    value = {
        "content": [{"type": "text", "text": "a"}, VIDEO, {"type": "text", "text": ""}],
        "isError": False,
    }
    result = decode_around_unknown(msgspec.json.encode(value), CallToolResult)
    assert result.content == [TextContent(text="a"), VIDEO, TextContent(text="")]
    assert encode(result) == value


def test_unknown_blocks_stay_in_messages() -> None:
    value = {
        "messages": [
            {"role": "user", "content": VIDEO},
            {"role": "assistant", "content": {"type": "text", "text": "a"}},
        ]
    }
    result = decode_around_unknown(msgspec.json.encode(value), GetPromptResult)
    assert result.messages[1].content == TextContent(text="a")
    assert encode(result) == value


def test_unknown_blocks_stay_in_lists_of_messages() -> None:
    value = {"messages": [{"role": "user", "content": [VIDEO, VIDEO]}], "maxTokens": 1}
    assert encode(decode_around_unknown(msgspec.json.encode(value), CreateMessageParams)) == value


@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b"{}",
        b'{"content":[3]}',
        b'{"content":[{"type":"text"}]}',
        b'{"content":[{"type":"tool_use","id":"1","name":"a","input":{}}]}',
        b'{"messages":[3]}',
        b'{"messages":null}',
        b'{"content":[{"type":"video"}],"isError":3}',
    ],
)
def test_what_is_wrong_beside_unknown_blocks_is_still_wrong(raw: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_around_unknown(raw, CallToolResult)


# `_meta`


@pytest.mark.parametrize(
    "key",
    [
        "progressToken",
        "a",
        "a.b_c-d",
        "",
        "com.example/",
        "com.example/name",
        "com.example.mcp/name",
        "a-b.c1/x",
        "mcp/x",
        "mcp.dev/x",
        PROTOCOL_VERSION,
    ],
)
def test_key_may_be_sent(key: str) -> None:
    check_meta_key(key)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("/x", "labels"),
        ("1a/x", "labels"),
        ("a-/x", "labels"),
        ("a..b/x", "labels"),
        ("a/b/c", "labels"),
        ("com.example\n/x", "labels"),
        ("-a", "name"),
        ("a.", "name"),
        ("ä", "name"),
        ("a\n", "name"),
        ("com.example/_x", "name"),
        ("io.modelcontextprotocol/mine", "reserved"),
        ("dev.mcp/x", "reserved"),
        ("org.modelcontextprotocol.api/x", "reserved"),
        ("com.mcp.tools/", "reserved"),
    ],
)
def test_key_must_not_be_sent(key: str, reason: str) -> None:
    with pytest.raises(LocalProtocolError, match=reason):
        check_meta({"fine": 1, key: 2})


def test_an_extension_may_name_its_keys() -> None:
    check_meta({"io.modelcontextprotocol/ui": {}}, {*KNOWN_KEYS, "io.modelcontextprotocol/ui"})


@given(st.text(max_size=20))
def test_checking_a_key_ends_in_yes_or_no(key: str) -> None:
    with contextlib.suppress(LocalProtocolError):
        check_meta_key(key)


def test_known_keys_are_read_out_of_a_meta() -> None:
    raw = (
        b'{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","com.example/x":1,'
        b'"io.modelcontextprotocol/clientCapabilities":{"roots":{}},"traceparent":"00-a-b-01"}'
    )
    known = msgspec.json.decode(raw, type=messages.RequestMeta)
    assert (known.progress_token, known.protocol_version, known.traceparent) == (7, "2026-07-28", "00-a-b-01")
    assert known.client_capabilities == ClientCapabilities(roots=messages.RootsCapability())


# Capabilities


@pytest.mark.parametrize(
    ("capabilities", "path", "declared"),
    [
        (ServerCapabilities(), "tools", False),
        (ServerCapabilities(tools=ListCapability()), "tools", True),
        (ServerCapabilities(tools=ListCapability()), "tools.list_changed", False),
        (ServerCapabilities(tools=ListCapability(list_changed=False)), "tools.list_changed", False),
        (ServerCapabilities(resources=ResourcesCapability(subscribe=True)), "resources.subscribe", True),
        (ServerCapabilities(logging={}), "logging", True),
        (ClientCapabilities(), "elicitation.form", False),
        (ClientCapabilities(), "elicitation.url", False),
        (ClientCapabilities(elicitation=ElicitationCapability()), "elicitation.form", True),
        (ClientCapabilities(elicitation=ElicitationCapability()), "elicitation.url", False),
        (ClientCapabilities(elicitation=ElicitationCapability(url={})), "elicitation.form", False),
        (ClientCapabilities(elicitation=ElicitationCapability(url={})), "elicitation.url", True),
        (ClientCapabilities(elicitation=ElicitationCapability(form={}, url={})), "elicitation.form", True),
    ],
)
def test_what_is_declared(capabilities: Any, path: str, declared: bool) -> None:
    assert declares(capabilities, path) is declared


# The table


def test_a_missing_key_is_a_method_not_found() -> None:
    assert "ping" in table("2025-11-25", "server")
    assert "ping" not in table("2026-07-28", "server")
    assert "elicitation/create" not in table("2025-03-26", "server")
    assert "tools/call" not in table("2025-11-25", "server")


def test_no_server_sends_requests_in_2026_07_28() -> None:
    assert all(row.notification for row in table("2026-07-28", "server").values())
    assert [row.name for row in table("2026-07-28", "client").values() if row.notification] == [
        "notifications/cancelled"
    ]


def test_completion_needs_its_capability_only_where_there_is_one() -> None:
    assert table("2024-11-05", "client")["completion/complete"].needs is None
    assert table("2025-03-26", "client")["completion/complete"].needs == "completions"


@pytest.mark.parametrize("revision", REVISIONS)
def test_rows_of_one_name_do_not_overlap(revision: str) -> None:
    for sender in ("client", "server"):
        names = [
            row.name for row in METHODS if row.sender in (sender, "both") and row in table(revision, sender).values()
        ]
        assert len(names) == len(set(names))


def test_a_table_is_made_once_and_cannot_be_changed() -> None:
    assert table("2025-11-25", "client") is table("2025-11-25", "client")
    with pytest.raises(TypeError):
        table("2025-11-25", "client")["x"] = METHODS[0]  # type: ignore[index]


def test_methods_that_may_request_input_take_answers() -> None:
    asking = {row.name for row in METHODS if row.may_ask}
    assert asking == {"tools/call", "prompts/get", "resources/read"}
    assert all(issubclass(row.params, messages.InputResponseParams) is row.may_ask for row in METHODS)


@pytest.mark.parametrize("row", METHODS, ids=lambda row: f"{row.name}-{row.sender}")
def test_capabilities_of_rows_exist(row: Any) -> None:
    receiver = {"client": [ServerCapabilities], "server": [ClientCapabilities]}
    both = [ServerCapabilities, ClientCapabilities]
    for path in filter(None, (row.needs,)):
        for holder in receiver.get(row.sender, both):
            assert path.split(".")[0] in holder.__struct_fields__
    sender = {"client": [ClientCapabilities], "server": [ServerCapabilities]}
    for path in filter(None, (row.offers,)):
        for holder in sender.get(row.sender, both):
            assert path.split(".")[0] in holder.__struct_fields__


# Cost


def test_importing_pulls_in_nothing_heavy() -> None:
    heavy = ("asyncio", "dataclasses", "pathlib", "logging", "json")
    code = (
        "import sys, msgspec; before = set(sys.modules); import accord.types; "
        f"print([name for name in {heavy} if name in sys.modules and name not in before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_merged_type_holds_each_of_its_shapes() -> None:
    assert encode(ResourceContents(uri="a:b", text="")) == {"uri": "a:b", "text": ""}

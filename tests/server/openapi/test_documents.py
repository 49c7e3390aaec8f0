"""Documents good and bad: what is wrong with one operation is its own affair."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from accord import Client, DeclarationError, Server
from accord.server.openapi.document import OpenAPIDocument

from tests.server.openapi.echo import JSON, Echo, answering, body, document, get, parameter

FINE: JSON = {"get": get(operationId="fine")}


def test_a_document_is_a_table_its_text_or_its_file(tmp_path: Path) -> None:
    made = document({"/a": FINE})
    file = tmp_path / "api.json"
    file.write_text(json.dumps(made), encoding="utf-8")
    for source in (made, json.dumps(made), json.dumps(made, indent=1), file, str(file)):
        assert Server("x").add_openapi(source, base_url="http://a.test").tools == ["fine"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{", "not JSON"),
        ("{" * 100_000, "not JSON"),
        ({}, "openapi: 3.x"),
        ({"swagger": "2.0"}, "convert it"),
        ({"openapi": "3.0.0", "paths": []}, "`paths`"),
        ({"openapi": "3.0.0", "info": 1}, "`info`"),
        ("https://api.test/openapi.json", "not downloaded"),
        ("missing.json", "cannot be read"),
        ("a\0b", "cannot be read"),
    ],
)
def test_what_is_no_document_is_refused(source: Any, text: str) -> None:
    with pytest.raises(DeclarationError, match=text):
        Server.from_openapi(source, base_url="http://a.test")


def test_yaml_is_for_those_who_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    (tmp_path / "api.yaml").write_text("openapi: 3.1.0\n", encoding="utf-8")
    with pytest.raises(DeclarationError, match="pip install pyyaml"):
        OpenAPIDocument(tmp_path / "api.yaml")


@pytest.mark.parametrize(
    ("servers", "base"),
    [
        ([{"url": "https://a.test/v1/"}], "https://a.test/v1"),
        ([{"url": "https://{x}.test", "variables": {"x": {"default": "b"}}}], "https://b.test"),
        ([{"url": "/v1"}], None),
        ([], None),
        ("no", None),
        ([{"url": "file:///etc"}], None),
    ],
)
async def test_the_api_is_where_the_document_says_or_base_url(servers: Any, base: str | None) -> None:
    sent: list[str] = []

    async def send(request: Any) -> Any:
        sent.append(request.url)
        raise ValueError

    made, server = document({"/a": FINE}, servers=servers), Server("x")
    if base is None:
        with pytest.raises(DeclarationError, match="base_url="):
            server.add_openapi(made)
        return
    server.add_openapi(made, send=send)
    async with Client(server) as client:
        await client.call_tool("fine")
    assert sent == [f"{base}/a"]


UNUSABLE: dict[str, JSON] = {
    "a reference to elsewhere": body({"$ref": "https://evil.example/schema.json"}),
    "a reference to a file": body({"$ref": "file:///etc/passwd"}),
    "a reference to nothing": body({"type": "object", "properties": {"a": {"$ref": "#/components/schemas/No"}}}),
    "a parameter from elsewhere": get({"$ref": "other.json#/p"}),
    "a parameter of itself": get({"$ref": "#/components/parameters/Loop"}),
    "a parameter without a name": get({"in": "query"}),
    "a parameter at no place": get({"name": "a", "in": "body"}),
    "a style that is none": get(parameter("a", style=["form"])),
    "a style of elsewhere": get(parameter("a", style="matrix")),
    "parameters that are none": {"parameters": {"a": 1}},
    "a body of itself": {"requestBody": {"$ref": "#/components/requestBodies/Loop"}},
    "a schema of itself": body({"$ref": "#/components/schemas/Loop"}),
    "a schema that is none": body({"type": "array", "items": 7}),
    "properties that are none": body({"type": "array", "items": {"properties": []}}),
    "a dynamic reference": body({"type": "array", "items": {"$dynamicRef": "#x"}}),
    "deep nesting": body({"type": "array", "items": json.loads('{"items":' * 200 + "{}" + "}" * 200)}),
    "too much composition": body({"$ref": "#/components/schemas/B30"}),
    "a costly pattern": get(parameter("a", schema={"type": "string", "pattern": "(a{1000}){1000}"})),
    "a pattern that is none": get(parameter("a", schema={"type": "string", "pattern": "("})),
    "a type that is none": get(parameter("a", schema={"type": "text"})),
}
BOMB = {
    f"B{n}": {"allOf": [{"$ref": f"#/components/schemas/B{n - 1}"}, {"$ref": f"#/components/schemas/B{n - 1}"}]}
    for n in range(1, 31)
}
COMPONENTS: JSON = {
    "schemas": {"Loop": {"$ref": "#/components/schemas/Loop"}, "B0": {"type": "object"}, **BOMB},
    "parameters": {"Loop": {"$ref": "#/components/parameters/Loop"}},
    "requestBodies": {"Loop": {"$ref": "#/components/requestBodies/Loop"}},
}


@pytest.mark.parametrize("why", UNUSABLE)
async def test_an_operation_that_cannot_be_used_says_so_and_the_others_stay(
    why: str, caplog: pytest.LogCaptureFixture
) -> None:
    echo = Echo({"/bad": {"post": {**UNUSABLE[why], "operationId": "bad"}}, "/fine": FINE}, components=COMPONENTS)
    server = Server("x")
    assert server.add_fastapi(echo).tools == ["bad", "fine"]
    with caplog.at_level(logging.WARNING, "accord.server"):
        async with Client(server) as client:
            tools = {tool.name: tool for tool in await client.list_tools()}
            assert set(tools) == {"bad", "fine"}
            refused = [await client.call_tool("bad", {"a": "x", "body": {}}) for _ in range(2)]
            assert not (await client.call_tool("fine")).is_error
    for one in refused:
        assert one.is_error
        assert one.text.startswith("POST /bad cannot be called, by what its OpenAPI document says: ")
    assert caplog.text.count("POST /bad cannot be called") == 1
    assert [asked["path"] for asked in echo.asked] == ["/fine"]


@pytest.mark.parametrize("why", ["a reference to elsewhere", "too much composition", "a schema of itself"])
async def test_an_answer_whose_schema_cannot_be_used_is_text(why: str) -> None:
    schema = UNUSABLE[why]["requestBody"]["content"]["application/json"]["schema"]
    server = Server("x")
    server.add_fastapi(Echo({"/a": {"get": {**answering(schema), "operationId": "a"}}}, components=COMPONENTS))
    async with Client(server) as client:
        (tool,) = await client.list_tools()
        assert tool.output_schema is None
        assert not (await client.call_tool("a")).is_error


def test_a_path_that_leads_elsewhere_is_left_out_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    paths = {"/../admin": FINE, "//evil.example": FINE, "/fine": FINE, "/ref": {"$ref": "https://evil.example/x"}}
    imported = Server("x").add_openapi(document(paths), base_url="https://a.test/v1")
    assert imported.tools == ["fine"]
    assert set(imported.left_out) == {"GET /../admin", "GET //evil.example", "GET /ref"}
    assert "only references inside the document" in imported.left_out["GET /ref"]
    assert "GET /../admin of the OpenAPI document is left out" in caplog.text


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["operationId", "parameters", "requestBody", "responses", "tags", "summary", "deprecated", "200", "content"]
KEYS += ["application/json", "schema", "name", "in", "type", "properties", "required", "$ref", "items", "allOf", "enum"]
odd = st.recursive(
    anything | st.sampled_from(["query", "path", "string", "object", "#/paths", "#/components/schemas/A", True]),
    lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=12,
)


@given(odd, odd)
@settings(max_examples=60)
def test_whatever_an_operation_is_made_of_the_others_stay(operation: Any, schema: Any) -> None:
    asyncio.run(stays_among_others(operation, schema))


async def stays_among_others(operation: Any, schema: Any) -> None:
    echo = Echo({"/odd": {"post": operation}, "/fine": FINE}, components={"schemas": {"A": schema}})
    server = Server("x")
    imported = server.add_fastapi(echo)
    async with Client(server) as client:
        assert {tool.name for tool in await client.list_tools()} == set(imported.tools)
        for name in imported.tools:
            result = await client.call_tool(name, {})
    assert imported.tools[-1] == "fine"
    assert not result.is_error

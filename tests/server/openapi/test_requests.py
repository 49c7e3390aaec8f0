"""What a request is made of, as an application in this process gets it: parameters, bodies, forms, files."""

from __future__ import annotations

import base64
import json
from email.parser import BytesParser
from typing import Any

import pytest

from accord import Client, Server, ToolError
from accord.server.openapi.messages import APIAnswer, APIRequest

from tests.server.openapi.echo import JSON, Echo, body, get, parameter


async def asked(paths: JSON, arguments: JSON, **options: Any) -> JSON:
    """What the one operation of a document sends for these arguments."""
    more = {key: options.pop(key) for key in ("components", "version") if key in options}
    echo, server = Echo(paths, **more), Server("echo")
    (name,) = server.add_fastapi(echo, lifespan=False, **options).tools
    async with Client(server) as client:
        result = await client.call_tool(name, arguments)
        assert not result.is_error, result.text
    (request,) = echo.asked
    return request


async def refusal(paths: JSON, arguments: JSON, **options: Any) -> str:
    echo, server = Echo(paths, **options), Server("echo")
    (name,) = server.add_fastapi(echo).tools
    async with Client(server) as client:
        result = await client.call_tool(name, arguments)
    assert result.is_error
    assert not echo.asked
    return result.text


async def schema_of(paths: JSON, **options: Any) -> JSON:
    """The schema of the arguments of the one operation of a document."""
    more = {key: options.pop(key) for key in ("components", "version") if key in options}
    server = Server("echo")
    server.add_fastapi(Echo(paths, **more), **options)
    async with Client(server) as client:
        (tool,) = await client.list_tools()
    return tool.input_schema


async def test_parameters_of_every_place_and_those_of_the_path() -> None:
    item = get(parameter("q"), parameter("X-Team", "header"), parameter("seen", "cookie"))
    paths = {
        "/a/{id}": {"parameters": [parameter("id", "path"), parameter("q", schema={"type": "integer"})], "get": item}
    }
    request = await asked(paths, {"id": "7", "q": "x", "X-Team": "blue", "seen": "no"}, base_url="http://api.test/v1")
    assert (request["method"], request["path"], request["query"]) == ("GET", "/v1/a/7", "q=x")
    headers = request["headers"]
    assert (headers["host"], headers["x-team"], headers["cookie"]) == ("api.test", "blue", "seen=no")
    assert request["body"] == ""


async def test_names_that_collide_say_where_they_stand() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string"}, "name": {}}, "required": ["id"]}
    paths = {"/a/{id}": {"put": {**body(schema), "parameters": [parameter("id", "path"), parameter("name")]}}}
    made = await schema_of(paths)
    assert list(made["properties"]) == ["id__path", "name__query", "id", "name"]
    assert made["required"] == ["id__path", "id"]
    request = await asked(paths, {"id__path": "1", "name__query": "q", "id": "2", "name": [3]})
    assert (request["path"], request["query"], json.loads(request["body"])) == (
        "/a/1",
        "name=q",
        {"id": "2", "name": [3]},
    )


async def test_a_variable_of_the_path_that_nobody_declares_is_text() -> None:
    assert (await asked({"/a/{id}": {"get": get()}}, {"id": "x y"}))["path"] == "/a/x%20y"


async def test_headers_that_are_no_model_s_business_are_no_arguments() -> None:
    names = ["Accept", "Content-Type", "Authorization", "Host", "Content-Length", "Transfer-Encoding", "Cookie", "X-A"]
    made = await schema_of({"/a": {"get": get(*(parameter(name, "header") for name in names))}})
    assert list(made["properties"]) == ["X-A"]


async def test_a_header_ends_at_its_line() -> None:
    paths = {"/a": {"get": get(parameter("X-A", "header"))}}
    assert "control characters" in await refusal(paths, {"X-A": "a\r\nX-Admin: yes"})


async def test_fixed_headers_and_queries_are_no_arguments_and_stand_above_all() -> None:
    paths = {"/a": {"get": get(parameter("X-Key", "header"), parameter("key"), parameter("q"))}}
    fixed: Any = {"headers": {"x-key": "ours"}, "query": {"key": "a&b"}}
    assert list((await schema_of(paths, **fixed))["properties"]) == ["q"]
    request = await asked(paths, {"q": "1"}, **fixed)
    assert (request["query"], request["headers"]["x-key"]) == ("q=1&key=a%26b", "ours")


async def test_no_member_of_an_argument_takes_the_place_of_a_fixed_one() -> None:
    paths = {"/a": {"get": get(parameter("filter", schema={"type": "object"}))}}
    assert (await asked(paths, {"filter": {"a": 1}}, query={"key": "ours"}))["query"] == "a=1&key=ours"
    server = Server("echo")
    server.add_fastapi(Echo({"/a": {"get": {**paths["/a"]["get"], "operationId": "a"}}}), query={"key": "ours"})
    async with Client(server) as client:
        result = await client.call_tool("a", {"filter": {"KEY": "theirs"}})
    assert result.text == "'KEY' in the query is set by the server: leave it out"


async def test_the_only_arm_of_an_all_of_is_the_body() -> None:
    pet = {"type": "object", "properties": {"name": {}}, "required": ["name"]}
    schema = {"allOf": [{"$ref": "#/components/schemas/Pet"}], "description": "A pet"}
    made = await schema_of({"/a": {"post": body(schema)}}, components={"schemas": {"Pet": pet}})
    assert (list(made["properties"]), made["required"]) == (["name"], ["name"])


async def test_a_function_gives_headers_for_each_call() -> None:
    made = iter(["first", "second"])

    async def fresh() -> dict[str, str]:
        return {"Authorization": f"Bearer {next(made)}"}

    assert (await asked({"/a": {"get": get()}}, {}, headers=fresh))["headers"]["authorization"] == "Bearer first"

    def of_the_call(ctx: Any) -> dict[str, str]:
        return {"X-Revision": ctx.revision}

    assert (await asked({"/a": {"get": get()}}, {}, headers=of_the_call))["headers"]["x-revision"] == "2026-07-28"


async def test_a_function_for_headers_that_fails_ends_its_call() -> None:
    def broken() -> dict[str, str]:
        raise RuntimeError("no token")

    server = Server("echo")
    server.add_fastapi(Echo({"/a": {"get": get(operationId="a")}}), headers=broken)
    async with Client(server) as client:
        result = await client.call_tool("a")
    assert result.is_error
    assert result.text == "the function for headers failed: RuntimeError: no token"


# --- bodies -------------------------------------------------------------------------------------------------------


async def test_a_body_without_members_is_one_argument() -> None:
    for schema, value in (({"type": "array", "items": {"type": "integer"}}, [1, 2]), ({"oneOf": [{}]}, {"x": 1})):
        request = await asked({"/a": {"post": body(schema)}}, {"body": value})
        assert json.loads(request["body"]) == value
        assert request["headers"]["content-type"] == "application/json"
    free = {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}}
    assert list((await schema_of({"/a": {"post": body(free)}}))["properties"]) == ["body"]


async def test_a_body_that_may_be_left_out_is_left_out() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}
    paths = {"/a": {"post": body(schema, required=False)}}
    assert (await asked(paths, {}))["body"] == ""
    assert json.loads((await asked(paths, {"a": "1"}))["body"]) == {"a": "1"}
    assert '"a" is a required property' in await refusal(paths, {"b": "1"})


async def test_what_only_answers_have_is_no_argument() -> None:
    pet = {
        "type": "object",
        "required": ["id", "name"],
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "name": {"type": "string"},
            "at": {"$ref": "#/components/schemas/At"},
        },
    }
    at = {"type": "object", "required": ["x"], "properties": {"x": {"type": "integer", "readOnly": True}}}
    components = {"schemas": {"Pet": pet, "At": at}}
    made = await schema_of({"/a": {"post": body({"$ref": "#/components/schemas/Pet"})}}, components=components)
    assert list(made["properties"]) == ["name", "at"]
    assert made["required"] == ["name"]
    assert made["$defs"] == {"At": {"type": "object", "required": [], "properties": {}}}


async def test_a_form_is_encoded_as_its_document_says() -> None:
    schema = {"type": "object", "properties": {"a": {}, "list": {}, "both": {}, "more": {}}}
    paths = {
        "/a": {
            "post": body(
                schema,
                "application/x-www-form-urlencoded",
                encoding={
                    "both": {"style": "form", "explode": False},
                    "more": {"style": "deepObject", "explode": True},
                },
            )
        }
    }
    request = await asked(paths, {"a": {"x": 1}, "list": ["1", "&"], "both": [1, 2], "more": {"k": "v"}})
    assert request["body"] == "a=%7B%22x%22%3A1%7D&list=1&list=%26&both=1,2&more%5Bk%5D=v"
    assert request["headers"]["content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    "file", [{"type": "string", "format": "binary"}, {"type": "string", "contentMediaType": "application/octet-stream"}]
)
async def test_files_travel_as_base64_and_arrive_as_they_are(file: JSON) -> None:
    schema = {
        "type": "object",
        "properties": {
            'a"\r\nb': file,
            "all": {"type": "array", "items": file},
            "note": {"type": "string"},
            "meta": {},
        },
    }
    paths = {"/a": {"post": body({"$ref": "#/components/schemas/Form"}, "multipart/form-data")}}
    components = {"schemas": {"Form": schema}}
    made = await schema_of(paths, components=components)
    assert made["properties"]["all"]["items"] == {"type": "string", "contentEncoding": "base64"}
    data = bytes(range(256))
    given = base64.b64encode(data).decode()
    arguments = {'a"\r\nb': given, "all": [given, given], "note": "ü\r\n--", "meta": {"x": 1}}
    request = await asked(paths, arguments, components=components)
    head = f"Content-Type: {request['headers']['content-type']}\r\n\r\n".encode()
    parts: Any = BytesParser().parsebytes(head + request["body"].encode("latin-1")).get_payload()
    names = [part.get_param("name", header="content-disposition") for part in parts]
    assert names == ["a%22%0D%0Ab", "all", "all", "note", "meta"]
    assert [part.get_payload(decode=True) for part in parts][1:] == [data, data, "ü\r\n--".encode(), b'{"x":1}']
    assert parts[0].get_filename() == "a%22%0D%0Ab"


async def test_bytes_that_are_no_base64_are_refused() -> None:
    assert "base64" in await refusal({"/a": {"put": body({}, "application/octet-stream")}}, {"body": "%"})


async def test_text_and_bytes_as_a_body() -> None:
    request = await asked({"/a": {"put": body({"type": "string"}, "text/plain")}}, {"body": "ü"})
    assert (request["body"].encode("latin-1").decode(), request["headers"]["content-type"]) == ("ü", "text/plain")
    request = await asked({"/a": {"put": body({}, "image/png")}}, {"body": "iVBORw=="})
    assert (request["body"], request["headers"]["content-type"]) == ("\x89PNG", "image/png")


async def test_json_is_chosen_among_several_kinds() -> None:
    operation = body({"type": "string"}, "text/plain")
    operation["requestBody"]["content"]["application/vnd.api+json"] = {"schema": {"type": "integer"}}
    request = await asked({"/a": {"post": operation}}, {"body": 7})
    assert (request["body"], request["headers"]["content-type"]) == ("7", "application/vnd.api+json")


# --- what models write ---------------------------------------------------------------------------------------------


async def test_json_in_a_string_is_read_where_no_string_is_expected() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "o": {"type": "object"}, "s": {"type": "string"}},
    }
    request = await asked({"/a": {"post": body(schema)}}, {"n": "7", "o": '{"a":1}', "s": "7"})
    assert json.loads(request["body"]) == {"n": 7, "o": {"a": 1}, "s": "7"}


async def test_a_function_of_ours_sends_what_was_made() -> None:
    sent: list[APIRequest] = []

    async def send(request: APIRequest) -> APIAnswer:
        sent.append(request)
        if len(sent) > 1:
            raise ToolError("the line is down")
        return APIAnswer(status=200, headers={"content-type": "text/plain; charset=latin-1"}, body=b"\xfc")

    server = Server("own")
    server.add_openapi(Echo({"/a": {"get": get(operationId="a")}}).openapi(), base_url="https://api.test/v1", send=send)
    async with Client(server) as client:
        assert (await client.call_tool("a")).text == "ü"
        assert (await client.call_tool("a")).text == "the line is down"
    assert [request.url for request in sent] == ["https://api.test/v1/a"] * 2

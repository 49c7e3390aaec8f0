"""Documents, answers and arguments that mean harm: each is refused, or harmless, and takes no time worth a word."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import BackgroundTasks, FastAPI

from accord import READS_AS_RESOURCES, Client, DeclarationError, RouteMap, Server
from accord.server.openapi import document as openapi_document

from tests.measure import assert_linear
from tests.server.openapi.echo import JSON, Echo, always, answering, body, document, get, parameter


async def called(app: Any, arguments: JSON, **options: Any) -> tuple[bool, str]:
    """Whether a call of the first tool of an application is an error, and its text."""
    server = Server("api")
    name = server.add_fastapi(app, **options).tools[0]
    async with Client(server) as client:
        result = await client.call_tool(name, arguments)
    return bool(result.is_error), result.text


ID = {"$ref": "#/components/schemas/Id"}


# --- documents -------------------------------------------------------------------------------------------------


async def test_a_schema_that_is_in_its_own_arms_twice_is_read_at_once() -> None:
    schema = {"allOf": [{"$ref": "#/components/schemas/A"}] * 2}
    app = Echo({"/a": {"get": answering({"$ref": "#/components/schemas/A"})}}, components={"schemas": {"A": schema}})
    async with asyncio.timeout(100):
        assert not (await called(app, {}))[0]


async def test_one_schema_in_a_million_places_is_refused() -> None:
    schema: JSON = {"type": "object"}
    for _ in range(20):
        schema = {"properties": {"x": schema, "y": schema}}
    failed, text = await called(Echo({"/a": {"post": body(schema)}}), {})
    assert failed
    assert "more than 5,000 schemas" in text


def yaml_document(levels: int, **more: str) -> str:
    """A short YAML document with a schema that is used twice in the next one, and so on."""
    text = "openapi: 3.1.0\ninfo: {title: api, version: '1'}\na0: &a0 {type: string}\n"
    for level in range(1, levels + 1):
        text += f"a{level}: &a{level} {{properties: {{x: *a{level - 1}, y: *a{level - 1}}}}}\n"
    return text + "".join(f"{name}: {value}\n" for name, value in more.items())


@pytest.mark.parametrize("name", ["openapi", "x-logo"])
def test_yaml_aliases_that_make_a_document_of_gigabytes_are_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match="aliases add more than 10,000,000 characters"):
        Server.from_openapi(yaml_document(60, **{name: "*a60"}), base_url="http://a.test")


def test_yaml_aliases_up_to_the_limit_are_accepted() -> None:
    padding = "x" * 999_900
    text = yaml_document(0, text=f"&text {padding}", copies=f"[{', '.join(['*text'] * 9)}]")
    assert Server.from_openapi(text, base_url="http://a.test").name == "api"
    with pytest.raises(DeclarationError, match="aliases add more than"):
        Server.from_openapi(text.replace("copies: [", "copies: [*text, *text, "), base_url="http://a.test")


def test_each_list_of_a_yaml_document_is_counted_once_however_many_aliases_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[Any] = []

    def count(node: Any) -> list[Any]:
        counted.extend(inner_nodes(node))
        return inner_nodes(node)

    inner_nodes = openapi_document._inner_nodes
    monkeypatch.setattr(openapi_document, "_inner_nodes", count)
    text = yaml_document(0, items=f"&items [{'x, ' * 500}]", lists=f"[{'*items, ' * 500}]")
    assert Server.from_openapi(text, base_url="http://a.test").name == "api"
    assert len(counted) < 5_000


def test_a_yaml_alias_that_contains_itself_is_refused() -> None:
    with pytest.raises(DeclarationError, match="an alias contains itself"):
        Server.from_openapi(yaml_document(1, loop="&loop [{in: *loop}]"), base_url="http://a.test")


@pytest.mark.parametrize(
    "value",
    [
        *("2026-13-01", "9" * 5_000, "!!int x", "!!int ''", "!!bool x", "!!timestamp x"),
        *("1" + ":0" * 400 + ".5", "1" + ":0" * 2_200, "0x" + "f" * 4_400),
    ],
)
def test_a_yaml_value_that_does_not_fit_its_tag_is_refused(value: str) -> None:
    with pytest.raises(DeclarationError, match="the text is not an OpenAPI document"):
        Server.from_openapi(yaml_document(0, value=value), base_url="http://a.test")


async def test_a_pattern_that_takes_seconds_to_be_read_is_refused_in_few_words() -> None:
    hostile = parameter("q", schema={"type": "string", "pattern": "(a+)+$" * 100_000})
    failed, text = await called(Echo({"/a": {"get": get(hostile)}}), {"q": "a"})
    assert failed
    assert "pattern" in text
    assert len(text) < 1_500


def test_an_index_of_any_length_leads_nowhere() -> None:
    imported = Server("api").add_openapi(
        document({"/a": {"$ref": "#/servers/" + "9" * 5_000}}, servers=[{"url": "http://api.test"}])
    )
    assert "which does not exist" in imported.left_out["GET /a"]


@pytest.mark.parametrize(
    "operation",
    [
        body({"type": "object", "properties": {True: {"type": "string"}}}),  # in YAML that is `on:`
        body({"type": "object", "properties": {"a": {"type": "string"}}, "required": [[]]}),
        body({"type": "string", "default": {None: {}}}),
        body({"type": "string", "default": "\ud800"}),
        answering({"$ref": {}}),
        answering({}, media="text/\ud800"),
        get(summary="\ud800", description="\ud800"),
        answering({"type": "object"}, media=True),  # type: ignore[arg-type]
        get(parameter("q", content={b"x": {}})),
    ],
)
async def test_what_is_odd_in_one_operation_does_not_take_the_others_along(operation: JSON) -> None:
    server = Server("api")
    paths: dict[Any, Any] = {"/a": {"post": operation}, "/b": {"get": get()}, "x-more": {"get": 5}, 7: {}}
    server.add_fastapi(Echo(paths))
    async with Client(server) as client:
        assert {tool.name for tool in await client.list_tools()} == {"post_a", "get_b"}
        assert not (await client.call_tool("get_b")).is_error


def test_variables_of_a_server_are_filled_in_once() -> None:
    variables = {f"v{at}": {"default": f"{{v{at + 1}}}" * 10} for at in range(60)}
    with pytest.raises(DeclarationError, match=r"v1.*is not a valid base_url"):
        Server("api").add_openapi(document({}, servers=[{"url": "http://{v0}/", "variables": variables}]))


def test_thousands_of_operations_of_one_name_are_distinguished_in_linear_time() -> None:
    def told_apart(operations: int) -> None:
        paths = {f"/a{at}": {"get": {**get(), "operationId": "same"}} for at in range(operations)}
        tools = Server("api").add_openapi(document(paths), base_url="http://api.test").tools
        assert len(set(tools)) == operations

    assert_linear(told_apart, 1_000)


def test_a_password_in_a_base_is_in_no_error() -> None:
    with pytest.raises(DeclarationError) as refused:
        Server("api").add_openapi(document({}), base_url="http://user:sesame@api.test/v1")
    assert "sesame" not in str(refused.value)


async def test_read_only_members_are_no_arguments_wherever_they_are_declared() -> None:
    whole = {"type": "object", "required": ["id", "name"], "properties": {"id": ID, "name": {"type": "string"}}}
    inner = {"type": "object", "properties": {"all": {"type": "array", "items": whole}}, "required": ["all"]}
    paths = {"/a": {"post": body(whole)}, "/b": {"post": body(inner)}}
    echo, server = Echo(paths, components={"schemas": {"Id": {"type": "integer", "readOnly": True}}}), Server("api")
    server.add_fastapi(echo)
    async with Client(server) as client:
        assert not (await client.call_tool("post_a", {"name": "x"})).is_error
        assert not (await client.call_tool("post_b", {"all": [{"name": "x"}]})).is_error
        a, b = await client.list_tools()
    assert list(a.input_schema["properties"]) == ["name"]
    assert list(b.input_schema["properties"]["all"]["items"]["properties"]) == ["name"]


async def test_headers_that_say_how_a_request_travels_are_no_arguments() -> None:
    names = ["Proxy-Authorization", "Expect", "Keep-Alive", "Content-Encoding", "X-Forwarded-For", "Forwarded"]
    server = Server("api")
    server.add_fastapi(Echo({"/a": {"get": get(*(parameter(name, "header") for name in names))}}))
    async with Client(server) as client:
        (tool,) = await client.list_tools()
    assert tool.input_schema["properties"] == {}


async def test_what_makes_another_operation_of_a_request_is_no_argument() -> None:
    names = ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL"]
    server = Server("api")
    names += [name.replace("-", "_") for name in names]
    headers = [parameter(name, "header") for name in names]
    server.add_fastapi(Echo({"/a": {"post": get(*headers, parameter("_method"), parameter("method"))}}))
    async with Client(server) as client:
        (tool,) = await client.list_tools()
    assert list(tool.input_schema["properties"]) == ["method"]


@pytest.mark.parametrize("media", ["application/x-www-form-urlencoded", "multipart/form-data", "application/json"])
@pytest.mark.parametrize("name", ["_method", "_METHOD", ".method", "_method[]", "_method\0"])
async def test_no_member_of_a_body_chooses_the_method_of_a_skipped_operation(media: str, name: str) -> None:
    echo = Echo({"/a": {"post": body({"type": "object"}, media), "delete": get()}})
    routes = [RouteMap(methods={"DELETE"}, into="skip")]
    for method in ("delete", ["DELETE"]):
        failed, text = await called(echo, {"body": {name: method}}, routes=routes)
        assert failed
        assert "another operation" in text
    assert echo.asked == []
    assert not (await called(echo, {"body": {name: "PUT", "method": "DELETE"}}, routes=routes))[0]


async def test_no_member_of_a_query_chooses_the_method_of_a_skipped_operation() -> None:
    echo = Echo({"/a": {"post": get(parameter("q", schema={"type": "object"})), "delete": get()}})
    routes = [RouteMap(methods={"DELETE"}, into="skip")]
    assert (await called(echo, {"q": {"_method": "DELETE"}}, routes=routes))[0]
    assert echo.asked == []
    assert not (await called(echo, {"q": {"_method": "PUT"}}, routes=routes))[0]


async def test_variables_of_a_template_that_become_alike_stay_apart() -> None:
    echo, server = Echo({"/x/{a-b}/{a_b}": {"get": get()}}), Server("api")
    server.add_fastapi(echo, routes=READS_AS_RESOURCES)
    async with Client(server) as client:
        await client.read_resource("api://x/1/2")
    assert echo.asked[0]["path"] == "/x/1/2"


# --- arguments -------------------------------------------------------------------------------------------------


def users() -> FastAPI:
    app = FastAPI()

    @app.get("/users/all")
    async def everyone() -> str:
        return "SECRET"

    @app.get("/users/{name}")
    async def user(name: str) -> str:
        return f"user {name}"

    @app.get("/users/{name}/secrets")
    async def secrets(name: str) -> str:
        return "SECRET"

    return app


SKIPPED = [RouteMap(pattern="secrets|all", into="skip")]


@pytest.mark.parametrize(
    "name", ["7/secrets", "7%2Fsecrets", "7\\secrets", "7%5csecrets", "all", "%61ll", "ALL", "all;x"]
)
async def test_no_argument_leads_to_an_operation_that_was_skipped(name: str) -> None:
    failed, text = await called(users(), {"name": name}, routes=SKIPPED)
    assert "SECRET" not in text
    assert failed  # also what only a server that decodes twice, or ignores case, takes for it


def things(app: Any) -> Server:
    server = Server("api")
    routes = [RouteMap(pattern="^/(tenants|files|v[^/]*/keys)|secrets$|^/report", into="skip")]
    server.add_fastapi(app, routes=routes, slashes=["rest"])
    return server


def generic() -> FastAPI:
    app = FastAPI()

    @app.delete("/tenants/{id}")
    @app.delete("/users/{id}/secrets")
    @app.delete("/files/{path:path}")
    @app.delete("/v{version}/keys")
    @app.delete("/report-{year}.csv")
    async def skipped() -> str:
        return "SECRET"

    @app.delete("/users/{id}/posts", operation_id="posts")
    async def posts(id: str) -> str:
        return f"posts of {id}"

    @app.delete("/users/{id}/{part}", operation_id="part")
    async def part(id: str, part: str) -> str:
        return f"{part} of {id}"

    @app.delete("/{kind}/{id}", operation_id="thing")
    async def thing(kind: str, id: str) -> str:
        return f"{kind} {id}"

    @app.delete("/{kind}/{rest:path}/at", operation_id="deep")
    async def deep(kind: str, rest: str) -> str:
        return f"{kind} {rest}"

    @app.delete("/{name}", operation_id="one")
    async def one(name: str) -> str:
        return name

    return app


REACHING: list[tuple[str, JSON]] = [
    ("thing", {"kind": "tenants", "id": "7"}),
    ("thing", {"kind": "Tenants", "id": "7"}),
    ("thing", {"kind": "%74enants", "id": "7"}),
    ("thing", {"kind": "tenants;v=1", "id": "7"}),
    ("thing", {"kind": "\uff54enants", "id": "7"}),
    ("thing", {"kind": "files", "id": "plan.md"}),
    ("thing", {"kind": "v2", "id": "keys"}),
    ("thing", {"kind": "V2", "id": "KEYS"}),
    ("part", {"id": "7", "part": "secrets"}),
    ("part", {"id": "7", "part": "secrets "}),
    ("deep", {"kind": "files", "rest": "a/b"}),
    ("deep", {"kind": "x", "rest": "../files/a"}),
    ("one", {"name": "report-2026.csv"}),
    ("part", {"id": "7", "part": "secrets.json"}),
    ("part", {"id": "7", "part": "secrets."}),
    ("part", {"id": "7", "part": "secrets?x"}),
    ("part", {"id": "7", "part": "secrets%23x"}),
]


@pytest.mark.parametrize(("name", "arguments"), REACHING)
async def test_a_generic_operation_does_not_reach_a_skipped_one(name: str, arguments: JSON) -> None:
    async with Client(things(generic())) as client:
        result = await client.call_tool(name, arguments)
    assert result.is_error
    assert "SECRET" not in result.text


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("posts", {"id": "7"}),
        ("part", {"id": "7", "part": "letters"}),
        ("part", {"id": "7", "part": "secrets.ann"}),
        ("thing", {"kind": "rooms", "id": "tenants"}),
        ("thing", {"kind": "v2", "id": "locks"}),
        ("one", {"name": "report.csv"}),
        ("one", {"name": "tenants"}),
        ("deep", {"kind": "rooms", "rest": "a"}),
    ],
)
async def test_what_reaches_no_skipped_operation_is_sent(name: str, arguments: JSON) -> None:
    async with Client(things(generic())) as client:
        assert not (await client.call_tool(name, arguments)).is_error


async def test_a_template_that_says_more_than_a_skipped_one_is_sent() -> None:
    paths = {f"/users/{{id}}/{part}": {"get": get(parameter("id", "path"))} for part in ("posts", "{part}", "a-{part}")}
    paths["/users/{id}/{part}"]["get"]["parameters"].append(parameter("part", "path"))
    paths["/users/{id}/a-{part}"]["get"]["parameters"].append(parameter("part", "path"))
    echo, server = Echo(paths), Server("api")
    tools = server.add_fastapi(echo, routes=lambda route: "skip" if route.path.endswith("/{part}") else None).tools
    async with Client(server) as client:
        for name, more in zip(tools, ({}, {"part": "x"}), strict=True):
            assert not (await client.call_tool(name, {"id": "7", **more})).is_error
    assert [one["path"] for one in echo.asked] == ["/users/7/posts", "/users/7/a-x"]


async def test_a_skipped_get_is_not_reached_by_head() -> None:
    item = {"parameters": [parameter("kind", "path"), parameter("id", "path")]}
    paths = {"/tenants/{id}": {"get": get(parameter("id", "path"))}, "/{kind}/{id}": {**item, "head": get()}}
    failed, _ = await called(
        Echo(paths), {"kind": "tenants", "id": "7"}, routes=[RouteMap(pattern="^/tenants", into="skip")]
    )
    assert failed


async def test_an_operation_that_is_offered_may_be_met_and_slashes_may_be_allowed() -> None:
    echo = Echo({"/projects/{id}": {"get": get(parameter("id", "path"))}})
    assert not (await called(echo, {"id": "group/project"}, slashes=["id"]))[0]
    assert echo.asked[0]["path"] == "/projects/group%2Fproject"


# --- answers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("charset", ["undefined", "idna", "punycode", "unicode_escape", "a\0b", "hex", "x" * 5_000, ""])
async def test_a_charset_that_no_text_has_is_read_as_utf_8(charset: str) -> None:
    app = Echo({"/a": {"get": get()}}, always("ü\\n".encode(), media=f"text/plain; charset={charset}"))
    assert await called(app, {}) == (False, "ü\\n")


@pytest.mark.parametrize("charset", ["latin1", "ISO-8859-1", "windows-1252", '"utf-16-be"', "Shift_JIS", "koi8-r"])
async def test_a_charset_of_texts_is_heeded(charset: str) -> None:
    content = "b".encode(charset.strip('"'))
    app = Echo({"/a": {"get": get()}}, always(content, media=f"text/plain; charset={charset}"))
    assert await called(app, {}) == (False, "b")


async def test_an_answer_that_is_nested_without_end_is_text() -> None:
    app = Echo({"/a": {"get": answering({"type": "array"})}}, always(b"[" * 800 + b"null" + b"]" * 800))
    failed, text = await called(app, {})
    assert failed
    assert "nested" in text.partition("\n")[0]


async def test_an_answer_that_is_withheld_from_the_caller_is_not_quoted() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    app = Echo({"/a": {"get": answering(schema)}}, always({"a": "private"}))
    failed, text = await called(app, {}, strict=True)
    assert failed
    assert "$.a" in text
    assert "private" not in text


async def test_a_secret_is_in_no_error_about_a_header_either() -> None:
    app = Echo({"/a": {"get": get()}}, always("", 429, retry_after="sesame-sesame"))
    failed, text = await called(app, {}, headers={"Authorization": "Bearer sesame-sesame"})
    assert failed
    assert "sesame" not in text


async def test_a_key_of_the_query_is_in_no_error_as_it_is_sent() -> None:
    def repeat(asked: JSON) -> tuple[int, dict[str, str], bytes]:
        return 500, {"content-type": "text/plain"}, asked["query"].encode()

    failed, text = await called(Echo({"/a": {"get": get()}}, repeat), {}, query={"k": "abc+def/ghi=="})
    assert failed
    assert "abc" not in text


# --- an application in this process ----------------------------------------------------------------------------


async def test_what_an_application_does_after_its_answer_is_not_waited_for_and_not_cut() -> None:
    app, go, done = FastAPI(), asyncio.Event(), asyncio.Event()

    async def later() -> None:
        await go.wait()
        done.set()

    @app.get("/a")
    async def answer(background: BackgroundTasks) -> str:
        background.add_task(later)
        return "sent"

    server = Server("api")
    server.add_fastapi(app, timeout=20)
    async with Client(server) as client:
        assert (await client.call_tool("answer", {})).text == '"sent"'
        assert not done.is_set()
        go.set()
        async with asyncio.timeout(100):
            await done.wait()


async def test_what_fails_after_the_answer_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    app = FastAPI()

    def later() -> None:
        raise RuntimeError("no mail today")

    @app.get("/a")
    async def answer(background: BackgroundTasks) -> str:
        background.add_task(later)
        return "sent"

    assert await called(app, {}) == (False, '"sent"')
    assert "failed after its answer" in caplog.text


async def test_a_request_that_is_not_answered_in_time_is_not_worked_on_any_more() -> None:
    ended = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

    app.openapi = lambda: document({"/a": {"get": get()}})  # type: ignore[attr-defined]
    failed, text = await called(app, {}, timeout=0.05)
    assert failed
    assert "not answered within" in text
    async with asyncio.timeout(100):
        await ended.wait()


async def test_an_answer_without_end_is_cut_even_if_the_application_goes_on() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            try:
                await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
            except Exception:
                await asyncio.sleep(0)

    app.openapi = lambda: document({"/a": {"get": get()}})  # type: ignore[attr-defined]
    async with asyncio.timeout(100):
        failed, text = await called(app, {})
    assert failed
    assert "larger than" in text

"""Which operation becomes what, what it is called, and what happens where a name is taken."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord import Client, DeclarationError, ResourceNotFound, Server
from accord.errors import ProtocolError
from accord.server.openapi.importer import OperationNames
from accord.server.openapi.operation import Route
from accord.server.openapi.routes import READS_AS_RESOURCES, RouteMap, decide

from tests.server.openapi.echo import JSON, Echo, always, answering, body, get, parameter

PETS: JSON = {
    "/pets": {
        "get": {**answering({"type": "array"}), "operationId": "list_pets", "parameters": [parameter("limit")]},
        "post": {**body({"type": "object", "properties": {"name": {}}}), "operationId": "add_pet", "tags": ["writes"]},
    },
    "/pets/{pet-id}": {
        "get": {**get(parameter("pet-id", "path"), parameter("part")), "operationId": "get_pet", "summary": "A pet"}
    },
    "/admin/keys": {"get": get(operationId="keys", tags=["internal"])},
}


def pets(**options: Any) -> tuple[Server, Echo, Any]:
    echo, server = Echo(PETS), Server("pets")
    return server, echo, server.add_fastapi(echo, **options)


def test_everything_is_a_tool_unless_a_route_map_says_otherwise() -> None:
    _, _, imported = pets()
    assert imported.tools == ["list_pets", "add_pet", "get_pet", "keys"]
    assert (imported.resources, imported.templates, imported.left_out) == ([], [], {})


async def test_what_is_only_read_may_be_resources() -> None:
    server, echo, imported = pets(
        routes=[RouteMap(pattern="^/admin", into="skip"), *READS_AS_RESOURCES], slashes=["pet-id"]
    )
    assert (imported.tools, imported.resources) == (["add_pet"], ["api://pets"])
    assert imported.templates == ["api://pets/{pet_id}{?part}"]
    async with Client(server) as client:
        (resource,) = await client.list_resources()
        assert (resource.name, resource.mime_type) == ("list_pets", "application/json")
        (template,) = await client.list_resource_templates()
        assert (template.name, template.title) == ("get_pet", "A pet")
        await client.read_resource("api://pets")
        await client.read_resource("api://pets/7%2F8?part=%26a")
        with pytest.raises(ProtocolError, match="leads out of the path"):
            await client.read_resource("api://pets/%2E%2E")
    assert [(one["path"], one["query"]) for one in echo.asked] == [("/pets", ""), ("/pets/7%2F8", "part=%26a")]


async def test_a_resource_that_is_not_there_is_not_found() -> None:
    server = Server("pets")
    app = Echo({"/pets/{id}": {"get": get(parameter("id", "path"))}}, always({}, status=404))
    server.add_fastapi(app, routes=READS_AS_RESOURCES, prefix="zoo 1")
    async with Client(server) as client:
        with pytest.raises(ResourceNotFound, match="zoo-1://pets/7"):
            await client.read_resource("zoo-1://pets/7")


async def test_bytes_of_a_resource_stay_bytes() -> None:
    server = Server("pets")
    operation = answering({}, media="image/png")
    server.add_fastapi(
        Echo({"/face": {"get": operation}}, always(b"\x89PNG", media="image/png")), routes=READS_AS_RESOURCES
    )
    async with Client(server) as client:
        (contents,) = (await client.read_resource("api://face")).contents
    assert (contents.blob, contents.mime_type) == ("iVBORw==", "image/png")


async def test_what_must_be_given_makes_a_template_and_what_a_uri_cannot_say_is_left_out() -> None:
    paths = {
        "/find": {"get": get({**parameter("q"), "required": True}, operationId="find")},
        "/who": {"get": get({**parameter("X-Who", "header"), "required": True}, operationId="who")},
    }
    imported = Server("x").add_fastapi(Echo(paths), routes=[RouteMap(into="resource")])
    assert imported.templates == ["api://find{?q}"]
    assert "make it a tool" in imported.left_out["GET /who"]


def test_a_function_may_decide() -> None:
    def choose(route: Route) -> Any:
        return "skip" if "internal" in route.tags else "resource" if route.method == "GET" else None

    _, _, imported = pets(routes=choose)
    assert imported.tools == ["add_pet"]
    assert imported.templates == ["api://pets/{pet_id}"]


def test_the_first_row_that_fits_decides() -> None:
    route = Route(method="GET", path="/a/b", tags=frozenset({"x", "y"}))
    rows = [
        RouteMap(methods={"POST"}, into="skip"),
        RouteMap(pattern="^/b", into="skip"),
        RouteMap(tags={"x", "z"}, into="skip"),
        RouteMap(methods=["get"], pattern="/b$", tags={"x"}, into="resource"),
        RouteMap(into="skip"),
    ]
    assert decide(rows, route) == "resource"
    assert decide((), route) == "tool"


@pytest.mark.parametrize(
    "row", [{"into": "tols"}, {"into": "tool", "pattern": "("}, {"into": "tool", "methods": "GET"}]
)
def test_a_row_that_cannot_work_is_refused(row: Any) -> None:
    with pytest.raises(DeclarationError):
        RouteMap(**row)


def test_a_function_that_says_something_else_is_refused() -> None:
    with pytest.raises(DeclarationError, match="tool, resource, template, skip"):
        decide(lambda route: "prompt", Route(method="GET", path="/"))  # type: ignore[arg-type, return-value]


# --- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("id", "method", "path", "name"),
    [
        ("listPets", "GET", "/pets", "listPets"),
        ("pets/list all", "GET", "/pets", "pets_list_all"),
        ("read_item_items__item_id__get", "GET", "/items/{item_id}", "read_item"),
        ("items__item_id__get", "GET", "/items/{item_id}", "items__item_id__get"),
        (None, "GET", "/items/{item_id}/x.y", "get_items_item_id_x.y"),
        ("日本", "POST", "/日本", "post"),
        (None, "GET", "/", "get"),
        ("x" * 200, "GET", "/", "x" * 128),
    ],
)
def test_names_are_short_and_valid(id: str | None, method: str, path: str, name: str) -> None:
    assert OperationNames({}, None).name_for(Route(method=method, path=path, id=id)) == name


@given(st.lists(st.text(max_size=140), max_size=8), st.sampled_from([None, "p", "p" * 130]))
def test_names_are_valid_and_unique_whatever_they_are_made_of(ids: list[str], prefix: str | None) -> None:
    names = OperationNames({}, prefix)
    given_names = [names.name_for(Route(method="GET", path="/a", id=id)) for id in ids]
    assert len(set(given_names)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", name) for name in given_names)


def test_names_can_be_chosen_and_have_a_prefix() -> None:
    _, _, imported = pets(names={"keys": "api_keys"}, prefix="zoo")
    assert imported.tools == ["zoo_list_pets", "zoo_add_pet", "zoo_get_pet", "zoo_api_keys"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"names": {"key": "x"}}, "unknown operations: key"),
        ({"base": "https://a.test"}, "unknown option 'base'; the options are base_url, routes"),
        ({"base_url": "ftp://a.test"}, "not a valid base_url"),
        ({"headers": {"x": "a\n"}}, "control characters"),
        ({"forward": "authorization"}, 'forward=\\["authorization"'),
        ({"headers": "x: a"}, "headers= must be a mapping"),
        ({"query": "key=a"}, "query= is a mapping"),
        ({"names": ["keys"]}, "names= is a mapping"),
        ({"tags": "zoo"}, "tags={'zoo'}"),
        ({"routes": [("GET", "skip")]}, "RouteMap"),
    ],
)
def test_options_that_cannot_work_are_refused(options: Any, text: str) -> None:
    with pytest.raises(DeclarationError, match=text):
        pets(**options)


def test_a_chosen_name_that_is_none_leaves_its_operation_out() -> None:
    _, _, imported = pets(names={"keys": "all keys"})
    assert "'all keys' is not a valid name" in imported.left_out["GET /admin/keys"]


def test_where_a_name_is_taken_nothing_is_imported() -> None:
    server = Server("pets")
    server.tool("get_pet")(lambda: "x")
    with pytest.raises(DeclarationError, match="tool 'get_pet' already"):
        server.add_fastapi(Echo(PETS))
    assert set(server.registry.tools) == {"get_pet"}
    server.add_fastapi(Echo(PETS), prefix="zoo")
    assert len(server.registry.tools) == 5


async def test_tags_of_the_document_and_of_ours_show_and_hide() -> None:
    server, _, _ = pets(tags={"pets"})
    server.add_fastapi(Echo(PETS), prefix="other")
    server.disable(tags={"internal"})
    async with Client(server) as client:
        names = {tool.name for tool in await client.list_tools()}
        assert "keys" not in names
        assert "list_pets" in names
    server.disable(tags={"pets"})
    async with Client(server) as client:
        assert {tool.name for tool in await client.list_tools()} == {
            "other_list_pets",
            "other_add_pet",
            "other_get_pet",
        }

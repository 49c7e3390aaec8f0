"""Pages as a host reads them: `tool.ui`, `client.read_ui`, and what a hostile server writes into the metadata."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from accord import APPS, CSP, Client, Server, ToolUI
from accord.errors import LocalProtocolError, RemoteProtocolError
from accord.messages.apps import APP_MIME_TYPE
from accord.sync import Client as SyncClient
from accord.types import ResourceContents, Tool

PAGE = "<!doctype html><title>Sales</title><script data-accord></script>"
URI = "ui://shop/sales"


def tool(meta: Any) -> Tool:
    return Tool(name="sales", input_schema={}, meta=meta)


@pytest.mark.parametrize(
    ("meta", "ui"),
    [
        (None, None),
        ({}, None),
        ({"ui": {"resourceUri": URI}}, ToolUI(resource_uri=URI)),
        ({"ui": {"resourceUri": URI, "visibility": ["app", "x", 1]}}, ToolUI(resource_uri=URI, visibility=("app",))),
        ({"ui": {"visibility": ["model"]}}, ToolUI(visibility=("model",))),
        ({"ui": {"visibility": []}}, ToolUI(visibility=())),
        ({"ui/resourceUri": URI}, ToolUI(resource_uri=URI)),
        ({"ui": {"resourceUri": "https://evil.example"}}, None),
        ({"ui": {"resourceUri": 1, "visibility": "app"}}, None),
        ({"ui": "ui://a"}, None),
    ],
)
def test_the_page_of_a_tool_is_read_from_its_metadata(meta: Any, ui: ToolUI | None) -> None:
    assert tool(meta).ui == ui


async def test_a_page_is_read_with_what_it_may_use() -> None:
    server = Server("shop")
    csp = CSP(connect=("https://api.example.com",))
    page = server.add_ui(URI, PAGE, csp=csp, permissions=["camera"], domain="a.example", border=True)
    server.tool(name="sales", ui=page)(lambda: "1")
    async with Client(server, extensions=[APPS]) as client:
        (listed,) = await client.list_tools()
        found = await client.read_ui(listed)
    assert (found.uri, found.html, found.csp) == (URI, page.document, csp)
    assert (found.permissions, found.domain, found.border, found.ignored) == (("camera",), "a.example", True, ())
    with SyncClient(server) as blocking:
        assert blocking.read_ui(blocking.list_tools()[0]) == found


def serving(contents: ResourceContents) -> Server:
    server = Server("shop")
    server.resource(URI, name="sales")(lambda: contents)
    server.tool(name="sales", meta={"ui": {"resourceUri": URI}})(lambda: "1")
    server.tool(name="plain")(lambda: "1")
    return server


async def read(contents: ResourceContents) -> Any:
    async with Client(serving(contents)) as client:
        return await client.read_ui((await client.list_tools())[0])


async def test_what_a_hostile_server_writes_into_the_metadata_is_left_out() -> None:
    ui = {
        "csp": {
            "connectDomains": ["https://a.example", "'unsafe-eval'; script-src *", 7, "http://localhost"],
            "resourceDomains": "https://a.example",
            "frameDomains": None,
        },
        "permissions": {"camera": {}, "usb": {}, "microphone": True},
        "domain": "a.example;\n",
        "prefersBorder": "yes",
    }
    found = await read(ResourceContents(uri=URI, mime_type=APP_MIME_TYPE, text=PAGE, meta={"ui": ui}))
    assert found.csp == CSP(connect=("https://a.example",))
    assert found.ignored == ("'unsafe-eval'; script-src *", "7", "http://localhost")
    assert (found.permissions, found.domain, found.border) == (("camera",), None, None)


async def test_a_page_may_be_base64() -> None:
    blob = base64.b64encode(PAGE.encode()).decode()
    found = await read(ResourceContents(uri=URI, mime_type="text/html; profile=mcp-app", blob=blob))
    assert found.html == PAGE


@pytest.mark.parametrize(
    ("contents", "part"),
    [
        (ResourceContents(uri=URI, mime_type="text/html", text=PAGE), "is not a page: it has 'text/html'"),
        (ResourceContents(uri=URI, mime_type=APP_MIME_TYPE, blob="/w=="), "not UTF-8 in Base64"),
        (ResourceContents(uri=URI, mime_type=APP_MIME_TYPE, blob="!"), "not UTF-8 in Base64"),
    ],
)
async def test_a_resource_that_is_no_page_is_an_error(contents: ResourceContents, part: str) -> None:
    with pytest.raises(RemoteProtocolError, match=part):
        await read(contents)


async def test_a_tool_without_a_page_is_an_error() -> None:
    async with Client(serving(ResourceContents(uri=URI, text=PAGE))) as client:
        with pytest.raises(LocalProtocolError, match="'plain' has no page"):
            await client.read_ui((await client.list_tools())[1])

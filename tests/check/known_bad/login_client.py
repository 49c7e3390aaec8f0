"""A client on the official Python SDK 2 that logs in and calls every tool: `login_client.py URL`.

It visits the authorization URL itself, as a checked client has to. Each failed call is a line on stderr.
"""

from __future__ import annotations

import asyncio
import os
import sys
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import parse_qs, urlsplit

import mcp.client.session
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

SECONDS = 2
REDIRECT_URI = "http://127.0.0.1:33418/callback"


class Stored:
    """Tokens and client information, for this run."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client_info: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client_info

    async def set_client_info(self, client_info: Any) -> None:
        self.client_info = client_info


class Manual(urllib.request.HTTPRedirectHandler):
    """Follows no redirect."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Browser:
    """A user who consents at once."""

    def __init__(self) -> None:
        self.callback = ""

    async def visit(self, url: str) -> None:
        def location() -> str:
            try:
                with urllib.request.build_opener(Manual).open(url):
                    return ""
            except urllib.error.HTTPError as found:
                return found.headers.get("Location", "")

        self.callback = await asyncio.to_thread(location)

    async def wait(self) -> Any:
        found = {name: values[0] for name, values in parse_qs(urlsplit(self.callback).query).items()}
        return AuthorizationCodeResult(code=found.get("code", ""), state=found.get("state"), iss=found.get("iss"))


async def tried(operation: Any) -> Any:
    try:
        async with asyncio.timeout(SECONDS):
            return await operation
    except Exception as exc:
        print(f"{type(exc).__name__}: {exc}", file=sys.stderr)
        return None


def value(schema: dict[str, Any]) -> Any:
    return {"integer": 1, "boolean": True, "number": 1.5, "array": []}.get(schema.get("type", ""), "text")


async def main(url: str) -> None:
    browser = Browser()
    metadata = OAuthClientMetadata(
        client_name="login client",
        redirect_uris=[REDIRECT_URI],
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",
    )
    auth = OAuthClientProvider(url, metadata, Stored(), browser.visit, browser.wait)
    revision = os.environ.get("ACCORD_CHECK_REVISION", "")
    if revision not in MODERN_PROTOCOL_VERSIONS and revision:
        mcp.client.session.LATEST_HANDSHAKE_VERSION = revision
    mode = revision if revision in MODERN_PROTOCOL_VERSIONS else "legacy"
    async with (
        create_mcp_http_client(auth=auth) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        listed = await tried(client.list_tools())
        for tool in listed.tools if listed else []:
            fields = tool.input_schema.get("properties", {})
            await tried(client.call_tool(tool.name, {name: value(field) for name, field in fields.items()}))
        await tried(client.list_prompts())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

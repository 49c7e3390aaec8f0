"""Who is answered: every combination of what a request can lie about is refused, unless all of it is right."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from accord.inspector.app import Inspector

HOST = "127.0.0.1:6274"
RIGHT = {
    "host": HOST,
    "origin": f"http://{HOST}",
    "sec-fetch-site": "same-origin",
    "content-type": "application/json",
}
WRONG = {
    "method": ("GET", "PUT", "OPTIONS", "HEAD"),
    "host": ("localhost:6274", "evil.example", "127.0.0.1.evil.example:6274", "[::1]:6274", ""),
    "origin": ("http://localhost:6274", "http://127.0.0.1:1", "https://evil.example", "null"),
    "sec-fetch-site": ("cross-site", "same-site", "none"),
    "content-type": ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""),
    "accord-inspector-token": ("", "x", "old"),
}


async def response(
    app: Inspector, path: str, method: str, headers: dict[str, str]
) -> tuple[int, dict[bytes, bytes], bytes]:
    """Send one request to the application, and return status, headers and body."""
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "scheme": "http",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items() if value],
    }

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(each.get("body", b"") for each in sent[1:])


async def answer(app: Inspector, path: str, method: str, headers: dict[str, str]) -> tuple[int, bytes]:
    """Send one request to the application, and return status and body."""
    status, _, body = await response(app, path, method, headers)
    return status, body


def changes() -> list[dict[str, str]]:
    """Return each wrong value alone, and each two of them together."""
    single = [(name, value) for name, values in WRONG.items() for value in values]
    pairs = [dict(pair) for pair in itertools.combinations(single, 2) if pair[0][0] != pair[1][0]]
    return [{name: value} for name, value in single] + pairs


def right(app: Inspector) -> dict[str, str]:
    return {**RIGHT, "accord-inspector-token": app.link("").partition("token=")[2]}


@pytest.mark.parametrize("command", ["servers/list", "servers/add", "events", "unknown"])
async def test_a_command_needs_all_to_be_right(command: str) -> None:
    app = Inspector()
    old = right(app)["accord-inspector-token"]
    app.replace_token()
    for change in changes():
        headers = right(app) | change
        if headers["accord-inspector-token"] == "old":
            headers["accord-inspector-token"] = old
        status, body = await answer(app, f"/api/{command}", headers.pop("method", "POST"), headers)
        assert 400 <= status < 500, change
        assert set(msgspec.json.decode(body)) == {"error", "cure"}
        assert app._workspace is None
    status, _ = await answer(app, "/api/servers/list", "POST", right(app))
    assert status == 200
    await app.close()


async def test_a_program_with_the_token_needs_no_headers_of_a_browser() -> None:
    async with Inspector() as app:
        headers = {name: value for name, value in right(app).items() if name not in ("origin", "sec-fetch-site")}
        assert (await answer(app, "/api/servers/list", "POST", headers))[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}, 403),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}, 403),
        ({"host": "localhost:6274"}, 403),
        ({"host": "evil.example"}, 403),
    ],
)
async def test_a_file_of_the_page_is_for_the_page(headers: dict[str, str], status: int) -> None:
    app = Inspector()
    for path in ("/", "/main.js", "/style.css"):
        found, body = await answer(app, path, "GET", {"host": HOST} | headers)
        assert found == status
        assert app.link("").partition("token=")[2].encode() not in body


@pytest.mark.parametrize("path", ["/../app.py", "/%2e%2e/app.py", "/static/main.js", "/vendor", "/api"])
async def test_only_the_files_of_the_page_are_served(path: str) -> None:
    assert (await answer(Inspector(), path, "GET", {"host": HOST}))[0] == 404

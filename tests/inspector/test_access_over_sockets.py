"""Access over real sockets: every route refuses every request unless all of it is right, and nothing happens.

The server of the configuration writes a file when it starts, so a command that got through would be seen.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import socket
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from accord.inspector.app import Inspector
from accord.inspector.command_table import COMMANDS
from accord.limits import DEFAULT_LIMITS
from accord.server.http.serving.serve import serving

BATCH = 50
"""Requests that are sent before their responses are read."""

VALUES: dict[str, tuple[str | None, ...]] = {
    "method": ("POST", "GET", "PUT", "DELETE", "OPTIONS"),
    "host": ("127.0.0.1:{port}", "localhost:{port}", "evil.example", "127.0.0.1.evil.example:{port}", "[::1]:{port}"),
    "origin": ("http://127.0.0.1:{port}", "http://localhost:{port}", "http://127.0.0.1:1", "https://a.example", "null"),
    "sec-fetch-site": ("same-origin", "same-site", "cross-site", "none"),
    "content-type": ("application/json", "text/plain", "application/x-www-form-urlencoded", None),
    "accord-inspector-token": ("{token}", None, "{old}", "wrong"),
}
"""What a request can have: the right value first, and None for no such header."""

RIGHT = {name: values[0] for name, values in VALUES.items()}
WRONG = [(name, value) for name, values in VALUES.items() for value in values[1:]]

Choice = dict[str, str | None]


@dataclass
class Inspected:
    """A served inspector with one server, which is not connected."""

    app: Inspector
    port: int
    old: str
    sentinel: Path
    """The file that its server writes when it starts."""

    def request(self, path: str, choice: Choice) -> bytes:
        """Return the bytes of a request."""
        body = b'{"server":"sentinel"}'
        names = {"port": self.port, "token": self.app.link("").partition("=")[2], "old": self.old}
        headers = [
            f"{name}: {value.format(**names)}"
            for name, value in choice.items()
            if name != "method" and value is not None
        ]
        lines = [f"{choice['method']} {path} HTTP/1.1", *headers, f"content-length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode() + body

    async def statuses(self, requests: Iterable[tuple[str, Choice]]) -> AsyncIterator[tuple[str, Choice, int]]:
        """Send requests, and yield each with the status of its response."""
        iterator = iter(requests)
        while batch := list(itertools.islice(iterator, BATCH)):
            for (path, choice), status in zip(batch, await self._send(batch), strict=True):
                yield path, choice, status

    async def _send(self, batch: list[tuple[str, Choice]]) -> list[int]:
        found: list[int] = []
        while len(found) < len(batch):  # a response may end the connection
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.write(b"".join(self.request(*each) for each in batch[len(found) :]))
            try:
                while len(found) < len(batch):
                    found.append(await read_status(reader))
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            writer.close()
        return found


async def read_status(reader: asyncio.StreamReader) -> int:
    """Read one response, and return its status."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    if length:
        await reader.readexactly(int(length[1]))
    assert not re.search(rb"(?i)\r\naccess-control-|\r\nset-cookie", head), "there is no CORS, and no cookie"
    return int(head.split()[1])


@asynccontextmanager
async def inspected(folder: Path) -> AsyncIterator[Inspected]:
    sentinel = folder / "started"
    configuration = folder / "servers.json"
    server = {"command": "sh", "args": ["-c", f"touch {sentinel}"]}
    configuration.write_text(json.dumps({"mcpServers": {"sentinel": server}}), "utf-8")
    listener = socket.create_server(("127.0.0.1", 0))
    async with Inspector(configuration=configuration) as app, serving(app, [listener], DEFAULT_LIMITS):
        old = app.link("").partition("=")[2]
        app.replace_token()
        yield Inspected(app, listener.getsockname()[1], old, sentinel)


def commands() -> list[str]:
    """Return the routes that do something."""
    return [f"/api/{name}" for name, command in COMMANDS.items() if not command.upload] + ["/api/events", "/api/absent"]


def wrong_by_one_or_two() -> Iterator[Choice]:
    """Yield requests with one wrong value, and with two."""
    for name, value in WRONG:
        yield {**RIGHT, name: value}
    for one, other in itertools.combinations(WRONG, 2):
        if one[0] != other[0]:
            yield {**RIGHT, one[0]: one[1], other[0]: other[1]}


def every_combination() -> Iterator[Choice]:
    """Yield all requests but the right one."""
    for values in itertools.product(*VALUES.values()):
        choice = dict(zip(VALUES, values, strict=True))
        if choice != RIGHT:
            yield choice


def state(app: Inspector) -> tuple[object, ...]:
    """Return what a command could have changed."""
    workspace = app.workspace
    servers = [(server.name, server.state, server.only_revision) for server in workspace.servers.values()]
    return servers, sorted(path.name for path in workspace.folder.iterdir()), len(workspace.recording.index)


@pytest.mark.timeout(600)
async def test_every_combination_is_refused_unless_all_is_right(tmp_path: Path) -> None:
    async with inspected(tmp_path) as served:
        before = state(served.app)
        requests = (("/api/servers/connect", choice) for choice in every_combination())
        statuses = [(choice, status) async for _, choice, status in served.statuses(requests)]
        assert len(statuses) == 5 * 5 * 5 * 4 * 4 * 4 - 1
        assert [choice for choice, status in statuses if not 400 <= status < 500] == []
        assert state(served.app) == before
        assert not served.sentinel.exists()
        async for _, _, status in served.statuses([("/api/servers/connect", RIGHT)]):
            assert status == 409  # its server starts, and is none
        assert served.sentinel.exists()


@pytest.mark.timeout(600)
async def test_every_route_refuses_a_request_of_which_something_is_wrong(tmp_path: Path) -> None:
    async with inspected(tmp_path) as served:
        before = state(served.app)
        requests = ((path, choice) for path in commands() for choice in wrong_by_one_or_two())
        wrong = [(path, choice) async for path, choice, status in served.statuses(requests) if not 400 <= status < 500]
        assert wrong == []
        assert state(served.app) == before
        assert not served.sentinel.exists()


async def test_no_get_has_an_effect(tmp_path: Path) -> None:
    async with inspected(tmp_path) as served:
        before = state(served.app)
        choice: Choice = {**RIGHT, "method": "GET"}
        paths = [*commands(), "/", "/main.js", "/style.css", "/app/x", "/?token={token}", "/api/servers/list?server=a"]
        statuses = {path: status async for path, _, status in served.statuses((path, choice) for path in paths)}
        assert {path for path, status in statuses.items() if status == 200} <= {
            "/",
            "/main.js",
            "/style.css",
            paths[-2],
        }
        assert state(served.app) == before
        assert not served.sentinel.exists()


async def test_the_host_of_apps_has_no_page_and_no_command(tmp_path: Path) -> None:
    async with inspected(tmp_path) as served:
        host: Choice = {**RIGHT, "host": "localhost:{port}", "origin": None}
        requests = [
            (path, {**host, "method": method}) for path in [*commands(), "/", "/main.js"] for method in ("GET", "POST")
        ]
        assert {status async for _, _, status in served.statuses(requests)} <= {403, 404, 405}


@pytest.mark.parametrize(
    "headers",
    [
        b"host: 127.0.0.1:{port}\r\nhost: evil.example\r\n",
        b"host: 127.0.0.1:{port}\r\naccord-inspector-token: wrong\r\naccord-inspector-token: {token}\r\n",
        b"host: 127.0.0.1:{port}\r\norigin: https://evil.example\r\norigin: http://127.0.0.1:{port}\r\n",
        b"host: 127.0.0.1:{port}\r\naccord-inspector-token : {token}\r\n",
        b"host: 127.0.0.1:{port}\r\naccord-inspector-token: {token}\r\ntransfer-encoding: chunked\r\n",
        b"",
    ],
)
async def test_headers_that_contradict_each_other_are_refused(headers: bytes, tmp_path: Path) -> None:
    async with inspected(tmp_path) as served:
        token = served.app.link("").partition("=")[2].encode()
        headers = headers.replace(b"{port}", b"%d" % served.port).replace(b"{token}", token)
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        body = b'{"server":"sentinel"}'
        head = b"POST /api/servers/connect HTTP/1.1\r\ncontent-type: application/json\r\n"
        writer.write(head + headers + b"content-length: %d\r\n\r\n" % len(body) + body)
        assert 400 <= await read_status(reader) < 500
        assert not served.sentinel.exists()
        writer.close()

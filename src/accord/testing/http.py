"""A server over HTTP during a test, on a free port of the loopback interface.

    with served_over_http(server) as url:
        httpx.get(url)

A `Server` object is served in a thread of this process, so that a test can inspect and change its state; `FILE.py` in
a process of its own.
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from accord.client.target import Command, Remote, Target, parse
from accord.errors import ConnectError, TargetError
from accord.server.http.options import HTTPOptions
from accord.server.http.serving.address import bind, bound_address, parse_address
from accord.server.http.serving.serve import serving
from accord.sync.background_loop import BackgroundLoop

if TYPE_CHECKING:
    from accord.server.server import Server

_FREE_PORT = "127.0.0.1:0"
_START_SECONDS = 30.0
"""The timeout for a process to print its address, and for a server to shut down."""
_URL = re.compile(r" at (http://\S+?)[;,]? ")


@contextmanager
def served_over_http(target: Target | Server, options: HTTPOptions | None = None) -> Iterator[str]:
    """Serve a target in a `with` block; the value is the URL of its MCP endpoint.

    `target` is a `Server`, `FILE.py[:name]` or the URL of a running server; `options` apply to a `Server`. Raises
    `TargetError` for any other target, and `ConnectError` if the server does not start.
    """
    parsed = parse(target)
    if isinstance(parsed, Remote):
        yield parsed.url
    elif isinstance(parsed, Command) and "accord" in parsed.argv:
        with _process([*parsed.argv, "--http", _FREE_PORT], parsed.cwd) as url:
            yield url
    elif hasattr(parsed, "asgi"):
        with _thread(parsed, options or HTTPOptions()) as url:
            yield url
    else:
        raise TargetError(f"{parsed} cannot be served over HTTP by a test: pass a Server, FILE.py or a URL")


@contextmanager
def _thread(server: Any, options: HTTPOptions) -> Iterator[str]:
    address = parse_address(_FREE_PORT)
    sockets = bind(address)
    url = f"http://{bound_address(address, sockets)}{options.path}"
    app = server.asgi(options)
    stack = serving(app, sockets, server.limits)
    background = BackgroundLoop(server.name)
    background.start()
    try:
        background.run(app.start())
        background.run(stack.__aenter__())
        try:
            yield url
        finally:
            background.run(stack.__aexit__(None, None, None), _START_SECONDS)
    finally:
        background.discard()
        for socket in sockets:
            socket.close()


@contextmanager
def _process(argv: Sequence[str], cwd: str | None) -> Iterator[str]:
    process = subprocess.Popen(argv, cwd=cwd, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    lines: list[str] = []
    address_printed = threading.Event()

    def read(stream: Any) -> None:
        for line in stream:  # read to the end, so that the server never blocks on a full pipe
            lines[:] = [*lines[-20:], line]
            if _URL.search(line):
                address.append(line)
                address_printed.set()
        address_printed.set()

    address: list[str] = []
    reader = threading.Thread(target=read, args=(process.stderr,), daemon=True)
    reader.start()
    try:
        address_printed.wait(_START_SECONDS)
        match = _URL.search(address[0]) if address else None
        if match is None:
            raise ConnectError(f"{argv!r} does not serve over HTTP; it wrote: {''.join(lines).strip() or 'nothing'}")
        yield match[1]
    finally:
        process.terminate()
        try:
            process.wait(_START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join()
        process.stderr.close()

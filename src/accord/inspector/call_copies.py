"""Calls as text to copy: an `accord` command, `curl`, and a test for pytest. None of them contains a secret."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from accord.client.target import Remote
from accord.inspector.calls import METHODS, CallRequest, compact
from accord.inspector.commands import InspectorError
from accord.inspector.repeat_command import repeat_options, repeatable_target
from accord.inspector.servers import InspectedServer
from accord.messages.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from accord.messages.revision import HANDSHAKE
from accord.testing.generated_tests import call_test
from accord.visible_text import shell_line
from accord.wire.headers import encode_value, mirrored, parameter_headers

_CLIENT = {"name": "curl", "version": "1"}
_ACCEPT = "application/json, text/event-stream"


def accord_command(server: InspectedServer, request: CallRequest) -> str:
    """Return the command that repeats a call. Raises `InspectorError`."""
    target = repeatable_target(server)
    if not target:
        raise InspectorError(f"{server.name} has no command line: it is an object of a program", "copy it as a test")
    command = {"tool": "call", "prompt": "prompt", "resource": "read"}[request.kind]
    words, options = [target, request.name], list(repeat_options(server))
    if request.arguments_json and request.kind == "tool":
        options = ["--args", _arguments(request), *options]
    if request.arguments_json and request.kind == "prompt":
        words += [
            f"{name}={value}"
            for name, value in msgspec.json.decode(request.arguments_json, type=dict[str, str]).items()
        ]
    if any(word.startswith("-") for word in words):  # a server chose it, and could name an option
        return _line(["accord", command, *options, "--", *words])
    return _line(["accord", command, *words, *options])


def _line(words: list[str]) -> str:
    """Return a command line. Raises `InspectorError` for a word that no program can be given."""
    if any("\0" in word for word in words):
        raise InspectorError("a word of the command has a NUL, which no command line can carry", "send it in the page")
    return shell_line(words)


def _arguments(request: CallRequest) -> str:
    return compact(request.arguments_json).decode()


def curl_command(server: InspectedServer, request: CallRequest, revision: str, input_schema: str = "") -> str:
    """Return the `curl` command of a call over HTTP: in revisions with a handshake, after the handshake. Raises
    `InspectorError`."""
    target = server.target
    if not isinstance(target, Remote):
        raise InspectorError(f"{server.name} is not reached over HTTP", "copy the call as accord call")
    url = repeatable_target(server)
    headers = [f"{name}: ..." for name in target.headers or {}]
    message = _message(request, revision)
    if revision not in HANDSHAKE:
        headers += [f"MCP-Protocol-Version: {revision}", *_request_headers(request, input_schema)]
        return _curl(url, headers, message)
    return "\n".join(_handshake(url, headers, message, revision))


def _message(request: CallRequest, revision: str) -> bytes:
    subject = {"uri": request.name} if request.kind == "resource" else {"name": request.name}
    params: dict[str, object] = dict(subject)
    if request.arguments_json and request.kind != "resource":
        params["arguments"] = Raw(compact(request.arguments_json))
    if revision not in HANDSHAKE:
        params["_meta"] = {PROTOCOL_VERSION: revision, CLIENT_INFO: _CLIENT, CLIENT_CAPABILITIES: {}}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": METHODS[request.kind], "params": params})


def _request_headers(request: CallRequest, input_schema: str) -> Iterator[str]:
    """Yield the headers that repeat a part of the body: "MUST include the request metadata headers on each POST"."""
    yield f"Mcp-Method: {METHODS[request.kind]}"
    try:
        yield f"Mcp-Name: {encode_value(request.name)}"
        if request.kind == "tool" and input_schema:
            declared = mirrored(msgspec.json.decode(input_schema))
            arguments = compact(request.arguments_json or "{}")
            yield from (f"{name}: {value}" for name, value in parameter_headers(declared, arguments).items())
    except (ValueError, msgspec.MsgspecError) as exc:
        raise InspectorError(f"no header can carry this call: {exc}", "change its name or arguments") from exc


def _curl(url: str, headers: list[str], body: bytes, *options: str) -> str:
    lines = [["curl", "-sS", *options, "-X", "POST", url]]
    lines += [["-H", header] for header in ("Content-Type: application/json", f"Accept: {_ACCEPT}", *headers)]
    lines += [["--data-raw", body.decode()]]
    return " \\\n  ".join(map(_line, lines))


def _handshake(url: str, headers: list[str], message: bytes, revision: str) -> Iterator[str]:
    initialize = {"protocolVersion": revision, "capabilities": {}, "clientInfo": _CLIENT}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize})
    yield _curl(url, headers, body, "-D", "headers.txt")
    yield "SESSION=$(grep -i '^mcp-session-id:' headers.txt | cut -d' ' -f2 | tr -d '\\r')"
    more = [*headers, f"MCP-Protocol-Version: {revision}"]
    initialized = msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/initialized"})
    for each in (initialized, message):
        yield _curl(url, more, each) + ' \\\n  ${SESSION:+-H "Mcp-Session-Id: $SESSION"}'


def pytest_source(server: InspectedServer, request: CallRequest, result: bytes | None) -> str:
    """Return a test for a call of a tool; `result` is the JSON that it is compared with. Raises `InspectorError`."""
    if request.kind != "tool":
        raise InspectorError("only calls of tools can be copied as a test", "copy it as a command")
    try:
        arguments = msgspec.json.decode(compact(request.arguments_json or "{}"))
        expected = None if result is None else msgspec.json.decode(result)
        valid = expected if isinstance(expected, dict) and isinstance(expected.get("content"), list) else None
        return call_test(repeatable_target(server) or "SERVER", request.name, arguments, valid)
    except RecursionError as exc:
        raise InspectorError("the call is nested too deep for a test", "copy it as a command") from exc

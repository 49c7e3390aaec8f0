"""Calls of the inspector: exact arguments and results, progress, log messages, cancellation, bounds."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord import Context, Server, TextContent, ToolError
from accord.client.target import Command, Remote
from accord.errors import StoreError
from accord.inspector import call_commands
from accord.inspector.call_commands import CallIdParams, CallParams, CopyParams, SavedNameParams, SaveParams
from accord.inspector.call_copies import accord_command, curl_command
from accord.inspector.calls import MOST_CALLS, CallRequest, compact
from accord.inspector.commands import InspectorError, NoParams, ServerParams
from accord.inspector.saved_calls import SavedCalls
from accord.inspector.servers import InspectedServer
from accord.inspector.workspace import Workspace
from accord.messages.revision import REVISIONS

EXACT = '{"n": 9007199254740993 ,\n "f": [1.0, 1e5], "s": "a\\u00e9 \\" b", "n": 2}'


def make_server() -> Server:
    server = Server("calls")

    @server.tool
    def echo(n: int = 0, f: list[float] | None = None, s: str = "") -> dict[str, Any]:
        return {"n": n, "f": f, "s": s}

    @server.tool
    async def work(ctx: Context) -> str:
        ctx.info({"step": 1}, logger="worker")
        await ctx.report_progress(1, 2, "half")
        return "done"

    @server.tool
    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    @server.tool
    def fail() -> str:
        raise ToolError("it failed")

    @server.tool
    def large(characters: int) -> TextContent:
        return TextContent(text="x" * characters)

    @server.prompt
    def greeting(name: str) -> str:
        return f"Greet {name}"

    @server.resource("note://{id}")
    def note(id: str) -> str:
        return f"note {id}"

    return server


@asynccontextmanager
async def connected(saved: Path | None = None) -> AsyncIterator[Workspace]:
    """A workspace that is connected to the server; `saved` is the file of saved calls."""
    workspace = Workspace()
    try:
        if saved is not None:
            workspace.saved_calls = SavedCalls(saved)
        workspace.add_targets([make_server()])
        await workspace.server("calls").connect()
        yield workspace
    finally:
        await workspace.close()


def params(name: str, arguments: str = "", kind: Any = "tool", **more: Any) -> CallParams:
    return CallParams(server="calls", kind=kind, name=name, arguments_json=arguments, **more)


async def finished(workspace: Workspace, call: CallParams) -> call_commands.CallDetails:
    started = await call_commands.start(workspace, call)
    task = workspace.calls.get(started.id).task
    assert task is not None
    async with asyncio.timeout(60):
        await asyncio.wait([task])
    return await call_commands.read(workspace, CallIdParams(id=started.id))


async def sent(workspace: Workspace) -> bytes:
    """Return the session file."""
    await workspace.recording.written()
    return workspace.recording.file.read_bytes()


ECHO = """
from accord import Server

server = Server("calls")


@server.tool
def echo(n: int = 0, f: list[float] | None = None, s: str = "") -> int:
    return n


server.run()
"""


@pytest.mark.parametrize("revision", REVISIONS)
async def test_arguments_are_sent_as_they_are_written(tmp_path: Path, revision: str) -> None:
    (tmp_path / "calls.py").write_text(ECHO)
    workspace = Workspace()
    try:
        script = f"tee {tmp_path / 'sent'} | {sys.executable} {tmp_path / 'calls.py'}"
        workspace.add("calls", Command(("sh", "-c", script)), "command line")
        workspace.server("calls").only_revision = revision
        await workspace.server("calls").connect()
        await finished(workspace, params("echo", EXACT))
        written = b'{"n":9007199254740993,"f":[1.0,1e5],"s":"a\\u00e9 \\" b","n":2}'
        assert compact(EXACT) == written
        assert b'"arguments":' + written in (tmp_path / "sent").read_bytes()
    finally:
        await workspace.close()


@pytest.mark.parametrize("text", ["[]", "1", "{", '{"a": 01}', '{"a": 1} x', '{"a": "\ud800"}'])
async def test_arguments_that_are_no_object_are_refused(text: str) -> None:
    async with connected() as workspace:
        with pytest.raises(InspectorError, match="not a JSON object"):
            await call_commands.start(workspace, params("echo", text))


async def test_a_result_is_shown_as_the_server_sent_it() -> None:
    async with connected() as workspace:
        details = await finished(workspace, params("echo", '{"n": 3, "f": [1.0]}'))
        assert details.call.state == "done"
        assert details.result is not None
        assert '"f":[1.0]' in details.result.structured_json
        assert msgspec.json.decode(details.result.result_json)["structuredContent"]["n"] == 3
        assert details.call.end_row > details.call.first_row


async def test_prompts_and_resources_are_requested() -> None:
    async with connected() as workspace:
        prompt = await finished(workspace, params("greeting", '{"name": "Ada"}', "prompt"))
        assert prompt.result is not None
        assert [(block.role, block.text) for block in prompt.result.blocks] == [("user", "Greet Ada")]
        resource = await finished(workspace, params("note://7", kind="resource"))
        assert resource.result is not None
        assert [(block.uri, block.text) for block in resource.result.blocks] == [("note://7", "note 7")]


async def test_progress_and_log_messages_belong_to_the_call() -> None:
    async with connected() as workspace:
        call = (await finished(workspace, params("work"))).call
        assert call.progress is not None
        assert (call.progress.progress, call.progress.total, call.progress.message) == (1, 2, "half")
        assert [(log.level, log.logger, log.data_json) for log in call.logs] == [("info", "worker", '{"step":1}')]


async def test_errors_of_tools_and_of_requests_differ() -> None:
    async with connected() as workspace:
        failed = await finished(workspace, params("fail"))
        assert failed.call.state == "tool error"
        assert failed.result is not None
        unknown = await finished(workspace, params("unknown"))
        assert (unknown.call.state, unknown.call.code, unknown.result) == ("failed", -32602, None)


async def test_a_call_is_cancelled() -> None:
    async with connected() as workspace:
        started = await call_commands.start(workspace, params("wait"))
        while b'"tools/call"' not in await sent(workspace):
            await asyncio.sleep(0)
        assert (await call_commands.cancel(workspace, CallIdParams(id=started.id))).state == "cancelled"
        assert b"notifications/cancelled" in await sent(workspace)


async def test_a_call_is_cancelled_before_its_request_is_sent() -> None:
    async with connected() as workspace:
        started = await call_commands.start(workspace, params("wait"))
        assert (await call_commands.cancel(workspace, CallIdParams(id=started.id))).state == "cancelled"
        assert b"tools/call" not in await sent(workspace)


async def test_a_large_result_is_shortened_and_complete_as_a_file() -> None:
    async with connected() as workspace:
        details = await finished(workspace, params("large", '{"characters": 3000000}'))
        assert details.result is not None
        assert details.result.is_shortened
        assert len(msgspec.json.encode(details)) < 400_000
        assert details.result.blocks[0].note == "the first 100,000 of 3,000,000 characters"
        file = await call_commands.download(workspace, CallIdParams(id=details.call.id))
        assert file.path.stat().st_size > 3_000_000
        assert file.path.stat().st_mode & 0o077 == 0


async def test_the_oldest_calls_are_dropped_with_their_files() -> None:
    async with connected() as workspace:
        first = (await finished(workspace, params("echo"))).call
        file = workspace.calls.get(first.id).file
        for _ in range(MOST_CALLS):
            await finished(workspace, params("echo"))
        assert len((await call_commands.list_calls(workspace, ServerParams(server="calls"))).calls) == MOST_CALLS
        assert not file.exists()
        with pytest.raises(InspectorError, match="no longer stored"):
            await call_commands.read(workspace, CallIdParams(id=first.id))


async def test_structured_content_is_checked_against_the_output_schema() -> None:
    async with connected() as workspace:
        schema = '{"type": "object", "properties": {"n": {"type": "string"}}}'
        details = await finished(workspace, params("echo", output_schema_json=schema))
        assert details.result is not None
        assert [(error.pointer, error.reason) for error in details.result.errors] == [
            ("/n", '0 is not of type "string"')
        ]
        none = await finished(workspace, params("large", '{"characters": 1}', output_schema_json="{}"))
        assert none.result is not None
        assert "no structured content" in none.result.problem


# --- saved calls ---------------------------------------------------------------------------------------------------


async def test_saved_calls_are_in_a_file_that_others_cannot_read(tmp_path: Path) -> None:
    async with connected(tmp_path / "calls.db") as workspace:
        assert (await call_commands.list_saved(workspace, NoParams())).saved == []
        assert not workspace.saved_calls.path.exists()
        save = SaveParams(server="calls", kind="tool", name="echo", arguments_json=EXACT, saved_name=" mine ")
        (saved,) = (await call_commands.save(workspace, save)).saved
        assert (saved.name, saved.request.arguments_json) == ("mine", EXACT)
        assert workspace.saved_calls.path.stat().st_mode & 0o077 == 0
        assert (await call_commands.remove_saved(workspace, SavedNameParams(saved_name="mine"))).saved == []


async def test_names_and_sizes_of_saved_calls_are_bounded(tmp_path: Path) -> None:
    async with connected(tmp_path / "calls.db") as workspace:
        for name in ("", " ", "n" * 201):
            with pytest.raises(InspectorError, match="1 to 200"):
                await call_commands.save(workspace, SaveParams(server="calls", kind="tool", name="x", saved_name=name))
        with pytest.raises(StoreError, match="at most"):
            await workspace.saved_calls.save("large", CallRequest("calls", "tool", "x", "x" * 300_000))


# --- copies --------------------------------------------------------------------------------------------------------


async def test_a_call_of_a_server_in_this_process_has_no_command() -> None:
    async with connected() as workspace:
        for form in ("accord", "curl"):
            copied = CopyParams(server="calls", kind="tool", name="echo", form=form)
            with pytest.raises(InspectorError):
                await call_commands.copy(workspace, copied)


async def test_a_test_compares_the_result() -> None:
    async with connected() as workspace:
        details = await finished(workspace, params("echo", '{"n": 3}'))
        copied = CopyParams(
            server="calls", kind="tool", name="echo", arguments_json='{"n": 3}', id=details.call.id, form="pytest"
        )
        source = (await call_commands.copy(workspace, copied)).text
        compile(source, "test_copied.py", "exec")
        assert "def test_echo(accord_client):" in source
        assert "accord_client.call_tool('echo', {'n': 3})" in source
        assert "assert result.structured_content == {'n': 3, 'f': None, 's': ''}" in source


def http_server(**headers: str) -> Any:
    workspace_server = type("Server", (), {})()
    workspace_server.target = Remote("https://example.com/mcp", headers=headers)
    workspace_server.name, workspace_server.file = "remote", ""
    return workspace_server


def test_curl_has_the_headers_that_the_revision_requires_and_no_secret() -> None:
    request = CallRequest("remote", "tool", "größe", '{"city": "It\'s"}')
    schema = '{"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}}'
    text = curl_command(http_server(authorization="Bearer secret"), request, "2026-07-28", schema)
    assert "secret" not in text
    assert "'authorization: ...'" in text
    assert "'MCP-Protocol-Version: 2026-07-28'" in text
    assert "'Mcp-Method: tools/call'" in text
    assert "Mcp-Name: =?base64?" in text
    assert "io.modelcontextprotocol/protocolVersion" in text
    assert "Mcp-Param-City" in text


def test_curl_begins_with_the_handshake_where_the_revision_has_one() -> None:
    text = curl_command(http_server(), CallRequest("remote", "resource", "a://b"), "2025-06-18")
    assert text.index('"initialize"') < text.index("notifications/initialized") < text.index("resources/read")
    assert "Mcp-Method" not in text
    assert '${SESSION:+-H "Mcp-Session-Id: $SESSION"}' in text


PROGRAM: Any = InspectedServer("one", Command(("python", "shop.py")), "page", on_change=lambda: None)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no terminal of POSIX")
@pytest.mark.parametrize(
    "name", ["x\x15touch marker\r", "\x1b[201~\x03\ntouch marker\n", "$(touch marker)", "';touch marker;'"]
)
def test_a_pasted_command_runs_nothing_else(tmp_path: Path, name: str) -> None:
    """A line editor acts upon control characters in quotes too: Ctrl-U deletes the line, and a return runs the rest."""
    text = accord_command(PROGRAM, CallRequest("one", "tool", name, '{"a": "\x7f$(touch marker)"}'))
    paste(text, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["done"]


def paste(text: str, folder: Path) -> None:
    """Type a text and Enter into bash, as a terminal without bracketed paste does."""
    import pty

    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], {"PATH": os.environ["PATH"], "TERM": "dumb"})
    try:
        os.write(terminal, b"accord() { :; }\n")
        os.write(terminal, text.encode() + b"\n: > done\nexit\n")
        with suppress(OSError):  # the end, on Linux
            while os.read(terminal, 65536):
                pass
    finally:
        os.close(terminal)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.mark.parametrize(("kind", "command"), [("tool", "call"), ("prompt", "prompt"), ("resource", "read")])
def test_what_a_server_names_is_no_option_of_a_copied_command(kind: Any, command: str) -> None:
    name, arguments = "--sample-with=touch marker", '{"--record=marker": "x"}' if kind == "prompt" else "{}"
    words = shlex.split(accord_command(PROGRAM, CallRequest("one", kind, name, arguments)))
    assert words[:2] == ["accord", command]
    assert words.index("--") < words.index("python shop.py") < words.index(name)


def test_a_word_with_a_nul_cannot_be_copied() -> None:
    with pytest.raises(InspectorError, match="NUL"):
        accord_command(PROGRAM, CallRequest("one", "tool", "a\0b"))


async def test_a_call_names_the_row_of_its_own_request() -> None:
    async with connected() as workspace:
        started = [await call_commands.start(workspace, params("wait")) for _ in range(2)]
        started.append(await call_commands.start(workspace, params("echo", '{"n": 3}')))
        async with asyncio.timeout(60):
            while True:
                calls = (await call_commands.list_calls(workspace, ServerParams(server="calls"))).calls
                if all(call.request_row is not None for call in calls):
                    break
                await asyncio.sleep(0.01)
        index = workspace.recording.index
        rows = {call.id: call.request_row or 0 for call in calls}
        assert len(set(rows.values())) == 3
        assert [index.names.text(rows[call.id]) for call in started] == ["wait", "wait", "echo"]
        assert rows[started[0].id] < rows[started[1].id]

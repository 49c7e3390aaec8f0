"""The commands of the page about traffic and sessions, on a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from accord import AccordError, Client, Server
from accord.inspector.commands import InspectorError, NoParams, Upload
from accord.inspector.traffic import commands, session_commands
from accord.inspector.traffic.commands import (
    CompareParams,
    LatencyParams,
    RowParams,
    RowsParams,
    SessionParams,
    SpanParams,
    TimelineParams,
)
from accord.inspector.traffic.recording import TrafficRecording
from accord.inspector.traffic.session_commands import (
    CompareServersParams,
    CompareSessionsParams,
    ReplayParams,
    SaveSessionParams,
)
from accord.inspector.traffic.session_comparison import add_response
from accord.inspector.workspace import Workspace

from tests.inspector.traffic.sessions import Script, usual
from tests.measure import costs_at_most
from tests.testing.shops import shop


@asynccontextmanager
async def inspected() -> AsyncIterator[Workspace]:
    """A workspace with a connected shop, and some traffic."""
    workspace = Workspace()
    workspace.add_targets([shop()])
    (server,) = workspace.servers.values()
    await server.connect()
    await server.client.list_tools()
    await server.client.call_tool("price", {"item": "bread"})
    await server.client.call_tool("price", {"item": "cake"})
    await workspace.recording.written()
    try:
        yield workspace
    finally:
        await workspace.close()


async def upload(workspace: Workspace, content: bytes) -> str:
    file = workspace.folder / "upload"
    file.write_bytes(content)
    return (await session_commands.open_upload(workspace, Upload(path=file))).id


async def test_rows_are_ranges_of_those_that_match() -> None:
    async with inspected() as workspace:
        found = await commands.read_rows(workspace, RowsParams(filter="method:tools/call"))
        assert (found.total, found.first, len(found.rows)) == (4, 0, 4)
        assert found.all == len(workspace.recording.index)
        request, response = found.rows[:2]
        assert (request.kind, request.name, request.outcome, request.partner) == (
            "request",
            "price",
            "ok",
            response.row,
        )
        assert request.preview == '{"item":"bread"}'
        assert response.preview.startswith('{"content":[{"type":"text"')
        later = await commands.read_rows(workspace, RowsParams(filter="method:tools/call", near=response.row, count=1))
        assert (later.first, [row.row for row in later.rows]) == (1, [response.row])
        beyond = await commands.read_rows(workspace, RowsParams(first=1_000_000, count=-5))
        assert beyond.rows == []


async def test_a_wrong_filter_has_a_cure() -> None:
    async with inspected() as workspace:
        found = await commands.read_rows(workspace, RowsParams(filter="methud:a"))
        assert (found.total, found.rows, found.error) == (0, [], "unknown key 'methud'")
        assert "method" in found.cure
        with pytest.raises(InspectorError, match="unknown key"):
            await commands.read_latencies(workspace, LatencyParams(filter="methud:a"))


async def test_an_entry_has_its_bytes_and_a_download() -> None:
    async with inspected() as workspace:
        rows = (await commands.read_rows(workspace, RowsParams(filter="method:tools/call"))).rows
        detail = await commands.read_entry(workspace, RowParams(row=rows[1].row))
        assert '"text":"2.0"' in detail.raw
        assert '"text": "2.0"' in detail.pretty
        assert detail.complete
        file = await commands.download(workspace, RowParams(row=rows[1].row))
        assert file.path.read_text() == detail.raw
        with pytest.raises(InspectorError, match="no entry 99999"):
            await commands.read_entry(workspace, RowParams(row=99_999))


async def test_a_long_result_is_shortened_and_complete_as_a_file() -> None:
    async with inspected() as workspace:
        script = Script()
        script.request(1, "tools/call", name="long")
        script.result(1, content=[{"type": "text", "text": "x" * 3_000_000}])
        session = await upload(workspace, script.content())
        detail = await commands.read_entry(workspace, RowParams(session=session, row=1))
        assert not detail.complete
        assert len(detail.raw) + len(detail.pretty) < 500_000
        file = await commands.download(workspace, RowParams(session=session, row=1))
        assert len(file.path.read_bytes()) > 3_000_000


async def test_spans_and_latencies() -> None:
    async with inspected() as workspace:
        found = await commands.read_timeline(workspace, TimelineParams(parts=10))
        assert found.spans[0].kind == "connection"
        assert [span.method for span in found.spans].count("tools/call") == 2
        assert sum(part.rows for part in found.parts) == len(workspace.recording.index)
        few = await commands.read_timeline(workspace, TimelineParams(most=2))
        assert (len(few.spans), few.hidden) == (2, len(found.spans) - 2)
        call = next(span for span in found.spans if span.method == "tools/call")
        detail = await commands.read_span(workspace, SpanParams(span=call.span))
        assert [row.kind for row in detail.rows] == ["request", "response"]
        (line,) = (await commands.read_latencies(workspace, LatencyParams(filter="method:tools/call"))).methods
        assert (line.method, line.count, line.errors) == ("tools/call", 2, 0)
        assert line.p50 is not None
        assert line.max is not None
        assert line.p50 <= line.max


async def test_two_messages_are_compared() -> None:
    async with inspected() as workspace:
        rows = (await commands.read_rows(workspace, RowsParams(filter="method:tools/call kind:request"))).rows
        same = await commands.compare(workspace, CompareParams(left=rows[0].row, right=rows[0].row))
        assert same.equal
        found = await commands.compare(workspace, CompareParams(left=rows[0].row, right=rows[1].row))
        assert [line.strip() for line in found.lines if line[0] != " "] == [
            f'-  "id": {rows[0].id_json},',
            '-      "item": "bread"',
            f'+  "id": {rows[1].id_json},',
            '+      "item": "cake"',
        ] or '-      "item": "bread"' in [line.rstrip() for line in found.lines]


async def test_two_lists_are_compared_by_their_effect() -> None:
    async with inspected() as workspace:
        script = Script()
        for id, tools in enumerate(
            [[{"name": "a", "inputSchema": {}}, {"name": "b", "inputSchema": {}}], [{"name": "a"}]]
        ):
            script.request(id, "tools/list")
            script.result(id, tools=tools)
        session = await upload(workspace, script.content())
        found = await commands.compare(
            workspace, CompareParams(left_session=session, left=1, right_session=session, right=3)
        )
        assert (found.changes[0].kind, found.changes[0].place) == ("breaking", "tools.b")


async def test_a_session_is_saved_and_opened() -> None:
    async with inspected() as workspace:
        saved = await session_commands.save(workspace, SaveSessionParams())
        session = await upload(workspace, saved.path.read_bytes())
        first, second = (await session_commands.list_sessions(workspace, NoParams())).sessions
        assert (first.id, second.id) == ("live", session)
        assert second.rows == first.rows
        assert second.redacted
        compared = await session_commands.compare_two(workspace, CompareSessionsParams(left="live", right=session))
        assert compared.changes == []
        assert {call.outcome for call in compared.calls} == {"equal"}
        (only,) = (await session_commands.close_session(workspace, SessionParams(session=session))).sessions
        assert only.id == "live"
        with pytest.raises(InspectorError, match="no open session"):
            await commands.read_rows(workspace, RowsParams(session=session))


async def test_a_file_cut_anywhere_is_opened_and_the_last_line_reported() -> None:
    async with inspected() as workspace:
        content = usual().content()
        lines = content.splitlines(keepends=True)
        for cut in range(len(lines[0]), len(content), 41):
            session = await upload(workspace, content[:cut])
            described = (await session_commands.list_sessions(workspace, NoParams())).sessions[-1]
            whole = content[:cut].endswith(b"\n") or content[cut : cut + 1] == b"\n"
            assert bool(described.remark) is not whole
            assert described.rows == content[:cut].count(b"\n") - (0 if content[cut : cut + 1] == b"\n" else 1)
            await session_commands.close_session(workspace, SessionParams(session=session))


@pytest.mark.parametrize("content", [b"", b"hello", b"{}\n", b"[1]\n", b'{"kind":"session","version":9,"at":""}\n'])
async def test_other_files_are_refused(content: bytes) -> None:
    async with inspected() as workspace:
        with pytest.raises(InspectorError, match="the file cannot be opened: "):
            await upload(workspace, content)
        assert list(workspace.sessions.sources) == ["live"]
        assert not list(workspace.folder.glob("session-*"))


async def test_differences_of_two_sessions_have_their_effect() -> None:
    async with inspected() as workspace:
        old, new = usual(), Script()
        new.request(1, "tools/list")
        new.result(1, tools=[], ttlMs=0, cacheScope="public")
        new.request(2, "tools/call", name="price", arguments={"item": "Crème brûlée"})
        new.result(2, content=[{"type": "text", "text": "other"}])
        left, right = await upload(workspace, old.content()), await upload(workspace, new.content())
        found = await session_commands.compare_two(workspace, CompareSessionsParams(left=left, right=right))
        assert found.revisions == ["2026-07-28"]
        assert [(change.kind, change.place) for change in found.changes] == [("breaking", "tools.price")]
        assert [(call.request, call.outcome) for call in found.calls] == [
            ("tools/list", "different"),
            ("tools/call price", "different"),
            ("tools/call bake", "only left"),
            ("tools/call price", "only left"),
        ]


async def test_a_page_of_a_list_is_added_to_the_earlier_ones(tmp_path: Path) -> None:
    """Each page copied all earlier ones: sessions with 30,000 pages took seconds."""
    script, surface = Script(), dict[str, Any]()
    for page in range(3):
        script.request(page, "tools/list", **({"cursor": str(page)} if page else {}))
        script.result(page, tools=[{"name": f"tool-{page}", "inputSchema": {}}])
    script.request(3, "tools/list")
    script.result(3, tools=[])
    source = await script.open(tmp_path)
    add_response(source, 1, surface)
    first = surface["tools"]
    add_response(source, 3, surface)
    add_response(source, 5, surface)
    assert surface["tools"] is first
    assert list(first) == ["tool-0", "tool-1", "tool-2"]
    add_response(source, 7, surface)
    assert surface["tools"] == {}


async def test_a_session_is_replayed_as_a_server_and_against_one() -> None:
    async with inspected() as workspace:
        (name,) = workspace.servers
        saved = await session_commands.save(workspace, SaveSessionParams())
        session = await upload(workspace, saved.path.read_bytes())
        added = await session_commands.replay_server(workspace, SessionParams(session=session))
        recorded = workspace.server(added.session)
        await recorded.connect()
        assert (await recorded.client.call_tool("price", {"item": "bread"})).text == "2.0"
        same = await session_commands.replay_client(workspace, ReplayParams(session=session, server=name))
        assert same.differences == []
        assert same.messages > 3
        workspace.add_targets([Server("other", version="1")])
        other = await session_commands.replay_client(workspace, ReplayParams(session=session, server="other"))
        assert any("tools/call price" in each for each in other.differences)


async def test_servers_and_revisions_are_compared() -> None:
    async with inspected() as workspace:
        (name,) = workspace.servers
        other = Server("other", version="1")
        workspace.add_targets([other])
        found = await session_commands.compare_surfaces(workspace, CompareServersParams(server=name, other="other"))
        (comparison,) = found.comparisons
        assert ("breaking", "tools.price") in [(change.kind, change.place) for change in comparison.changes]
        revisions = (await session_commands.compare_surfaces(workspace, CompareServersParams(server=name))).comparisons
        assert [each.old for each in revisions] == ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
        assert {each.new for each in revisions} == {"2026-07-28"}


async def test_no_secret_is_in_any_answer() -> None:
    async with inspected() as workspace:
        (server,) = workspace.servers.values()
        secret = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
        with suppress(AccordError):  # what the server answers does not matter
            await server.client.call_tool("price", {"item": secret, "password": secret})
        await workspace.recording.written()
        assert (await commands.read_rows(workspace, RowsParams(filter="redacted"))).total >= 1
        answers: list[Any] = [await commands.read_rows(workspace, RowsParams(count=500))]
        answers += [
            await commands.read_entry(workspace, RowParams(row=row)) for row in range(len(workspace.recording.index))
        ]
        assert secret not in repr(answers)
        assert secret.encode() not in workspace.recording.file.read_bytes()


async def test_the_entries_that_match_are_saved() -> None:
    async with inspected() as workspace:
        saved = await session_commands.save(workspace, SaveSessionParams(filter="method:tools/call"))
        assert saved.delete
        session = await upload(workspace, saved.path.read_bytes())
        rows = (await commands.read_rows(workspace, RowsParams(session=session))).rows
        assert [(row.kind, row.name) for row in rows] == [("request", "price"), ("response", "price")] * 2
        with pytest.raises(InspectorError, match="unknown key"):
            await session_commands.save(workspace, SaveSessionParams(filter="methud:a"))


async def test_tests_for_pytest_are_saved() -> None:
    async with inspected() as workspace:
        saved = await session_commands.save_tests(workspace, SessionParams())
        source = saved.path.read_text()
        compile(source, "test_session.py", "exec")
        assert "FILE = Path(__file__).with_name('session.jsonl')" in source
        assert "def test_price(accord_client):" in source


async def test_a_recording_that_ended_says_so(tmp_path: Path) -> None:
    async with inspected() as workspace:
        assert (await commands.read_rows(workspace, RowsParams())).remark == ""
        workspace.recording.error = "the recording ends: No space left on device"
        assert "No space left" in (await commands.read_rows(workspace, RowsParams())).remark
    recording = TrafficRecording(tmp_path / "f.jsonl", limit=2_000, on_change=lambda rows: None)
    async with Client(shop(), record=recording.recorder) as client:
        for _ in range(20):
            await client.call_tool("price", {"item": "bread"})
    assert recording.remark.startswith("the recording reached its maximum size of 2,000 bytes")
    await recording.close()


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind":"message","direction":"sent","base64":"no base64"}',
        b'{"kind":"http","direction":"sent","exchange":1,"method":"GET","url":"u","headers":["no object"]}',
    ],
)
async def test_a_line_with_other_types_is_shown(line: bytes) -> None:
    async with inspected() as workspace:
        id = await upload(workspace, b'{"kind":"session","version":1,"at":""}\n' + line + b"\n")
        entry = await commands.read_entry(workspace, RowParams(session=id, row=0))
        assert (entry.summary.row, entry.complete) == (0, True)
        await commands.compare(workspace, CompareParams(left_session=id, left=0, right=0))


async def test_a_deep_message_is_shown_without_its_indentation() -> None:
    """900 levels would make each of its numbers 1.8 kB long."""
    deep = b"[" * 900 + b"0," * 100_000 + b"0" + b"]" * 900
    line = b'{"kind":"message","direction":"sent","message":{"id":1,"result":%b}}\n' % deep
    async with inspected() as workspace:
        id = await upload(workspace, b'{"kind":"session","version":1,"at":""}\n' + line)
        with costs_at_most(100):
            entry = await commands.read_entry(workspace, RowParams(session=id, row=0))
            params = CompareParams(left_session=id, left=0, right_session=id, right=0)
            compared = await commands.compare(workspace, params)
        assert (entry.pretty, len(entry.raw), compared.equal) == ("", 200_000, True)

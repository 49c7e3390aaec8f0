"""The audit log: what it stores, when it is durable, several writers, and recovery."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord.errors import StoreError
from accord.host.audit import file_lock
from accord.host.audit.anchor import Anchor
from accord.host.audit.chain import read_link
from accord.host.audit.event import AuditEvent, digest, excerpt
from accord.host.audit.log import AuditLog
from accord.host.audit.verify import verify_log
from accord.host.host import Host

from tests.measure import processor_seconds


def event(number: int = 1, **fields: Any) -> AuditEvent:
    return AuditEvent(**{"kind": "sending", "call": str(number), "server": "files", "tool": "read_text", **fields})


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def contents(path: Path) -> list[dict[str, Any]]:
    lines = path.read_bytes().splitlines()
    previous = ""
    for number, line in enumerate(lines):
        link = read_link(line)
        assert (link.number, link.previous) == (number, previous)
        previous = link.hash
    return [msgspec.json.decode(line) for line in lines]


async def test_arguments_that_are_too_deep_are_refused_by_the_log(tmp_path: Path) -> None:
    async with AuditLog(tmp_path / "audit.jsonl") as audit:
        with pytest.raises(StoreError, match="the event of call '7' cannot be written"):
            await audit.append(event(7, arguments=nested(5_000)))
        await audit.append(event(8))
    assert [entry["event"]["call"] for entry in contents(tmp_path / "audit.jsonl")[1:]] == ["8"]


async def test_each_event_is_an_entry_with_the_hash_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with AuditLog(path, clock=lambda: 1_800_000_000.5) as audit:
        first = await audit.append(event(kind="proposal", principal="ann", decision="ask", rule="mail", policy="ab"))
        second = await audit.append(event(kind="outcome", outcome="result"))
    header, *entries = contents(path)
    assert len(header["id"]) == 32
    assert [entry["hash"] for entry in entries] == [first, second]
    assert entries[0]["time"] == "2027-01-15T08:00:00.500000Z"
    assert entries[0]["event"] == {
        "kind": "proposal",
        "call": "1",
        "method": "tools/call",
        "principal": "ann",
        "server": "files",
        "tool": "read_text",
        "decision": "ask",
        "rule": "mail",
        "policy": "ab",
    }
    assert path.stat().st_mode & 0o777 == 0o600


async def test_arguments_are_a_digest_and_an_excerpt_without_secrets(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    arguments = {"path": "/x", "api_key": "hunter2hunter2", "text": "token=abcdef123456", "long": "é" * 10_000}
    async with AuditLog(path) as audit:
        await audit.append(event(arguments=arguments, detail="failed with Bearer abcdefgh12345678"))
    stored = contents(path)[1]["event"]
    assert stored["arguments"]["sha256"] == digest(dict(reversed(arguments.items())))
    assert stored["arguments"]["excerpt"].startswith('{"path":"/x","api_key":"[redacted]","text":"token=[redacted]"')
    assert len(stored["arguments"]["excerpt"]) == 2_000
    assert b"hunter2" not in path.read_bytes()
    assert b"abcdef" not in path.read_bytes()


@pytest.mark.parametrize("name", ["audit.jsonl", "audit.db"])
async def test_half_of_a_surrogate_pair_is_written_as_an_escape(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    arguments: dict[str, Any] = {"path": "a\ud800", "\udfff": [{"b": "\udc00"}]}
    async with AuditLog(path) as audit:
        for number in (1, 2):
            await audit.append(event(number, arguments=arguments, detail="x\ud800", rule="\udc00"))
    assert verify_log(path).problems == []
    assert "a\\\\ud800" in excerpt(arguments)
    assert digest(arguments) == digest(dict(reversed(arguments.items())))
    assert digest(arguments) != digest({**arguments, "path": "a\ud801"}) != digest({**arguments, "path": "a\\ud801"})


async def test_long_texts_are_cut_and_have_a_digest(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    nested: Any = []
    for _ in range(100):
        nested = [nested]
    async with AuditLog(path) as audit:
        await audit.append(event(tool="x" * 100_000, detail="\x00" * 100_000, arguments={"n": nested}))
        await audit.append(event(tool="x" * 100_001, detail="\ud800", arguments={str(n): n for n in range(100_000)}))
    one, other = (entry["event"] for entry in contents(path)[1:])
    assert len(one["tool"]) == 500
    assert one["tool"] != other["tool"]
    assert path.stat().st_size < 20_000


async def test_append_returns_after_the_entry_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, synced = tmp_path / "audit.jsonl", []
    sync = file_lock.sync
    monkeypatch.setattr("accord.host.audit.json_lines.sync", lambda fd: (sync(fd), synced.append(path.read_bytes())))
    async with AuditLog(path) as audit:
        for number in range(3):
            found = await audit.append(event(number))
            assert found.encode() in synced[-1]


async def test_events_that_wait_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, syncs = tmp_path / "audit.jsonl", []
    monkeypatch.setattr("accord.host.audit.json_lines.sync", syncs.append)
    async with AuditLog(path) as audit:
        hashes = await asyncio.gather(*(audit.append(event(number)) for number in range(200)))
    assert len(syncs) < 10
    assert [entry["hash"] for entry in contents(path)[1:]] == hashes


async def test_logs_of_one_file_share_its_chain(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with AuditLog(path) as one, AuditLog(path) as other:
        for number in range(10):
            await asyncio.gather(one.append(event(number)), other.append(event(number)))
    assert len(contents(path)) == 21


async def test_a_cancelled_append_is_written_too(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with AuditLog(path) as audit:
        task = asyncio.create_task(audit.append(event()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(contents(path)) == 2


async def test_an_incomplete_last_entry_is_removed_and_noted(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with AuditLog(path) as audit:
        await audit.append(event(1))
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines()[1][:57])
    async with AuditLog(path) as audit:
        await audit.append(event(2))
    entries = contents(path)
    assert entries[2]["event"] == {"kind": "recovery", "detail": "57 bytes of an incomplete entry were removed"}
    assert [entry.get("event", {}).get("call") for entry in entries] == [None, "1", None, "2"]


@pytest.mark.parametrize("size", [0, 1, 30, 60, 150])
async def test_an_incomplete_header_is_written_again(tmp_path: Path, size: int) -> None:
    path = tmp_path / "audit.jsonl"
    async with AuditLog(path):
        pass
    path.write_bytes(path.read_bytes()[:size])
    async with AuditLog(path) as audit:
        await audit.append(event())
    assert len(contents(path)) == 2


async def test_a_file_of_another_program_is_not_changed(tmp_path: Path) -> None:
    for content in (b"notes", b"notes\n", b'{"a": 1}\n', b"x" * 1_000_000):
        path = tmp_path / "notes"
        path.write_bytes(content)
        with pytest.raises(StoreError, match="is not an audit log"):
            await AuditLog(path).open()
        assert path.read_bytes() == content


async def test_a_log_that_cannot_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.jsonl"

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    async with AuditLog(path) as audit:
        await audit.append(event(1))
        with monkeypatch.context() as patch:
            patch.setattr("accord.host.audit.json_lines.sync", full)
            with pytest.raises(StoreError, match="No space left"):
                await audit.append(event(2))
        assert len(contents(path)) == 2
        await audit.append(event(3))
    assert len(contents(path)) == 3
    with pytest.raises(StoreError, match="not open"):
        await audit.append(event())
    with pytest.raises(StoreError, match="cannot be used"):
        await AuditLog(tmp_path / "missing" / "audit.jsonl").open()


async def test_a_log_that_was_moved_or_cut_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with AuditLog(path) as audit:
        await audit.append(event(1))
        os.truncate(path, path.stat().st_size - 10)
        with pytest.raises(StoreError, match="entries were removed"):
            await audit.append(event(2))
        path.rename(tmp_path / "old.jsonl")
        with pytest.raises(StoreError, match="cannot be used"):
            await audit.append(event(2))
        path.write_bytes(b"")
        with pytest.raises(StoreError, match="another file"):
            await audit.append(event(2))


async def test_the_anchor_has_the_latest_entry(tmp_path: Path) -> None:
    path, anchor = tmp_path / "audit.jsonl", tmp_path / "anchor"
    async with AuditLog(path, anchor=anchor) as audit:
        for number in range(3):
            found = await audit.append(event(number))
            anchored = Anchor(anchor).read()
            assert anchored is not None
            assert (anchored.id, anchored.number, anchored.hash) == (contents(path)[0]["id"], number + 1, found)
    assert sorted(os.listdir(tmp_path)) == ["anchor", "audit.jsonl"]


async def test_a_log_that_lost_what_its_anchor_knows_is_not_continued(tmp_path: Path) -> None:
    path, anchor = tmp_path / "audit.jsonl", tmp_path / "anchor"
    async with AuditLog(path, anchor=anchor) as audit:
        for number in range(3):
            await audit.append(event(number))
    before, known = path.read_bytes(), anchor.read_bytes()
    lines = before.splitlines(keepends=True)
    for changed in (b"".join(lines[:-1]), lines[0], b"", before[:-1], before[:-60]):
        path.write_bytes(changed)
        with pytest.raises(StoreError, match=r"accord audit verify|choose another anchor"):
            await AuditLog(path, anchor=anchor).open()
        assert (path.read_bytes(), anchor.read_bytes()) == (changed, known)
    path.unlink()
    async with AuditLog(path):
        pass
    with pytest.raises(StoreError, match="another audit log"):
        await AuditLog(path, anchor=anchor).open()


async def test_a_process_that_ended_before_it_wrote_the_anchor_loses_nothing(tmp_path: Path) -> None:
    path, anchor = tmp_path / "audit.jsonl", tmp_path / "anchor"
    async with AuditLog(path, anchor=anchor) as audit:
        await audit.append(event(1))
        known = anchor.read_bytes()
        await audit.append(event(2))
    anchor.write_bytes(known)
    async with AuditLog(path, anchor=anchor) as audit:
        await audit.append(event(3))
    assert len(contents(path)) == 4


def test_an_excerpt_costs_no_more_for_larger_arguments() -> None:
    def arguments(count: int) -> dict[str, Any]:
        return {"rows": [{"n": [["token=abc " * 500] * 40] * 40}] * count}

    def cost(value: dict[str, Any]) -> float:
        return min(processor_seconds(lambda: excerpt(value)) for _ in range(5))

    assert cost(arguments(50)) < 5 * cost({"text": "token=abc " * 500})


@pytest.mark.parametrize("name", ["audit.jsonl", "audit.db"])
async def test_a_log_that_was_closed_can_begin_a_new_file(tmp_path: Path, name: str) -> None:
    path, audit = tmp_path / name, AuditLog(tmp_path / name)
    for _ in range(2):
        async with audit:
            await audit.append(event(1))
            await audit.append(event(2))
        os.replace(path, tmp_path / "old")
    async with audit:
        await audit.append(event(1))


async def test_a_process_that_ended_while_it_wrote_the_first_anchor_loses_nothing(tmp_path: Path) -> None:
    path, anchor = tmp_path / "audit.jsonl", tmp_path / "anchor"
    async with AuditLog(path, anchor=anchor):
        known = anchor.read_bytes()
    for size in (0, 1, 7, 100, len(known) - 1):
        for written in (known[:size], known[:size].ljust(len(known), b"\0")):
            anchor.write_bytes(written)
            async with AuditLog(path, anchor=anchor) as audit:
                await audit.append(event(1))
            assert verify_log(path, anchor=anchor).problems == []
    for other in (b"my notes", known.replace(b"0", b"1"), b"\0" * 300):
        anchor.write_bytes(other)
        with pytest.raises(StoreError, match="damaged"):
            await AuditLog(path, anchor=anchor).open()
        assert anchor.read_bytes() == other


@pytest.mark.parametrize("name", ["audit.jsonl", "audit.db"])
async def test_a_host_writes_the_anchor_of_its_configuration(tmp_path: Path, name: str) -> None:
    settings = {"mcpServers": {}, "accord": {"audit": name, "audit_anchor": "anchor"}}
    (tmp_path / "mcp.json").write_text(json.dumps(settings))
    async with Host(tmp_path / "mcp.json", state=tmp_path / "host.db"):
        pass
    report = verify_log(tmp_path / name, anchor=tmp_path / "anchor")
    assert (report.problems, report.after_anchor) == ([], 0)

"""A session file is written in a thread of its own: in order, bounded, and complete when a program exits."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accord import Client
from accord.testing.recording import read_recorded
from accord.transport.recording import SessionRecorder, new_header
from accord.transport.session_queue import SessionQueue
from accord.transport.session_writer import SessionFileWriter
from accord.wire.session_file import ClosedEntry, ConnectedEntry, MessageEntry, RemarkEntry, StderrEntry, message_entry

from tests.testing.shops import shop

HEADER = new_header("python shop.py")


class BlockedWriter(SessionFileWriter):
    """A writer that writes only after `may_write` is set."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.may_write = threading.Event()
        self.threads: set[threading.Thread] = set()

    def write(self, entry: Any) -> None:
        self.threads.add(threading.current_thread())
        self.may_write.wait(10)
        super().write(entry)


def stderr(text: str, connection: int = 1) -> StderrEntry:
    return StderrEntry(connection=connection, text=text)


def test_entries_are_written_in_order_by_another_thread(tmp_path: Path) -> None:
    writer = BlockedWriter(tmp_path / "f.jsonl")
    queue = SessionQueue(writer)
    queue.begin(HEADER)
    for number in range(100):
        queue.write(stderr(str(number)))
    writer.may_write.set()
    queue.flush()
    assert [entry.text for entry in read_recorded(tmp_path / "f.jsonl").entries] == [str(n) for n in range(100)]
    assert threading.main_thread() not in writer.threads


def test_a_secret_is_replaced_in_what_follows(tmp_path: Path) -> None:
    queue = SessionQueue(SessionFileWriter(tmp_path / "f.jsonl"))
    queue.begin(HEADER)
    queue.add_secrets(["of-ann-1234"])
    queue.write(stderr("of-ann-1234"))
    queue.flush()
    assert read_recorded(tmp_path / "f.jsonl").entries == [stderr("[redacted]")]


async def test_a_full_queue_lets_the_connection_wait_and_nothing_is_lost(tmp_path: Path) -> None:
    writer = BlockedWriter(tmp_path / "f.jsonl")
    writer.may_write.set()
    queue = SessionQueue(writer, size=2_000)
    async with Client(shop(), record=SessionRecorder(queue)) as client:
        await queue.wait()
        writer.may_write.clear()
        await client.call_tool("price", {"item": "bread"})
        assert queue.is_full
        call = asyncio.create_task(client.call_tool("price", {"item": "bread"}))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not call.done()
        writer.may_write.set()
        assert (await call).text == "2.0"
    entries = read_recorded(tmp_path / "f.jsonl").entries
    assert isinstance(entries[-1], ClosedEntry)
    assert not any(isinstance(entry, RemarkEntry) for entry in entries)


def test_what_comes_too_fast_and_cannot_wait_is_reported_in_the_file(tmp_path: Path) -> None:
    writer = BlockedWriter(tmp_path / "f.jsonl")
    queue = SessionQueue(writer, size=5_000)
    queue.begin(HEADER)
    for number in range(50):
        queue.write(stderr(str(number)))
    writer.may_write.set()
    queue.flush()
    queue.write(stderr("last"))
    queue.flush()
    entries = read_recorded(tmp_path / "f.jsonl").entries
    remarks = [entry.text for entry in entries if isinstance(entry, RemarkEntry)]
    assert remarks == [f"{50 + 2 - len(entries)} entries were not recorded: they came faster than they can be written"]
    assert entries[-1] == stderr("last")
    assert 10 <= len(entries) <= 14


def test_the_thread_ends_with_the_connections(tmp_path: Path) -> None:
    queue = SessionQueue(SessionFileWriter(tmp_path / "f.jsonl"))
    queue.begin(HEADER)
    queue.write(ConnectedEntry(connection=1))
    thread = queue._thread
    assert thread is not None
    queue.write(ClosedEntry(connection=1))
    thread.join(10)
    assert not thread.is_alive()
    queue.write(ConnectedEntry(connection=2))
    queue.flush()
    assert [entry.connection for entry in read_recorded(tmp_path / "f.jsonl").entries] == [1, 1, 2]


async def test_the_file_is_complete_when_the_client_is_closed(tmp_path: Path) -> None:
    for _ in range(20):
        async with Client(shop(), record=tmp_path / "f.jsonl") as client:
            await client.call_tool("price", {"item": "bread"})
        assert isinstance(read_recorded(tmp_path / "f.jsonl").entries[-1], ClosedEntry)


def test_the_thread_of_the_connection_does_not_redact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost for the connection does not depend on what is in a message."""
    threads: set[threading.Thread] = set()
    redact: Callable[..., Any] = SessionFileWriter.write

    def write(self: SessionFileWriter, entry: Any) -> None:
        threads.add(threading.current_thread())
        redact(self, entry)

    monkeypatch.setattr(SessionFileWriter, "write", write)
    queue = SessionQueue(SessionFileWriter(tmp_path / "f.jsonl"))
    queue.begin(HEADER)
    queue.write(message_entry(b'{"password":"hunter2"}', "sent", connection=1))
    queue.flush()
    assert threads.isdisjoint({threading.main_thread()})


EXITS = """
import sys
from accord.transport.recording import new_header
from accord.transport.session_queue import SessionQueue
from accord.transport.session_writer import SessionFileWriter
from accord.wire.session_file import message_entry
queue = SessionQueue(SessionFileWriter({file!r}))
queue.begin(new_header("x"))
for number in range(2_000):
    queue.write(message_entry(b'{{"id":%d}}' % number, "sent", connection=1))
{end}
"""


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "raise SystemExit"])
def test_a_program_that_exits_loses_nothing(tmp_path: Path, end: str) -> None:
    file = tmp_path / "f.jsonl"
    program = EXITS.format(file=str(file), end=end)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    entries = read_recorded(file).entries
    assert len(entries) == 2_000
    assert all(isinstance(entry, MessageEntry) for entry in entries)


FORKS = """
import os
queue.flush()
child = os.fork()
if not child:
    queue.write(message_entry(b'"of the child"', "sent", connection=1))
    queue.flush()
    sys.exit(0)
os.waitpid(child, 0)
queue.write(message_entry(b'"of the parent"', "sent", connection=1))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on Windows")
def test_a_forked_process_does_not_write_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    program = EXITS.format(file=str(file), end=FORKS)
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)
    entries = read_recorded(file).entries
    assert len(entries) == 2_001
    assert isinstance(entries[-1], MessageEntry)
    assert entries[-1].data == b'"of the parent"'

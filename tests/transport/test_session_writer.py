"""A session file is private, bounded, and complete up to its last line."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from accord import Client, ConnectError
from accord.testing.recording import read_recorded
from accord.transport import session_writer
from accord.transport.recording import new_header
from accord.transport.session_writer import SessionFileWriter
from accord.wire import session_file
from accord.wire.session_file import (
    ClosedEntry,
    ConnectedEntry,
    LimitEntry,
    MessageEntry,
    SkippedEntry,
    StderrEntry,
    message_entry,
)

from tests.auth.secrets_of_oauth import MARK, SECRETS
from tests.testing.shops import shop

HEADER = new_header("python shop.py")
LINE = StderrEntry(connection=1, text="x" * 100)
posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and signals of POSIX")


@posix
def test_only_the_user_may_read_the_file(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.touch(0o666)
    file.chmod(0o666)
    SessionFileWriter(file).begin(HEADER)
    assert file.stat().st_mode & 0o777 == 0o600


def test_each_entry_is_written_at_once(tmp_path: Path) -> None:
    writer = SessionFileWriter(tmp_path / "f.jsonl")
    writer.begin(HEADER)
    for number in range(1, 4):
        writer.write(LINE)
        assert len(read_recorded(tmp_path / "f.jsonl").entries) == number


def test_the_size_is_limited(tmp_path: Path) -> None:
    file, limit = tmp_path / "f.jsonl", 2_000
    writer = SessionFileWriter(file, limit=limit)
    writer.begin(HEADER)
    for _ in range(100):
        writer.write(LINE)
    session = read_recorded(file)
    assert session.entries[-1] == LimitEntry(size=limit)
    assert session.limit_reached
    assert session.entries[:-1] == [LINE] * (len(session.entries) - 1)
    assert limit - 400 < file.stat().st_size <= limit


def test_a_message_longer_than_a_line_may_be_is_recorded_as_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_writer, "LINE_BYTES", 1_000)
    monkeypatch.setattr(session_file, "LINE_BYTES", 1_000)
    writer = SessionFileWriter(tmp_path / "f.jsonl")
    writer.begin(HEADER)
    writer.write(message_entry(b'"' + b"x" * 1_000 + b'"', "received", connection=1, exchange=2))
    (skipped,) = read_recorded(tmp_path / "f.jsonl").entries
    assert isinstance(skipped, SkippedEntry)
    assert (skipped.size, skipped.exchange, skipped.direction) == (1_002, 2, "received")


def test_the_file_is_open_only_while_connections_are(tmp_path: Path) -> None:
    writer = SessionFileWriter(tmp_path / "f.jsonl")
    writer.begin(HEADER)
    for connection in (1, 2):
        writer.write(ConnectedEntry(connection=connection))
    writer.write(ClosedEntry(connection=1))
    assert writer._descriptor is not None
    writer.write(ClosedEntry(connection=2))
    assert writer._descriptor is None
    writer.write(ConnectedEntry(connection=3))
    writer.write(ClosedEntry(connection=3))
    assert [entry.connection for entry in read_recorded(tmp_path / "f.jsonl").entries] == [1, 2, 1, 2, 3, 3]


def test_only_a_session_file_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    for _ in range(2):
        SessionFileWriter(file).begin(HEADER)
    file.write_text("my notes")
    with pytest.raises(ConnectError, match=r"cannot record to .*f.jsonl: the file exists, and is no session file"):
        SessionFileWriter(file).begin(HEADER)
    assert file.read_text() == "my notes"


async def test_a_client_reports_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for file, why in (("file/f.jsonl", "Not a directory"), (".", "Is a directory"), ("a.transcript", "another suffix")):
        client = Client(shop(), record=tmp_path / file)
        for _ in range(2):
            with pytest.raises(ConnectError, match=rf"cannot record to .*{why}"):
                await client.connect()


@posix
async def test_a_full_disk_ends_only_the_recording(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    link = tmp_path / "f.jsonl"
    link.symlink_to("/dev/full")
    async with Client(shop(), record=link) as client:
        assert (await client.call_tool("price", {"item": "bread"})).text == "2.0"
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == [f"accord: the recording to {link} ends: No space left on device"]


@posix
def test_a_file_may_be_a_pipe(tmp_path: Path) -> None:
    read, write = os.pipe()
    writer = SessionFileWriter(f"/dev/fd/{write}")
    writer.begin(HEADER)
    writer.write(ClosedEntry(connection=1))
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        assert len(stream.read().splitlines()) == 2


KILLED = """
import asyncio, sys
sys.path.insert(0, {root!r})
from accord import Client
from tests.testing.shops import shop
async def main():
    async with Client(shop(), record={file!r}) as client:
        print("ready", flush=True)
        while True:
            await client.call_tool("price", {{"item": "bread"}})
asyncio.run(main())
"""


@posix
def test_a_killed_program_loses_at_most_its_last_line(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    program = KILLED.format(root=str(Path(__file__).parents[2]), file=str(file))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGKILL)
    session = read_recorded(file)
    assert any(isinstance(entry, MessageEntry) for entry in session.entries)
    assert not isinstance(session.entries[-1], ClosedEntry)


def test_an_incomplete_last_line_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    writer = SessionFileWriter(file)
    writer.begin(HEADER)
    writer.write(LINE)
    writer.write(LINE)
    file.write_bytes(file.read_bytes()[:-9])
    session = read_recorded(file)
    assert session.incomplete
    assert session.entries == [LINE]


def test_a_damaged_file_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    SessionFileWriter(file).begin(HEADER)
    with file.open("a") as stream:
        stream.write("{}\n{}\n")
    with pytest.raises(ValueError, match=rf"{file}: line 2 is invalid"):
        read_recorded(file)


def test_no_secret_is_written(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    writer = SessionFileWriter(file)
    writer.begin(new_header(f"server --api-key {MARK}abcdefgh"))
    for secret in SECRETS:
        for text in secret.written:
            writer.write(StderrEntry(connection=1, text=text))
            writer.write(message_entry(text.encode(), "sent", connection=1))
    assert MARK not in file.read_text()
    assert read_recorded(file).header.redacted


def test_redaction_can_be_turned_off(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    writer = SessionFileWriter(file, redacted=False)
    writer.begin(new_header("server"))
    writer.write(message_entry(b'{"password":"hunter2"}', "sent", connection=1))
    assert b'{"password":"hunter2"}' in file.read_bytes()
    assert not read_recorded(file).header.redacted


@posix
async def test_two_clients_do_not_record_to_one_file(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    async with Client(shop(), record=file) as client:
        with pytest.raises(ConnectError, match=r"cannot record to .*: another client records to this file"):
            await Client(shop(), record=file).connect()
        await client.ping()
    assert isinstance(read_recorded(file).entries[-1], ClosedEntry)
    async with Client(shop(), record=file):
        pass

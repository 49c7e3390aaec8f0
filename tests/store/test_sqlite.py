"""What only a file has to stand: restarts, other processes, damage, full and slow disks."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from accord.errors import EventsGone, StoreError
from accord.store import file
from accord.store.base import Replay
from accord.store.database_thread import DatabaseThread, switch_to_wal
from accord.store.sqlite import SQLiteEvents

from tests.store.stores import messages, opened
from tests.waiting import turns, until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.db"


async def filled(path: Path, count: int = 20) -> None:
    """A store with two streams of one session, one of which has ended."""
    async with opened(SQLiteEvents(path)) as events:
        await events.save("s", b"record")
        for stream in ("a", "b"):
            await events.begin("s", stream, b"about")
            await events.append("s", stream, [message(stream, n) for n in range(count)], ends=stream == "b")


def message(stream: str, n: int) -> bytes:
    return f"{stream}{n:04}".encode() + b"x" * 300


def whole(stream: str, count: int = 20) -> Replay:
    return Replay([(n + 1, message(stream, n)) for n in range(count)], stream == "b", b"about")


# --- restarts and other processes ------------------------------------------------------------------------------


async def test_everything_is_there_after_a_restart_and_goes_on(path: Path) -> None:
    await filled(path)
    async with opened(SQLiteEvents(path)) as events:
        assert await events.load("s") == b"record"
        assert await events.read("s", "a", 0) == whole("a")
        assert await events.read("s", "b", 0) == whole("b")
        assert await events.append("s", "a", [b"on"]) == 21
        with pytest.raises(EventsGone):
            await events.append("s", "b", [b"on"])


async def test_two_stores_on_one_file_number_the_events_of_a_stream_together(path: Path) -> None:
    async with opened(SQLiteEvents(path)) as one, opened(SQLiteEvents(path)) as other:
        await one.begin("s", "a", b"")
        asked = [(one, other)[n % 2].append("s", "a", [b"%d" % n]) for n in range(200)]
        numbers = await asyncio.gather(*asked)
        assert sorted(numbers) == list(range(1, 201))
        kept = await messages(other, "s", "a")
        assert [kept[number - 1] for number in numbers] == [b"%d" % n for n in range(200)]


async def test_opening_a_file_again_takes_no_lock_from_those_that_have_it_open(path: Path) -> None:
    async with opened(SQLiteEvents(path)) as one:
        await one.begin("s", "a", b"")
        async with opened(SQLiteEvents(path)):
            before = locks_on(path)
        assert before
        await one.append("s", "a", [b"one"])
        assert locks_on(path)


def locks_on(path: Path) -> list[str]:
    """The locks that processes hold on a file."""
    if not Path("/proc/locks").exists():
        pytest.skip("only Linux tells which locks there are")
    inode = f":{path.stat().st_ino} "
    return [line for line in Path("/proc/locks").read_text().splitlines() if inode in line]


PROGRAM = """
import asyncio, sys
from accord.store.sqlite import SQLiteEvents
async def main():
    sys.stdin.readline()
    events = SQLiteEvents(sys.argv[1])
    await events.open()
    await events.begin("s", sys.argv[2], b"")
    for n in range(10):
        await events.append("s", sys.argv[2], [b"%d" % n])
    await events.close()
asyncio.run(main())
"""


async def test_processes_that_start_together_share_a_new_file(path: Path) -> None:
    children = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, str(path), str(n), stdin=subprocess.PIPE)
        for n in range(4)
    ]
    await asyncio.gather(*(child.communicate(b"go\n") for child in children))
    assert [child.returncode for child in children] == [0] * 4
    async with opened(SQLiteEvents(path)) as events:
        for n in range(4):
            assert await messages(events, "s", str(n)) == [b"%d" % n for n in range(10)]


def test_a_switch_to_wal_waits_for_those_that_write_at_this_moment(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer, ThreadPoolExecutor(1) as pool:
        writer.execute("CREATE TABLE t (n)")
        writer.execute("BEGIN IMMEDIATE")
        attempts: list[str] = []

        def switch() -> str:
            with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as db:
                db.set_trace_callback(attempts.append)
                switch_to_wal(db)
                return str(db.execute("PRAGMA journal_mode").fetchone()[0])

        switched = pool.submit(switch)
        while len(attempts) < 2:
            assert not switched.done(), switched.exception()
        writer.execute("COMMIT")
        assert switched.result() == "wal"


def test_a_switch_to_wal_fails_where_the_file_stays_locked(path: Path) -> None:
    with closing(sqlite3.connect(path)) as writer, closing(sqlite3.connect(path, isolation_level=None)) as db:
        writer.execute("CREATE TABLE t (n)")
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            switch_to_wal(db, seconds=0.02)


async def test_the_file_and_what_sqlite_puts_beside_it_are_private(path: Path) -> None:
    before = os.umask(0)
    try:
        async with opened(SQLiteEvents(path)) as events:
            await events.save("s", b"secret")
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"events.db": 0o600, "events.db-wal": 0o600, "events.db-shm": 0o600}


async def test_a_store_serves_several_event_loops(path: Path) -> None:
    events = SQLiteEvents(path)
    await events.open()

    async def elsewhere(n: int) -> None:
        await events.begin("s", str(n), b"")
        for _ in range(50):
            await events.append("s", str(n), [b"one"])

    threads = [threading.Thread(target=asyncio.run, args=(elsewhere(n),)) for n in range(3)]
    for thread in threads:
        thread.start()
    await elsewhere(3)
    for thread in threads:
        await asyncio.to_thread(thread.join)
    for n in range(4):
        assert len(await messages(events, "s", str(n))) == 50
    await events.close()


# --- open and closed -------------------------------------------------------------------------------------------


async def test_a_store_that_is_not_open_says_so(path: Path) -> None:
    events = SQLiteEvents(path)
    with pytest.raises(StoreError, match=r"not open: call open\(\) first"):
        await events.load("s")
    await events.open()
    await events.save("s", b"record")
    await events.close()
    with pytest.raises(StoreError, match="not open"):
        await events.load("s")
    await events.open()
    assert await events.load("s") == b"record"
    await events.close()


async def test_closing_finishes_requests_and_ends_the_thread(path: Path) -> None:
    others = set(threading.enumerate())
    events = SQLiteEvents(path)
    await events.open()
    await events.begin("s", "a", b"")
    asked = [asyncio.create_task(events.append("s", "a", [b"%d" % n])) for n in range(1_000)]
    await asyncio.sleep(0)
    await events.close()
    assert await asyncio.gather(*asked) == list(range(1, 1_001))
    for thread in set(threading.enumerate()) - others:
        if thread.name == "accord events":
            await asyncio.to_thread(thread.join, 10)
            assert not thread.is_alive()
    assert [each.name for each in path.parent.iterdir()] == ["events.db"]


@pytest.mark.parametrize("is_connected", [False, True])
async def test_a_start_that_is_cancelled_leaves_no_thread(is_connected: bool, path: Path) -> None:
    threads: list[threading.Thread] = []
    goes_on = threading.Event()

    def connect() -> sqlite3.Connection:
        threads.append(threading.current_thread())
        goes_on.wait(100)
        return sqlite3.connect(path)

    database = DatabaseThread(connect, str)
    starting = asyncio.create_task(database.start())
    await until(lambda: threads)
    if is_connected:  # the loop does not know yet
        goes_on.set()
        while database._jobs is None:
            time.sleep(0.001)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    goes_on.set()
    await asyncio.to_thread(threads[0].join, 10)
    assert not threads[0].is_alive()


def test_a_loop_that_ended_while_its_append_was_under_way_harms_nobody(path: Path) -> None:
    events = SQLiteEvents(path)

    async def leave() -> None:
        await events.open()
        await events.begin("s", "a", b"")
        asyncio.get_running_loop().create_task(events.append("s", "a", [b"one"]))
        await asyncio.sleep(0)

    async def come_back() -> None:
        assert await messages(events, "s", "a") == [b"one"]
        await events.close()

    asyncio.run(leave())
    asyncio.run(come_back())


# --- files that cannot be used ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM events WHERE number = 5",
        "DELETE FROM events WHERE number = 20",
        "DELETE FROM events WHERE number = 21",
        "UPDATE streams SET last = 19",
        "UPDATE streams SET last = 'x'",
        "UPDATE streams SET ended = NULL",
        "UPDATE events SET message = 'x' WHERE number = 7",
        "UPDATE events SET number = 100 - number",
        "UPDATE streams SET about = x'0000000061'",
    ],
)
async def test_rows_that_are_missing_or_have_changed_are_reported(path: Path, change: str) -> None:
    await filled(path)
    db = sqlite3.connect(path)
    db.execute(change)
    db.commit()
    db.close()
    async with opened(SQLiteEvents(path)) as events:
        with pytest.raises(StoreError, match="is damaged"):
            await events.read("s", "b", 4)
        assert await events.load("s") == b"record"


async def test_counts_that_do_not_add_up_are_reported_and_nothing_is_dropped_for_them(path: Path) -> None:
    await filled(path)
    db = sqlite3.connect(path)
    db.execute("UPDATE sessions SET bytes = 1 << 40")
    db.commit()
    db.close()
    async with opened(SQLiteEvents(path)) as events:
        for _ in range(2):
            with pytest.raises(StoreError, match="damaged: the bytes of its events do not add up"):
                await events.append("s", "a", [b"on"])
            assert await events.read("s", "a", 0) == whole("a")


async def test_a_name_that_cannot_be_written_fails_alone(path: Path) -> None:
    async with opened(SQLiteEvents(path)) as events:
        names = ["a", "b", "\ud800", "c"]
        asked = (events.begin("s", name, b"") for name in names)
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [type(None), type(None), UnicodeEncodeError, type(None)]
        with pytest.raises(UnicodeEncodeError):
            await events.begin("\ud800", "a", b"")
        assert [await events.append("s", name, [b"one"]) for name in "abc"] == [1, 1, 1]


def bits(path: Path) -> bytes:
    return path.read_bytes()


def put(path: Path, kept: bytes, journal: bytes | None = None) -> None:
    """In the place of the file and its journal, these."""
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    path.write_bytes(kept)
    if journal is not None:
        journal_of(path).write_bytes(journal)


async def refusal(path: Path) -> str:
    """Why this file cannot be opened."""
    events = SQLiteEvents(path)
    with pytest.raises(StoreError) as caught:
        await events.open()
    with pytest.raises(StoreError, match="not open"):
        await events.load("s")
    assert str(path) in str(caught.value)
    return str(caught.value)


async def test_a_path_that_cannot_be_written_to_is_an_error_that_says_so(tmp_path: Path) -> None:
    assert "No such file or directory" in await refusal(tmp_path / "nowhere" / "events.db")
    assert "unable to open" in await refusal(tmp_path)


async def test_a_file_of_another_program_is_refused_and_left_as_it_was(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE customers (name)")
    db.close()
    before = bits(path)
    assert "not a store of events" in await refusal(path)
    assert bits(path) == before
    for count in (1, 1_000, 1_024):
        put(path, text := b"Dear diary, " * count)
        assert "damaged" in await refusal(path)
        assert bits(path) == text


@pytest.mark.parametrize("version", [1, 3])
async def test_a_file_of_another_version_is_refused(path: Path, version: int) -> None:
    await filled(path)
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {version}")
    db.close()
    assert "of this version of accord" in await refusal(path)


async def test_a_torn_file_is_an_error_that_says_so(path: Path) -> None:
    await filled(path, 200)
    whole_file = bits(path)
    for size in (1, 100, 4096, len(whole_file) // 2, len(whole_file) - 1, len(whole_file) - 4096):
        put(path, whole_file[:size])
        text = await refusal(path)
        assert "damaged" in text
        assert "move it away" in text


async def test_a_page_that_was_lost_is_an_error_that_says_so(path: Path) -> None:
    await filled(path, 200)
    whole_file = bits(path)
    for page in range(1, len(whole_file) // 4096):
        put(path, whole_file[: page * 4096] + b"\xff" * 4096 + whole_file[(page + 1) * 4096 :])
        text = await refusal(path)
        assert "damaged" in text
        assert "move it away" in text


def test_each_commit_is_brought_to_the_disk(path: Path) -> None:
    db = file.connect(path)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA synchronous").fetchone() == (2,), "FULL: at each commit, not at checkpoints alone"
    db.close()


async def test_no_bit_that_changes_is_passed_over(path: Path) -> None:
    """Whatever is read then is what was written, or an error, or nothing at all."""
    await filled(path)
    whole_file = bits(path)
    seeded = random.Random(4)
    told = 0
    for _ in range(150):
        torn = bytearray(whole_file)
        torn[seeded.randrange(len(torn))] ^= 1 << seeded.randrange(8)
        put(path, bytes(torn))
        try:
            async with opened(SQLiteEvents(path)) as events:
                for stream in ("a", "b"):
                    replay = await events.read("s", stream, 0)
                    assert replay in (whole(stream), None)
                    told += replay is None
        except StoreError:
            told += 1
    assert told > 20


async def left_by_a_kill(path: Path) -> tuple[bytes, bytes]:
    """The file and the journal, as a process that is killed leaves them: all events are in the journal alone."""
    async with opened(SQLiteEvents(path)) as events:
        for stream in ("a", "b"):
            await events.begin("s", stream, b"about")
            for n in range(8):
                await events.append("s", stream, [message(stream, n)], ends=stream == "b" and n == 7)
        return bits(path), bits(journal_of(path))


def journal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


async def test_a_bit_that_changes_in_the_journal_of_a_killed_process_is_reported(path: Path) -> None:
    kept, journal = await left_by_a_kill(path)
    put(path, kept, journal)
    async with opened(SQLiteEvents(path)) as events:
        assert await events.read("s", "a", 0) == whole("a", 8)
        assert await events.read("s", "b", 0) == whole("b", 8)
    seeded = random.Random(4)
    for _ in range(40):
        torn = bytearray(journal)
        torn[seeded.randrange(32, len(journal) // 2)] ^= 1 << seeded.randrange(8)
        put(path, kept, bytes(torn))
        assert "events.db-wal is damaged" in await refusal(path)
        assert bits(path) == kept


async def test_a_journal_that_was_torn_in_the_middle_of_a_write_is_taken_up_to_there(path: Path) -> None:
    kept, journal = await left_by_a_kill(path)
    for size in (0, 10, 32, 33, len(journal) // 3, len(journal) // 2 + 1, len(journal) - 1):
        put(path, kept, journal[:size])
        async with opened(SQLiteEvents(path)) as events:
            replay = await events.read("s", "a", 0)
            assert replay is None or replay.events == whole("a").events[: len(replay.events)]


# --- full and slow disks ---------------------------------------------------------------------------------------


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives the next connections a disk of so many pages."""

    def small(count: int) -> None:
        def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            db = sqlite3.Connection(*args, **kwargs)
            db.execute(f"PRAGMA max_page_count = {count}")
            return db

        monkeypatch.setattr(sqlite3, "connect", connect)

    return small


async def test_a_full_disk_is_an_error_and_then_there_is_service_again(path: Path, pages: Any) -> None:
    pages(60)
    async with opened(SQLiteEvents(path)) as events:
        for session in ("s", "t"):
            await events.save(session, b"record")
            await events.begin(session, "a", b"")
            await events.append(session, "a", [b"one"])
        for _ in range(3):
            with pytest.raises(StoreError, match="disk is full; make room on the disk") as caught:
                await events.append("s", "a", [b"x" * 300_000])
            assert str(path) in str(caught.value)
        assert await events.append("s", "a", [b"two"]) == 2
        assert await messages(events, "s", "a") == [b"one", b"two"]
        await events.append("t", "a", [b"x" * 150_000])
        with pytest.raises(StoreError, match="disk is full"):
            await events.append("s", "a", [b"x" * 100_000])
        await events.forget("t")
        assert await events.append("s", "a", [b"x" * 100_000]) == 3


async def test_what_does_not_fit_fails_alone_among_appends_that_are_committed_together(path: Path, pages: Any) -> None:
    pages(60)
    async with opened(SQLiteEvents(path)) as events:
        for n in range(20):
            await events.begin("s", str(n), b"")
        sizes = [400_000 if n % 5 == 2 else 10 for n in range(20)]
        asked = (events.append("s", str(n), [b"x" * size]) for n, size in enumerate(sizes))
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        for n, (size, outcome) in enumerate(zip(sizes, outcomes, strict=True)):
            if size == 10:
                assert outcome == 1
                assert await messages(events, "s", str(n)) == [b"x" * 10]
            else:
                assert isinstance(outcome, StoreError)
                assert await messages(events, "s", str(n)) == []


async def test_a_file_that_another_process_holds_does_not_hold_the_loop(path: Path) -> None:
    async with opened(SQLiteEvents(path)) as events:
        await events.begin("s", "a", b"")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        asked = asyncio.create_task(events.append("s", "a", [b"one"]))
        await turns(1_000)
        assert not asked.done()
        other.execute("COMMIT")
        other.close()
        assert await asked == 1


async def test_a_file_that_stays_held_is_an_error_that_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "_BUSY_SECONDS", 0.01)
    async with opened(SQLiteEvents(path)) as events:
        await events.begin("s", "a", b"")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        asked = [events.append("s", "a", [b"%d" % n]) for n in range(100)]
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert all("another process holds it" in str(outcome) for outcome in outcomes)
        assert len({id(outcome) for outcome in outcomes}) == 100
        other.execute("COMMIT")
        other.close()
        assert await events.append("s", "a", [b"one"]) == 1
        assert await messages(events, "s", "a") == [b"one"]

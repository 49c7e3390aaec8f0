"""The contract of `Tasks`, for both stores; runners that end, and what is sent to them."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from glob import glob
from pathlib import Path
from random import Random

import msgspec
import pytest

from accord.errors import StoreError, StoreFull
from accord.limits import Limits, TaskLimits
from accord.store import private_database, sqlite_tasks
from accord.store.sqlite_tasks import SQLiteTasks
from accord.store.tasks import MAX_INPUTS, MemoryTasks, TaskInput, TaskRecord, Tasks

NOW = 1_000.0


def record(id: str, owner: str = "ann", runner: str = "here", ttl: float | None = 60, **fields: object) -> TaskRecord:
    return TaskRecord(
        id=id,
        owner=owner,
        account=owner,
        revision="2026-07-28",
        tool="work",
        params=b"{}",
        capabilities=b"{}",
        created_at=NOW,
        updated_at=NOW,
        ttl=ttl,
        poll=1,
        runner=runner,
        **fields,  # type: ignore[arg-type]
    )


class Times:
    now = NOW


@pytest.fixture
def times() -> Times:
    return Times()


@pytest.fixture(params=["memory", "sqlite"])
def closed(request: pytest.FixtureRequest, tmp_path: Path, times: Times) -> Tasks:
    if request.param == "memory":
        return MemoryTasks(clock=lambda: times.now)
    return SQLiteTasks(tmp_path / "tasks.db", clock=lambda: times.now)


@asynccontextmanager
async def opened(store: Tasks) -> AsyncIterator[Tasks]:
    await store.open("here")
    try:
        yield store
    finally:
        await store.close("here")


async def test_a_record_is_read_as_it_was_saved(closed: Tasks) -> None:
    async with opened(closed) as store:
        await store.create(record("a"))
        changed = record("a", status="completed", result=b'{"content":[]}', once={"key": b"1"})
        await store.save(changed)
        assert await store.load("a") == changed
        assert await store.load("b") is None


async def test_records_are_counted_and_listed_by_owner(closed: Tasks) -> None:
    async with opened(closed) as store:
        for id in ("c", "a", "b"):
            await store.create(record(id))
        await store.create(record("d", "ben"))
        assert await store.count("ann") == (3, 4)
        assert [each.id for each in await store.page("ann", "", 2)] == ["a", "b"]
        assert [each.id for each in await store.page("ann", "b", 2)] == ["c"]
        assert await store.page("zoe", "", 2) in ([], ())


async def test_a_list_reads_no_large_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(SQLiteTasks(tmp_path / "tasks.db", clock=lambda: NOW)) as store:
        await store.create(record("a", once={"key": b"1" * 50_000}))
        await store.create(record("b"))
        await store.save(record("b", status="completed", message="done", result=b"1" * 50_000))
        read: list[int] = []
        content = sqlite_tasks._content

        def counted(id: str, packed: bytes) -> bytes:
            read.append(len(packed))
            return content(id, packed)

        monkeypatch.setattr(sqlite_tasks, "_content", counted)
        listed = await store.page("ann", "", 10)
        assert [(each.id, each.status, each.message) for each in listed] == [
            ("a", "working", None),
            ("b", "completed", "done"),
        ]
        assert max(read) < 2_000
        found = await store.load("b")
        assert found is not None
        assert found.result == b"1" * 50_000
        assert max(read) > 50_000


async def test_a_large_record_is_replaced_and_dropped_as_a_whole(tmp_path: Path, times: Times) -> None:
    path = tmp_path / "tasks.db"
    async with opened(SQLiteTasks(path, clock=lambda: times.now)) as store:
        await store.create(record("a", once={"key": b"1" * 50_000}))
        await store.save(record("a", runner="there", once={"key": b"2" * 50_000}))  # of another runner: no effect
        found = await store.load("a")
        assert found == record("a", once={"key": b"1" * 50_000})
        await store.save(record("a", once={"key": b"3" * 50_000}))
        assert (await store.load("a")) == record("a", once={"key": b"3" * 50_000})
        await store.save(record("a", status="completed"))
        assert (await store.load("a")) == record("a", status="completed")
        await store.create(record("b", once={"key": b"1" * 50_000}))
        times.now += 61
        assert await store.count("ann") == (0, 0)
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("SELECT count(*) FROM contents").fetchone() == (0,)


async def test_a_large_record_is_adopted(tmp_path: Path) -> None:
    async with opened(SQLiteTasks(tmp_path / "tasks.db", clock=lambda: NOW)) as store:
        await store.create(record("a", once={"key": b"1" * 50_000}))
    other = SQLiteTasks(tmp_path / "tasks.db", clock=lambda: NOW)
    await other.open("there")
    (adopted,) = await other.adopt("there")
    assert adopted == record("a", runner="there", once={"key": b"1" * 50_000}) == await other.load("a")
    await other.close("there")


async def test_a_record_is_dropped_after_its_time(closed: Tasks, times: Times) -> None:
    async with opened(closed) as store:
        await store.create(record("a", ttl=60))
        await store.create(record("b", ttl=None))
        times.now += 61
        assert await store.load("a") is None
        assert await store.load("b") is not None
        assert await store.count("ann") == (1, 1)


async def test_inputs_are_taken_once_by_the_runner_of_the_task(closed: Tasks) -> None:
    async with opened(closed) as store:
        await store.create(record("a"))
        await store.create(record("b", runner="there"))
        sent = [TaskInput("a", {"key": b"{}"}), TaskInput("a"), TaskInput("b")]
        for each in sent:
            await store.send(each)
        assert list(await store.take("here")) == sent[:2]
        assert list(await store.take("here")) == []
        assert list(await store.take("there")) == sent[2:]


async def test_inputs_of_a_runner_that_ends_before_it_has_saved_them_go_to_the_next(tmp_path: Path) -> None:
    sent = [TaskInput("a", {"key": b"{}"}), TaskInput("b", {"key": b"{}"})]
    async with opened(SQLiteTasks(tmp_path / "tasks.db", clock=lambda: NOW)) as store:
        for each in sent:
            await store.create(record(each.id))
            await store.send(each)
        assert list(await store.take("here")) == sent
        await store.save(record("b", status="completed", result=b"{}"))
    other = SQLiteTasks(tmp_path / "tasks.db", clock=lambda: NOW)
    await other.open("there")
    assert [each.id for each in await other.adopt("there")] == ["a"]
    assert list(await other.take("there")) == sent[:1]
    assert list(await other.take("there")) == []
    await other.close("there")


@pytest.fixture(params=["memory", "sqlite"])
def limited(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int], Tasks]:
    """Return a store for so many bytes."""

    def store(kept_bytes: int) -> Tasks:
        limits = Limits(tasks=TaskLimits(kept_bytes=kept_bytes))
        if request.param == "memory":
            return MemoryTasks(limits, clock=lambda: NOW)
        return SQLiteTasks(tmp_path / "tasks.db", limits, clock=lambda: NOW)

    return store


async def test_the_bytes_are_bounded(limited: Callable[[int], Tasks]) -> None:
    async with opened(limited(2_000)) as store:
        await store.create(record("a"))
        with pytest.raises(StoreError, match="kept_bytes"):
            await store.create(record("b"))


async def test_the_bytes_are_bounded_for_results_and_answers_too(limited: Callable[[int], Tasks]) -> None:
    async with opened(limited(4_000)) as store:
        await store.create(record("a"))
        await store.create(record("b"))
        with pytest.raises(StoreFull, match="kept_bytes"):
            await store.save(record("a", once={"key": b"x" * 3_000}))
        with pytest.raises(StoreFull, match="kept_bytes"):
            await store.save(record("a", status="completed", result=b"x" * 3_000))
        with pytest.raises(StoreFull, match="kept_bytes"):
            await store.send(TaskInput("a", {"key": b"x" * 3_000}))
        await store.send(TaskInput("a", {"key": b"x" * 100}))
        await store.save(record("a", status="failed", error=b"x" * 500))  # the end itself always has room
        await store.save(record("b", once={"key": b"x" * 500}))


async def test_an_account_that_fills_the_file_leaves_room_for_others(limited: Callable[[int], Tasks]) -> None:
    async with opened(limited(1 << 20)) as store:
        await store.create(record("a"))
        await store.save(record("a", status="completed", result=b"x" * 1_040_000))
        for id in ("a2", "a3", "a4"):
            with suppress(StoreFull):
                await store.create(record(id))
        with pytest.raises(StoreFull, match="kept_bytes"):
            await store.create(record("a5", once={"key": b"x" * 5_000}))
        for id in ("b", "b2"):
            await store.create(record(id, "ben"))
        with pytest.raises(StoreFull, match="kept_bytes"):
            await store.create(record("b3", "ben", once={"key": b"x" * 5_000}))


async def test_the_inputs_of_one_task_are_bounded(closed: Tasks) -> None:
    async with opened(closed) as store:
        await store.create(record("a"))
        await store.create(record("b"))
        for _ in range(MAX_INPUTS):
            await store.send(TaskInput("a"))
        with pytest.raises(StoreFull, match="too many answers"):
            await store.send(TaskInput("a"))
        await store.send(TaskInput("b"))
        assert (await store.take("here"))[-1] == TaskInput("b")
        assert list(await store.take("here")) == []  # what was taken has been saved
        await store.send(TaskInput("a"))


async def test_a_task_that_has_ended_takes_no_inputs(closed: Tasks, times: Times) -> None:
    async with opened(closed) as store:
        for id in ("a", "b"):
            await store.create(record(id))
            await store.send(TaskInput(id))
        await store.save(record("a", status="completed"))
        await store.send(TaskInput("a"))
        await store.send(TaskInput("unknown"))
        times.now += 61
        assert await store.count("ann") == (0, 0)
        assert list(await store.take("here")) == []
        if isinstance(store, SQLiteTasks):
            with sqlite3.connect(store._path) as db:
                assert db.execute("SELECT * FROM inputs").fetchall() == []


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_several_event_loops_use_one_store(kind: str, tmp_path: Path) -> None:
    store: Tasks = MemoryTasks() if kind == "memory" else SQLiteTasks(tmp_path / "tasks.db")
    count, taken = 50 if kind == "sqlite" else 3_000, []
    ready, sent = threading.Event(), threading.Event()

    async def take() -> None:
        await store.open("here")
        await store.create(record("a", ttl=None))
        for number in range(20 if kind == "memory" else 1):  # that others have much to look through
            await store.create(record(f"b{number}", runner="elsewhere", ttl=None))
            for _ in range(80):
                await store.send(TaskInput(f"b{number}"))
        ready.set()
        while not sent.is_set():
            taken.extend(await store.take("here"))
        taken.extend(await store.take("here"))
        await store.close("here")

    async def send() -> None:
        await store.open("there")
        for number in range(count):
            while True:
                try:
                    await store.send(TaskInput("a", {"key": str(number).encode()}))
                    break
                except StoreFull:
                    await asyncio.sleep(0)
        await store.close("there")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        taker = threading.Thread(target=lambda: asyncio.run(take()))
        taker.start()
        assert ready.wait(100)
        asyncio.run(send())
        sent.set()
        taker.join(100)
    finally:
        sys.setswitchinterval(interval)
    assert [each.answers["key"] for each in taken if each.answers] == [str(each).encode() for each in range(count)]


async def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"SQLiteTasks|could not be"):
        await SQLiteTasks(tmp_path).open("here")


PROGRAM = """
import asyncio, sys
from accord.store.sqlite_tasks import SQLiteTasks
from tests.store.test_tasks import record

async def main():
    store = SQLiteTasks(sys.argv[1], clock=lambda: 1_000.0)
    await store.open("there")
    await store.create(record("a", runner="there"))
    await store.create(record("b", runner="there", status="completed"))
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_the_tasks_of_a_killed_process_are_adopted_by_one_other(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, str(path), stdout=PIPE)
    assert process.stdout is not None
    store = SQLiteTasks(path, clock=lambda: NOW)
    try:
        assert await process.stdout.readline() == b"ready\n"
        await store.open("here")
        assert list(await store.adopt("here")) == []  # it runs
    finally:
        process.kill()
        await process.wait()
    adopted = list(await store.adopt("here"))
    assert [each.id for each in adopted] == ["a"]
    assert adopted[0].runner == "here"
    assert list(await store.adopt("other")) == []
    await store.close("here")
    assert not glob("*runner*", root_dir=tmp_path)


@asynccontextmanager
async def with_damage(path: Path, *changes: tuple[str, tuple[object, ...]]) -> AsyncIterator[SQLiteTasks]:
    """Open a store with the tasks `good` and `bad` of a process that has ended, after these changes of its tables."""
    store = SQLiteTasks(path, clock=lambda: NOW)
    await store.open("there")
    for id in ("bad", "good"):
        await store.create(record(id, runner="there"))
        await store.send(TaskInput(id))
    await store.close("there")
    with sqlite3.connect(path) as db:
        for change, values in changes:
            db.execute(change, values)
    async with opened(store):
        yield store


@pytest.mark.parametrize("damage", [b"", b"\xc1", b"\x80", b"\x91" * 5_000, "text", 7])
async def test_a_damaged_record_fails_and_stops_no_other_task(damage: object, tmp_path: Path) -> None:
    change = "UPDATE tasks SET record = ? WHERE id = 'bad'", (damage,)
    async with with_damage(tmp_path / "tasks.db", change) as store:
        found = await store.load("bad")
        assert found is not None
        assert found.status == "failed"
        assert b"record of this task cannot be read" in (found.error or b"")
        assert [each.id for each in await store.page("ann", "", 10)] == ["bad", "good"]
        assert [each.id for each in await store.adopt("here")] == ["good"]
        assert await store.load("bad") == found
        await store.save(record("good", status="completed"))
        assert await store.count("ann") == (2, 2)


@pytest.mark.parametrize("seed", range(20))
async def test_a_record_with_a_changed_bit_fails(seed: int, tmp_path: Path) -> None:
    path, random = tmp_path / "tasks.db", Random(seed)
    store = SQLiteTasks(path, clock=lambda: NOW)
    async with opened(store):
        await store.create(record("bad", status="completed", result=b'{"content":[{"type":"text","text":"7"}]}'))
    with sqlite3.connect(path) as db:
        packed = bytearray(db.execute("SELECT record FROM tasks").fetchone()[0])
        packed[random.randrange(len(packed))] ^= 1 << random.randrange(8)
        db.execute("UPDATE tasks SET record = ?", (bytes(packed),))
    async with opened(store):
        found = await store.load("bad")
        assert found is not None
        assert (found.status, found.result) == ("failed", None)


async def test_a_record_of_another_task_fails(tmp_path: Path) -> None:
    change = "UPDATE tasks SET record = (SELECT record FROM tasks WHERE id = 'good') WHERE id = 'bad'", ()
    async with with_damage(tmp_path / "tasks.db", change) as store:
        found = await store.load("bad")
        assert found is not None
        assert found.status == "failed"


async def test_records_and_inputs_without_a_checksum_are_read(tmp_path: Path) -> None:
    older = record("good", runner="there"), TaskInput("good", {"a": b"1"})
    changes = [
        ("UPDATE tasks SET record = ? WHERE id = 'good'", (msgspec.msgpack.encode(older[0]),)),
        ("UPDATE inputs SET input = ? WHERE task = 'good'", (msgspec.msgpack.encode(older[1]),)),
    ]
    async with with_damage(tmp_path / "tasks.db", *changes) as store:
        assert await store.load("good") == older[0]
        await store.adopt("here")
        assert older[1] in list(await store.take("here"))


async def test_a_damaged_input_is_dropped(tmp_path: Path) -> None:
    change = "UPDATE inputs SET input = ? WHERE task = 'bad'", (b"\xc1",)
    async with with_damage(tmp_path / "tasks.db", change) as store:
        assert len(await store.adopt("here")) == 2
        assert list(await store.take("here")) == [TaskInput("good")]
        assert list(await store.take("here")) == []


@pytest.mark.parametrize("runner", ["../other", "a/b", "", "x" * 5_000, b"\xff", 7])
async def test_a_runner_with_a_foreign_name_has_ended(runner: object, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    (tmp_path / "tasks.db-runner-..").mkdir()
    change = "UPDATE tasks SET runner = ? WHERE id = 'bad'", (runner,)
    async with with_damage(tmp_path / "tasks.db", change) as store:
        assert sorted(each.id for each in await store.adopt("here")) == ["bad", "good"]
        assert (tmp_path / "other").read_text() == "mine"


async def test_a_lock_that_is_no_database_is_held_by_nobody(tmp_path: Path) -> None:
    async with with_damage(tmp_path / "tasks.db") as store:
        (tmp_path / "tasks.db-runner-there").write_bytes(b"no database" * 1_000)
        assert [each.id for each in await store.adopt("here")] == ["bad", "good"]


async def test_a_lock_that_cannot_be_removed_does_not_stop_the_end(tmp_path: Path) -> None:
    store = SQLiteTasks(tmp_path / "tasks.db")
    async with opened(store):
        (tmp_path / "tasks.db-runner-here-shm").mkdir()  # as on Windows, while another process has the file open
    assert not (tmp_path / "tasks.db-runner-here").exists()


async def test_a_runner_ends_although_another_process_holds_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_database, "_BUSY_SECONDS", 0.01)
    store, later = [SQLiteTasks(tmp_path / "tasks.db", clock=lambda: NOW) for _ in range(2)]
    await store.open("here")
    await store.create(record("a"))
    with closing(sqlite3.connect(tmp_path / "tasks.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await store.close("here")
    await later.open("later")
    assert [each.id for each in await later.adopt("later")] == ["a"]
    await later.close("later")


async def test_the_locks_of_killed_processes_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    store = SQLiteTasks(path, clock=lambda: NOW)
    async with opened(store):
        (tmp_path / "tasks.db-runner-gone").write_bytes(b"")
        other = SQLiteTasks(path, clock=lambda: NOW)
        await other.open("other")
        assert {name.removesuffix("-journal") for name in glob("*runner*", root_dir=tmp_path)} == {
            "tasks.db-runner-here",
            "tasks.db-runner-other",
        }
        await other.close("other")


async def test_an_account_that_fills_the_memory_leaves_room_for_others() -> None:
    store = MemoryTasks(Limits(tasks=TaskLimits(kept_bytes=1 << 20)), clock=lambda: NOW)
    await store.create(record("a"))
    await store.save(record("a", status="completed", result=b"x" * 1_000_000))
    rest = (1 << 20) - store._memory.total - record("a2").size
    await store.create(record("a2", once={"key": b"x" * rest}))
    with pytest.raises(StoreFull, match="kept_bytes"):
        await store.create(record("a3"))
    await store.create(record("b", "ben"))
    await store.save(record("b", "ben", status="completed", result=b"x" * 1_000))
    with pytest.raises(StoreFull, match="kept_bytes"):
        await store.create(record("b2", "ben", once={"key": b"x" * 5_000}))


FOREIGN = ["CREATE TABLE users (name)", "CREATE TABLE tasks (id, expires)", "CREATE TABLE inputs (number, task)"]


async def test_a_file_of_another_program_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db, db:
        for statement in FOREIGN:
            db.execute(statement)
        db.execute("INSERT INTO tasks VALUES (1, 5)")
        db.execute("PRAGMA user_version=1")
    path.chmod(0o600)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="has no tasks of this version of accord"):
        await SQLiteTasks(path).open("here")
    assert path.read_bytes() == before
    assert glob("*", root_dir=tmp_path) == ["other.db"]


async def test_a_file_with_a_damaged_schema_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    async with opened(SQLiteTasks(path)):
        pass
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"CREATE INDEX tasks_by_age ON", b"CREATE INDEX tasks_by_age \xc5\xc5"))
    with pytest.raises(StoreError, match=r"tasks\.db"):
        await SQLiteTasks(path).open("here")


def failing(db: sqlite3.Connection) -> None:
    """A job for which the disk has no room."""
    raise sqlite3.OperationalError("database or disk is full")


async def test_inputs_are_taken_although_a_job_of_the_same_transaction_fails(tmp_path: Path) -> None:
    async with opened(SQLiteTasks(tmp_path / "tasks.db", clock=lambda: NOW)) as store:
        assert isinstance(store, SQLiteTasks)
        await store.create(record("a"))
        await store.send(TaskInput("a", {"ask-1": b"1"}))
        started, goes_on = threading.Event(), threading.Event()

        def block(db: sqlite3.Connection) -> None:
            started.set()
            goes_on.wait(10)

        first = asyncio.ensure_future(store._thread.run(block))
        await asyncio.to_thread(started.wait)
        taking = asyncio.ensure_future(store.take("here"))
        full = asyncio.ensure_future(store._thread.run(failing))
        await asyncio.sleep(0)
        goes_on.set()
        assert await taking == [TaskInput("a", {"ask-1": b"1"})]
        assert isinstance((await asyncio.gather(full, return_exceptions=True))[0], StoreError)
        await first
        assert await store.take("here") == []


async def test_inputs_are_taken_later_if_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(SQLiteTasks(tmp_path / "tasks.db", clock=lambda: NOW)) as store:
        await store.create(record("a"))
        await store.send(TaskInput("a", {"ask-1": b"1"}))
        with monkeypatch.context() as patched:
            patched.setattr(store, "_read_input", lambda id, packed: failing(sqlite3.connect(":memory:")))
            with pytest.raises(StoreError):
                await store.take("here")
        assert await store.take("here") == [TaskInput("a", {"ask-1": b"1"})]


async def test_a_runner_opens_after_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SQLiteTasks(tmp_path / "tasks.db", clock=lambda: NOW)
    with monkeypatch.context() as patched:
        patched.setattr(store, "_drop_expired", failing)
        with pytest.raises(StoreError, match="full"):
            await store.open("here")
    async with opened(store):
        await store.create(record("a"))

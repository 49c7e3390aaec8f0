"""Any sequence of calls has the same outcome in every store as in a plain list of what happened."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from accord.errors import EventsGone, StoreError
from accord.limits import HTTPLimits, Limits
from accord.store.base import EVENT_BYTES, STREAM_BYTES, Replay

from tests.store.stores import STORES, Clock

T = TypeVar("T")

LIMITS = Limits(
    http=HTTPLimits(events_bytes=3_000, events_total_bytes=5_000, events_seconds=60, session_kept_seconds=600)
)

sessions = st.sampled_from(["s", "t", "u"])
streams = st.sampled_from(["a", "b", "c"])
accounts = st.sampled_from(["", "x", "y"])


class Model:
    """One list of all that was kept, oldest first: (session, stream, number, message); no message is an end."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.records: dict[str, bytes | None] = {}
        self.renewed: dict[str, tuple[float, int]] = {}
        self.accounts: dict[str, str] = {}
        self.about: dict[tuple[str, str], bytes] = {}
        self.last: dict[tuple[str, str], int] = {}
        self.ended: dict[tuple[str, str], float] = {}
        self.kept: list[tuple[str, str, int, bytes | None]] = []
        self.turn = 0

    def renew(self, session: str) -> None:
        self.turn += 1
        self.records.setdefault(session, None)
        self.renewed[session] = (self.clock.now, self.turn)

    def expire(self) -> None:
        for key in [key for key, at in self.ended.items() if at + LIMITS.http.events_seconds <= self.clock.now]:
            self.drop(*key)
        kept = LIMITS.http.session_kept_seconds
        for session in [s for s, (at, _) in self.renewed.items() if at + kept <= self.clock.now]:
            self.forget(session)

    def forget(self, session: str) -> None:
        for key in [key for key in self.about if key[0] == session]:
            self.drop(*key)
        self.records.pop(session, None)
        self.renewed.pop(session, None)
        self.accounts.pop(session, None)

    def drop(self, session: str, stream: str) -> None:
        self.kept = [item for item in self.kept if item[:2] != (session, stream)]
        self.ended.pop((session, stream), None)
        del self.about[session, stream], self.last[session, stream]

    def is_open(self, key: tuple[str, str]) -> bool:
        return key in self.about and key not in self.ended

    def append(self, key: tuple[str, str], messages: list[bytes], ends: bool) -> int:
        first = self.last[key] + 1
        self.renew(key[0])
        self.kept += [(*key, n, message) for n, message in enumerate(messages, first)]
        self.last[key] += len(messages)
        if ends:
            self.ended[key] = self.clock.now
            self.kept.append((*key, self.last[key] + 1, None))
        self.shrink(key[0])
        return first

    def shrink(self, session: str) -> None:
        while self.size(session) > LIMITS.http.events_bytes:
            self.drop_oldest(session)
        while self.size() > LIMITS.http.events_total_bytes:
            sizes = Counter[str]()
            for item in self.kept:
                sizes[self.accounts[item[0]]] += self.cost(item)
            most = max(sizes, key=lambda account: (sizes[account], account))
            of_most = {item[0] for item in self.kept if self.accounts[item[0]] == most}
            oldest = min(of_most, key=self.renewed.__getitem__)
            while self.size(oldest) and self.size() > LIMITS.http.events_total_bytes:
                self.drop_oldest(oldest)

    def drop_oldest(self, session: str) -> None:
        oldest = next(item for item in self.kept if item[0] == session)
        self.kept.remove(oldest)
        if oldest[3] is None:
            self.drop(*oldest[:2])

    def size(self, session: str | None = None) -> int:
        return sum(self.cost(item) for item in self.kept if session in (None, item[0]))

    def cost(self, item: tuple[str, str, int, bytes | None]) -> int:
        return STREAM_BYTES + len(self.about[item[:2]]) if item[3] is None else EVENT_BYTES + len(item[3])

    def read(self, key: tuple[str, str], after: int) -> Replay | str | None:
        if key not in self.about or not 0 <= after <= self.last[key]:
            return None
        events = [(n, message) for *of, n, message in self.kept if tuple(of) == key and message is not None]
        if len(events) < self.last[key] and after < self.last[key] - len(events):
            return "gone"
        return Replay([event for event in events if event[0] > after], key in self.ended, self.about[key])


class Machine(RuleBasedStateMachine):
    kind: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.model = Model(self.clock)
        self.open()

    def open(self) -> None:
        self.events = STORES[self.kind](Path(self.folder.name), LIMITS, self.clock)
        self.do(self.events.open())

    def do(self, what: Coroutine[Any, Any, T]) -> T:
        """One call, at a time of its own."""
        self.clock.now += 1
        self.model.expire()
        return self.loop.run_until_complete(what)

    @rule(session=sessions, record=st.binary(max_size=20))
    def save(self, session: str, record: bytes) -> None:
        self.do(self.events.save(session, record))
        self.model.renew(session)
        self.model.records[session] = record

    @rule(session=sessions)
    def forget(self, session: str) -> None:
        self.do(self.events.forget(session))
        self.model.forget(session)

    @rule(session=sessions, stream=streams, about=st.binary(max_size=500), account=accounts)
    def begin(self, session: str, stream: str, about: bytes, account: str) -> None:
        call = self.events.begin(session, stream, about, account)
        try:
            self.do(call)
        except StoreError:
            assert (session, stream) in self.model.about
            return
        assert (session, stream) not in self.model.about
        self.model.renew(session)
        self.model.accounts[session] = account
        self.model.about[session, stream] = about
        self.model.last[session, stream] = 0

    @rule(
        session=sessions,
        stream=streams,
        messages=st.lists(st.integers(0, 1_500).map(bytes), max_size=5),
        ends=st.booleans(),
        begins=st.booleans(),
    )
    def append(self, session: str, stream: str, messages: list[bytes], ends: bool, begins: bool) -> None:
        if begins:
            self.begin(session, stream, b"", "")
        try:
            first = self.do(self.events.append(session, stream, messages, ends=ends))
        except EventsGone:
            assert not self.model.is_open((session, stream))
            return
        assert self.model.is_open((session, stream))
        assert first == self.model.append((session, stream), messages, ends)

    @rule(session=sessions, stream=streams)
    def end(self, session: str, stream: str) -> None:
        self.do(self.events.end(session, stream))
        if self.model.is_open((session, stream)):
            self.model.append((session, stream), [], True)

    @rule(seconds=st.sampled_from([1, 30, 60, 300, 600]))
    def time_passes(self, seconds: int) -> None:
        self.clock.now += seconds

    @rule(after=st.integers(-1, 12))
    def every_stream_is_read(self, after: int) -> None:
        self.clock.now += 1
        self.model.expire()
        for session in "stu":
            for stream in "abc":
                assert self.read(session, stream, after) == self.model.read((session, stream), after)

    def read(self, session: str, stream: str, after: int) -> Replay | str | None:
        try:
            return self.loop.run_until_complete(self.events.read(session, stream, after))
        except EventsGone:
            return "gone"

    @rule(session=sessions)
    def load(self, session: str) -> None:
        found = self.do(self.events.load(session))
        assert found == self.model.records.get(session)

    @invariant()
    def bounds_hold(self) -> None:
        assert self.model.size() <= LIMITS.http.events_total_bytes

    def teardown(self) -> None:
        self.loop.run_until_complete(self.events.close())
        self.loop.close()
        self.folder.cleanup()


class MemoryMachine(Machine):
    kind = "memory"

    @invariant()
    def bytes_are_counted(self) -> None:
        assert self.events.bytes <= LIMITS.http.events_total_bytes  # type: ignore[attr-defined]
        self.model.expire()
        self.loop.run_until_complete(self.events.load("s"))
        assert self.events.bytes == self.model.size()  # type: ignore[attr-defined]


class SQLiteMachine(Machine):
    kind = "sqlite"

    @rule()
    def restart(self) -> None:
        """Another process, with the same file."""
        self.loop.run_until_complete(self.events.close())
        self.open()


MemoryMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=50)
TestMemory = MemoryMachine.TestCase

SQLiteMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=50)
TestSQLite = SQLiteMachine.TestCase

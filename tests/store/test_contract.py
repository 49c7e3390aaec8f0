"""The contract of `Events`, held by every store."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import pytest

from accord.errors import EventsGone, StoreError
from accord.store.base import EVENT_BYTES, STREAM_BYTES, Events, Replay

from tests.limits import limits_of
from tests.store.stores import STORES, Clock, messages, opened


class Open(Protocol):
    def __call__(self, **limits: float) -> AbstractAsyncContextManager[Events]: ...


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Open:
    """Opens a store with limits of the test's choice."""
    return lambda **limits: opened(STORES[request.param](tmp_path, limits_of(**limits), clock))


# --- events ----------------------------------------------------------------------------------------------------


async def test_events_are_numbered_from_one_and_read_in_order(store: Open) -> None:
    async with store() as events:
        await events.begin("s", "a", b"about a")
        assert await events.append("s", "a", [b"one", b"two"]) == 1
        assert await events.append("s", "a", [b"three"]) == 3
        replay = await events.read("s", "a", 0)
        assert replay == Replay([(1, b"one"), (2, b"two"), (3, b"three")], ended=False, about=b"about a")


async def test_a_replay_begins_after_the_number_that_the_client_has(store: Open) -> None:
    async with store() as events:
        await events.begin("s", "a", b"")
        await events.append("s", "a", [b"one", b"two", b"three"])
        assert await messages(events, "s", "a", 2) == [b"three"]
        assert await messages(events, "s", "a", 3) == []


async def test_a_number_that_was_never_given_is_no_place_in_the_stream(store: Open) -> None:
    async with store() as events:
        await events.begin("s", "a", b"")
        await events.append("s", "a", [b"one"])
        assert await events.read("s", "a", 2) is None
        assert await events.read("s", "a", -1) is None
        assert await events.read("s", "a", 1 << 70) is None


async def test_a_stream_ends_with_its_last_append_or_after_it(store: Open) -> None:
    async with store() as events:
        for stream in ("with", "after", "empty"):
            await events.begin("s", stream, b"")
        await events.append("s", "with", [b"answer"], ends=True)
        await events.append("s", "after", [b"answer"])
        await events.end("s", "after")
        await events.end("s", "empty")
        assert await events.read("s", "with", 0) == Replay([(1, b"answer")], ended=True, about=b"")
        assert await events.read("s", "after", 0) == Replay([(1, b"answer")], ended=True, about=b"")
        assert await events.read("s", "empty", 0) == Replay([], ended=True, about=b"")


async def test_nothing_is_appended_to_a_stream_that_has_ended_or_never_began(store: Open) -> None:
    async with store() as events:
        await events.begin("s", "a", b"")
        await events.append("s", "a", [b"one"], ends=True)
        for session, stream in (("s", "a"), ("s", "b"), ("t", "a")):
            with pytest.raises(EventsGone, match=f"'{stream}'"):
                await events.append(session, stream, [b"more"])
        assert await messages(events, "s", "a") == [b"one"]
        assert await events.read("t", "a", 0) is None


async def test_ending_what_is_not_there_or_has_ended_does_nothing(store: Open) -> None:
    async with store() as events:
        await events.end("s", "a")
        await events.begin("s", "a", b"")
        await events.append("s", "a", [b"one"], ends=True)
        await events.end("s", "a")
        assert await events.read("s", "a", 0) == Replay([(1, b"one")], ended=True, about=b"")


async def test_a_stream_keeps_its_name_to_itself(store: Open) -> None:
    async with store() as events:
        await events.begin("s", "a", b"first")
        await events.append("s", "a", [b"one"], ends=True)
        with pytest.raises(StoreError, match="'a' already"):
            await events.begin("s", "a", b"second")
        assert await events.read("s", "a", 0) == Replay([(1, b"one")], ended=True, about=b"first")


async def test_an_append_of_nothing_gives_the_next_number_and_can_end_the_stream(store: Open) -> None:
    async with store() as events:
        await events.begin("s", "a", b"")
        assert await events.append("s", "a", []) == 1
        assert await events.append("s", "a", [b""]) == 1
        assert await events.append("s", "a", [], ends=True) == 2
        assert await events.read("s", "a", 0) == Replay([(1, b"")], ended=True, about=b"")


async def test_bytes_and_names_come_back_as_they_were(store: Open) -> None:
    odd = bytes(range(256))
    async with store() as events:
        for name in ("", "'; DROP TABLE events; --", "ü\0\u2028", "7", "s" * 10_000):
            await events.save(name, odd)
            await events.begin(name, name, odd)
            await events.append(name, name, [odd, b""])
            assert await events.load(name) == odd
            assert await events.read(name, name, 0) == Replay([(1, odd), (2, b"")], ended=False, about=odd)


# --- one session and another -----------------------------------------------------------------------------------


async def test_two_sessions_with_the_same_stream_never_see_each_other(store: Open) -> None:
    async with store() as events:
        for session in ("s", "t"):
            await events.begin(session, "a", session.encode())
        await events.append("s", "a", [b"for s"])
        await events.append("t", "a", [b"for t", b"more for t"], ends=True)
        assert await events.read("s", "a", 0) == Replay([(1, b"for s")], ended=False, about=b"s")
        assert await events.read("t", "a", 0) == Replay([(1, b"for t"), (2, b"more for t")], ended=True, about=b"t")
        await events.forget("t")
        assert await messages(events, "s", "a") == [b"for s"]


async def test_session_and_stream_are_not_run_together(store: Open) -> None:
    async with store() as events:
        await events.begin("ab", "c", b"")
        await events.append("ab", "c", [b"secret"])
        for session, stream in (("a", "bc"), ("abc", ""), ("", "abc"), ("AB", "c"), ("ab ", "c")):
            assert await events.read(session, stream, 0) is None


async def test_a_session_is_saved_renewed_and_forgotten(store: Open) -> None:
    async with store() as events:
        assert await events.load("s") is None
        await events.save("s", b"first")
        await events.save("s", b"second")
        await events.save("t", b"other")
        assert await events.load("s") == b"second"
        await events.forget("s")
        await events.forget("s")
        assert await events.load("s") is None
        assert await events.load("t") == b"other"


async def test_a_forgotten_session_takes_its_streams_along_and_does_not_come_back(store: Open) -> None:
    async with store() as events:
        await events.save("s", b"record")
        await events.begin("s", "a", b"")
        await events.append("s", "a", [b"one"])
        await events.forget("s")
        assert await events.read("s", "a", 0) is None
        with pytest.raises(EventsGone):
            await events.append("s", "a", [b"two"])
        await events.begin("s", "a", b"anew")
        assert await events.load("s") is None
        assert await events.read("s", "a", 0) == Replay([], ended=False, about=b"anew")


async def test_streams_of_a_session_that_was_not_saved_are_stored_too(store: Open) -> None:
    async with store() as events:
        await events.begin("s", "a", b"")
        await events.append("s", "a", [b"one"])
        assert await events.load("s") is None
        await events.save("s", b"now")
        assert await messages(events, "s", "a") == [b"one"]


# --- many at once ----------------------------------------------------------------------------------------------


async def test_appends_take_effect_in_the_order_of_the_calls(store: Open) -> None:
    async with store() as events:
        await events.begin("s", "a", b"")
        firsts = await asyncio.gather(*(events.append("s", "a", [b"%d" % n, b""]) for n in range(1_200)))
        assert list(firsts) == list(range(1, 2_400, 2))
        assert (await messages(events, "s", "a"))[::2] == [b"%d" % n for n in range(1_200)]


async def test_one_failure_among_many_fails_alone(store: Open) -> None:
    async with store() as events:
        for n in range(50):
            await events.begin(f"s{n}", "a", b"")
        asked = [events.append(f"s{n}", "b" if n % 7 == 3 else "a", [b"%d" % n]) for n in range(50)]
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        for n, outcome in enumerate(outcomes):
            if n % 7 == 3:
                assert isinstance(outcome, EventsGone)
            else:
                assert outcome == 1
                assert await messages(events, f"s{n}", "a") == [b"%d" % n]


async def test_a_cancelled_append_is_stored_whole_or_not_at_all_and_harms_no_other(store: Open) -> None:
    async with store() as events:
        await events.begin("s", "a", b"")
        tasks = [asyncio.create_task(events.append("s", "a", [b"%d" % n, b"%d" % n])) for n in range(100)]
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        kept = await messages(events, "s", "a")
        assert kept[::2] == kept[1::2]
        for n, outcome in enumerate(outcomes):
            if isinstance(outcome, int):
                assert kept[outcome - 1] == b"%d" % n


async def test_messages_are_those_of_the_call_whatever_becomes_of_the_list(store: Open) -> None:
    async with store() as events:
        await events.begin("s", "a", b"")
        mine = [b"one", b"two"]
        asked = asyncio.create_task(events.append("s", "a", mine))
        await asyncio.sleep(0)
        mine.clear()
        assert await asked == 1
        assert await messages(events, "s", "a") == [b"one", b"two"]


async def test_a_store_is_open_until_all_who_opened_it_have_closed_it(store: Open) -> None:
    async with store() as events:
        await events.open()
        await events.close()
        await events.save("s", b"record")
        assert await events.load("s") == b"record"


async def test_a_replay_has_no_more_events_than_were_requested(store: Open) -> None:
    async with store() as events:
        await events.begin("s", "a", b"about")
        await events.append("s", "a", [b"one", b"two", b"three"], ends=True)
        assert await events.read("s", "a", 0, 2) == Replay([(1, b"one"), (2, b"two")], ended=True, about=b"about")
        assert await events.read("s", "a", 2, 1) == Replay([(3, b"three")], ended=True, about=b"about")
        assert await events.read("s", "a", 2, 5) == Replay([(3, b"three")], ended=True, about=b"about")
        assert await events.read("s", "a", 3, 2) == Replay([], ended=True, about=b"about")


async def test_the_last_number_is_known_also_where_its_event_was_dropped(store: Open) -> None:
    async with store(http_events_bytes=4 * EVENT_BYTES) as events:
        assert await events.last("s", "a") is None
        await events.begin("s", "a", b"")
        assert await events.last("s", "a") == 0
        await events.append("s", "a", [b""] * 9)
        assert await events.last("s", "a") == 9
        assert await events.last("t", "a") is None


async def test_opening_and_closing_again_does_nothing(store: Open) -> None:
    async with store() as events:
        await asyncio.gather(events.open(), events.open())
        await events.save("s", b"record")
        await events.open()
        assert await events.load("s") == b"record"
        await asyncio.gather(events.close(), events.close())
        await events.close()


# --- what is dropped -------------------------------------------------------------------------------------------


async def test_over_the_bytes_of_a_session_its_oldest_events_are_dropped_and_that_is_reported(store: Open) -> None:
    async with store(http_events_bytes=3 * (EVENT_BYTES + 10)) as events:
        await events.begin("s", "a", b"")
        for n in range(5):
            await events.append("s", "a", [b"%010d" % n])
        with pytest.raises(EventsGone, match="events 1 to 2 of stream 'a' were dropped"):
            await events.read("s", "a", 0)
        with pytest.raises(EventsGone, match="events 2 to 2"):
            await events.read("s", "a", 1)
        assert await messages(events, "s", "a", 2) == [b"%010d" % n for n in (2, 3, 4)]


async def test_the_oldest_events_go_first_whatever_their_stream(store: Open) -> None:
    async with store(http_events_bytes=2 * EVENT_BYTES) as events:
        await events.begin("s", "a", b"")
        await events.begin("s", "b", b"")
        for stream in ("a", "b", "a"):
            await events.append("s", stream, [b""])
        with pytest.raises(EventsGone):
            await events.read("s", "a", 0)
        assert await messages(events, "s", "a", 1) == [b""]
        assert await messages(events, "s", "b") == [b""]


async def test_one_session_that_is_full_drops_nothing_of_another(store: Open) -> None:
    async with store(http_events_bytes=2 * EVENT_BYTES) as events:
        await events.begin("quiet", "a", b"")
        await events.append("quiet", "a", [b""])
        await events.begin("loud", "a", b"")
        await events.append("loud", "a", [b""] * 100)
        assert await messages(events, "quiet", "a") == [b""]


async def test_a_message_over_all_bytes_has_a_number_and_is_reported_as_dropped(store: Open) -> None:
    async with store(http_events_bytes=1_000) as events:
        await events.begin("s", "a", b"")
        assert await events.append("s", "a", [b"small", b"x" * 1_001]) == 1
        assert await events.append("s", "a", [b"next"]) == 3
        with pytest.raises(EventsGone, match="1 to 2"):
            await events.read("s", "a", 0)
        assert await messages(events, "s", "a", 2) == [b"next"]


async def test_streams_that_ended_without_events_are_bounded_too(store: Open) -> None:
    async with store(http_events_bytes=10 * STREAM_BYTES) as events:
        for n in range(30):
            await events.begin("s", str(n), b"")
            await events.end("s", str(n))
        kept = [n for n in range(30) if await events.read("s", str(n), 0) is not None]
        assert kept == list(range(20, 30))


async def test_over_the_total_the_session_written_longest_ago_gives_way(store: Open, clock: Clock) -> None:
    async with store(http_events_total_bytes=4 * EVENT_BYTES) as events:
        for session in ("s", "t", "u"):
            clock.now += 1
            await events.begin(session, "a", b"")
            await events.append(session, "a", [b""])
        clock.now += 1
        await events.save("s", b"renewed")
        clock.now += 1
        await events.append("u", "a", [b"", b""])
        assert await messages(events, "s", "a") == [b""]
        with pytest.raises(EventsGone):
            await events.read("t", "a", 0)
        assert len(await messages(events, "u", "a")) == 3


async def test_over_the_total_the_account_that_has_most_gives_way(store: Open, clock: Clock) -> None:
    async with store(http_events_bytes=6 * EVENT_BYTES, http_events_total_bytes=12 * EVENT_BYTES) as events:
        await events.begin("honest", "a", b"", "one")
        await events.append("honest", "a", [b""] * 4)
        for n in range(10):
            clock.now += 1
            await events.begin(f"hostile {n}", "a", b"", "many")
            await events.append(f"hostile {n}", "a", [b""] * 6)
        assert await messages(events, "honest", "a") == [b""] * 4
        assert await messages(events, "hostile 9", "a") == [b""] * 6
        await events.forget("hostile 8")
        await events.forget("hostile 9")
        await events.append("honest", "a", [b""] * 2)
        assert await messages(events, "honest", "a") == [b""] * 6


async def test_a_session_counts_for_the_account_that_it_has_now(store: Open, clock: Clock) -> None:
    async with store(http_events_total_bytes=6 * EVENT_BYTES) as events:
        await events.begin("s", "a", b"", "one")
        await events.append("s", "a", [b""] * 3)
        clock.now += 1
        await events.begin("t", "a", b"", "two")
        await events.append("t", "a", [b""] * 2)
        clock.now += 1
        await events.begin("s", "b", b"", "two")
        clock.now += 1
        await events.begin("u", "a", b"", "one")
        await events.append("u", "a", [b""] * 3)
        assert await messages(events, "s", "a") == [b""] * 3
        with pytest.raises(EventsGone):
            await events.read("t", "a", 0)
        assert len(await messages(events, "u", "a")) == 3


async def test_a_session_with_nothing_left_to_drop_is_passed_over(store: Open, clock: Clock) -> None:
    async with store(
        http_events_bytes=2_000, http_events_total_bytes=2 * EVENT_BYTES, http_events_seconds=60
    ) as events:
        for session in ("s", "t"):
            await events.begin(session, "a", b"")
            await events.append(session, "a", [b""])
            clock.now += 1
        await events.begin("u", "a", b"")
        await events.append("u", "a", [b""] * 2)
        await events.append("u", "a", [b""])
        for session in ("s", "t", "u"):
            with pytest.raises(EventsGone):
                await events.read(session, "a", 0)
        assert await messages(events, "u", "a", 1) == [b"", b""]


async def test_what_is_forgotten_or_too_old_makes_room(store: Open, clock: Clock) -> None:
    async with store(http_events_total_bytes=4 * EVENT_BYTES, http_session_kept_seconds=60) as events:
        for session in ("s", "t", "u"):
            await events.begin(session, "a", b"")
            await events.append(session, "a", [b""] * 4)
            assert await messages(events, session, "a") == [b""] * 4
            if session == "s":
                await events.forget("s")
            else:
                clock.now += 60


async def test_a_stream_is_stored_for_a_while_after_it_ended_and_an_open_one_longer(store: Open, clock: Clock) -> None:
    async with store(http_events_seconds=60, http_session_kept_seconds=3_600) as events:
        for stream in ("ended", "open"):
            await events.begin("s", stream, b"")
            await events.append("s", stream, [b"one"])
        clock.now += 1_000
        await events.end("s", "ended")
        clock.now += 59
        assert await messages(events, "s", "ended") == [b"one"]
        clock.now += 1
        assert await events.read("s", "ended", 0) is None
        assert await messages(events, "s", "open") == [b"one"]
        await events.begin("s", "ended", b"")
        await events.append("s", "ended", [b"anew"])
        assert await messages(events, "s", "ended") == [b"anew"]


async def test_an_unused_session_is_dropped_in_the_end(store: Open, clock: Clock) -> None:
    async with store(http_session_kept_seconds=3_600) as events:
        for session in ("idle", "saved", "written"):
            await events.save(session, b"record")
            await events.begin(session, "a", b"")
        clock.now += 3_599
        await events.save("saved", b"again")
        await events.append("written", "a", [b"one"])
        clock.now += 1
        assert await events.load("idle") is None
        assert await events.read("idle", "a", 0) is None
        assert await events.load("saved") == b"again"
        assert await messages(events, "written", "a") == [b"one"]


async def test_a_clock_that_is_set_back_drops_nothing(store: Open, clock: Clock) -> None:
    async with store(http_events_seconds=60) as events:
        await events.begin("s", "a", b"")
        await events.append("s", "a", [b"one"], ends=True)
        clock.now -= 86_400
        assert await messages(events, "s", "a") == [b"one"]
        await events.begin("s", "b", b"")
        assert await events.append("s", "b", [b"one"]) == 1

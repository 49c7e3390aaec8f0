"""Generated calls on real servers: each kind of mistake is found, and shrunk to the least that shows it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from accord import Server
from accord.check.fuzz.fuzz_result import FuzzFailure
from accord.check.fuzz.leaks import CANARY

from tests.check.fuzz.running import explored, last

WRONG = Path(__file__).parent / "wrong_server.py"


async def faults(tool: str, **more: Any) -> list[FuzzFailure]:
    found = (await explored(f"{sys.executable} {WRONG} {tool}", **more)).failures
    assert found
    return found


async def only(tool: str, **more: Any) -> FuzzFailure:
    (fault,) = await faults(tool, **more)
    assert last(fault).name == tool
    return fault


async def test_a_tool_that_ends_the_server_is_found_with_the_least_number_that_does() -> None:
    fault = await only("crash")
    assert (fault.rule, last(fault).arguments) == ("generated/crash", {"n": 101})
    assert "exit code 3" in fault.text
    assert "out of numbers" in fault.text
    assert any('"n":101' in line for line in fault.evidence)


async def test_a_tool_that_stops_everything_is_found() -> None:
    fault = await only("hang", cases=25, timeout=0.8)
    assert fault.rule == "generated/hang"
    assert last(fault).arguments["n"] < 0


async def test_a_call_that_is_never_answered_is_found_while_the_server_lives() -> None:
    fault = await only("forget", cases=25, timeout=0.8)
    assert fault.rule == "generated/unanswered"
    assert len(last(fault).arguments["note"]) > 2


async def test_a_result_that_does_not_fit_is_found_with_the_least_arguments() -> None:
    fault = await only("drift")
    assert fault.rule == "generated/output"
    assert last(fault).arguments["n"] == 0
    assert len(last(fault).arguments["note"]) == 1
    assert "sum" in fault.text


async def test_no_result_is_held_against_a_schema_where_the_revision_has_none() -> None:
    found = await explored(f"{sys.executable} {WRONG} drift", revision="2025-03-26")
    assert found.failures == []
    assert "generated/output" not in found.judged_counts or found.cases > 50


async def test_an_allowed_input_that_is_refused_by_the_protocol_is_found() -> None:
    fault = await only("refuse")
    assert (fault.rule, last(fault).arguments) == ("generated/refused", {"n": 1_000})
    assert "list index out of range" in fault.text


async def test_a_traceback_in_an_error_is_found() -> None:
    fault = await only("spill")
    assert (fault.rule, last(fault).arguments) == ("generated/internals", {"n": 0, "note": "'"})


async def test_a_tool_that_says_it_only_reads_and_does_not_is_found() -> None:
    fault = await only("lie")
    assert fault.rule == "generated/read-only"
    assert "tools/list" in fault.text


async def test_a_tool_that_says_it_can_be_repeated_and_cannot_is_found() -> None:
    fault = await only("pile")
    assert fault.rule == "generated/idempotent"


async def test_a_tool_that_looks_at_no_schema_is_found() -> None:
    found = {fault.rule for fault in await faults("blind")}
    assert found == {"generated/accepted"}


async def test_what_one_tool_gives_is_given_to_another() -> None:
    found = await faults("order,ship")
    assert [(fault.rule, last(fault).arguments) for fault in found if fault.rule == "generated/crash"] == [
        ("generated/crash", {"orderId": "o-17"})
    ]


async def test_the_same_seed_finds_the_same() -> None:
    first, second = [await explored(f"{sys.executable} {WRONG} crash,drift", seed=5) for _ in range(2)]
    assert [(fault.rule, last(fault).arguments, fault.text) for fault in first.failures] == [
        (fault.rule, last(fault).arguments, fault.text) for fault in second.failures
    ]
    assert (first.cases, first.calls) == (second.cases, second.calls)


async def test_only_what_may_be_called_is_called() -> None:
    found = await explored(f"{sys.executable} {WRONG} crash,drift", allowed=("drift",))
    assert {last(fault).name for fault in found.failures} == {"drift"}


def right() -> Server:
    server = Server("right", "1")

    @server.tool
    def add(a: int, b: int = 0) -> int:
        return a + b

    @server.tool
    def shout(text: str, times: int = 1) -> str:
        return text.upper() * max(0, min(times, 3))

    return server


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"])
async def test_nothing_is_found_in_a_right_server(revision: str) -> None:
    found = await explored(right(), revision=revision)
    assert found.failures == []
    assert found.cases == 120
    assert found.not_generated == {}


async def test_a_secret_of_the_environment_is_found_where_it_comes_back() -> None:
    server = Server("open", "1")

    @server.tool
    def env() -> dict[str, str]:
        return {"TOKEN": CANARY}

    (fault,) = (await explored(server)).failures
    assert fault.rule == "generated/internals"


async def test_a_server_that_has_had_enough_is_left_alone() -> None:
    server = Server("busy", "1")
    calls = 0

    @server.tool
    def work(n: int) -> str:
        nonlocal calls
        calls += 1
        if calls > 5:
            raise ValueError("too many requests")
        return "fine"

    found = await explored(server)
    assert found.calls < 30


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="memory is looked up in /proc")
async def test_a_server_that_keeps_something_of_each_call_is_found() -> None:
    (fault,) = await faults("hoard", cases=300)
    assert fault.rule == "generated/memory"
    assert re.fullmatch(r"in \d+ calls its memory grew by \d+ MB, to \d+ MB", str(fault.violation()))


async def test_a_server_that_keeps_nothing_is_not() -> None:
    found = await explored(f"{sys.executable} {WRONG} crash", cases=300)
    assert "generated/memory" not in [fault.rule for fault in found.failures]

"""A telemetry harms no call, whatever it does, and whatever a peer sends; and who has none pays nothing."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from accord import Client, DeclarationError, OpenTelemetry, Server
from accord.telemetry.base import Operation, SessionOver
from accord.telemetry.recorder import MAX_FIELD_LENGTH, trace_context

from tests.telemetry.recorder import Recorder


class Failing:
    """A telemetry that fails at everything."""

    def begin(self, operation: Operation) -> None:
        raise RuntimeError("begin")

    def go_on(self, operation: Operation, before: Operation) -> None:
        raise RuntimeError("go_on")

    def raised(self, operation: Operation, error: BaseException) -> None:
        raise RuntimeError("raised")

    def end(self, operation: Operation) -> None:
        raise RuntimeError("end")

    def session(self, session: SessionOver) -> None:
        raise RuntimeError("session")


def shop(telemetry: Any) -> Server:
    server = Server("shop", telemetry=telemetry)

    @server.tool
    async def price(item: str) -> str:
        if item == "stone":
            raise ValueError("no stones")
        return f"{item}: 3"

    return server


async def test_a_telemetry_that_raises_is_logged_once_and_harms_no_call(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "accord.telemetry"):
        async with Client(shop(Failing()), telemetry=Failing()) as client:
            assert (await client.call_tool("price", {"item": "bread"})).text == "bread: 3"
            assert "no stones" in (await client.call_tool("price", {"item": "stone"})).text
    assert [record.message.partition(";")[0] for record in caplog.records] == ["accord: the telemetry failed"] * 2


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=5,
)
traces = st.sampled_from(
    [
        "",
        "00",
        "00-" + "0" * 32 + "-" + "0" * 16 + "-00",
        "ff-" + "a" * 32 + "-" + "b" * 16 + "-01",
        "00-" + "a" * 32 + "-" + "b" * 16 + "-01",
        "a=" * 5000,
        "x" * 9000,
    ]
)
texts = traces | st.text(max_size=200)
metas = st.fixed_dictionaries(
    {}, optional={"traceparent": texts, "tracestate": texts, "baggage": texts, "b3": texts | anything}
)


@settings(max_examples=60)
@given(metas)
def test_any_value_in_place_of_a_trace_harms_no_call(meta: dict[str, Any]) -> None:
    recorder = Recorder()

    async def call() -> None:
        async with Client(shop(recorder.telemetry)) as client:
            assert (await client.call_tool("price", {"item": "bread"}, meta=meta)).text == "bread: 3"

    asyncio.run(call())
    assert recorder.server("tools/call price").end_time is not None


def test_a_field_that_is_too_long_for_a_trace_is_not_read() -> None:
    assert trace_context({"traceparent": "x" * MAX_FIELD_LENGTH}) == {"traceparent": "x" * MAX_FIELD_LENGTH}
    assert (
        trace_context({"traceparent": "x" * (MAX_FIELD_LENGTH + 1), "com.example/key": "x", "progressToken": 7}) == {}
    )


def test_without_opentelemetry_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name in ("accord.telemetry.spans", "accord.telemetry.durations")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    for name in [name for name in sys.modules if name.startswith("opentelemetry.")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(DeclarationError, match=r"pip install 'accord\[otel\]'"):
        OpenTelemetry()


def test_an_unknown_thing_to_record_is_refused() -> None:
    with pytest.raises(DeclarationError, match="'arguments' and 'results'"):
        OpenTelemetry(record={"everything"})  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["record", "methods"])
def test_a_text_in_place_of_a_set_is_not_read_as_its_letters(option: Any) -> None:
    with pytest.raises(DeclarationError, match=option + r"=\{'tools/call'\}"):
        OpenTelemetry(**{option: "tools/call"})


@pytest.mark.parametrize("telemetry", [True, OpenTelemetry])
def test_what_is_no_telemetry_is_refused_when_it_is_given(telemetry: Any) -> None:
    for side in (Server, Client):
        with pytest.raises(DeclarationError, match=r"telemetry=OpenTelemetry\(\)"):
            side("python shop.py", telemetry=telemetry)


def test_a_server_and_a_client_without_telemetry_load_none_of_it() -> None:
    assert run("") == ""
    assert "accord.telemetry.spans" in run("telemetry=OpenTelemetry()")


def run(option: str) -> str:
    """What a call has loaded of OpenTelemetry, and of what speaks to it."""
    program = PROGRAM.replace("OPTION", option)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=30)
    return done.stdout.strip()


PROGRAM = """
import asyncio, sys
from accord import Client, OpenTelemetry, Server

async def main():
    server = Server("shop", OPTION)
    @server.tool
    async def price() -> str:
        return "3"
    async with Client(server, OPTION) as client:
        assert (await client.call_tool("price")).text == "3"

asyncio.run(main())
print(*sorted(m for m in sys.modules if m.startswith(("opentelemetry", "accord.telemetry.")) or "observed" in m
              if m not in ("accord.telemetry.otel", "accord.telemetry.base")))
"""

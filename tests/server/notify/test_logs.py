"""Logging to the client: by the level of the connection, or of the request; bounded, and without secrets."""

from __future__ import annotations

import logging
from typing import Any, get_args

import pytest

from accord import Context, Server
from accord.messages.base import LoggingLevel
from accord.messages.revision import HANDSHAKE, REVISIONS

from tests.limits import limits_of
from tests.server.raw import RawPeer, raw_peer
from tests.waiting import until

LEVELS = get_args(LoggingLevel)
LOG_LEVEL = "io.modelcontextprotocol/logLevel"


def server(**limits: Any) -> Server:
    made = Server("test", "1", limits=limits_of(**limits))
    kept: list[Context] = []

    @made.tool
    async def all_levels(ctx: Context) -> str:
        for level in LEVELS:
            await getattr(ctx, level)(level, "test")
        return "said"

    @made.tool
    def in_a_thread(ctx: Context) -> str:
        ctx.info({"password": "hunter2", "user": "u", "url": "https://me:pw@example.com"})
        return "said"

    @made.tool
    async def odd(ctx: Context) -> str:
        for value in (float("nan"), {1, 2}, object, "half \ud800", Broken(), {"a": b"x"}, None):
            ctx.log("info", value)
        return "said"

    @made.tool
    async def wrong(ctx: Context) -> str:
        ctx.log("warn", "x")  # type: ignore[arg-type]
        return "said"

    @made.tool
    async def many(ctx: Context, count: int) -> str:
        for number in range(count):
            ctx.info(number)
        return "said"

    @made.tool
    async def keep(ctx: Context) -> str:
        kept.append(ctx)
        return "kept"

    @made.tool
    async def late() -> str:
        kept[-1].error("late")
        return "said"

    return made


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError


async def told(peer: RawPeer, tool: str, level: str | None = None, **arguments: Any) -> list[dict[str, Any]]:
    """The log messages of one call, which must come before its answer."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    if level is not None:
        params["_meta"] = {LOG_LEVEL: level}
    id = peer.send("tools/call", params)
    found = []
    while "id" not in (message := await peer.hear()):
        assert message["method"] == "notifications/message"
        found.append(message["params"])
    assert message["id"] == id
    return found


def levels(messages: list[dict[str, Any]]) -> list[str]:
    return [message["level"] for message in messages]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_connection_is_notified_of_everything_until_it_subscribes(revision: str) -> None:
    async with raw_peer(server(), revision) as peer:
        heard = await told(peer, "all_levels")
        assert heard == [{"level": level, "data": level, "logger": "test"} for level in LEVELS]
        assert "error" not in await peer.ask("logging/setLevel", {"level": "error"})
        assert levels(await told(peer, "all_levels")) == list(LEVELS[4:])
        assert levels(await told(peer, "all_levels", level="debug")) == list(LEVELS[4:])


async def test_an_unknown_level_is_refused() -> None:
    async with raw_peer(server()) as peer:
        assert (await peer.ask("logging/setLevel", {"level": "loud"}))["error"]["code"] == -32602
        assert (await peer.call("wrong"))["isError"] is True
    async with raw_peer(server(), "2026-07-28") as peer:
        params = {"name": "all_levels", "_meta": {LOG_LEVEL: "loud"}}
        assert (await peer.ask("tools/call", params))["error"]["code"] == -32602


async def test_without_a_handshake_each_request_says_for_itself() -> None:
    async with raw_peer(server(), "2026-07-28") as peer:
        assert await told(peer, "all_levels") == []
        assert levels(await told(peer, "all_levels", level="critical")) == ["critical", "alert", "emergency"]
        assert await told(peer, "all_levels") == []
        assert (await peer.ask("logging/setLevel", {"level": "debug"}))["error"]["code"] == -32601


async def test_the_level_of_a_handshake_does_not_leak_into_other_requests() -> None:
    async with raw_peer(server(), "2025-11-25") as peer:
        await peer.ask("logging/setLevel", {"level": "debug"})
        peer.revision = "2026-07-28"
        assert await told(peer, "all_levels") == []
        assert levels(await told(peer, "all_levels", level="alert")) == ["alert", "emergency"]


async def test_no_message_is_sent_for_a_request_that_has_ended() -> None:
    async with raw_peer(server(), "2026-07-28") as peer:
        assert await told(peer, "keep", level="debug") == []
        assert await told(peer, "late", level="debug") == []
    async with raw_peer(server(), "2025-11-25") as peer:
        await told(peer, "keep")
        assert levels(await told(peer, "late")) == ["error"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_thread_may_log_and_secrets_are_taken_out(revision: str) -> None:
    async with raw_peer(server(), revision) as peer:
        (message,) = await told(peer, "in_a_thread", level="info")
        assert message["data"]["user"] == "u"
        assert "hunter2" not in str(message)
        assert "me:pw" not in str(message)


async def test_what_json_cannot_hold_is_shown_and_is_no_error() -> None:
    async with raw_peer(server()) as peer:
        found = [message["data"] for message in await told(peer, "odd")]
    assert found == [
        "nan",
        [1, 2],
        "<class 'object'>",
        r"half \ud800",
        "<Broken that cannot be shown>",
        {"a": "eA=="},
        None,
    ]


async def test_more_than_the_limit_is_dropped_and_owned_up_to(caplog: pytest.LogCaptureFixture) -> None:
    async with raw_peer(server(logs_per_second=20)) as peer:
        heard = await told(peer, "many", count=50)
        assert [message["data"] for message in heard] == list(range(20))
        owned_up = (await peer.hear())["params"]
        assert owned_up["level"] == "warning"
        assert owned_up["data"] == "30 log messages were dropped: the limit is 20 a second"
    assert [record.levelno for record in caplog.records if "dropped" in record.message] == [logging.WARNING]


async def test_a_request_that_has_ended_does_not_learn_what_was_dropped(caplog: pytest.LogCaptureFixture) -> None:
    async with raw_peer(server(logs_per_second=20), "2026-07-28") as peer:
        heard = len(await told(peer, "many", level="debug", count=50))
        assert 20 <= heard < 50
        await until(lambda: f"{50 - heard} log messages were dropped" in caplog.text)
        assert await told(peer, "keep", level="debug") == []


@pytest.mark.parametrize("revision", REVISIONS)
async def test_logging_is_declared_where_a_handler_can_log(revision: str) -> None:
    mute = Server("mute")

    @mute.tool
    async def silent() -> str:
        return ""

    for made, declared in ((server(), True), (mute, False)):
        async with raw_peer(made, None) as peer:
            opening = await peer.open(revision)
            opening = opening or await peer.ask("server/discover")
            assert ("logging" in opening["result"]["capabilities"]) is declared

"""Completion: what is proposed for the arguments of prompts and templates, in every revision."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Literal

import pytest

from accord import Context, DeclarationError, Server
from accord.messages.completion import Completion
from accord.messages.revision import REVISIONS

from tests.limits import limits_of
from tests.server.raw import RawPeer, raw_peer

CITIES = {"Norway": ["Oslo", "Odda", "Bergen"], "Spain": ["Oviedo", "Madrid"]}


class Style(Enum):
    PLAIN = "plain"
    WARM = "warm"


def server() -> Server:
    made = Server("test", "1")

    @made.prompt
    def plan(city: str, country: str = "", style: Style = Style.PLAIN, loud: bool | None = None) -> str:
        return f"{city} {country} {style} {loud}"

    @plan.complete("city")
    async def cities(prefix: str, country: str = "Norway") -> list[str]:
        return [city for city in CITIES[country] if city.startswith(prefix)]

    @made.resource("weather://{city}/{kind}")
    def weather(city: str, kind: Literal["now", "later"]) -> str:
        return city + kind

    @weather.complete("city")
    def places(prefix: str, ctx: Context) -> Iterable[str]:
        return {f"{prefix}-{threading.current_thread().name[:13]}-{ctx.revision}"}

    @made.resource("weather://everywhere")
    def everywhere() -> str:
        return ""

    return made


def of_prompt(argument: str, value: str, name: str = "plan", **known: str) -> dict[str, Any]:
    return {
        "ref": {"type": "ref/prompt", "name": name},
        "argument": {"name": argument, "value": value},
        "context": {"arguments": known},
    }


def of_template(argument: str, value: str, uri: str = "weather://{city}/{kind}") -> dict[str, Any]:
    return {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": argument, "value": value}}


async def completed(peer: RawPeer, params: dict[str, Any]) -> Any:
    return (await peer.ask("completion/complete", params))["result"]["completion"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_function_completes_an_argument(revision: str) -> None:
    async with raw_peer(server(), revision) as peer:
        assert await completed(peer, of_prompt("city", "O")) == {
            "values": ["Oslo", "Odda"],
            "total": 2,
            "hasMore": False,
        }


async def test_it_is_given_arguments_that_have_a_value_already() -> None:
    async with raw_peer(server()) as peer:
        assert (await completed(peer, of_prompt("city", "O", country="Spain")))["values"] == ["Oviedo"]


async def test_nothing_is_proposed_until_what_it_depends_on_is_there() -> None:
    made = Server("test")

    @made.prompt
    def plan(city: str, country: str) -> str:
        return city + country

    @plan.complete("city")
    async def cities(prefix: str, country: str) -> list[str]:
        return CITIES[country]

    async with raw_peer(made) as peer:
        assert (await completed(peer, of_prompt("city", "")))["values"] == []
        assert (await completed(peer, of_prompt("city", "", country="Spain")))["values"] == CITIES["Spain"]


async def test_a_plain_function_runs_in_a_thread_and_has_a_context() -> None:
    async with raw_peer(server()) as peer:
        assert (await completed(peer, of_template("city", "x")))["values"] == ["x-accord-worker-2025-11-25"]


@pytest.mark.parametrize(
    ("params", "values"),
    [
        (of_prompt("style", ""), ["plain", "warm"]),
        (of_prompt("style", "W"), ["warm"]),
        (of_prompt("loud", "t"), ["true"]),
        (of_template("kind", "n"), ["now"]),
        (of_prompt("country", "S"), []),
        (of_template("kind", "l", "weather://Oslo/now"), ["later"]),
    ],
)
async def test_types_that_name_their_values_complete_by_themselves(params: dict[str, Any], values: list[str]) -> None:
    async with raw_peer(server()) as peer:
        assert (await completed(peer, params))["values"] == values


@pytest.mark.parametrize(
    "params",
    [
        of_prompt("city", "", name="nothing"),
        of_prompt("nothing", ""),
        of_template("city", "", "other://{city}"),
        of_template("city", "", "weather://everywhere"),
        {"ref": {"type": "ref/prompt", "name": "plan"}},
    ],
)
async def test_what_does_not_exist_cannot_be_completed(params: dict[str, Any]) -> None:
    async with raw_peer(server()) as peer:
        assert (await peer.ask("completion/complete", params))["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("found", "count", "total", "more"),
    [
        (["x"] * 100, 100, 100, False),
        (["x"] * 250, 100, 250, True),
        ((text for text in ["x"] * 250), 100, None, True),
        ((text for text in ["x"] * 3), 3, 3, False),
        (Completion(values=["x"] * 2, total=9, has_more=True), 2, 9, True),
        (Completion(values=["x"] * 200), 100, 200, True),
    ],
)
async def test_no_more_than_a_hundred_values_go_out(found: Any, count: int, total: int | None, more: bool) -> None:
    async with raw_peer(proposing(lambda prefix: found)) as peer:
        answer = await completed(peer, of_prompt("city", ""))
        assert (len(answer["values"]), answer.get("total"), answer["hasMore"]) == (count, total, more)


def fails(prefix: str) -> list[str]:
    raise ConnectionError("the atlas is closed")


@pytest.mark.parametrize(
    ("function", "text"),
    [(fails, "atlas is closed"), (lambda prefix: "Oslo", "not str"), (lambda prefix: [1], "int"), (lambda p: 3, "int")],
)
async def test_a_function_that_fails_is_named_and_harms_nothing_else(function: Any, text: str) -> None:
    async with raw_peer(proposing(function)) as peer:
        error = (await peer.ask("completion/complete", of_prompt("city", "")))["error"]
        assert error["code"] == -32603
        assert function.__name__ in error["message"]
        assert text in error["message"]
        assert "result" in await peer.ask("prompts/list")


def proposing(function: Callable[..., Any], **limits: Any) -> Server:
    made = Server("test", limits=limits_of(**limits))

    @made.prompt(name="plan")
    def plan(city: str) -> str:
        return city

    made.complete("plan", "city")(function)
    return made


async def test_one_peer_has_a_rate_and_learns_when_to_come_back() -> None:
    async with raw_peer(proposing(lambda prefix: [], completions_per_second=0.001)) as peer:
        answers = [await peer.ask("completion/complete", of_prompt("city", "")) for _ in range(2)]
        assert ["result" in answer for answer in answers] == [True, False]
        error = answers[1]["error"]
        assert "try again in" in error["message"]
        assert 0 < error["data"]["retryAfter"] <= 1000


def bare() -> Server:
    made = Server("test")

    @made.prompt
    def plan(city: str) -> str:
        return city

    return made


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_capability_is_declared_when_something_completes(revision: str) -> None:
    for made, declared in ((server(), True), (bare(), False)):
        async with raw_peer(made, None) as peer:
            opening = await peer.open(revision) if revision != "2026-07-28" else {}
            if revision == "2026-07-28":
                peer.revision = revision
                opening = await peer.ask("server/discover")
            assert ("completions" in opening["result"]["capabilities"]) == (declared and revision != "2024-11-05")


async def test_where_nothing_completes_the_method_is_unknown_but_in_the_first_revision() -> None:
    async with raw_peer(bare(), "2024-11-05") as peer:
        assert (await completed(peer, of_prompt("city", "")))["values"] == []
    async with raw_peer(bare(), "2025-03-26") as peer:
        assert (await peer.ask("completion/complete", of_prompt("city", "")))["error"]["code"] == -32601


async def test_an_argument_that_does_not_exist_cannot_be_declared_complete() -> None:
    made = server()

    @made.prompt
    async def hike(valley: str) -> str:
        return valley

    def none() -> list[str]:
        return []

    def other(prefix: str, river: str) -> list[str]:
        return [prefix + river]

    with pytest.raises(DeclarationError, match="'hill'"):
        hike.complete("hill")(lambda prefix: [])
    with pytest.raises(DeclarationError, match="'river'"):
        hike.complete("valley")(other)
    with pytest.raises(DeclarationError, match="the text typed so far"):
        hike.complete("valley")(none)
    with pytest.raises(DeclarationError, match="'nothing'"):
        made.complete("nothing", "valley")(lambda prefix: [])
    hike.complete("valley")(lambda prefix: [])
    with pytest.raises(DeclarationError, match="already"):
        hike.complete("valley")(lambda prefix: [])


async def test_what_is_declared_is_still_the_function() -> None:
    made = Server("test")

    class Planner:
        word = "to"

        async def plan(self, city: str, days: int = 3) -> str:
            """Plan a journey."""
            return f"{self.word} {city} for {days}"

    planner = Planner()
    plan = made.prompt(planner.plan)
    again = made.prompt(name="again")(plan)
    for one in (plan, again):
        assert await one("Oslo") == "to Oslo for 3"
        assert (one.__name__, one.__doc__) == ("plan", "Plan a journey.")
        assert inspect.iscoroutinefunction(one)
        assert list(inspect.signature(one).parameters) == ["city", "days"]
        assert repr(one) == repr(planner.plan)
    again.complete("city")(lambda prefix: ["Oslo"])
    async with raw_peer(made) as peer:
        for name in ("plan", "again"):
            assert (await completed(peer, of_prompt("city", "", name=name)))["values"] == ["Oslo"]
        messages = (await peer.ask("prompts/get", {"name": "again", "arguments": {"city": "Rome"}}))["result"][
            "messages"
        ]
        assert messages[0]["content"]["text"] == "to Rome for 3"


async def test_a_slow_function_does_not_hold_up_others_and_can_be_cancelled() -> None:
    ended = asyncio.Event()

    async def slow(prefix: str) -> list[str]:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return []

    async with raw_peer(proposing(slow)) as peer:
        id = peer.send("completion/complete", of_prompt("city", ""))
        assert "result" in await peer.ask("prompts/list")
        peer.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        async with asyncio.timeout(100):
            await ended.wait()

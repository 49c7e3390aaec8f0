"""What a type checker knows of what is declared: it is still the function; read by mypy and pyright, never run."""

from __future__ import annotations

from typing import assert_type

from accord import CacheHint, Completion, Context, Server

server = Server("typed", cache=CacheHint(ttl=60, scope="public"))


@server.prompt
async def plan(city: str, days: int = 3) -> str:
    return city * days


@plan.complete("city")
async def cities(prefix: str, ctx: Context) -> list[str]:
    ctx.info("asked")
    await ctx.warning({"prefix": prefix}, "cities")
    return [prefix]


@server.complete("plan", "days")
def days(prefix: str, city: str = "") -> Completion:
    return Completion(values=[prefix], total=1)


@server.prompt("named", title="T")
def named(city: str) -> str:
    return city


@server.resource("weather://{city}", cache=CacheHint(ttl=1))
def weather(city: str) -> bytes:
    return city.encode()


@server.tool("first", title="T")
def first(number: int) -> int:
    return number


@server.tool
def second(number: int) -> int:
    return number


class Planner:
    def plan(self, city: str) -> str:
        return city


async def still_functions() -> None:
    assert_type(await plan("Oslo", days=2), str)
    assert_type(named("Oslo"), str)
    assert_type(weather("Oslo"), bytes)
    assert_type(first(1), int)
    assert_type(second(1), int)
    assert_type(server.prompt(Planner().plan)("Oslo"), str)
    plan(3)  # type: ignore[arg-type, unused-coroutine]

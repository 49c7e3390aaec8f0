"""What a type checker knows of what is declared: it is still the function; read by mypy and pyright, never run."""

from __future__ import annotations

import math
from typing import assert_type

from accord import CacheHint, Completion, Context, Extension, Imported, Method, Server

FIND = Extension(name="com.example/search", methods=(Method("com.example/find", "client", int, str),))

server = Server("typed", cache=CacheHint(ttl=60, scope="public"), extensions=[FIND])


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


def fourth(number: int) -> int:
    return number


assert_type(server.tool(fourth, name="fourth", tags={"numbers"})(1), int)
assert_type(server.prompt(days, name="days")("a", "b"), Completion)


@server.tool()
async def third(number: int, *, ctx: Context) -> list[int]:
    return [number]


@server.method("com.example/find")
async def find(params: int) -> str:
    return str(params)


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
    first("1")  # type: ignore[arg-type]
    second()  # type: ignore[call-arg]
    assert_type(await find(1), str)


async def with_what_the_server_fills(ctx: Context) -> None:
    assert_type(await third(1, ctx=ctx), list[int])
    await third(1)  # type: ignore[call-arg]


def many_at_once() -> None:
    assert_type(server.add_module(math, include=["isclose"], tags={"numbers"}), Imported)
    added = server.add_object(Planner(), prefix="planner")
    assert_type(added.tools, list[str])
    assert_type(added.left_out, dict[str, str])
    server.add_module("math")  # type: ignore[arg-type]

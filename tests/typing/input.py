"""What a type checker knows of questions and their answers; read by mypy and pyright, never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, assert_type

from accord import Accepted, Cancelled, Context, Declined, Elicit, ElicitUrl, RootList, Roots, Sample, Sampled, Server

server = Server("typed")


@dataclass
class Order:
    item: str
    count: int = 1


async def in_the_body(ctx: Context) -> None:
    answer = await ctx.elicit("What shall it be?", Order)
    assert_type(answer, Accepted[Order] | Declined | Cancelled)
    if answer.action == "accept":
        assert_type(answer.data, Order)
    match answer:
        case Accepted(data=order):
            assert_type(order, Order)
        case Declined():
            assert_type(answer.data, None)
        case Cancelled():
            assert_type(answer, Cancelled)
    assert_type(await ctx.elicit("Go on?"), Accepted[None] | Declined | Cancelled)
    assert_type(await ctx.elicit("Which?", Literal["a", "b"]), Accepted[Any] | Declined | Cancelled)
    assert_type(await ctx.elicit_url("Sign in", "https://example.com"), Accepted[None] | Declined | Cancelled)
    assert_type(await ctx.sample("Say hi"), Sampled)
    assert_type(await ctx.list_roots(), RootList)
    assert_type(await ctx.once("key", dict, dict[str, int]), dict[str, int])


async def several_at_once(ctx: Context) -> None:
    name, roots, words = await ctx.ask(Elicit("Name?", str), Roots(), Sample("A greeting"))
    assert_type(name, Accepted[str] | Declined | Cancelled)
    assert_type(roots, RootList)
    assert_type(words, Sampled)
    (went,) = await ctx.ask(ElicitUrl("Sign in", "https://example.com"))
    assert_type(went, Accepted[None] | Declined | Cancelled)


@server.tool
async def delete(path: str, sure: Annotated[bool, Elicit("Delete {path}?")]) -> int:
    assert_type(sure, bool)
    return len(path)

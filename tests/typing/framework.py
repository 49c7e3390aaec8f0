"""What a type checker knows of dependencies, middleware, handles and mounts; read by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, assert_type

from accord import (
    ArgumentChange,
    CallNext,
    Context,
    Depends,
    Handles,
    Limits,
    Middleware,
    RateLimit,
    Request,
    RunningServer,
    Server,
    Timing,
    ToolChange,
)


@dataclass
class Database:
    url: str = "memory"

    def count(self, table: str) -> int:
        return len(table)


@asynccontextmanager
async def pool(server: Server) -> AsyncGenerator[Database, None]:
    assert_type(server, Server)
    yield Database()


async def bare(server: Server) -> AsyncIterator[Database]:
    yield Database(server.name)


server = Server("typed", lifespan=pool)
Server("typed", lifespan=bare)
Server("typed", lifespan=3)  # type: ignore[arg-type]


# Dependencies: a parameter is what its annotation says, whichever way it is filled.


async def later() -> Database:
    return Database()


def closed() -> Iterator[Database]:
    yield Database()


@contextmanager
def entered() -> Generator[Database, None, None]:
    yield Database()


@server.tool
async def count(
    table: str,
    db: Annotated[Database, Depends(later)],
    again: Database = Depends(closed),  # noqa: B008  # the call is the mark
) -> int:
    assert_type(db, Database)
    assert_type(again, Database)
    return db.count(table) + again.count(table)


@server.prompt
def plan(city: str, db: Annotated[Database, Depends(Database)]) -> str:
    return city + db.url


@server.resource("rows://{table}")
def rows(table: str, db: Annotated[Database, Depends(entered, scope="lifespan")], ctx: Context) -> list[int]:
    assert_type(ctx.state, dict[str, Any])
    return [db.count(table)]


async def still_the_functions(ctx: Context) -> None:
    assert_type(await count("users", Database()), int)
    assert_type(plan("Oslo", Database()), str)
    assert_type(rows("users", Database(), ctx), list[int])
    await count("users", 3)  # type: ignore[arg-type]
    Depends(later, scope="session")  # type: ignore[arg-type]
    with server.override(later, Database):
        pass


# Middleware: it stays what it was, and both of its shapes are known.


@server.middleware
async def timing(request: Request, call_next: CallNext) -> Any:
    assert_type(request.name, str)
    assert_type(request.arguments, dict[str, Any])
    assert_type(request.state, dict[str, Any])
    assert_type(request.replace(arguments={}), Request)
    return await call_next(request)


async def asking(request: Request, call_next: CallNext, ctx: Context) -> str:
    answer = await ctx.elicit("Go on?")
    return str(await call_next(request)) if answer.action == "accept" else "no"


@server.middleware
async def count_words(request: Request, call_next: CallNext, most: int = 3) -> int:
    return most + len(str(await call_next(request)))


class Again:
    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        return await call_next(request)


async def one_too_few(request: Request) -> None: ...


def not_async(request: Request, call_next: CallNext) -> int:
    return 3


async def middleware_is_a_function(request: Request, call_next: CallNext) -> None:
    every: list[Middleware] = [timing, asking, Again(), Timing(), RateLimit(3)]
    Server("typed", middleware=[timing, asking, Again(), Timing(), RateLimit(3)])
    server.tool(middleware=every)(len)
    server.add_middleware(asking)
    assert_type(await count_words(request, call_next, most=4), int)
    server.add_middleware(one_too_few)  # type: ignore[arg-type]
    server.add_middleware(not_async)  # type: ignore[arg-type]


# Handles: a text outside, the object inside.

carts = Handles("cart", Database, seconds=60)


@server.tool
def open_cart(ctx: Context) -> str:
    assert_type(carts, Handles[Database])
    handle = carts.open(Database(), ctx)
    assert_type(handle, str)
    assert_type(carts.find(handle, ctx), Database)
    carts.open("text", ctx)  # type: ignore[arg-type]
    return handle


@server.tool(tags={"shop"}, scopes={"buyer"}, version="2")
def add(item: str, cart: Annotated[Database, carts]) -> int:
    assert_type(cart, Database)
    return cart.count(item)


def options_keep_the_function(ctx: Context) -> None:
    assert_type(open_cart(ctx), str)
    assert_type(add("book", Database()), int)
    kept: Callable[[str, Database], int] = add
    kept("book", Database())


# Mounts


def mounts() -> None:
    server.mount(Server("other"), prefix="other")
    server.unmount(Server("other"))
    server.mount("other")  # type: ignore[arg-type]
    server.change_tool("other_add", ToolChange(name="add", arguments={"item": ArgumentChange(fixed="book")}))
    server.change_tool("other_add", "add")  # type: ignore[arg-type]


async def shown(ctx: Context) -> None:
    server.disable("add", tags={"shop"})
    server.enable(tags={"shop"}, only=True)
    ctx.disable("add")
    assert_type(ctx.sees("add"), bool)


# The server that serves a call


async def of_a_call(request: Request, ctx: Context) -> None:
    assert_type(ctx.server, RunningServer)
    assert_type(request.server, RunningServer)
    assert_type(ctx.server.name, str)
    ctx.server.resource_updated("orders://today")
    ctx.server.tool(shown)  # type: ignore[attr-defined]
    running: RunningServer = server
    assert_type(running.limits, Limits)

"""Handlers that run any *program*: effects, questions in turn and at once, resources read on the way, failures.

The log that they keep is what the tests look at: what happened, and how often.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from hypothesis import strategies as st

from accord import Context, Server
from accord.limits import Limits
from accord.messages.tools import ToolAnnotations
from accord.server.input.question import InputQuestion
from accord.server.input.questions import Elicit, Roots, Sample
from accord.server.input.roots import RootList


@dataclass(frozen=True)
class Step:
    """One step: what it does, and its parts: kinds of question, or programs that run at once."""

    does: str
    parts: tuple[Any, ...] = ()


Program = tuple[Step, ...]

PAUSE = 5
"""Turns of the loop: long enough for messages to come meanwhile."""

PLAIN = ("effect", "effect", "once", "pause", "pause", "drop", "read body", "read declared", "fail")
QUESTIONS: dict[str, Callable[[str], InputQuestion[Any]]] = {
    "e": lambda text: Elicit(text, str),
    "s": Sample,
    "r": lambda _: Roots(),
}


def _steps(programs: st.SearchStrategy[Program]) -> st.SearchStrategy[Step]:
    asks = st.lists(st.sampled_from("esr"), min_size=1, max_size=3).map(lambda kinds: Step("ask", tuple(kinds)))
    parallel = st.builds(Step, st.sampled_from(["gather", "group"]), st.tuples(programs, programs))
    return st.one_of(asks, asks, st.sampled_from(PLAIN).map(Step), parallel)


def _several(programs: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
    return st.lists(_steps(programs), max_size=4).map(tuple)


programs: st.SearchStrategy[Program] = st.recursive(_several(st.just(())), _several, max_leaves=3)


class Log:
    """What the programs did, by the token of their call."""

    def __init__(self) -> None:
        self.programs: dict[str, Program] = {}
        self.begun: Counter[str] = Counter()
        self.effects: dict[str, Counter[str]] = defaultdict(Counter)
        self.made: dict[str, Counter[str]] = defaultdict(Counter)
        self.returned: dict[str, list[str]] = defaultdict(list)

    async def run(self, token: str, ctx: Context, *given: Any) -> str:
        """Run the program of a call; what it returns."""
        self.begun[token] += 1
        values = [value(one) for one in given]
        done = json.dumps([values, await self._all(token, self.programs.get(token, ()), ctx, "")])
        self.returned[token].append(done)
        return done

    def run_plain(self, token: str, *given: Any) -> str:
        """What a function that is not async can do of it."""
        self.begun[token] += 1
        self.effects[token].update(places("effect", self.programs.get(token, ())))
        self.returned[token].append(json.dumps([list(given), []]))
        return self.returned[token][-1]

    async def _all(self, token: str, program: Program, ctx: Context, at: str) -> list[Any]:
        return [await self._one(token, step, ctx, f"{at}-{place}") for place, step in enumerate(program)]

    async def _one(self, token: str, step: Step, ctx: Context, at: str) -> Any:
        match step.does:
            case "effect":
                self.effects[token][at] += 1
            case "once":
                return await ctx.once(at, lambda: self._make(token, at))
            case "pause":
                for _ in range(PAUSE):
                    await asyncio.sleep(0)
            case "drop":
                dropped = asyncio.ensure_future(ctx.elicit(token + at))
                await asyncio.sleep(0)
                dropped.cancel()
            case "fail":
                raise ValueError(at)
            case "ask":
                asked = [QUESTIONS[kind](token + at) for kind in step.parts]
                return [value(answer) for answer in await ctx.ask(*asked)]
            case "read body" | "read declared":
                return (await ctx.read_resource(f"test://{step.does[5:]}/{token}{at}"))[0].text
            case "gather" | "group":
                branches = [self._all(token, part, ctx, f"{at}-{n}") for n, part in enumerate(step.parts)]
                return await (asyncio.gather(*branches) if step.does == "gather" else in_group(branches))
        return None

    async def _make(self, token: str, at: str) -> str:
        self.made[token][at] += 1
        await asyncio.sleep(0)
        return at


async def in_group(branches: Sequence[Any]) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(branch) for branch in branches]
    return [task.result() for task in tasks]


def value(answer: Any) -> Any:
    """What a program makes of an answer."""
    if isinstance(answer, RootList):
        return [root.uri for root in answer]
    if isinstance(answer, str):
        return answer
    return answer.text if hasattr(answer, "text") else [answer.action, answer.data]


def expected(program: Program, token: str, at: str = "") -> list[Any]:
    """What a program makes of the answers that `caller.yes` gives."""
    answers: dict[str, Callable[[str], Any]]
    answers = {"e": lambda text: ["accept", text], "s": lambda text: text, "r": lambda _: ["file:///tmp"]}
    found: list[Any] = []
    for place, step in enumerate(program):
        here = f"{at}-{place}"
        if step.does == "ask":
            found.append([answers[kind](f"answer to {token}{here}") for kind in step.parts])
        elif step.does.startswith("read"):
            found.append(f"answer to nested {token}{here}")
        elif step.does in ("gather", "group"):
            found.append([expected(part, token, f"{here}-{n}") for n, part in enumerate(step.parts)])
        else:
            found.append(here if step.does == "once" else None)
    return found


def places(does: str, program: Program, at: str = "") -> Iterator[str]:
    """Where a program does this."""
    for place, step in enumerate(program):
        here = f"{at}-{place}"
        if step.does == does:
            yield here
        if step.does in ("gather", "group"):
            for n, part in enumerate(step.parts):
                yield from places(does, part, f"{here}-{n}")


KINDS = {
    "body": "tools/call",
    "declared": "tools/call",
    "plain": "tools/call",
    "read_only": "tools/call",
    "idempotent": "tools/call",
    "prompt": "prompts/get",
    "declared_prompt": "prompts/get",
    "test://program/": "resources/read",
}
"""What runs programs, and how it is asked for."""

ONCE = ("body", "declared", "plain")
"""What may not run twice."""

DECLARED = {
    "declared": ["answer to declared {}", ["file:///tmp"]],
    "plain": ["answer to declared {}"],
    "idempotent": ["answer to declared {}"],
    "declared_prompt": ["answer to declared {}"],
}
"""What is asked before the program runs."""

Name = Annotated[str, Elicit("declared {token}")]


def serve(log: Log) -> Server:
    """A server with one handler of each kind."""
    server = Server("programs", limits=Limits(close_seconds=5))

    @server.tool
    async def body(token: str, ctx: Context) -> str:
        return await log.run(token, ctx)

    @server.tool
    async def declared(token: str, name: Name, folders: Annotated[RootList, Roots()], ctx: Context) -> str:
        return await log.run(token, ctx, name, folders)

    @server.tool
    def plain(token: str, name: Name) -> str:
        return log.run_plain(token, name)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def read_only(token: str, ctx: Context) -> str:
        return await log.run(token, ctx)

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True))
    async def idempotent(token: str, name: Name, ctx: Context) -> str:
        return await log.run(token, ctx, name)

    @server.prompt
    async def prompt(token: str, ctx: Context) -> str:
        return await log.run(token, ctx)

    @server.prompt
    async def declared_prompt(token: str, name: Name, ctx: Context) -> str:
        return await log.run(token, ctx, name)

    @server.resource("test://program/{token}")
    async def resource(token: str, ctx: Context) -> str:
        return await log.run(token, ctx)

    @server.resource("test://declared/{at}")
    async def nested_declared(at: str, name: Annotated[str, Elicit("nested {at}")]) -> str:
        return name

    @server.resource("test://body/{at}")
    async def nested_body(at: str, ctx: Context) -> str:
        return str((await ctx.elicit(f"nested {at}", str)).data)

    return server

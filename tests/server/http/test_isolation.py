"""Many at once: nobody hears what is another's, and whatever a handler does ends its own exchange only."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accord import Context, Server

from tests.server.http.http_clients import Legacy, Modern, Stateful, both_ways, encode, quick, site, text, until
from tests.server.http.raw import JSON, Answer, Raw
from tests.server.input.caller import filled

CLIENTS = 100
IDS = range(1, 51)


class Desk(Server):
    """A server that tells each caller its own secret in every way there is."""

    def __init__(self, **limits: Any) -> None:
        super().__init__("desk", "1", limits=quick(**limits))
        self.release = asyncio.Event()
        self.waiting = 0

        @self.tool
        async def echo(secret: str) -> str:
            return secret

        @self.tool
        async def tell(secret: str, ctx: Context) -> str:
            for step in range(2):
                ctx.report_progress(step + 1, 2, secret)
                ctx.info(secret)
                await asyncio.sleep(0)
            return secret

        @self.tool
        async def ask(secret: str, ctx: Context) -> str:
            found = await ctx.elicit(secret, str)
            return getattr(found, "data", "nothing")

        @self.tool
        async def wait(secret: str) -> str:
            self.waiting += 1
            await self.release.wait()
            return secret


def secrets_in(message: Any, own: str) -> None:
    """A message says this secret, and no other."""
    said = encode(message).decode()
    assert own in said, (own, said)
    assert said.count("secret-") == said.count(own)


async def heard(answer: Answer, id: Any, secret: str, reply: Any = None) -> list[str]:
    """The kinds of what was heard of a call, all of it with its own secret."""
    if not answer.streams:
        said = await answer.json()
        secrets_in(said, secret)
        assert said["id"] == id
        return ["answer"]
    kinds = []
    for event in await answer.events() if reply is None else [event async for event in _replied(answer, reply)]:
        if event is None:
            continue
        secrets_in(event, secret)
        kinds.append(event.get("method", "answer"))
    return kinds


async def _replied(answer: Answer, reply: Any) -> Any:
    while True:
        message = await answer.message()
        yield message
        if "method" not in message:
            return
        if "id" in message:
            await reply(message)


async def modern(raw: Raw, number: int) -> None:
    """A client of 2026-07-28, with the ids that all others use."""
    client = Modern(raw, {"elicitation": {}})
    for id in IDS:
        secret, tool = f"secret-{number}-{id}.", ("echo", "tell", "ask")[id % 3]
        answer = await client.call(tool, {"secret": secret}, id=id, progressToken=id, logLevel="info")
        if tool == "echo":
            assert await heard(answer, id, secret) == ["answer"]
        elif tool == "tell":
            messages = [event.data for event in await answer.events()]
            for message in messages:
                secrets_in(message, secret)
            assert [each.get("method", "answer").rpartition("/")[2] for each in messages] == [
                *["progress", "message"] * 2,
                "answer",
            ]
        else:
            said = await answer.result()
            (key, question), *_ = said["result"]["inputRequests"].items()
            assert question["params"]["message"] == secret
            again = {"requestState": said["result"]["requestState"]}
            again["inputResponses"] = {key: {"action": "accept", "content": filled(question["params"])}}
            params = {"name": "ask", "arguments": {"secret": secret}, **again}
            assert text(await (await client.ask("tools/call", params, id=id)).result()) == f"answer to {secret}"


async def stateful(raw: Raw, number: int) -> None:
    """A client that has a session, with the ids that all others use."""
    client = await Stateful(raw).open()
    general = await client.listen()

    async def reply(question: JSON) -> None:
        answer = {"action": "accept", "content": filled(question["params"])}
        assert await client.answer(question["id"], answer) == 202

    async def one(id: int) -> None:
        secret, tool = f"secret-{number}-{id}.", ("echo", "tell", "ask")[id % 3]
        answer = await client.call(tool, {"secret": secret}, id=id, progressToken=id)
        kinds = await heard(answer, id, secret, reply)
        assert kinds[-1] == "answer"
        assert len(kinds) == {"echo": 1, "tell": 5, "ask": 2}[tool]

    await asyncio.gather(*(one(id) for id in IDS))
    await (await client.delete()).end()
    assert await general.events() == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("form", [modern, stateful])
async def test_clients_that_use_the_same_ids_at_once_get_their_own_answers_only(form: Any) -> None:
    in_flight = CLIENTS * len(IDS)  # of one address
    desk = Desk(parked=CLIENTS, http_requests_per_address=in_flight, http_requests=in_flight)
    async with site(desk) as here:
        await asyncio.gather(*(form(here.raw, number) for number in range(CLIENTS)))


async def test_both_forms_and_the_oldest_use_the_same_ids_at_once_over_one_port() -> None:
    async def oldest(raw: Raw, number: int) -> None:
        client = await (await Legacy.connect(raw)).open()
        for id in IDS:
            said = await client.ask("tools/call", {"name": "echo", "arguments": {"secret": f"secret-{number}."}}, id=id)
            assert said["id"] == id
            secrets_in(said, f"secret-{number}.")
        await client.stream.leave()

    async with site(Desk(), "socket") as here:
        await asyncio.gather(
            *((modern, stateful, oldest)[number % 3](here.raw, number) for number in range(9)),
        )


@pytest.mark.parametrize("form", ["modern", "stateful"])
async def test_two_thousand_calls_in_flight_are_each_answered_as_they_should(form: str) -> None:
    server = Desk(requests_in_flight=2_000, http_patience_seconds=60)
    async with site(server) as here:
        client = Modern(here.raw) if form == "modern" else await Stateful(here.raw).open()

        async def one(number: int) -> JSON:
            return await (await client.call("wait", {"secret": f"secret-{number}."}, id=number)).result()  # type: ignore[no-any-return]

        calls = [asyncio.create_task(one(number)) for number in range(2_000)]
        await until(lambda: server.waiting == 2_000)
        server.release.set()
        for number, said in enumerate(await asyncio.gather(*calls)):
            assert (said["id"], text(said)) == (number, f"secret-{number}.")


# --- handlers that raise -----------------------------------------------------------------------------------------


class Odd(BaseException):
    """No exception that anybody expects."""


RAISED: list[BaseException] = [
    ValueError("bad value"),
    SystemExit(3),
    KeyboardInterrupt(),
    asyncio.CancelledError(),
    GeneratorExit(),
    ExceptionGroup("group", [ValueError("inner")]),
    BaseExceptionGroup("group", [ValueError("inner"), SystemExit()]),
    MemoryError(),
    RecursionError("deep"),
    StopIteration(1),
    StopAsyncIteration(),
    TimeoutError("slow"),
    ConnectionResetError("gone"),
    Odd("odd"),
]


@both_ways
@pytest.mark.parametrize("form", ["modern", "stateful", "oldest"])
@pytest.mark.parametrize("when", ["at once", "after waiting", "after reporting"])
async def test_whatever_a_handler_raises_ends_its_own_exchange_only(when: str, form: str, way: str) -> None:
    server = Desk()

    @server.tool
    async def raises(ctx: Context, kind: int) -> str:
        if when == "after waiting":
            await asyncio.sleep(0)
        elif when == "after reporting":
            ctx.report_progress(1)
            await asyncio.sleep(0)
        raise RAISED[kind].with_traceback(None)

    async with site(server, way) as here:
        old = await Stateful(here.raw).open()
        oldest = await (await Legacy.connect(here.raw)).open()
        bystander = await old.begin("POST", encode(old.calling("wait", {"secret": "bystander"}, id="b")))
        general = await old.listen()
        for kind, exc in enumerate(RAISED):
            if form == "oldest":
                params = {"name": "raises", "arguments": {"kind": kind}, "_meta": {"progressToken": 1}}
                said = await oldest.ask("tools/call", params)
                if "method" in said:
                    said = await oldest.stream.message()
            else:
                client = Modern(here.raw) if form == "modern" else old
                said = await (await client.call("raises", {"kind": kind}, progressToken=1)).result()
            assert said["result"]["isError"] is True, (exc, said)
            assert text(await (await Modern(here.raw).call("echo", {"secret": "x"})).json()) == "x"
        server.release.set()
        assert text(await (await bystander.start()).result()) == "bystander"
        await general.leave()
        await oldest.stream.leave()


@pytest.mark.parametrize("form", ["modern", "stateful"])
async def test_a_context_variable_of_one_call_is_not_seen_by_another(form: str) -> None:
    from contextvars import ContextVar

    seen: ContextVar[str] = ContextVar("seen", default="nothing")
    server = Desk()

    @server.tool
    async def note(value: str) -> str:
        before = seen.get()
        seen.set(value)
        return before

    async with site(server, "socket") as here:
        client = Modern(here.raw) if form == "modern" else await Stateful(here.raw).open()
        for value in ("a", "b"):
            assert text(await (await client.call("note", {"value": value})).json()) == "nothing"

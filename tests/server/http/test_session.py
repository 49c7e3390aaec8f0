"""2025-03-26 to 2025-11-25 over HTTP: sessions, and which message goes out on which stream."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from accord import Context, Server
from accord.errors import AccordError, StoreError
from accord.messages.revision import HANDSHAKE
from accord.server.auth.api_keys import APIKeys
from accord.server.http.options import HTTPOptions
from accord.store.memory import MemoryEvents
from accord.store.sqlite import SQLiteEvents

from tests.clock import Clock
from tests.server.http.http_clients import (
    LATEST,
    Here,
    Modern,
    Stateful,
    both_ways,
    notification,
    quick,
    request,
    site,
    text,
    until,
)
from tests.server.http.raw import BASIC, JSON, Answer, Ended

SESSIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
KEYS = {"k-ann": "ann", "k-bob": "bob"}


class Desk(Server):
    """A server whose tools wait until they are released."""

    def __init__(self, **options: Any) -> None:
        super().__init__("desk", "1", **{"limits": quick(), **options})
        self.release = asyncio.Event()
        self.began: list[str] = []
        self.ended: list[str] = []

        @self.tool
        async def echo(text: str) -> str:
            return text

        @self.tool
        async def steps(ctx: Context, count: int) -> str:
            for step in range(count):
                ctx.report_progress(step + 1, count)
                ctx.info(f"step {step}")
            return "done"

        @self.tool
        async def waits(ctx: Context, name: str = "", report: bool = False) -> str:
            self.began.append(name)
            if report:
                ctx.report_progress(1)
            try:
                await self.release.wait()
            finally:
                self.ended.append(name)
            return f"{name} done"

        @self.tool
        async def ask(ctx: Context) -> str:
            found = await ctx.elicit("which?", str)
            return f"{found.action} {getattr(found, 'data', '')}"

        @self.tool
        async def later(ctx: Context) -> str:
            """Asks when its request has been answered."""

            async def ask() -> None:
                await self.release.wait()
                ctx.info("after the answer")
                self.ended.append(str((await ctx.list_roots())[0].name))

            self.asking = asyncio.create_task(ask())
            return "later"


async def rejected(answer: Answer, status: int) -> JSON:
    """The body of a refusal."""
    said: JSON = await answer.json()
    assert answer.status == status, said
    assert "error" in said
    return said


# --- opening -----------------------------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("revision", SESSIONS)
async def test_initialize_opens_a_session_that_requests_are_served_in(revision: str, way: str) -> None:
    async with site(Desk(), way) as here:
        client = Stateful(here.raw, revision)
        answer = await client.initialize()
        assert (await answer.json())["result"]["protocolVersion"] == revision
        assert await client.tell("notifications/initialized") == 202
        said = await client.call("echo", {"text": "hello"})
        assert said.headers["mcp-session-id"] == client.id
        assert text(await said.json()) == "hello"


async def test_ids_of_sessions_are_visible_ascii_long_and_never_the_same() -> None:
    async with site(Desk()) as here:
        ids = {(await Stateful(here.raw).open()).id for _ in range(100)}
    assert len(ids) == 100
    assert all(re.fullmatch("[!-~]{43,}", id) for id in ids)
    assert len({id[:8] for id in ids}) == len({id[-8:] for id in ids}) == 100


@pytest.mark.parametrize(("asked", "agreed"), [("2026-07-28", "2025-11-25"), ("1999-01-01", "2025-11-25")])
async def test_initialize_never_agrees_on_a_revision_without_sessions(asked: str, agreed: str) -> None:
    async with site(Desk()) as here:
        answer = await Stateful(here.raw, asked).initialize()
        assert (await answer.json())["result"]["protocolVersion"] == agreed


@pytest.mark.parametrize("params", [None, {}, {"protocolVersion": 7}, {"protocolVersion": "2025-11-25"}, []])
async def test_an_initialize_that_fails_leaves_no_session(params: Any) -> None:
    async with site(Desk()) as here:
        answer = await Stateful(here.raw).post(request("initialize", params))
        assert answer.status == 400
        assert "error" in await answer.json()
        assert len(here.endpoint.sessions) == 0


async def test_an_initialize_that_cannot_be_stored_is_503_and_leaves_no_session() -> None:
    class Full(MemoryEvents):
        async def save(self, session: str, record: bytes) -> None:
            raise StoreError("the disk is full")

    async with site(Desk(), options=HTTPOptions(events=Full())) as here:
        answer = await Stateful(here.raw).post(Stateful(here.raw).hello())
        assert int(answer.headers["retry-after"]) > 0
        await rejected(answer, 503)
        assert len(here.endpoint.sessions) == 0


async def test_an_initialize_that_is_a_notification_leaves_no_session() -> None:
    async with site(Desk()) as here:
        await (await Stateful(here.raw).post(notification("initialize"))).end()
        assert len(here.endpoint.sessions) == 0


@pytest.mark.parametrize("message", [request("tools/list"), request("ping"), notification("notifications/initialized")])
async def test_without_a_session_nothing_but_initialize_is_served(message: JSON) -> None:
    async with site(Desk()) as here:
        said = await rejected(await Stateful(here.raw).post(message), 400)
        assert "Mcp-Session-Id" in said["error"]["message"]
        assert said["id"] == message.get("id")


async def test_requests_are_served_when_initialized_loses_its_race() -> None:
    async with site(Desk()) as here:
        client = Stateful(here.raw)
        await client.initialize()
        assert text(await (await client.call("echo", {"text": "early"})).json()) == "early"
        call = await client.call("ask", id=2)
        assert (await call.event()).data is None
        assert await client.tell("notifications/initialized") == 202
        question = await call.message()
        assert question["method"] == "elicitation/create"
        await client.answer(question["id"], {"action": "accept", "content": {"value": "late"}})
        assert text(await call.message()) == "accept late"


# --- the header of the revision ----------------------------------------------------------------------------------

VERSIONS: list[tuple[str | None, int]] = [
    ("2025-11-25", 200),
    ("2025-06-18", 200),
    (None, 200),
    ("2099-01-01", 400),
    ("", 400),
    ("latest", 400),
    ("2025-11-25, 2025-06-18", 400),
]


@pytest.mark.parametrize(("version", "status"), VERSIONS)
async def test_the_revision_in_the_header(version: str | None, status: int) -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw).open()
        answer = await client.post(request("ping", id=4), mcp_protocol_version=version)
        said = await answer.json()
        assert (answer.status, said["id"]) == (status, 4)
        assert (await client.ask("ping")).status == 200


async def test_a_revision_that_this_server_was_not_given_is_400() -> None:
    async with site(Desk(revisions=["2025-11-25", "2026-07-28"])) as here:
        client = await Stateful(here.raw).open()
        await rejected(await client.post(request("ping"), mcp_protocol_version="2025-03-26"), 400)
        await rejected(await client.send("GET", mcp_protocol_version="2025-03-26"), 400)


async def test_a_request_of_2026_07_28_with_a_session_belongs_to_none() -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw).open()
        answer = await Modern(here.raw, **{"mcp-session-id": client.id}).call("echo", {"text": "x"})
        assert "mcp-session-id" not in answer.headers
        assert (await answer.json())["result"]["resultType"] == "complete"


async def test_a_message_that_names_its_revision_without_a_header_is_a_mismatch_also_in_a_session() -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw).open()
        for version in (None, "2025-11-25"):
            answer = await client.post(Modern(here.raw).request("tools/list"), mcp_protocol_version=version)
            assert (await rejected(answer, 400))["error"]["code"] == -32020


# --- whose session it is -----------------------------------------------------------------------------------------


async def everything(client: Stateful) -> list[tuple[int, dict[str, str], bytes]]:
    """What every kind of request is answered."""
    answers = [
        await client.ask("tools/list"),
        await client.post(notification("notifications/initialized")),
        await client.post([request("ping")]),
        await client.post(b"not JSON"),
        await client.listen(),
        await client.listen("0-1"),
        await client.delete(),
    ]
    return [(answer.status, answer.headers, await answer.body()) for answer in answers]


@both_ways
async def test_anothers_session_is_the_same_404_as_one_that_never_was(way: str) -> None:
    async with site(Desk(auth=APIKeys(KEYS)), way) as here:
        anns = await Stateful(here.raw, authorization="Bearer k-ann").open()
        bob = Stateful(here.raw, authorization="Bearer k-bob")
        stolen = await everything(bob.join(anns.id))
        unknown = await everything(bob.join("x" * len(anns.id)))
        assert stolen == unknown
        assert {status for status, _, _ in stolen} == {404}
        assert (await anns.ask("ping")).status == 200


async def test_a_session_refuses_anonymous_requests() -> None:
    async with site(Desk(auth=APIKeys(KEYS))) as here:
        anns = await Stateful(here.raw, authorization="Bearer k-ann").open()
        nobody = Stateful(here.raw).join(anns.id)
        assert {status for status, _, _ in await everything(nobody)} == {401}


@both_ways
async def test_after_delete_it_is_404_and_what_ran_is_answered_and_cancelled(way: str) -> None:
    server = Desk()
    async with site(server, way) as here:
        client = await Stateful(here.raw).open()
        call = await client.call("waits", {"report": True}, progressToken=1)
        stream = await client.listen()
        assert (await client.delete()).status == 200
        said = await call.result()
        assert said["error"]["message"] == "the client has ended its session"
        assert await stream.events() == []
        assert server.ended == [""]
        assert {status for status, _, _ in await everything(client)} == {404}


async def test_delete_leaves_nothing_in_the_store(tmp_path: Path) -> None:
    server, file = Desk(limits=quick(http_patience_seconds=60)), tmp_path / "events.db"
    async with site(server, options=HTTPOptions(events=SQLiteEvents(file))) as here:
        client = await Stateful(here.raw).open()
        await (await client.call("steps", {"count": 3}, progressToken=1)).end()
        running = [
            await client.begin(
                "POST", json.dumps(client.calling("waits", {"report": id > 3}, id=id, progressToken=id)).encode()
            )
            for id in range(2, 6)
        ]
        await until(lambda: len(server.began) == 4)
        await client.delete()
        for each in running:
            assert (await (await each.start()).result())["error"]["message"] == "the client has ended its session"
    with closing(sqlite3.connect(file)) as db:
        for table in ("sessions", "streams", "events"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


async def test_delete_with_a_revision_that_has_no_sessions_ends_none() -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw).open()
        assert (await client.send("DELETE", mcp_protocol_version=LATEST)).status == 405
        assert (await client.ask("ping")).status == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_without_a_session_there_is_nothing_to_get_or_delete(method: str) -> None:
    async with site(Desk()) as here:
        await rejected(await Stateful(here.raw).send(method), 400)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE"])
async def test_other_methods_are_405(method: str) -> None:
    async with site(Desk()) as here:
        answer = await here.raw.send(method, "/mcp", BASIC)
        assert (answer.status, answer.headers["allow"]) == (405, "POST, GET, DELETE")


# --- what a post is answered -------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", SESSIONS)
@pytest.mark.parametrize(
    "message",
    [
        notification("notifications/cancelled", {"requestId": 99}),
        notification("notifications/none"),
    ],
    ids=["cancel", "unknown"],
)
async def test_what_has_no_answer_is_202_without_a_body(message: JSON, revision: str) -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw, revision).open()
        answer = await client.post(message)
        assert (answer.status, await answer.body()) == (202, b"")


@pytest.mark.parametrize("revision", SESSIONS)
@pytest.mark.parametrize("outcome", [{"result": {}}, {"error": {"code": 1, "message": "x"}}], ids=["result", "error"])
async def test_an_answer_to_a_question_that_was_not_sent_is_400(outcome: JSON, revision: str) -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw, revision).open()
        said = await rejected(await client.post({"jsonrpc": "2.0", "id": 99, **outcome}), 400)
        assert "several workers" in said["error"]["message"]


@pytest.mark.parametrize("revision", SESSIONS)
@pytest.mark.parametrize("body", [b"", b"{}", b"7", b"null", b"[", b'{"jsonrpc":"2.0","id":{},"method":"ping"}'])
async def test_what_is_no_message_is_400_and_the_next_one_is_served(body: bytes, revision: str) -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw, revision).open()
        await rejected(await client.post(body), 400)
        assert (await client.ask("ping")).status == 200


async def test_an_unknown_method_is_an_answer() -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw).open()
        said = await (await client.ask("none", id="x")).json()
        assert (said["id"], said["error"]["code"]) == ("x", -32601)


@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_call_that_reports_is_a_stream_with_ids_and_primed_only_where_it_may_be(revision: str) -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw, revision).open()
        answer = await client.call("steps", {"count": 2}, progressToken="p")
        assert answer.streams
        assert answer.headers["mcp-session-id"] == client.id
        events = await answer.events()
        primed = revision == "2025-11-25"
        assert (events[0].data is None) is primed
        assert len(events) == 5 + primed
        assert len({event.id for event in events}) == len(events)
        assert all(event.id for event in events)
        assert text(events[-1].data) == "done"


@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_call_that_takes_long_becomes_a_stream_where_it_can_be_primed(revision: str) -> None:
    server = Desk()
    async with site(server) as here:
        client = await Stateful(here.raw, revision).open()
        call = await client.begin("POST", json.dumps(client.calling("waits")).encode())
        if revision == "2025-11-25":
            assert (await (await call.start()).event()).data is None
        else:
            await until(lambda: server.began)
            assert not call.status
        server.release.set()
        assert text(await (await call.start()).result()) == " done"
        assert call.streams is (revision == "2025-11-25")


async def test_a_duplicate_id_in_flight_does_not_end_the_first() -> None:
    server = Desk()
    async with site(server) as here:
        client = await Stateful(here.raw).open()
        first = await client.call("waits", {"name": "first", "report": True}, id=5, progressToken=1)
        said = await rejected(await client.call("echo", {"text": "second"}, id=5), 400)
        assert said.get("id") is None
        server.release.set()
        assert text(await first.result()) == "first done"


# --- cancelling --------------------------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("report", [False, True])
async def test_a_call_is_cancelled_by_a_notification_and_gets_no_answer(report: bool, way: str) -> None:
    server = Desk(limits=quick(http_patience_seconds=60))
    async with site(server, way) as here:
        client = await Stateful(here.raw).open()
        body = json.dumps(client.calling("waits", {"report": report}, id=8, progressToken=1)).encode()
        call = await client.begin("POST", body)
        await until(lambda: server.began)
        assert await client.tell("notifications/cancelled", {"requestId": 8, "reason": "no need"}) == 202
        await call.start()
        assert [event.data["method"] for event in await call.events() if event.data] == [
            "notifications/progress"
        ] * report
        assert server.ended == [""]


async def test_a_cancel_of_another_session_ends_nothing() -> None:
    server = Desk()
    async with site(server) as here:
        one, other = await Stateful(here.raw).open(), await Stateful(here.raw).open()
        call = await one.call("waits", {"report": True}, id=8, progressToken=1)
        await other.tell("notifications/cancelled", {"requestId": 8})
        server.release.set()
        assert text(await call.result()) == " done"


# --- batches -----------------------------------------------------------------------------------------------------


async def test_a_batch_is_answered_with_a_batch() -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw, "2025-03-26").open()
        calls = [client.calling("echo", {"text": str(id)}, id=id) for id in range(3)]
        answer = await client.post([*calls, notification("notifications/none"), request("ping", id="p"), 7])
        said = {str(each.get("id")): each for each in await answer.json()}
        assert answer.status == 200
        assert [text(said[str(id)]) for id in range(3)] == ["0", "1", "2"]
        assert said["p"]["result"] == {}
        assert said["None"]["error"]["code"] == -32600
        assert len(said) == 5


@pytest.mark.parametrize(
    "batch",
    [
        [notification("notifications/none"), notification("notifications/cancelled", {"requestId": 1})],
        [{"jsonrpc": "2.0", "id": 9, "result": {}}, notification("notifications/none")],
    ],
    ids=["notifications", "both"],
)
async def test_a_batch_with_nothing_to_answer_is_202_without_a_body(batch: list[JSON]) -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw, "2025-03-26").open()
        answer = await client.post(batch)
        assert (answer.status, await answer.body()) == (202, b"")


async def test_an_empty_batch_is_an_invalid_request() -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw, "2025-03-26").open()
        assert (await rejected(await client.post([]), 400))["error"]["code"] == -32600


async def test_initialize_in_a_batch_is_an_error_of_its_own() -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw, "2025-03-26").open()
        said = {
            each["id"]: each for each in await (await client.post([client.hello(id=1), request("ping", id=2)])).json()
        }
        assert said[1]["error"]["code"] == -32600
        assert said[2]["result"] == {}


async def test_a_batch_cannot_open_a_session() -> None:
    async with site(Desk()) as here:
        client = Stateful(here.raw, "2025-03-26")
        await rejected(await client.post([client.hello()]), 400)
        assert len(here.endpoint.sessions) == 0


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_a_batch_in_a_revision_without_is_refused(revision: str) -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw, revision).open()
        assert (await rejected(await client.post([request("ping")]), 400))["error"]["code"] == -32600


async def test_a_batch_with_a_slow_call_leaves_together_and_what_is_reported_comes_before() -> None:
    server = Desk()
    async with site(server) as here:
        client = await Stateful(here.raw, "2025-03-26").open()
        batch = [
            client.calling("waits", {"name": "a", "report": True}, id=1, progressToken="t"),
            client.calling("echo", {"text": "b"}, id=2),
        ]
        answer = await client.post(batch)
        assert (await answer.message())["params"]["progressToken"] == "t"
        server.release.set()
        assert {each["id"]: text(each) for each in await answer.message()} == {1: "a done", 2: "b"}
        assert await answer.events() == []


@pytest.mark.parametrize("last", [True, False])
async def test_one_of_a_batch_is_cancelled_and_the_others_are_answered(last: bool) -> None:
    server = Desk()
    async with site(server) as here:
        client = await Stateful(here.raw, "2025-03-26").open()
        batch = [client.calling("waits", {"name": str(id)}, id=id) for id in (1, 2)]
        if last:
            batch[1] = client.calling("echo", {"text": "2 done"}, id=2)
        answer = await client.begin("POST", json.dumps(batch).encode())
        await until(lambda: len(server.began) == 2 - last)
        await client.tell("notifications/cancelled", {"requestId": 1})
        await until(lambda: "1" in server.ended)
        server.release.set()
        said = await (await answer.start()).result()
        assert {each["id"]: text(each) for each in said} == {2: "2 done"}


async def test_a_call_that_is_cancelled_in_its_own_batch_does_not_begin() -> None:
    server = Desk()
    server.release.set()
    async with site(server) as here:
        client = await Stateful(here.raw, "2025-03-26").open()
        cancel = notification("notifications/cancelled", {"requestId": 1})
        answer = await client.post([client.calling("waits", id=1), cancel])
        assert (answer.status, await answer.body()) == (202, b"")
        answer = await client.post([client.calling("waits", id=1), cancel, request("ping", id=2)])
        assert [each["id"] for each in await answer.json()] == [2]
        two = [client.calling("waits", id=1), cancel, client.calling("waits", {"name": "other"}, id=2)]
        assert [text(each) for each in await (await client.post(two)).json()] == ["other done"]
        assert server.began == ["other"]


async def test_a_batch_of_which_every_call_is_cancelled_ends_without_an_answer() -> None:
    server = Desk()
    async with site(server) as here:
        client = await Stateful(here.raw, "2025-03-26").open()
        batch = [client.calling("waits", {"name": str(id)}, id=id) for id in (1, 2)]
        answer = await client.begin("POST", json.dumps(batch).encode())
        await until(lambda: len(server.began) == 2)
        for id in (1, 2):
            await client.tell("notifications/cancelled", {"requestId": id})
        assert await (await answer.start()).events() == []


@pytest.mark.parametrize("how", ["cancel", "delete"])
async def test_when_the_last_of_a_batch_is_ended_the_answers_of_the_others_come_once(how: str) -> None:
    server = Desk()
    async with site(server) as here:
        client = await Stateful(here.raw, "2025-03-26").open()
        batch = [client.calling("echo", {"text": "first"}, id=1), client.calling("waits", id=2)]
        answer = await client.begin("POST", json.dumps(batch).encode())
        await until(lambda: server.began)
        await (client.tell("notifications/cancelled", {"requestId": 2}) if how == "cancel" else client.delete())
        (said,) = [event.data for event in await (await answer.start()).events()]
        assert [each["id"] for each in said] == ([1] if how == "cancel" else [1, 2])
        assert text(said[0]) == "first"


# --- each message on one stream ----------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_requests_of_a_handler_go_out_on_the_stream_of_its_call(revision: str, way: str) -> None:
    async with site(Desk(), way) as here:
        client = await Stateful(here.raw, revision).open()
        general = await client.listen()
        call = await client.call("ask")
        question = await call.message()
        assert question["method"] == "elicitation/create"
        assert await client.answer(question["id"], {"action": "accept", "content": {"value": "v"}}) == 202
        assert text(await call.message()) == "accept v"
        await (await client.delete()).end()
        assert await general.events() == []


async def test_a_handler_requests_input_on_the_stream_of_its_call_without_a_general_stream() -> None:
    server = Desk(limits=quick(pending_bytes=2_000, answer_seconds=3))
    server.resource("test://{name}")(lambda name: name)
    async with site(server) as here:
        client = await Stateful(here.raw).open()
        await client.ask("resources/subscribe", {"uri": "test://one"})
        for _ in range(40):
            server.resource_updated("test://one")
            await asyncio.sleep(0)
        for id in range(20):
            call = await client.call("ask", id=id)
            await client.answer((await call.message())["id"], {"action": "decline"})
            assert text(await call.result()) == "decline None"


async def test_a_question_without_a_stream_is_an_error_that_says_so() -> None:
    server = Desk(limits=quick(pending_bytes=1, answer_seconds=0.05))

    @server.tool
    async def background(ctx: Context) -> str:
        async def ask() -> None:
            await server.release.wait()
            for _ in range(2):
                try:
                    await ctx.list_roots()
                except AccordError as exc:
                    server.ended.append(str(exc))

        server.asking = asyncio.create_task(ask())
        return "later"

    async with site(server) as here:
        client = await Stateful(here.raw).open()
        await client.call("background")
        server.release.set()
        await server.asking
        assert "no answer" in server.ended[0]
        assert "the peer has not read earlier messages" in server.ended[1]


async def test_notifications_after_the_answer_go_out_on_the_general_stream() -> None:
    server = Desk()
    async with site(server) as here:
        client = await Stateful(here.raw).open()
        general = await client.listen()
        call = await client.call("later")
        assert text(await call.result()) == "later"
        server.release.set()
        assert (await general.message())["params"]["data"] == "after the answer"
        question = await general.message()
        assert question["method"] == "roots/list"
        await client.answer(question["id"], {"roots": [{"uri": "file:///a", "name": "mine"}]})
        await until(lambda: server.ended == ["mine"])
        await general.leave()


async def test_changes_go_out_on_the_general_stream_only() -> None:
    server = Desk()
    async with site(server) as here:
        client = await Stateful(here.raw).open()
        general = await client.listen()
        call = await client.call("waits", {"report": True}, progressToken=1)
        await call.event()
        server.tool(name="new")(lambda: "x")
        assert (await general.message())["method"] == "notifications/tools/list_changed"
        server.release.set()
        assert [event.data.get("method", "answer") for event in await call.events()] == [
            "notifications/progress",
            "answer",
        ]
        await general.leave()


async def test_what_came_while_nobody_listened_is_sent_to_the_next_listener() -> None:
    server = Desk()
    async with site(server) as here:
        client = await Stateful(here.raw).open()
        server.tool(name="new")(lambda: "x")
        await asyncio.sleep(0)
        general = await client.listen()
        assert (await general.message())["method"] == "notifications/tools/list_changed"
        await general.leave()


async def test_a_second_get_takes_over_and_each_message_comes_once() -> None:
    server = Desk(limits=quick(logs_per_second=1e6))
    streams: list[Answer] = []
    told: list[list[str]] = []

    async def read(stream: Answer) -> None:
        heard: list[str] = []
        told.append(heard)
        try:
            while True:
                heard.append((await stream.message())["params"]["data"])
        except Ended:
            pass

    @server.tool
    async def background(ctx: Context) -> str:
        async def tell() -> None:
            for number in range(100):
                ctx.info(f"{number}")
                if number % 10 == 0:
                    streams.append(await client.listen())
                    readers.append(asyncio.create_task(read(streams[-1])))

        server.asking = asyncio.create_task(tell())
        return ""

    readers: list[asyncio.Task[None]] = []
    async with site(server) as here:
        client = await Stateful(here.raw).open()
        await (await client.call("background")).end()
        await server.asking
        await until(lambda: sum(map(len, told)) >= 100, lambda: told)
        assert sorted((each for heard in told for each in heard), key=int) == [str(number) for number in range(100)]
        assert all(stream.whole for stream in streams[:-1])
        await streams[-1].leave()
        await asyncio.gather(*readers)


async def test_one_session_receives_nothing_of_another() -> None:
    server = Desk()
    async with site(server) as here:
        clients = [await Stateful(here.raw).open() for _ in range(3)]
        streams = [await client.listen() for client in clients]
        await (await clients[0].call("later")).end()
        server.release.set()
        await streams[0].message()
        await streams[0].message()
        for client in clients:
            await (await client.delete()).end()
        assert [await stream.events() for stream in streams[1:]] == [[], []]
        with pytest.raises(BaseException):  # noqa: B017, PT011 - its session has ended
            await server.asking


# --- how many, how long ------------------------------------------------------------------------------------------


def aged(here: Here, seconds: float) -> None:
    """Every session is so much older, and idle for so much longer."""
    for session in here.endpoint.sessions:
        session.created_at -= seconds
        session.last_used_at -= seconds


async def test_a_session_ends_when_it_was_idle_for_too_long_but_not_while_a_stream_is_open() -> None:
    server = Desk()
    async with site(server) as here:
        idle, listening, calling = [await Stateful(here.raw).open() for _ in range(3)]
        stream = await listening.listen()
        call = await calling.call("waits", {"report": True}, progressToken=1)
        aged(here, 1801)
        await here.endpoint.sessions.sweep()
        assert (await idle.ask("ping")).status == 404
        assert (await listening.ask("ping")).status == 200
        assert (await calling.ask("ping", id=2)).status == 200
        await stream.leave()
        server.release.set()
        await call.end()


async def test_an_idle_session_ends_by_itself() -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw).open()
        await Clock().jump(1801)
        await until(lambda: not len(here.endpoint.sessions))
        assert (await client.ask("ping")).status == 404


async def test_a_session_ends_when_it_is_too_old_whoever_listens() -> None:
    async with site(Desk()) as here:
        client = await Stateful(here.raw).open()
        stream = await client.listen()
        aged(here, 86_401)
        await here.endpoint.sessions.sweep()
        assert await stream.events() == []
        assert stream.whole
        assert (await client.ask("ping")).status == 404


async def test_too_many_sessions_are_503_with_a_time_to_come_back_and_room_is_found_again() -> None:
    async with site(Desk(limits=quick(http_sessions=2))) as here:
        clients = [await Stateful(here.raw).open() for _ in range(2)]
        answer = await Stateful(here.raw).post(clients[0].hello())
        assert int(answer.headers["retry-after"]) > 0
        await rejected(answer, 503)
        await clients[0].delete()
        await Stateful(here.raw).open()


async def test_sessions_that_nobody_uses_make_room_for_others_the_oldest_first() -> None:
    async with site(Desk(limits=quick(http_sessions=3))) as here:
        used = await Stateful(here.raw).open()
        flood = [Stateful(here.raw) for _ in range(4)]
        for each in flood:
            await each.initialize()
        assert [(await each.ask("ping")).status for each in (used, *flood)] == [200, 404, 404, 200, 200]
        assert (await Stateful(here.raw).post(used.hello())).status == 503
        assert [(await each.ask("ping")).status for each in (used, *flood[2:])] == [200, 200, 200]


async def test_a_principal_makes_room_with_its_own_unused_sessions_only() -> None:
    server = Desk(limits=quick(http_sessions_per_principal=1), auth=APIKeys(KEYS))
    async with site(server) as here:
        ann, again, bob = (Stateful(here.raw, authorization=f"Bearer k-{name}") for name in ("ann", "ann", "bob"))
        for each in (ann, bob, again):
            await each.initialize()
        assert [(await each.ask("ping")).status for each in (ann, again, bob)] == [404, 200, 200]


async def test_a_session_that_is_not_used_after_initialize_ends_early() -> None:
    async with site(Desk(limits=quick(http_session_unused_seconds=60, http_session_idle_seconds=600))) as here:
        used, unused = await Stateful(here.raw).open(), Stateful(here.raw)
        await unused.initialize()
        await Clock().jump(61)
        await until(lambda: len(here.endpoint.sessions) == 1)
        assert (await used.ask("ping")).status == 200
        assert (await unused.ask("ping")).status == 404


async def test_a_principal_that_has_too_many_loses_its_own_that_was_idle_for_the_longest_time() -> None:
    server = Desk(auth=APIKeys(KEYS), limits=quick(http_sessions_per_principal=2))
    async with site(server) as here:
        bob = await Stateful(here.raw, authorization="Bearer k-bob").open()
        anns = [await Stateful(here.raw, authorization="Bearer k-ann").open() for _ in range(2)]
        assert (await anns[0].ask("ping")).status == 200  # now the other one is idle for longer
        third = await Stateful(here.raw, authorization="Bearer k-ann").open()
        assert [(await each.ask("ping")).status for each in (anns[0], anns[1], third, bob)] == [200, 404, 200, 200]


async def test_where_none_of_its_sessions_is_idle_one_more_is_503_with_a_time_to_come_back() -> None:
    server = Desk(auth=APIKeys(KEYS), limits=quick(http_sessions_per_principal=2))
    async with site(server) as here:
        anns = [await Stateful(here.raw, authorization="Bearer k-ann").open() for _ in range(2)]
        streams = [await each.listen() for each in anns]
        answer = await Stateful(here.raw, authorization="Bearer k-ann").post(anns[0].hello())
        assert int(answer.headers["retry-after"]) > 0
        await rejected(answer, 503)
        await Stateful(here.raw, authorization="Bearer k-bob").open()
        for stream in streams:
            await stream.leave()


async def test_too_many_requests_in_flight_are_refused_one_by_one() -> None:
    server = Desk(limits=quick(requests_in_flight=3))
    async with site(server) as here:
        client = await Stateful(here.raw).open()
        calls = [await client.call("waits", {"report": True}, id=id, progressToken=id) for id in range(3)]
        said = await (await client.call("echo", {"text": "x"}, id=3)).json()
        assert "too many requests" in said["error"]["message"]
        assert (await (await client.ask("ping", id=4)).json())["result"] == {}
        other = await Stateful(here.raw).open()
        assert text(await (await other.call("echo", {"text": "x"})).json()) == "x"
        server.release.set()
        assert [text(await call.result()) for call in calls] == [" done"] * 3


async def test_too_many_streams_of_a_session_are_429() -> None:
    server = Desk(limits=quick(http_streams=2))
    async with site(server) as here:
        client = await Stateful(here.raw).open()
        calls = [await client.call("waits", {"report": True}, id=id, progressToken=id) for id in range(2)]
        answer = await client.listen()
        assert int(answer.headers["retry-after"]) > 0
        await rejected(answer, 429)
        server.release.set()
        for call in calls:
            await call.end()


def test_the_revisions_with_sessions_are_these() -> None:
    assert ["2024-11-05", *SESSIONS] == sorted(HANDSHAKE)

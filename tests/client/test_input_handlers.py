"""What a server asks its client through 2025-11-25: requests of the person, of the model, and of the folders."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord import Client, Limits
from accord.client.elicitation import ElicitationHandler
from accord.client.handlers import ClientContext, HandlerThreads
from accord.errors import (
    DeclarationError,
    InvalidResult,
    LocalProtocolError,
    NotSupported,
    RequestTimeout,
    SamplingDeclined,
    UrlElicitationRequired,
)
from accord.limits import ClientLimits
from accord.messages.content import ImageContent, TextContent, ToolUseContent
from accord.messages.elicitation import ElicitationCompleteParams, ElicitParams, ElicitResult
from accord.messages.input_required import Root
from accord.messages.revision import HANDSHAKE
from accord.messages.sampling import CreateMessageParams, CreateMessageResult

from tests.client.raw import RawServer, raw_server
from tests.clock import Clock
from tests.measure import costs_at_most

ELICITS = [revision for revision in HANDSHAKE if revision not in ("2024-11-05", "2025-03-26")]

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ORDER = {
    "type": "object",
    "properties": {"size": {"type": "string", "enum": ["S", "M"]}, "count": {"type": "integer", "maximum": 9}},
    "required": ["size"],
}
CONSENT: dict[str, Any] = {"type": "object", "properties": {}}
MISLEADING = [
    "https://good.example@evil.example/",
    "https://user:password@example.com/",
    "https://good.example\\@evil.example/",
    "https://example.com\\.evil.example/",
    "https://example.com/\u202egnp.exe",
    "https://exam\u200bple.com/",
    "http://169.254.169.254/latest/meta-data/",
    "http://0xa9fea9fe/",
    "http://2852039166/",
    "http://169.16689662/",
    "http://[::ffff:169.254.169.254]/",
    "http://[fe80::1%25eth0]/",
    "http://[fd00:ec2::254]/",
    "http://\uff11\uff16\uff19\u3002254.169.254/",
    "http://%31%36%39.254.169.254/",
    "http://METADATA.google.internal./computeMetadata/v1/",
    "http://[::1/",
    "https://good\u3164.example/",
    "https://example.com/\u034f",
    "http://1684301000/",
]
COMBINING = "\u0315\u0316" * 4_000
FINE = [
    f"https://example.com/{COMBINING}",
    "https://example.com/in?next=a@b.example#x@y",
    "http://127.0.0.1:8000/",
    "http://[::1]:8000/",
    "https://xn--e1awd7f.example/",
    "https://b\u00fccher.example/%40",
]
URL = {"mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": "e1"}
ASK = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 10}


def form(schema: dict[str, Any] = NAME, message: str = "Who?", **more: Any) -> dict[str, Any]:
    return {"message": message, "requestedSchema": schema, **more}


def _of_references(target: dict[str, Any]) -> dict[str, Any]:
    """A form of which every field refers to one schema."""
    fields = {f"n{number}": {"$ref": "#/$defs/one"} for number in range(1_000)}
    return {"type": "object", "properties": fields, "$defs": {"one": target, "other": target}}


def says(answer: Any) -> Callable[[Any], Any]:
    async def handler(params: Any) -> Any:
        return answer

    return handler


async def elicited(answer: Any, params: dict[str, Any], revision: str = "2025-11-25", **options: Any) -> dict[str, Any]:
    """What the server hears of a handler that gives `answer`."""
    options = {"elicitation_modes": ("form", "url"), **options}
    async with raw_server(revision, elicitation=says(answer), **options) as (server, _):
        return await server.ask("elicitation/create", params)


async def still_there(server: RawServer, client: Client) -> None:
    call = asyncio.ensure_future(client.call_tool("fine"))
    server.done(await server.hear())
    assert (await call).text == "done"


# --- what is declared ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", [*HANDSHAKE, "2026-07-28"])
async def test_a_client_declares_what_it_was_given_in_the_words_of_the_revision(revision: str) -> None:
    options = {"elicitation": says(None), "sampling": says("hm"), "roots": []}
    async with raw_server(revision, revisions=[revision], **options) as (server, client):
        if revision == "2026-07-28":
            call = asyncio.ensure_future(client.call_tool("fine"))
            server.done(await server.hear())
            await call
        expected: dict[str, Any] = {"sampling": {}, "roots": {"listChanged": True}}
        if revision in ELICITS:
            expected["elicitation"] = {"form": {}} if revision == "2025-11-25" else {}
        if revision == "2025-11-25":
            requests = {"elicitation": {"create": {}}, "sampling": {"createMessage": {}}}
            expected["tasks"] = {"list": {}, "cancel": {}, "requests": requests}
        if revision == "2026-07-28":
            expected |= {"roots": {}, "elicitation": {"form": {}}}
            expected["extensions"] = {"io.modelcontextprotocol/tasks": {}}
        assert server.declared == expected


async def test_modes_of_elicitation_and_tools_of_sampling_are_declared_when_given() -> None:
    options = {"elicitation_modes": ("form", "url"), "sampling_tools": True}
    async with raw_server("2025-11-25", elicitation=says(None), sampling=says("hm"), **options) as (server, _):
        del server.declared["tasks"]
        assert server.declared == {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}}
    async with raw_server("2025-11-25", elicitation=says(None), elicitation_modes="url") as (server, _):
        assert server.declared["elicitation"] == {"url": {}}


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_client_without_handlers_declares_nothing_and_answers_method_not_found(revision: str) -> None:
    async with raw_server(revision) as (server, client):
        assert server.declared == {}
        for method in ("elicitation/create", "sampling/createMessage", "roots/list"):
            assert (await server.ask(method))["error"]["code"] == -32601
        assert (await server.ask("ping"))["result"] == {}
        await still_there(server, client)


# --- the person ------------------------------------------------------------------------------------------------------


@dataclass
class Person:
    name: str
    nickname: str | None = None


class Named(msgspec.Struct):
    name: str


@pytest.mark.parametrize("revision", ELICITS)
@pytest.mark.parametrize("answer", [{"name": "Ada"}, Person("Ada"), Named("Ada"), "Ada"])
async def test_what_a_handler_gives_is_the_accepted_content(answer: Any, revision: str) -> None:
    heard = await elicited(answer, form(), revision)
    assert heard["result"] == {"action": "accept", "content": {"name": "Ada"}}


@pytest.mark.parametrize(
    ("option", "method", "params", "typed"),
    [
        ("elicitation", "elicitation/create", form(), b'{"action":"accept","content":{"name":null,"n":1.50}}'),
        ("sampling", "sampling/createMessage", ASK, b'{"role":"assistant","n":9007199254740993}'),
        ("roots", "roots/list", {}, b'{"roots":[{"uri":"https://example.com"}]}'),
    ],
)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_raw_json_of_a_handler_is_sent_as_it_is(
    option: str, method: str, params: Any, typed: bytes, revision: str
) -> None:
    async with raw_server(revision, revisions=[revision], **{option: says(msgspec.Raw(typed))}) as (server, client):
        if revision == "2025-11-25":
            server.send(method, params)
        else:
            call = asyncio.ensure_future(client.call_tool("fine"))
            server.require(await server.hear(), inputRequests={"a": {"method": method, "params": params}})
        (sent,) = await server.transport.receive()
        assert isinstance(sent, bytes)
        assert typed in sent
        if revision == "2026-07-28":
            server.done(msgspec.json.decode(sent))
            await call


async def test_a_handler_can_read_the_params_as_the_server_sent_them() -> None:
    seen: list[Any] = []

    async def elicit(params: Any, context: ClientContext) -> None:
        seen.append(context.params)

    async with raw_server("2025-11-25", elicitation=elicit) as (server, _):
        await server.ask("elicitation/create", {**form(), "unknown": 1})
    assert msgspec.json.decode(seen[0])["unknown"] == 1


@pytest.mark.parametrize("revision", ELICITS)
async def test_none_declines_and_an_elicit_result_says_it_in_full(revision: str) -> None:
    assert (await elicited(None, form(), revision))["result"] == {"action": "decline"}
    cancelled = ElicitResult(action="cancel", content={"name": "half"})
    assert (await elicited(cancelled, form(), revision))["result"] == {"action": "cancel"}
    accepted = ElicitResult(action="accept", content={"name": "Ada"}, meta={"com.example/a": 1})
    assert (await elicited(accepted, form(), revision))["result"]["_meta"] == {"com.example/a": 1}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (True, {"action": "accept", "content": {}}),
        (False, {"action": "decline"}),
        ({}, {"action": "accept", "content": {}}),
    ],
)
async def test_a_form_without_fields_is_answered_by_yes_or_no(answer: Any, expected: dict[str, Any]) -> None:
    assert (await elicited(answer, form(CONSENT)))["result"] == expected


async def test_no_in_a_form_of_one_yes_or_no_field_is_its_value() -> None:
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
    assert (await elicited(False, form(schema)))["result"] == {"action": "accept", "content": {"sure": False}}


async def test_a_choice_of_several_reaches_a_revision_that_has_it() -> None:
    schema = {"type": "object", "properties": {"days": {"type": "array", "items": {"enum": ["mo", "tu"]}}}}
    assert (await elicited(["tu"], form(schema)))["result"]["content"] == {"days": ["tu"]}
    assert (await elicited(["tu"], form(schema), "2025-06-18"))["error"]["code"] == -32603


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"size": "XXL"}, "$.size"),
        ({"count": 1}, "size"),
        ({"size": "S", "count": 10}, "$.count"),
        ({"size": "S", "more": 1}, "more"),
        ({"size": float("nan")}, "nan"),
        ({"size": object()}, "object"),
        ("S", "mapping or a record"),
        (ElicitResult(action="accept"), "size"),
        (ElicitResult(action="perhaps"), "perhaps"),  # type: ignore[arg-type]
    ],
)
async def test_an_answer_that_does_not_fit_the_form_is_not_sent(
    answer: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with raw_server("2025-11-25", elicitation=says(answer)) as (server, client):
        error = (await server.ask("elicitation/create", form(ORDER)))["error"]
        assert error["code"] == -32603
        assert why in error["message"]
        (record,) = caplog.records
        assert "elicitation/create could not be answered: " in record.getMessage()
        assert why in record.getMessage()
        assert record.exc_info is None
        await still_there(server, client)


async def test_an_error_of_a_handler_sends_the_server_no_secret_and_no_path() -> None:
    def fails(*_: Any) -> None:
        raise ConnectionError("api_key=hunter2secret is refused, see '/home/ada/keys.json'")

    async with raw_server("2025-11-25", elicitation=fails) as (server, _):
        error = (await server.ask("elicitation/create", form(ORDER)))["error"]
    assert error["message"] == "elicitation/create failed: ConnectionError: api_key=[redacted] is refused, see '[path]'"


async def test_a_page_to_visit_is_agreed_to_without_content() -> None:
    for agreed in (True, {}, {"name": "Ada"}, ElicitResult(action="accept", content={"name": "Ada"})):
        assert (await elicited(agreed, URL))["result"] == {"action": "accept"}
    assert (await elicited(False, URL))["result"] == {"action": "decline"}
    assert (await elicited(None, URL))["result"] == {"action": "decline"}


@pytest.mark.parametrize(
    ("params", "revision", "modes"),
    [
        (URL, "2025-11-25", "form"),
        (form(), "2025-11-25", "url"),
        (form(mode="form"), "2025-11-25", "url"),
        (form(mode="voice"), "2025-11-25", "form"),
        (URL, "2025-06-18", ("form", "url")),
    ],
)
async def test_a_mode_that_was_not_declared_is_invalid_params(
    params: dict[str, Any], revision: str, modes: Any
) -> None:
    assert (await elicited(True, params, revision, elicitation_modes=modes))["error"]["code"] == -32602


@pytest.mark.parametrize(
    "params",
    [
        {"message": "Who?"},
        {"requestedSchema": NAME},
        {"message": 5, "requestedSchema": NAME},
        {"message": "Who?", "requestedSchema": 5},
        {"mode": "url", "message": "Go"},
        *(
            {**URL, "url": url}
            for url in ("javascript:alert(1)", "JavaScript:x", "java\tscript:x", "file:///etc/passwd", "https://", "x")
        ),
        {**URL, "url": "https://example.com/\n"},
        {**URL, "url": " https://example.com/"},
        *({**URL, "url": url} for url in MISLEADING),
        {**URL, "url": f"https://example.com/{'a' * 8_192}"},
        form({"type": "object", "properties": {f"n{number}": {"type": "string"} for number in range(1_001)}}),
        form({"type": "object", "properties": {"n": {"enum": [str(number) for number in range(20_000)]}}}),
        form({**NAME, "required": ["n"] * 20_000}),
        form(_of_references({"type": "string", "enum": [str(number) for number in range(15_000)]})),
        form(_of_references({f"keyword{number}": 1 for number in range(15_000)})),
        form(_of_references({"anyOf": [{"$ref": "#/$defs/other"}] * 1_000, "other": [1] * 10_000})),
        form(_of_references({"type": "integer", "default": "x" * 1_000_000})),
        {**URL, "url": f"https://{'a' * 1_001}/"},
        {**URL, "url": f"https://{COMBINING}/"},
        form({**NAME, "more": functools.reduce(lambda inner, _: [inner], range(200), 0)}),
    ],
)
async def test_an_invalid_question_is_invalid_params_and_affects_nothing_else(params: dict[str, Any]) -> None:
    bothered: list[Any] = []
    options: dict[str, Any] = {"elicitation": bothered.append, "elicitation_modes": ("form", "url")}
    async with raw_server("2025-11-25", **options) as (server, _):
        assert (await server.ask("elicitation/create", params))["error"]["code"] == -32602
    assert not bothered


@pytest.mark.parametrize("url", MISLEADING)
async def test_a_misleading_page_ends_the_call_that_requires_input(url: str) -> None:
    bothered: list[Any] = []
    options: dict[str, Any] = {"elicitation": bothered.append, "elicitation_modes": ("form", "url")}
    async with raw_server("2026-07-28", revisions=["2026-07-28"], **options) as (server, client):
        call = asyncio.ensure_future(client.call_tool("fine"))
        question = {"method": "elicitation/create", "params": {**URL, "url": url}}
        server.require(await server.hear(), inputRequests={"a": question})
        with pytest.raises(InvalidResult, match="asks for input, but not as it should: elicitation/create: `url`"):
            await call
    assert not bothered


@pytest.mark.parametrize("url", FINE)
async def test_a_page_that_is_what_it_seems_is_shown(url: str) -> None:
    assert (await elicited(True, {**URL, "url": url}))["result"] == {"action": "accept"}


@pytest.mark.parametrize("characters", [8_180, 1_000_000])
async def test_a_long_address_holds_up_nobody(characters: int) -> None:
    with costs_at_most(200):
        answer = await elicited(True, {**URL, "url": f"http://{'a' * characters} "})
    assert answer["error"]["code"] == -32602


async def test_the_largest_form_is_sent() -> None:
    fields = {f"n{number}": {"type": "string"} for number in range(1_000)}
    answer = await elicited({"n1": "one"}, form({"type": "object", "properties": fields}))
    assert answer["result"] == {"action": "accept", "content": {"n1": "one"}}


@pytest.mark.parametrize("schema", [{}, {"properties": 5}, {"properties": {"a": 5}, "required": 5}, {"$ref": "#"}])
async def test_a_form_that_makes_no_sense_harms_nobody(schema: dict[str, Any]) -> None:
    async with raw_server("2025-11-25", elicitation=says({})) as (server, client):
        answer = await server.ask("elicitation/create", form(schema))
        assert "result" in answer or answer["error"]["code"] == -32603
        await still_there(server, client)


async def completed(server: RawServer, client: Client, *ids: str) -> None:
    """The server says that the person is done with these pages, and the client has heard it."""
    for id in ids:
        server.say({"method": "notifications/elicitation/complete", "params": {"elicitationId": id}})
    await still_there(server, client)


async def test_a_page_is_completed_once_and_only_when_the_user_agreed_to_visit_it() -> None:
    done: list[str] = []
    answers = {"yes": True, "no": False}
    options: dict[str, Any] = {"elicitation": lambda params: answers[params.message], "elicitation_modes": "url"}
    async with raw_server("2025-11-25", on_elicitation_complete=done.append, **options) as (server, client):
        for id, message in (("e1", "yes"), ("e2", "no")):
            await server.ask("elicitation/create", {**URL, "message": message, "elicitationId": id})
        await completed(server, client, "e1", "e1", "e2", "e3")
    assert done == ["e1"]


async def test_a_user_may_be_done_with_a_page_before_the_handler_is() -> None:
    done = asyncio.Event()

    async def watch(params: ElicitParams) -> bool:
        await done.wait()
        return True

    async def complete(id: str) -> None:
        done.set()

    options: dict[str, Any] = {"elicitation": watch, "elicitation_modes": ("form", "url")}
    async with raw_server("2025-11-25", on_elicitation_complete=complete, **options) as (server, _):
        server.send("elicitation/create", URL)
        server.say({"method": "notifications/elicitation/complete", "params": {"elicitationId": "e1"}})
        assert (await server.hear())["result"] == {"action": "accept"}


def test_pages_that_are_never_completed_are_forgotten_at_a_bound() -> None:
    done: list[str] = []
    answers = ElicitationHandler(says(True), "url", done.append, threads=HandlerThreads(1))  # type: ignore[arg-type]
    for number in range(5_000):
        answers.expect_page(str(number))
    for id in ("0", "4999"):
        answers.complete_page(ElicitationCompleteParams(elicitation_id=id))
    assert done == ["4999"]


@pytest.mark.parametrize("options", [{}, {"elicitation": says(True)}, {"sampling": says("hm")}])
def test_notifications_of_pages_need_the_capability_to_show_them(options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match="on_elicitation_complete"):
        Client("python nothing.py", on_elicitation_complete=print, **options)


# --- the handlers ----------------------------------------------------------------------------------------------------


class Callable_:
    async def __call__(self, params: ElicitParams, context: ClientContext) -> dict[str, str]:
        return {"name": context.revision}


async def with_context(params: ElicitParams, context: ClientContext) -> dict[str, str]:
    return {"name": context.revision}


def plain(params: ElicitParams, context: ClientContext) -> dict[str, str]:
    assert threading.current_thread() is not threading.main_thread(), "a plain function may wait for a person"
    return {"name": context.revision}


HANDLERS: dict[str, Any] = {
    "async": with_context,
    "plain": plain,
    "object": Callable_(),
    "partial": functools.partial(with_context),
    "lambda": lambda params, context: with_context(context=context, params=params),
    "rest": lambda *given: {"name": given[1].revision},
    "one": lambda params, nothing="2025-11-25": {"name": nothing},
}


@pytest.mark.parametrize("kind", HANDLERS)
async def test_a_handler_is_called_with_what_it_takes(kind: str) -> None:
    async with raw_server("2025-11-25", elicitation=HANDLERS[kind]) as (server, _):
        answer = await server.ask("elicitation/create", form())
        assert answer["result"]["content"] == {"name": "2025-11-25"}


async def test_a_builtin_without_a_signature_gets_the_arguments_of_the_call() -> None:
    async with raw_server("2025-11-25", elicitation=str) as (server, _):
        answer = await server.ask("elicitation/create", form(message="Who?"))
        assert "message='Who?'" in answer["result"]["content"]["name"]


def test_an_answer_after_the_end_has_no_effect() -> None:
    asked, release, threads = threading.Event(), threading.Event(), []

    def ponder(params: Any) -> None:
        threads.append(threading.current_thread())
        asked.set()
        release.wait(100)

    async def visit() -> None:
        async with raw_server("2025-11-25", elicitation=ponder) as (server, _):
            server.send("elicitation/create", form())
            await asyncio.to_thread(asked.wait, 10)

    asyncio.run(visit())
    release.set()
    threads[0].join(100)
    assert not threads[0].is_alive()


async def test_the_context_has_the_principal() -> None:
    seen: list[ClientContext] = []
    async with raw_server("2025-11-25", elicitation=lambda params, context: seen.append(context)) as (server, _):
        await server.ask("elicitation/create", form())
    (context,) = seen
    assert (context.server, context.revision, context.method) == ("memory", "2025-11-25", None)
    assert context.server_info is not None
    assert context.server_info.name == "raw"


@pytest.mark.parametrize("wrong", [5, lambda a, b, c: None, lambda params, *, key: None])
async def test_what_is_no_handler_is_refused_at_once(wrong: Any) -> None:
    for option in ("elicitation", "sampling"):
        with pytest.raises(DeclarationError):
            Client("python nothing.py", **{option: wrong})


@pytest.mark.parametrize("modes", [(), "voice", ("form", "voice")])
async def test_unknown_modes_are_refused_at_once(modes: Any) -> None:
    with pytest.raises(DeclarationError, match="elicitation_modes"):
        Client("python nothing.py", elicitation=says(None), elicitation_modes=modes)


class Grumpy(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ValueError("no screen"), "ValueError: no screen"),
        (Grumpy(), "Grumpy"),
        (ExceptionGroup("several", [ValueError("one")]), "ValueError: one"),
        (NotSupported("not on this day"), "not on this day"),
        (TimeoutError("the person's own"), "TimeoutError: the person's own"),
        (asyncio.CancelledError(), "cancelled"),
        (StopIteration(), "StopIteration"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_handler_that_raises_ends_its_question_and_nothing_else(
    error: BaseException, why: str, is_async: bool
) -> None:
    def fail(params: Any) -> Any:
        raise error

    async def fail_async(params: Any) -> Any:
        raise error

    async with raw_server("2025-11-25", elicitation=fail_async if is_async else fail) as (server, client):
        heard = (await server.ask("elicitation/create", form()))["error"]
        assert heard["code"] == -32603
        assert why in heard["message"]
        await still_there(server, client)


async def test_questions_that_are_taken_back_do_not_pile_up_threads() -> None:
    release = threading.Event()
    options: dict[str, Any] = {"elicitation": lambda params: release.wait(100) and None, "limits": Limits(workers=3)}
    async with raw_server("2025-11-25", **options) as (server, client):
        try:
            for _ in range(3):
                id = server.send("elicitation/create", form())
                await still_there(server, client)
                server.say({"method": "notifications/cancelled", "params": {"requestId": id}})
            heard = (await server.ask("elicitation/create", form()))["error"]
            assert heard["code"] == -32603
            assert "3 requests of the server are already being answered (Limits.workers)" in heard["message"]
            waiting = [thread for thread in threading.enumerate() if thread.name == "accord-question"]
            assert len(waiting) == 3
        finally:
            release.set()
        for thread in waiting:
            await asyncio.to_thread(thread.join, 10)
        assert (await server.ask("elicitation/create", form()))["result"] == {"action": "decline"}


async def test_a_handler_that_takes_for_ever_is_ended_in_time() -> None:
    ended = asyncio.Event()

    async def wait(params: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with raw_server("2025-11-25", elicitation=wait, limits=Limits(answer_seconds=0.01)) as (server, _):
        heard = (await server.ask("elicitation/create", form()))["error"]
        assert heard["code"] == -32603
        assert "nobody answered elicitation/create in 0.01 s" in heard["message"]
    assert ended.is_set()


async def test_a_question_that_the_server_takes_back_ends_its_handler_and_gets_no_answer() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(params: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with raw_server("2025-11-25", elicitation=wait) as (server, client):
        id = server.send("elicitation/create", form())
        await begun.wait()
        server.say({"method": "notifications/cancelled", "params": {"requestId": id}})
        await ended.wait()
        await still_there(server, client)


async def test_questions_are_answered_side_by_side_and_the_answers_find_their_way() -> None:
    gate = asyncio.Barrier(3)

    async def together(params: ElicitParams) -> dict[str, str]:
        await gate.wait()
        return {"name": params.message}

    async with raw_server("2025-11-25", elicitation=together) as (server, _):
        asked = {server.send("elicitation/create", form(message=str(number))): str(number) for number in range(3)}
        heard = [await server.hear() for _ in asked]
    assert {each["id"]: each["result"]["content"]["name"] for each in heard} == asked


async def test_a_handler_may_call_the_server_during_its_request() -> None:
    async def look_up(params: Any) -> dict[str, str]:
        return {"name": (await client.call_tool("who")).text}

    async with raw_server("2025-11-25", elicitation=look_up) as (server, client):
        server.send("elicitation/create", form())
        call = await server.hear()
        server.done(call, "Ada")
        assert (await server.hear())["result"]["content"] == {"name": "Ada"}


# --- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", ["timeout", "total_timeout"])
async def test_the_time_of_a_user_does_not_count_for_the_call_that_waits(bound: str) -> None:
    began, late = asyncio.Event(), asyncio.Event()

    async def ponder(params: ElicitParams) -> str:
        if params.message == "late":
            began.set()
            await late.wait()
        return params.message

    async with raw_server("2025-11-25", elicitation=ponder) as (server, client):
        times: dict[str, Any] = {bound: 30}
        call = asyncio.ensure_future(client.call_tool("book", **times))
        request = await server.hear()
        for message in ("late", "soon"):
            server.send("elicitation/create", form(message=message))
        await began.wait()
        await Clock().jump(31)  # longer than the call may take
        assert (await server.hear())["result"]["content"]["name"] == "soon"
        late.set()
        assert (await server.hear())["result"]["content"]["name"] == "late"
        server.done(request)
        assert (await call).text == "done"


@pytest.mark.parametrize("bound", ["timeout", "total_timeout"])
async def test_after_the_answer_the_time_goes_on(bound: str) -> None:
    async with raw_server("2025-11-25", elicitation=says("Ada")) as (server, client):
        times: dict[str, Any] = {bound: 30}
        call = asyncio.ensure_future(client.call_tool("book", **times))
        await server.hear()
        await server.ask("elicitation/create", form())
        await Clock().jump(31)
        with pytest.raises(RequestTimeout):
            await call


async def test_a_request_of_the_server_restarts_the_timeout_as_often_as_the_limit_on_rounds_allows() -> None:
    clock, limits = Clock(), Limits(client=ClientLimits(rounds=2))
    async with raw_server("2025-11-25", elicitation=says("Ada"), limits=limits) as (server, client):
        call = asyncio.ensure_future(client.call_tool("book", timeout=20))
        await server.hear()
        for _ in range(2):
            await clock.jump(15)
            await server.ask("elicitation/create", form())
        await clock.jump(15)
        assert not call.done()
        await server.ask("elicitation/create", form())
        await clock.jump(6)
        assert call.done()
        with pytest.raises(RequestTimeout):
            await call


async def test_each_call_of_many_may_wait_for_a_user() -> None:
    clock, answers = Clock(), asyncio.Semaphore(0)

    async def ponder(params: ElicitParams) -> str:
        await answers.acquire()
        return "Ada"

    async with raw_server("2025-11-25", elicitation=ponder) as (server, client):
        calls = [asyncio.ensure_future(client.call_tool("book", timeout=30)) for _ in range(40)]
        requests = [await server.hear() for _ in calls]
        for _ in calls:
            server.send("elicitation/create", form())
        for n, request in enumerate(requests):
            if n % 20 == 10:
                await clock.jump(31)  # longer than a call may take
            answers.release()
            await server.hear()
            server.done(request)
        assert [(await call).text for call in calls] == ["done"] * 40


async def test_a_call_that_a_handler_makes_has_its_own_time() -> None:
    async def look_up(params: Any) -> Any:
        with pytest.raises(RequestTimeout):
            await client.call_tool("never", timeout=0.01)
        return "nobody"

    async with raw_server("2025-11-25", elicitation=look_up) as (server, client):
        outer = asyncio.ensure_future(client.call_tool("book", timeout=20))
        request = await server.hear()
        server.send("elicitation/create", form())
        heard = [await server.hear() for _ in range(3)]
        assert [each.get("method") for each in heard] == ["tools/call", "notifications/cancelled", None]
        server.done(request)
        await outer


# --- the model -------------------------------------------------------------------------------------------------------


WHOLE = CreateMessageResult(role="assistant", content=TextContent(text="Hello"), model="m-1", stop_reason="endTurn")


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_model_answers_in_a_text_or_in_full(revision: str) -> None:
    seen: list[CreateMessageParams] = []

    def think(params: CreateMessageParams) -> Any:
        seen.append(params)
        return WHOLE if len(seen) > 1 else "Hello"

    asked = {**ASK, "includeContext": "allServers", "modelPreferences": {"hints": [{"name": "m"}]}}
    async with raw_server(revision, sampling=think) as (server, _):
        text = (await server.ask("sampling/createMessage", asked))["result"]
        whole = (await server.ask("sampling/createMessage", asked))["result"]
    content = {"type": "text", "text": "Hello"}
    assert text == {"role": "assistant", "content": content, "model": "unknown"}
    assert whole == {"role": "assistant", "content": content, "model": "m-1", "stopReason": "endTurn"}
    assert seen[0].include_context == "allServers"
    assert seen[0].messages[0].content == TextContent(text="Hi"), "nothing is added to what is asked"


def decline(params: Any) -> None:
    raise SamplingDeclined


@pytest.mark.parametrize("handler", [says(None), decline])
async def test_sampling_is_declined_with_the_error_of_the_specification(handler: Any) -> None:
    async with raw_server("2025-11-25", sampling=handler) as (server, _):
        error = (await server.ask("sampling/createMessage", ASK))["error"]
        assert error == {"code": -1, "message": "User rejected sampling request"}


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_one_block_in_a_list_is_encoded_for_the_revision_and_two_are_refused(revision: str) -> None:
    block = {"type": "text", "text": "a"}
    one, two = ([TextContent(text="a")] * number for number in (1, 2))
    async with raw_server(revision, sampling=says(msgspec.structs.replace(WHOLE, content=one))) as (server, _):
        content = (await server.ask("sampling/createMessage", ASK))["result"]["content"]
        assert content == ([block] if revision == "2025-11-25" else block)
    async with raw_server(revision, sampling=says(msgspec.structs.replace(WHOLE, content=two))) as (server, _):
        answer = await server.ask("sampling/createMessage", ASK)
        assert ("result" in answer) == (revision == "2025-11-25")
        assert "result" in answer or "one block" in answer["error"]["message"]


@pytest.mark.parametrize("answer", [5, {"role": "assistant"}, CreateMessageResult(role="x", content="y", model="z")])  # type: ignore[arg-type]
async def test_what_is_no_message_of_a_model_is_not_sent(answer: Any) -> None:
    async with raw_server("2025-11-25", sampling=says(answer)) as (server, client):
        assert (await server.ask("sampling/createMessage", ASK))["error"]["code"] == -32603
        await still_there(server, client)


@pytest.mark.parametrize("asks", [{"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}, {"toolChoice": {}}])
async def test_tools_are_refused_unless_they_were_declared(asks: dict[str, Any]) -> None:
    use = msgspec.structs.replace(WHOLE, content=[ToolUseContent(id="1", name="t", input={})], stop_reason="toolUse")
    async with raw_server("2025-11-25", sampling=says(use)) as (server, _):
        error = (await server.ask("sampling/createMessage", {**ASK, **asks}))["error"]
        assert error["code"] == -32602
        assert "tools" in error["message"]
    async with raw_server("2025-11-25", sampling=says(use), sampling_tools=True) as (server, _):
        result = (await server.ask("sampling/createMessage", {**ASK, **asks}))["result"]
        assert result["content"] == [{"type": "tool_use", "id": "1", "name": "t", "input": {}}]


async def test_tool_results_that_do_not_match_are_invalid_params_and_affect_nothing_else() -> None:
    bothered: list[Any] = []
    result = {"type": "tool_result", "toolUseId": "1", "content": []}
    messages = [{"role": "user", "content": [result]}]
    async with raw_server("2025-11-25", sampling=bothered.append, sampling_tools=True) as (server, _):
        error = (await server.ask("sampling/createMessage", {**ASK, "messages": messages}))["error"]
        assert error["code"] == -32602
    assert not bothered


async def test_sound_for_a_revision_without_it_is_an_error_and_a_picture_arrives() -> None:
    picture = msgspec.structs.replace(WHOLE, content=ImageContent(data="AA==", mime_type="image/png"))
    async with raw_server("2024-11-05", sampling=says(picture)) as (server, _):
        content = (await server.ask("sampling/createMessage", ASK))["result"]["content"]
        assert content == {"type": "image", "data": "AA==", "mimeType": "image/png"}


# --- the folders -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_roots_are_given_as_uris_whatever_they_were_given_as(revision: str, tmp_path: Path) -> None:
    odd = tmp_path / "a b" / ".." / "ü#?"
    places = [str(tmp_path), odd, "file:///srv/data", Root(uri="file:///x", name="X"), "src"]
    async with raw_server(revision, roots=places) as (server, _):
        assert (await server.ask("roots/list"))["result"] == {
            "roots": [
                {"uri": tmp_path.as_uri()},
                {"uri": f"{tmp_path.as_uri()}/%C3%BC%23%3F"},
                {"uri": "file:///srv/data"},
                {"uri": "file:///x", "name": "X"},
                {"uri": f"{Path.cwd().as_uri()}/src"},
            ]
        }


@pytest.mark.parametrize("roots", [lambda: ["/a"], lambda context: ["/a"], says(["/a"]), "/a", Path("/a")])
async def test_roots_may_be_one_folder_or_a_function(roots: Any) -> None:
    async with raw_server("2025-11-25", roots=roots) as (server, _):
        assert (await server.ask("roots/list", {"_meta": {}}))["result"] == {"roots": [{"uri": "file:///a"}]}


@pytest.mark.parametrize(
    "wrong",
    [
        "http://example.com",
        "file:/a",
        "file:///a/../b",
        "file:///a/%2e%2E/b",
        "file:///a\\..\\b",
        "file:///a b",
        "file:///a\nb",
        Root(uri="/a"),
        5,
    ],
)
async def test_what_is_no_folder_is_refused(wrong: Any) -> None:
    with pytest.raises(LocalProtocolError, match="root"):
        Client("python nothing.py", roots=[wrong])
    async with raw_server("2025-11-25", roots=lambda: [wrong]) as (server, client):
        assert (await server.ask("roots/list"))["error"]["code"] == -32603
        with pytest.raises(LocalProtocolError, match="root"):
            client.set_roots([wrong])


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_the_server_is_notified_when_the_roots_change(revision: str) -> None:
    async with raw_server(revision, roots=[]) as (server, client):
        assert (await server.ask("roots/list"))["result"] == {"roots": []}
        client.set_roots(["/new"])
        assert (await server.hear())["method"] == "notifications/roots/list_changed"
        assert (await server.ask("roots/list"))["result"] == {"roots": [{"uri": "file:///new"}]}


async def test_a_revision_without_that_notification_gets_none() -> None:
    async with raw_server("2026-07-28", roots=[]) as (server, client):
        client.set_roots(["/new"])
        await still_there(server, client)


async def test_roots_that_were_not_declared_cannot_be_set() -> None:
    client = Client("python nothing.py")
    with pytest.raises(NotSupported, match="roots=\\[\\.\\.\\.\\]"):
        client.set_roots(["/new"])


async def test_roots_may_be_set_before_the_connection_is_open() -> None:
    client = Client("python nothing.py", roots=[])
    client.set_roots(["/new"])


# --- pages to visit first --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "pages"),
    [
        ({"elicitations": [URL]}, [URL]),
        ({"elicitations": [URL, 5, None]}, [URL]),
        ({"elicitations": [{**URL, "url": "javascript:alert(1)"}, URL, {**URL, "url": 5}, {"message": "?"}]}, [URL]),
        ({"elicitations": 5}, []),
        (5, []),
        (None, []),
    ],
)
async def test_pages_that_must_be_visited_first_are_a_typed_error(data: Any, pages: list[Any]) -> None:
    done: list[str] = []
    options: dict[str, Any] = {"elicitation": says(True), "elicitation_modes": "url"}
    async with raw_server("2025-11-25", on_elicitation_complete=done.append, **options) as (server, client):
        call = asyncio.ensure_future(client.call_tool("book"))
        server.refuse(await server.hear(), -32042, "visit this first", data=data)
        with pytest.raises(UrlElicitationRequired, match="visit this first") as caught:
            await call
        await completed(server, client, "e1")
    assert done == [page["elicitationId"] for page in pages]
    assert caught.value.code == -32042
    assert caught.value.elicitations == pages


async def test_pages_that_are_left_out_are_reported_once_for_each_error(caplog: pytest.LogCaptureFixture) -> None:
    async with raw_server("2025-11-25") as (server, client):
        call = asyncio.ensure_future(client.call_tool("book"))
        server.refuse(await server.hear(), -32042, "visit", data={"elicitations": [{"url": "file:///etc"}] * 500})
        with pytest.raises(UrlElicitationRequired):
            await call
    (warning,) = [message for message in caplog.messages if "left out" in message]
    assert warning.startswith("accord: memory: pages to visit are left out, the first because: ")

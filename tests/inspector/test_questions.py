"""Requests of servers, as the page lists and answers them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from accord.errors import SamplingDeclined
from accord.inspector import questions as module
from accord.inspector.commands import InspectorError
from accord.messages.revision import HANDSHAKE, REVISIONS
from accord.testing import ScriptedModel

from tests.client.test_input_handlers import ASK, ELICITS, MISLEADING, URL, form
from tests.clock import Clock
from tests.inspector.sender import Page, PlayedServer, page

EVERYTHING = "examples/everything.py"
FORMS = [*ELICITS, "2026-07-28"]


async def question(each: Page, server: str = "") -> Any:
    """The first open question, as soon as there is one."""
    async with asyncio.timeout(100):
        while not (found := (await each.send("questions/list", server=server))["open"]):
            await asyncio.sleep(0.01)
    return await each.send("questions/get", id=found[0]["id"])


def call(each: Page, tool: str, name: str = "call-1", server: str = "one", **arguments: Any) -> asyncio.Task[Any]:
    """Call a tool as the page does."""

    async def run() -> Any:
        with each.workspace.questions.calling(server, name):
            return await each.workspace.server(server).client.call_tool(tool, arguments)

    return asyncio.create_task(run())


# --- elicitation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", FORMS)
async def test_a_form_of_a_process_is_listed_and_answered(revision: str) -> None:
    async with page(EVERYTHING, revision=revision) as each:
        running = call(each, "test_elicitation", message="Who are you?")
        found = await question(each)
        assert (found["server"], found["kind"], found["message"]) == ("one", "form", "Who are you?")
        assert found["calls"] == ["call-1"]
        assert 0 < found["remainingSeconds"] <= 600
        assert '"username"' in found["schemaJson"]
        answer = {"id": found["id"], "action": "accept", "json": '{"username": "Ada", "email": "a@b.example"}'}
        assert await each.send("questions/answer", **answer) == {"problems": []}
        assert '"username":"Ada"' in (await running).text
        assert (await each.send("questions/list"))["open"] == []
        assert (await each.send("questions/list"))["closed"][0]["outcome"] == "accepted"


@pytest.mark.parametrize("revision", FORMS)
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_form_can_be_declined_and_cancelled(revision: str, action: str) -> None:
    async with page(EVERYTHING, revision=revision) as each:
        running = call(each, "test_elicitation", message="Who?")
        found = await question(each)
        await each.send("questions/answer", id=found["id"], action=action)
        assert f"action={action}" in (await running).text


async def test_an_answer_that_does_not_fit_is_sent_only_if_the_user_wants() -> None:
    server = PlayedServer("2025-11-25")
    async with page(server, revision="2025-11-25") as each:
        id = server.raw.send("elicitation/create", form())
        found = await question(each)
        answer = {"id": found["id"], "action": "accept", "json": '{"name": null, "more": {"n": 1.50}}'}
        assert (await each.send("questions/answer", **answer))["problems"]
        assert len((await each.send("questions/list"))["open"]) == 1
        await each.send("questions/answer", **answer, unchecked=True)
        heard = await server.raw.hear()
        assert heard == {
            "jsonrpc": "2.0",
            "id": id,
            "result": {"action": "accept", "content": {"name": None, "more": {"n": 1.5}}},
        }


@pytest.mark.parametrize("revision", FORMS)
async def test_an_answer_is_sent_as_it_was_typed(revision: str) -> None:
    """Numbers keep their digits, members their order, and lines become one."""
    typed = '{"n": 9007199254740993,\n "x": 1.00, "y": 1e400, "n": 2}'
    sent: list[bytes] = []
    async with asked(revision, sent.append, form()) as (each, found):
        await each.send("questions/answer", id=found["id"], action="accept", json=typed, unchecked=True)
    assert b'"content":{"n": 9007199254740993,  "x": 1.00, "y": 1e400, "n": 2}' in b"".join(sent)


class asked:
    """A page with one open question of a played server, in any revision; `watch` receives the bytes of the answer."""

    def __init__(
        self, revision: str, watch: Callable[[bytes], Any], params: Any, method: str = "elicitation/create"
    ) -> None:
        self._revision = revision
        self._watch = watch
        self._request = method, params
        self._server = PlayedServer(revision)
        self._page = page(self._server, revision=revision)

    async def __aenter__(self) -> tuple[Page, Any]:
        each = await self._page.__aenter__()
        method, params = self._request
        if self._revision in HANDSHAKE:
            self._server.raw.send(method, params)
        else:
            self._call = call(each, "fine")
            request = await self._server.raw.hear()
            self._server.raw.require(request, inputRequests={"a": {"method": method, "params": params}})
        return each, await question(each)

    async def __aexit__(self, *exc: Any) -> None:
        async with asyncio.timeout(100):
            if exc[0] is None:
                (raw,) = await self._server.raw.transport.receive()
                self._watch(raw)  # type: ignore[arg-type]
        await self._page.__aexit__(*exc)
        if self._revision not in HANDSHAKE:
            await asyncio.wait([self._call])
            self._call.exception()


async def test_text_that_is_not_json_is_not_sent() -> None:
    server = PlayedServer("2025-11-25")
    async with page(server, revision="2025-11-25") as each:
        server.raw.send("elicitation/create", form())
        found = await question(each)
        for text in ("", "{", "{'a': 1}", '{"a": NaN}', '{"a": 1} {}', "\ud800", "[" * 100_000):
            with pytest.raises(InspectorError, match="not JSON"):
                await module_answer(each, found["id"], text)
        assert len((await each.send("questions/list"))["open"]) == 1


async def module_answer(each: Page, id: int, text: str) -> Any:
    """Answer with a text that JSON cannot carry, too."""
    from accord.inspector.question_commands import AnswerParams, answer_question

    return await answer_question(each.workspace, AnswerParams(id=id, action="accept", json=text))


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_url_is_shown_whole_and_its_completion_noted(revision: str) -> None:
    async with page(EVERYTHING, revision=revision) as each:
        running = call(each, "sign_in")
        found = await question(each)
        assert (found["kind"], found["url"]) == ("url", "https://example.com/login")
        await each.send("questions/answer", id=found["id"], action="accept")
        assert (await running).text == "on the way"
        if revision == "2025-11-25":
            await each.workspace.server("one").client.call_tool("signed_in")
            async with asyncio.timeout(100):
                while not (await each.send("questions/list"))["closed"][0]["isCompleted"]:
                    await asyncio.sleep(0.01)


@pytest.mark.parametrize("length", [10, 1_000_000])
async def test_a_closed_question_keeps_an_id_of_usual_length_only(length: int) -> None:
    server = PlayedServer("2025-11-25")
    async with page(server, revision="2025-11-25") as each:
        asking = asyncio.create_task(server.raw.ask("elicitation/create", {**URL, "elicitationId": "x" * length}))
        await each.send("questions/answer", id=(await question(each))["id"], action="decline")
        await asking
        (closed,) = (await each.send("questions/list"))["closed"]
        assert closed["elicitationId"] == ("x" * 10 if length == 10 else "")


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", *MISLEADING[:3]])
async def test_a_url_that_misleads_never_becomes_a_question(url: str) -> None:
    server = PlayedServer("2025-11-25")
    async with page(server, revision="2025-11-25") as each:
        assert "error" in await server.raw.ask("elicitation/create", {**URL, "url": url})
        assert (await each.send("questions/list"))["open"] == []


# --- sampling ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_sampling_is_shown_in_full_and_answered_by_hand(revision: str) -> None:
    async with page(EVERYTHING, revision=revision) as each:
        running = call(each, "test_sampling", prompt="Say hello")
        found = await question(each)
        assert found["kind"] == "sampling"
        assert "Say hello" in found["paramsJson"]
        assert found["paramsLength"] == len(found["paramsJson"])
        result = '{"role": "assistant", "content": {"type": "text", "text": "Hi!"}, "model": "me"}'
        await each.send("questions/answer", id=found["id"], action="accept", json=result)
        assert (await running).text == "LLM response: Hi!"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_sampling_can_be_declined(revision: str) -> None:
    async with page(EVERYTHING, revision=revision) as each:
        running = call(each, "test_sampling", prompt="Say hello")
        found = await question(each)
        await each.send("questions/answer", id=found["id"], action="decline")
        if revision == "2026-07-28":
            with pytest.raises(SamplingDeclined):
                await running
        else:
            assert "User rejected sampling request" in (await running).text


async def test_a_model_answers_an_edited_request_and_the_user_sends_an_edited_answer() -> None:
    model = ScriptedModel(["Bonjour"])
    async with page(EVERYTHING) as each:
        each.workspace.questions.models.append(model)
        running = call(each, "test_sampling", prompt="Say hello")
        found = await question(each)
        edited = found["paramsJson"].replace("Say hello", "Dis bonjour")
        drafted = await each.send("questions/ask-model", id=found["id"], paramsJson=edited)
        assert "Bonjour" in drafted["resultJson"]
        assert "Dis bonjour" in str(model.requests[0])
        assert not running.done()
        answer = drafted["resultJson"].replace("Bonjour", "Salut")
        await each.send("questions/answer", id=found["id"], action="accept", json=answer)
        assert (await running).text == "LLM response: Salut"


async def test_without_a_model_the_page_says_what_to_do() -> None:
    async with page(EVERYTHING) as each:
        running = call(each, "test_sampling", prompt="Hi")
        found = await question(each)
        with pytest.raises(InspectorError, match="no model"):
            await each.send("questions/ask-model", id=found["id"], paramsJson=found["paramsJson"])
        running.cancel()


async def test_a_model_is_added_without_a_key_in_the_page() -> None:
    async with page() as each:
        settings = '{"api": "chat-completions", "name": "qwen3", "baseUrl": "http://127.0.0.1:11434/v1"}'
        assert await each.send("models/add", settingsJson=settings) == {"models": ["qwen3"]}
        assert await each.send("models/list") == {"models": ["qwen3"]}
        with pytest.raises(InspectorError, match="API key"):
            await each.send("models/add", settingsJson='{"api": "anthropic", "name": "c", "apiKey": "sk-secret"}')


# --- roots ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_roots_are_sent_as_they_were_set(revision: str) -> None:
    async with page(EVERYTHING, revision=revision) as each:
        assert await each.send("roots/get", server="one") == {"roots": [], "asks": False}
        await each.send("roots/set", server="one", roots=["/tmp", "file:///home/me"])
        result = await each.workspace.server("one").client.call_tool("test_input_required_result_list_roots")
        assert result.text == "Found 2 root(s)"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_roots_can_be_a_question(revision: str) -> None:
    async with page(EVERYTHING, revision=revision) as each:
        await each.send("roots/set", server="one", roots=[], asks=True)
        running = call(each, "test_input_required_result_list_roots")
        found = await question(each)
        assert found["kind"] == "roots"
        await each.send("questions/answer", id=found["id"], action="accept", json='{"roots": [{"uri": "file:///a"}]}')
        assert (await running).text == "Found 1 root(s)"


async def test_a_root_that_is_no_folder_is_refused_with_a_cure() -> None:
    async with page(EVERYTHING) as each:
        with pytest.raises(InspectorError, match="not a `file://` URI") as caught:
            await each.send("roots/set", server="one", roots=["https://example.com"])
        assert "path" in caught.value.cure


# --- life of a question --------------------------------------------------------------------------------------------


async def test_questions_name_their_server() -> None:
    async with page(EVERYTHING, EVERYTHING) as each:
        calls = [call(each, "test_elicitation", server=name, name=name, message=name) for name in ("one", "two")]
        first, second = await question(each, "one"), await question(each, "two")
        assert (first["message"], first["calls"]) == ("one", ["one"])
        assert (second["message"], second["calls"]) == ("two", ["two"])
        for task in calls:
            task.cancel()
        await asyncio.wait(calls)


@pytest.mark.parametrize("revision", FORMS)
async def test_the_call_that_caused_a_question_is_named(revision: str) -> None:
    """Certain where the question is a part of a result; else all calls that run."""
    async with page(EVERYTHING, revision=revision) as each:
        slow = call(each, "test_elicitation", name="first", message="1")
        await question(each)
        other = call(each, "test_elicitation", name="second", message="2")
        async with asyncio.timeout(100):
            while len(found := (await each.send("questions/list"))["open"]) < 2:
                await asyncio.sleep(0.01)
        assert found[1]["calls"] == (["second"] if revision == "2026-07-28" else ["first", "second"])
        for task in (slow, other):
            task.cancel()
        await asyncio.wait([slow, other])


@pytest.mark.parametrize("revision", FORMS)
async def test_a_call_of_the_page_is_named_in_its_question(revision: str) -> None:
    async with page(EVERYTHING, revision=revision) as each:
        tool = {"server": "one", "kind": "tool", "name": "test_streaming_elicitation"}
        started = await each.send("calls/start", **tool, argumentsJson="{}")
        found = await question(each)
        assert found["calls"] == [f"test_streaming_elicitation (call {started['id']})"]
        await each.send("questions/answer", id=found["id"], action="decline")


async def test_a_question_of_a_cancelled_call_is_withdrawn() -> None:
    async with page(EVERYTHING) as each:
        running = call(each, "test_elicitation", message="Who?")
        found = await question(each)
        running.cancel()
        await asyncio.wait([running])
        assert (await each.send("questions/list"))["closed"][0]["outcome"] == "withdrawn"
        with pytest.raises(InspectorError, match="not open") as caught:
            await each.send("questions/answer", id=found["id"], action="decline")
        assert "withdrawn" in caught.value.cure


async def test_questions_of_a_server_that_dies_are_withdrawn() -> None:
    server = PlayedServer("2025-11-25")
    async with page(server, revision="2025-11-25") as each:
        server.raw.send("elicitation/create", form())
        await question(each)
        await server.raw.transport.close()
        async with asyncio.timeout(100):
            while (await each.send("questions/list"))["open"]:
                await asyncio.sleep(0.01)
        closed = (await each.send("questions/list"))["closed"][0]
        assert (closed["outcome"], closed["reason"]) == ("withdrawn", "the connection to the server is lost")


async def test_a_question_can_be_answered_once() -> None:
    """Two tabs: the second learns that it was too late."""
    async with page(EVERYTHING) as each:
        running = call(each, "test_elicitation", message="Who?")
        found = await question(each)
        results = await asyncio.gather(
            *(each.send("questions/answer", id=found["id"], action="decline") for _ in range(2)), return_exceptions=True
        )
        assert [type(result) for result in results] == [dict, InspectorError]
        await running


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("elicitation/create", form(), {"result": {"action": "cancel"}}),
        ("elicitation/create", URL, {"result": {"action": "cancel"}}),
        ("sampling/createMessage", ASK, {"error": {"code": -1, "message": "nobody answered in 588 s"}}),
    ],
)
async def test_a_question_expires_with_a_reason_while_no_page_is_open(method: str, params: Any, expected: Any) -> None:
    clock = Clock()
    server = PlayedServer("2025-11-25")
    async with page(server, revision="2025-11-25") as each:
        server.raw.send(method, params)
        await question(each)
        await clock.jump(590)
        heard = await server.raw.hear()
        assert expected.items() <= heard.items()
        (closed,) = (await each.send("questions/list"))["closed"]
        assert (closed["outcome"], closed["reason"]) == ("expired", "nobody answered in 588 s")


async def test_a_server_cannot_open_questions_without_end() -> None:
    server, other = PlayedServer("2025-11-25"), PlayedServer("2025-11-25")
    async with page(server, other, revision="2025-11-25") as each:
        for _ in range(module.MAX_OPEN):
            server.raw.send("elicitation/create", form())
        refused = await server.raw.ask("elicitation/create", form())
        assert refused["error"]["code"] == 429
        assert "100 requests of this server" in refused["error"]["message"]
        other.raw.send("elicitation/create", form())
        assert (await question(each, "two"))["server"] == "two"


async def test_large_params_are_bounded_together_and_cut_for_the_page() -> None:
    server = PlayedServer("2025-11-25")
    async with page(server, revision="2025-11-25") as each:
        block = {"role": "user", "content": {"type": "text", "text": "x" * (10 << 20)}}
        for _ in range(3):
            server.raw.send("sampling/createMessage", {**ASK, "messages": [block]})
        refused = await server.raw.ask("sampling/createMessage", {**ASK, "messages": [block]})
        assert refused["error"]["code"] == 429
        found = await question(each)
        assert len(found["paramsJson"]) == 2 << 20 < found["paramsLength"]


async def test_closed_questions_are_bounded() -> None:
    server = PlayedServer("2025-11-25")
    async with page(server, revision="2025-11-25") as each:
        for _ in range(250):
            server.raw.send("elicitation/create", form())
            found = await question(each)
            await each.send("questions/answer", id=found["id"], action="decline")
            await server.raw.hear()
        assert len((await each.send("questions/list"))["closed"]) == 200


async def test_pages_learn_of_questions_by_their_topic() -> None:
    server = PlayedServer("2025-11-25")
    async with page(server, revision="2025-11-25") as each:
        stream = each.workspace.topics.stream()
        await anext(stream)
        server.raw.send("elicitation/create", form())
        async with asyncio.timeout(100):
            assert b'"questions":{"open":1,"servers":["' in await anext(stream)
        await stream.aclose()

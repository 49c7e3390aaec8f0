"""What servers ask a host: sampling within limits and under the user's eyes, elicitation, roots."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord import Context, Server, ToolResult
from accord.errors import ModelError, ProtocolError
from accord.host import ElicitationContext, Host, PromptAnswer, SamplingPrompt
from accord.messages.content import TextContent
from accord.messages.revision import REVISIONS
from accord.messages.sampling import CreateMessageResult
from accord.testing import ScriptedModel

from tests.waiting import until

ERAS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


def server(revision: str = REVISIONS[-1]) -> Server:
    made = Server("asks", revisions=[revision])

    @made.tool
    async def summarize(ctx: Context, text: str) -> str:
        """Ask the model of the host."""
        return (await ctx.sample(text, max_tokens=10)).text

    @made.tool
    async def ask(ctx: Context, field: str) -> str:
        """Ask the person."""
        return str(await ctx.elicit("Tell me.", msgspec.defstruct("Form", [(field, str)])))

    @made.tool
    async def folders(ctx: Context) -> list[str]:
        """Which folders there are."""
        return [root.uri for root in await ctx.list_roots()]

    @made.prompt
    async def letter(ctx: Context) -> str:
        """Ask the person."""
        return str(await ctx.elicit("Tell me.", msgspec.defstruct("Form", [("city", str)])))

    @made.resource("letter://today")
    async def today(ctx: Context) -> str:
        return str(await ctx.elicit("Tell me.", msgspec.defstruct("Form", [("city", str)])))

    return made


async def fails(call: Awaitable[ToolResult]) -> bool:
    """Whether a call fails: through 2025-11-25 the tool reports it, from 2026-07-28 on the client knows itself."""
    try:
        async with asyncio.timeout(30):
            return (await call).is_error
    except ProtocolError:
        return True


def host(tmp_path: Path, revision: str, approve: Any = lambda prompt: True, **options: Any) -> Host:
    return Host({"asks": server(revision)}, approve=approve, state=tmp_path / "host.db", **options)


@ERAS
async def test_the_user_reads_and_edits_requests_and_answers(tmp_path: Path, revision: str) -> None:
    prompts: list[SamplingPrompt] = []

    def approve(prompt: Any) -> Any:
        if not isinstance(prompt, SamplingPrompt):
            return True
        prompts.append(prompt)
        if prompt.answer is None:
            request = msgspec.structs.replace(prompt.request, system_prompt="Be kind.")
            return PromptAnswer(approved=True, request=request)
        edited = CreateMessageResult(role="assistant", content=TextContent(text="edited"), model="me")
        return PromptAnswer(approved=True, result=edited)

    model = ScriptedModel(["a secret"])
    async with host(tmp_path, revision, approve, models=[model]) as made:
        assert (await made.call_tool("asks_summarize", {"text": "long"})).text == "edited"
    assert [prompt.answer is None for prompt in prompts] == [True, False]
    assert model.requests[0].system_prompt == "Be kind."
    assert "long" in prompts[0].text()
    assert "a secret" in prompts[1].text()


@ERAS
async def test_a_denied_request_reaches_no_model(tmp_path: Path, revision: str) -> None:
    model = ScriptedModel(["never"])
    approve = lambda prompt: not isinstance(prompt, SamplingPrompt)  # noqa: E731
    async with host(tmp_path, revision, approve, models=[model]) as made:
        assert await fails(made.call_tool("asks_summarize", {"text": "x"}))
    assert model.requests == []


@ERAS
async def test_a_server_learns_nothing_of_the_provider_of_a_model(
    tmp_path: Path, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedModel([ModelError("key 17 of ann@example.org has no credit left")])
    async with host(tmp_path, revision, models=[model]) as made:
        try:
            text = (await made.call_tool("asks_summarize", {"text": "x"})).text
        except ProtocolError as exc:
            text = str(exc)
    assert "the model of the host did not answer" in text
    assert "ann@example.org" not in text
    assert "has no credit left" in caplog.text


async def test_a_server_that_asks_in_a_loop_is_stopped(tmp_path: Path) -> None:
    model = ScriptedModel(lambda params: "yes")
    async with host(tmp_path, "2026-07-28", models=[model]) as made:
        failed = [await fails(made.call_tool("asks_summarize", {"text": "x"})) for _ in range(25)]
    assert failed == [False] * 20 + [True] * 5
    assert len(model.requests) == 20


@ERAS
async def test_a_question_goes_to_the_person_whose_call_caused_it(tmp_path: Path, revision: str) -> None:
    asked: list[ElicitationContext] = []

    async def elicit(params: Any, context: ElicitationContext) -> Any:
        asked.append(context)
        return {"city": "Oslo"}

    async with host(tmp_path, revision, elicitation=elicit) as made:
        result = await made.call_tool("asks_ask", {"field": "city"}, principal="ann")
        assert "Oslo" in result.text
    assert asked == [ElicitationContext("asks", "ann")]


async def test_a_question_is_not_answered_if_it_is_not_known_whose_it_is(tmp_path: Path) -> None:
    asked: list[str] = []
    gate = asyncio.Event()

    async def elicit(params: Any, context: ElicitationContext) -> Any:
        asked.append(context.principal)
        await gate.wait()
        return {"city": "Oslo"}

    async with host(tmp_path, "2025-11-25", elicitation=elicit) as made:
        first = asyncio.create_task(made.call_tool("asks_ask", {"field": "city"}, principal="ann"))
        await until(lambda: asked)
        assert await fails(made.call_tool("asks_ask", {"field": "city"}, principal="bob"))
        gate.set()
        assert "Oslo" in (await first).text
    assert asked == ["ann"]


@ERAS
@pytest.mark.parametrize("method", ["get_prompt", "read_resource"])
async def test_a_question_of_a_prompt_or_a_resource_goes_to_who_asked_for_it(
    tmp_path: Path, revision: str, method: str
) -> None:
    asked: list[str] = []
    gate = asyncio.Event()

    async def elicit(params: Any, context: ElicitationContext) -> Any:
        asked.append(context.principal)
        if context.principal == "ann":
            await gate.wait()
        return {"city": f"city of {context.principal}"}

    async with host(tmp_path, revision, elicitation=elicit) as made:

        async def request(**principal: str) -> str:
            if method == "get_prompt":
                return str(await made.get_prompt("asks_letter", **principal))
            return str(await made.read_resource("letter://asks/today", **principal))

        assert "city of bob" in await request(principal="bob")
        first = asyncio.create_task(made.call_tool("asks_ask", {"field": "city"}, principal="ann"))
        await until(lambda: "ann" in asked)
        with pytest.raises(ProtocolError):
            await request()
        gate.set()
        assert "city of ann" in (await first).text
    assert asked == ["bob", "ann"]


@ERAS
@pytest.mark.parametrize("field", ["password", "apiKey", "access_token", "PIN_secret"])
async def test_a_form_that_asks_for_a_secret_is_refused(tmp_path: Path, revision: str, field: str) -> None:
    asked: list[Any] = []
    async with host(tmp_path, revision, elicitation=lambda params, context: asked.append(params)) as made:
        assert await fails(made.call_tool("asks_ask", {"field": field}))
    assert asked == []


@ERAS
async def test_roots_are_canonical(tmp_path: Path, revision: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    async with host(tmp_path, revision, roots=[tmp_path / "link" / ".." / "a"]) as made:
        assert (await made.call_tool("asks_folders")).data == [(tmp_path / "a").as_uri()]


async def test_a_server_that_asks_in_a_loop_is_stopped_until_the_next_call(tmp_path: Path) -> None:
    asked: list[str] = []
    looping = Server("asks", revisions=["2025-11-25"])

    @looping.tool
    async def ask(ctx: Context) -> int:
        """Ask the person again and again."""
        for number in range(100):
            try:
                await ctx.elicit(f"Question {number}", msgspec.defstruct("Form", [("field", str)]))
            except Exception:
                return number
        return 100

    def answer(params: Any, context: ElicitationContext) -> dict[str, str]:
        asked.append(context.server)
        return {"field": "x"}

    given: Any = {"asks": looping}
    one = Host(given, approve=lambda prompt: True, state=tmp_path / "host.db", elicitation=answer)
    async with asyncio.timeout(60):
        async with one:
            assert [(await one.call_tool("asks_ask")).data for _ in range(2)] == [20, 20]
    assert len(asked) == 40


@ERAS
async def test_open_sampling_requests_are_limited_in_size(
    tmp_path: Path, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty requests of 55 MB that waited for a person took gigabytes."""
    monkeypatch.setattr("accord.host.questions._MAX_OPEN_BYTES", 1_500)
    asked, answered = asyncio.Event(), asyncio.Event()

    async def approve(prompt: Any) -> bool:
        if isinstance(prompt, SamplingPrompt):
            asked.set()
            await answered.wait()
        return True

    async with host(tmp_path, revision, approve, models=[ScriptedModel(lambda params: "short")]) as one:
        text = {"text": "x" * 1_000}
        first = asyncio.create_task(one.call_tool("asks_summarize", text))
        await asked.wait()
        assert await fails(one.call_tool("asks_summarize", text))
        answered.set()
        assert (await first).text == "short"
        assert (await one.call_tool("asks_summarize", text)).text == "short"


@ERAS
async def test_open_questions_are_limited_in_size(
    tmp_path: Path, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accord.host.questions._MAX_OPEN_BYTES", 400)
    asked, answered = asyncio.Event(), asyncio.Event()

    async def elicitation(params: Any, context: ElicitationContext) -> Any:
        asked.set()
        await answered.wait()
        return {"city": "Oslo"}

    async with host(tmp_path, revision, elicitation=elicitation) as one:
        first = asyncio.create_task(one.call_tool("asks_ask", {"field": "city"}))
        await asked.wait()
        assert await fails(one.call_tool("asks_ask", {"field": "c" * 200}))
        answered.set()
        assert "Oslo" in (await first).text

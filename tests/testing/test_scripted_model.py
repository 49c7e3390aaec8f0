"""The scripted model: what it answers is what it was given, and everything says that it is a fake."""

from __future__ import annotations

import pytest

from accord.client.model_selection import choose_model
from accord.errors import ModelError
from accord.host import LanguageModel, ModelResult
from accord.messages.content import TextContent, ToolUseContent
from accord.messages.sampling import (
    CreateMessageParams,
    CreateMessageResult,
    ModelHint,
    ModelPreferences,
    SamplingMessage,
)
from accord.testing import ScriptedModel

SEARCH = ToolUseContent(id="1", name="search", input={"q": "tea"})


def ask(text: str = "What?") -> CreateMessageParams:
    return CreateMessageParams(
        messages=[SamplingMessage(role="user", content=TextContent(text=text))],
        max_tokens=100,
    )


async def test_answers_are_returned_in_order_and_requests_are_recorded() -> None:
    model = ScriptedModel(["Hello", SEARCH, [TextContent(text="Let me look"), SEARCH]])
    first, second, third = [await model.create_message(ask(text)) for text in "abc"]
    assert first.result.content == TextContent(text="Hello")
    assert first.result.stop_reason == "endTurn"
    assert second.result.content == SEARCH
    assert second.result.stop_reason == third.result.stop_reason == "toolUse"
    assert third.result.content == [TextContent(text="Let me look"), SEARCH]
    assert [request.messages[0].content for request in model.requests] == [TextContent(text=text) for text in "abc"]


async def test_results_say_that_they_are_from_a_fake() -> None:
    model: LanguageModel = ScriptedModel("Hello")
    assert (await model.create_message(ask())).result.model == "scripted (fake)"


@pytest.mark.parametrize("text", ["Hello, wide world", " begins and ends with blanks \n", "   ", ""])
async def test_text_is_streamed_in_pieces_that_are_the_text(text: str) -> None:
    pieces: list[str] = []
    await ScriptedModel([text]).create_message(ask(), on_text=pieces.append)
    assert "".join(pieces) == text
    assert len(pieces) == max(1 if text else 0, len(text.split()))


async def test_a_whole_result_is_returned_unchanged() -> None:
    result = CreateMessageResult(role="assistant", content=TextContent(text="x"), model="m", stop_reason="maxTokens")
    counted = ModelResult(result=result, input_tokens=1_000, output_tokens=2_000)
    model = ScriptedModel([result, counted], input_tokens=7, output_tokens=3)
    assert await model.create_message(ask()) == ModelResult(result=result, input_tokens=7, output_tokens=3)
    assert await model.create_message(ask()) is counted


async def test_an_exception_is_raised_and_a_script_that_has_ended_is_an_error() -> None:
    model = ScriptedModel([ModelError("overloaded", status=529)])
    with pytest.raises(ModelError, match="overloaded"):
        await model.create_message(ask())
    with pytest.raises(ModelError, match="call 2, but the script has 1 answers"):
        await model.create_message(ask())


async def test_a_function_decides_about_each_answer() -> None:
    model = ScriptedModel(lambda params: f"at most {params.max_tokens}")
    assert (await model.create_message(ask())).result.content == TextContent(text="at most 100")


def test_models_are_chosen_by_name_and_traits() -> None:
    small, large = ScriptedModel([], name="small-2", cost=0.1), ScriptedModel([], name="large-2", intelligence=0.9)
    assert choose_model(ModelPreferences(hints=[ModelHint(name="Large")]), [small, large]) is large
    assert choose_model(ModelPreferences(cost_priority=1), [large, small]) is small


def test_a_model_without_traits_has_average_ones() -> None:
    class Plain:
        name = "plain"

    cheap, plain = ScriptedModel([], cost=0.1), Plain()
    assert choose_model(ModelPreferences(cost_priority=1), [plain, cheap]) is cheap
    assert choose_model(ModelPreferences(speed_priority=1), [plain, cheap]) is plain

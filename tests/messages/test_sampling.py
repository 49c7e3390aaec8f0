"""Tool uses and their results in messages to a model: which sequences hold, and which do not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord.errors import InvalidParams, NotSupported
from accord.messages.content import TextContent, ToolResultContent, ToolUseContent
from accord.messages.revision import RULES
from accord.messages.sampling import SamplingMessage, blocks_of, check_balanced, fit_blocks

TEXT = TextContent(text="words")


def use(id: str) -> ToolUseContent:
    return ToolUseContent(id=id, name="t", input={})


def result(id: str) -> ToolResultContent:
    return ToolResultContent(tool_use_id=id, content=[])


def user(*blocks: Any) -> SamplingMessage:
    return SamplingMessage(role="user", content=list(blocks))


def assistant(*blocks: Any) -> SamplingMessage:
    return SamplingMessage(role="assistant", content=list(blocks))


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user(TEXT)],
        [user(TEXT), user(TEXT), assistant(TEXT), assistant(TEXT)],
        [user(TEXT), assistant(use("1")), user(result("1"))],
        [SamplingMessage(role="assistant", content=use("1")), SamplingMessage(role="user", content=result("1"))],
        [assistant(TEXT, use("1"), use("2")), user(result("2"), result("1")), assistant(TEXT)],
        [assistant(use("1")), user(result("1")), assistant(use("1")), user(result("1"))],
    ],
)
def test_uses_that_are_answered_at_once_hold(messages: list[SamplingMessage]) -> None:
    check_balanced(messages)


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([assistant(use("1"))], r"messages\[1\]: tool result missing for '1'"),
        ([assistant(use("1")), user(TEXT), user(result("1"))], r"messages\[1\]: tool result missing for '1'"),
        ([assistant(use("1")), assistant(TEXT)], "missing for '1'"),
        ([assistant(use("1"), use("2")), user(result("1"))], "missing for '2'"),
        ([assistant(use("1")), user(result("2"))], "missing for '1'"),
        ([user(result("1"))], r"messages\[0\]: tool result without a tool use before it: '1'"),
        ([assistant(use("1")), user(result("1"), result("2"))], "without a tool use before it: '2'"),
        ([assistant(use("1")), user(result("1")), user(result("1"))], r"messages\[2\]: tool result without"),
        ([assistant(use("1")), user(result("1"), result("1"))], "must differ"),
        ([assistant(use("1"), use("1")), user(result("1"))], "must differ"),
        ([assistant(use("1")), user(result("1"), TEXT)], r"messages\[1\]: tool results mixed with other content"),
        ([assistant(use("1")), assistant(result("1"))], "the assistant uses tools, the user brings"),
        ([user(use("1")), user(result("1"))], "the assistant uses tools, the user brings"),
        ([assistant(*(use(str(number)) for number in range(9)))], "'0', '1', '2', '3', '4' and 4 more"),
    ],
)
def test_uses_that_are_not_answered_exactly_are_invalid_params(messages: list[SamplingMessage], why: str) -> None:
    with pytest.raises(InvalidParams, match=why) as caught:
        check_balanced(messages)
    assert caught.value.code == -32602


BLOCKS = st.one_of(st.just(TEXT), st.builds(use, st.sampled_from("ab")), st.builds(result, st.sampled_from("ab")))
MESSAGES = st.builds(
    lambda role, blocks: SamplingMessage(role=role, content=blocks),
    st.sampled_from(["user", "assistant"]),
    st.lists(BLOCKS, max_size=3),
)


@given(st.lists(MESSAGES, max_size=5))
def test_what_holds_is_what_the_specification_says(messages: list[SamplingMessage]) -> None:
    try:
        check_balanced(messages)
    except InvalidParams:
        held = False
    else:
        held = True
    assert held == all(
        follows(before, after) for before, after in zip([None, *messages], [*messages, None], strict=True)
    )


def follows(before: SamplingMessage | None, after: SamplingMessage | None) -> bool:
    """The rule, said the other way round: what a message may be, by the one before it."""
    waiting = sorted(block.id for block in blocks_of(before) if isinstance(block, ToolUseContent)) if before else []
    if before and waiting and before.role != "assistant":
        return False
    blocks = blocks_of(after) if after else []
    brought = sorted(block.tool_use_id for block in blocks if isinstance(block, ToolResultContent))
    alone = not brought or (len(brought) == len(blocks) and after is not None and after.role == "user")
    return alone and brought == waiting == sorted(set(waiting))


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"])
def test_a_message_of_one_block_fits_each_revision(revision: str) -> None:
    rules = RULES[revision]
    single = SamplingMessage(role="user", content=TEXT)
    assert fit_blocks(single, rules) is single
    assert blocks_of(fit_blocks(user(TEXT), rules)) == [TEXT]
    if rules.sampling_tools:
        assert fit_blocks(user(TEXT, TEXT), rules) == user(TEXT, TEXT)
    else:
        assert fit_blocks(user(TEXT), rules) == single
        for blocks in ((), (TEXT, TEXT)):
            with pytest.raises(NotSupported, match="one block"):
                fit_blocks(user(*blocks), rules)

"""Servers whose messages are not of their types."""

from __future__ import annotations

from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.table import mutant


@mutant("shapes/messages", revision="2025-06-18")
def a_tool_without_an_input_schema(change: Change) -> None:
    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        del answer["result"]["tools"][0]["inputSchema"]
        return answer


@mutant("shapes/messages", revision="2025-11-25", over="http")
def a_text_that_is_a_number(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["content"] = [{"type": "text", "text": 7}]
        return answer

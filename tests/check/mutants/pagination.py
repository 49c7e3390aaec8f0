"""Servers whose pages are wrong."""

from __future__ import annotations

from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.feature_servers import paged
from tests.check.mutants.table import mutant


def page(change: Change, alter: Any, method: str = "tools/list") -> None:
    """Change the pages of a list: an answer of the request and the answer."""
    change.answers(method)(alter)


@mutant("pagination/ends", revision="2025-06-18", server=paged)
def a_last_page_that_leads_on(change: Change) -> None:
    def alter(request: Any, answer: Any) -> Any:
        answer.get("result", {}).setdefault("nextCursor", request["params"].get("cursor", "again"))
        return answer

    page(change, alter)


@mutant("pagination/stable", server=paged)
def a_cursor_that_is_used_up_each_second_time(change: Change) -> None:
    used: list[str] = []

    def alter(request: Any, answer: Any) -> Any:
        cursor = request["params"].get("cursor")
        if used.count(cursor) % 2 and "result" in answer:
            answer["result"]["tools"] = []
        used.append(cursor)
        return answer

    page(change, alter)


@mutant("pagination/invalid-cursor", revision="2024-11-05", server=paged)
def the_first_page_for_any_cursor(change: Change) -> None:
    first: list[Any] = []

    def alter(request: Any, answer: Any) -> Any:
        if "result" in answer:
            first.append(answer["result"])
        asked = request.get("params", {}).get("cursor")
        return {**answer, "result": first[0]} if "error" in answer and isinstance(asked, str) else answer

    @change.every
    def _(message: Any) -> Any:
        return {key: value for key, value in message.items() if key != "error" or "result" not in message}

    page(change, alter)


@mutant("pagination/cursor-type", server=paged)
def the_first_page_for_a_number(change: Change) -> None:
    first: list[Any] = []

    def alter(request: Any, answer: Any) -> Any:
        if "result" in answer:
            first.append(answer["result"])
        is_text = isinstance(request["params"].get("cursor"), str)
        wrong = "error" in answer and not is_text
        return {"jsonrpc": "2.0", "id": request["id"], "result": first[0]} if wrong else answer

    page(change, alter, "resources/list")

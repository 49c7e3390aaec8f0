"""Servers that say wrongly how long their results may be kept (2026-07-28)."""

from __future__ import annotations

from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.feature_servers import paged
from tests.check.mutants.table import mutant


def hint(change: Change, method: str, alter: Any) -> None:
    """Change the result of a method."""

    @change.answers(method)
    def _(request: Any, answer: Any) -> Any:
        if "result" in answer:
            alter(answer["result"])
        return answer


@mutant("caching/hints")
def a_list_without_hints(change: Change) -> None:
    hint(change, "prompts/list", lambda result: [result.pop("ttlMs"), result.pop("cacheScope")])


@mutant("caching/hints")
def a_hello_without_a_scope(change: Change) -> None:
    hint(change, "server/discover", lambda result: result.pop("cacheScope"))


@mutant("caching/ttl")
def a_time_that_is_over(change: Change) -> None:
    hint(change, "resources/read", lambda result: result.update(ttlMs=-1))


@mutant("caching/scope", over="http")
def a_scope_of_http(change: Change) -> None:
    hint(change, "tools/list", lambda result: result.update(cacheScope="no-store"))


@mutant("caching/one-scope", server=paged)
def a_scope_of_each_page(change: Change) -> None:
    hint(
        change,
        "tools/list",
        lambda result: result.update(cacheScope="public" if "nextCursor" in result else "private"),
    )


@mutant("caching/interim")
def hints_on_a_question(change: Change) -> None:
    def alter(result: Any) -> None:
        if result["resultType"] == "input_required":
            result["ttlMs"] = 0

    hint(change, "tools/call", alter)

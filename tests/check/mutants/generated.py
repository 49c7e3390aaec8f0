"""Servers whose tools do not look at what they are given as they should; those that need a process of their own are in
tests/check/generated.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from accord import Server

from tests.check.mutants.change import Change
from tests.check.mutants.table import mutant

LAST = "2025-11-25"
CASES = 60
FINE = {"content": [{"type": "text", "text": "1"}], "structuredContent": {"result": 1}}


def adding() -> Server:
    """A right server with one tool."""
    server = Server("adding", "1.0.0")

    @server.tool
    def add(a: Annotated[int, msgspec.Meta(ge=0)]) -> int:
        """Add one."""
        return a + 1

    return server


def _refused(answer: Any) -> bool:
    return bool(answer.get("result", {}).get("isError"))


@mutant("generated/accepted", revision=LAST, server=adding, cases=CASES)
def any_arguments_will_do(change: Change) -> None:
    change.answers("tools/call")(lambda request, answer: {**answer, "result": FINE} if _refused(answer) else answer)


@mutant("generated/limits", revision=LAST, server=adding, cases=CASES)
def any_number_will_do(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        arguments = request["params"].get("arguments")
        numbers = arguments.values() if isinstance(arguments, dict) else ()
        return {**answer, "result": FINE} if {type(each) for each in numbers} == {int} else answer


@mutant("generated/argument-errors", revision=LAST, server=adding, cases=CASES)
def wrong_arguments_are_a_matter_of_the_protocol(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        error = {"code": -32602, "message": "Invalid params"}
        return {"jsonrpc": "2.0", "id": answer["id"], "error": error} if _refused(answer) else answer


@mutant("generated/internals", revision=LAST, server=adding, cases=CASES)
def wrong_arguments_give_a_traceback(change: Change) -> None:
    trace = 'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in add\nKeyError: 1'

    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        if _refused(answer):
            answer["result"]["content"] = [{"type": "text", "text": trace}]
        return answer

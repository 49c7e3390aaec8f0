"""Servers that log wrongly."""

from __future__ import annotations

from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.table import mutant
from tests.check.mutants.tools import refuse, undeclare

META = "io.modelcontextprotocol/logLevel"


def said(level: str, data: Any = "something") -> Any:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "data": data}}


@mutant("logging/declared")
def log_messages_that_are_not_declared(change: Change) -> None:
    undeclare(change, "logging")


@mutant("logging/declared", revision="2025-03-26")
def log_messages_that_are_not_declared_in_2025(change: Change) -> None:
    undeclare(change, "logging")


@mutant("logging/set-level", revision="2024-11-05")
def a_capability_without_levels(change: Change) -> None:
    refuse(change, "logging/setLevel")


@mutant("logging/set-level", revision="2025-11-25")
def no_level_notice(change: Change) -> None:
    @change.answers("logging/setLevel")
    def _(request: Any, answer: Any) -> Any:
        error = {"code": -32602, "message": "No such level"}
        is_known = request["params"].get("level") != "notice"
        return answer if is_known else {"jsonrpc": "2.0", "id": request["id"], "error": error}


@mutant("logging/unknown-level", revision="2025-06-18")
def any_level(change: Change) -> None:
    change.answers("logging/setLevel")(lambda request, answer: {"jsonrpc": "2.0", "id": request["id"], "result": {}})


@mutant("logging/unknown-level")
def any_level_in_meta(change: Change) -> None:
    @change.heard
    def _(message: Any) -> Any:
        meta = message.get("params", {}).get("_meta", {})
        return message if meta.pop(META, None) is None else {**message}


@mutant("logging/level-kept", revision="2025-06-18")
def messages_that_are_not_severe(change: Change) -> None:
    change.before("tools/call")(lambda request: [said("debug")])
    change.answers("logging/setLevel")(lambda request, answer: answer)


@mutant("logging/only-asked")
def messages_that_nobody_asked_for(change: Change) -> None:
    change.before("tools/call")(lambda request: [said("emergency")])


@mutant("logging/only-asked", over="http")
def messages_to_who_listens_for_something_else(change: Change) -> None:
    change.notifications("notifications/subscriptions/acknowledged")(lambda message: [message, said("emergency")])


@mutant("logging/severe-enough")
def messages_below_the_level(change: Change) -> None:
    @change.before("tools/call")
    def _(request: Any) -> Any:
        return [said("debug")] if META in request["params"].get("_meta", {}) else []


@mutant("logging/secrets", revision="2025-03-26")
def a_password_in_the_log(change: Change) -> None:
    change.before("tools/call")(lambda request: [said("error", {"user": "me", "password": "correct horse"})])


@mutant("logging/secrets", revision="2025-11-25")
def a_key_in_a_text(change: Change) -> None:
    change.before("tools/call")(lambda request: [said("error", "using AKIAIOSFODNN7EXAMPLE")])

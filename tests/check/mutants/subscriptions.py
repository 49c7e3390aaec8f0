"""Servers whose subscriptions are wrong."""

from __future__ import annotations

from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.table import faulty, mutant

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
ID = "io.modelcontextprotocol/subscriptionId"
CHANGED = "notifications/tools/list_changed"


faulty("subscriptions/graceful", "leaves its subscriptions at SIGTERM", revision="2026-07-28")


@mutant("subscriptions/acknowledged")
def nothing_is_acknowledged(change: Change) -> None:
    change.notifications(ACKNOWLEDGED)(lambda message: None)


@mutant("subscriptions/granted")
def all_is_granted(change: Change) -> None:
    @change.notifications(ACKNOWLEDGED)
    def _(message: Any) -> Any:
        message["params"]["notifications"] = {"toolsListChanged": True, "promptsListChanged": True}
        return message


@mutant("subscriptions/wanted-only")
def all_is_told(change: Change) -> None:
    @change.notifications(ACKNOWLEDGED)
    def _(message: Any) -> Any:
        return [message, _told("notifications/prompts/list_changed", message["params"]["_meta"])]


@mutant("subscriptions/tagged")
def the_id_becomes_a_text(change: Change) -> None:
    @change.notifications(ACKNOWLEDGED)
    def _(message: Any) -> Any:
        return [message, _told(CHANGED, {ID: f"{message['params']['_meta'][ID]}?"})]


@mutant("subscriptions/order")
def it_tells_before_it_acknowledges(change: Change) -> None:
    @change.notifications(ACKNOWLEDGED)
    def _(message: Any) -> Any:
        return [_told(CHANGED, message["params"]["_meta"]), message]


@mutant("subscriptions/several")
def a_second_one_ends_the_first(change: Change) -> None:
    open_: list[Any] = []

    @change.notifications(ACKNOWLEDGED)
    def _(message: Any) -> Any:
        id = message["params"]["_meta"][ID]
        ended = [{"jsonrpc": "2.0", "id": each, "result": _result(each)} for each in open_]
        open_[:] = [id]
        return [*ended, message]


@mutant("subscriptions/ended")
def it_goes_on_after_its_end(change: Change) -> None:
    over: list[Any] = []

    @change.heard
    def _(message: Any) -> Any:
        if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            over.append(message["params"].get("requestId"))
        return message

    @change.before("server/discover")
    def _(request: Any) -> list[Any]:
        return [_told(CHANGED, {ID: id}) for id in over]


@mutant("subscriptions/result")
def its_result_has_no_id(change: Change) -> None:
    @change.notifications(ACKNOWLEDGED)
    def _(message: Any) -> Any:
        id = message["params"]["_meta"][ID]
        return [message, {"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "_meta": {}}}]


def _told(method: str, meta: Any) -> Any:
    return {"jsonrpc": "2.0", "method": method, "params": {"_meta": meta}}


def _result(id: Any) -> Any:
    return {"resultType": "complete", "_meta": {ID: id}}

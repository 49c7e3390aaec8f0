"""Servers that lose their way: in batches, pings, cancellations, progress, and rough weather."""

from __future__ import annotations

import asyncio
from typing import Any

from accord import Context, Server

from tests.check.mutants.change import Change
from tests.check.mutants.table import mutant


def working() -> Server:
    """A right server with a call that takes a while."""
    server = Server("working", "1.0.0")

    @server.tool
    async def test_tool_with_progress(ctx: Context) -> str:
        """Says how it goes."""
        for step in range(4):
            ctx.report_progress(step, 4)
            await asyncio.sleep(0.1)
        return "done"

    return server


def _is_batch(message: Any) -> bool:
    return isinstance(message, list)


@mutant("batch/served", revision="2025-03-26")
def only_single_messages(change: Change) -> None:
    change.heard(lambda message: None if _is_batch(message) else message)


@mutant("batch/served", revision="2025-03-26")
def only_the_first_of_a_batch(change: Change) -> None:
    change.heard(lambda message: message[0] if _is_batch(message) and message else message)


@mutant("batch/notifications", revision="2025-03-26")
def an_empty_array_for_no_answers(change: Change) -> None:
    @change.heard
    def _(message: Any) -> Any:
        if not _is_batch(message) or any("id" in each for each in message if isinstance(each, dict)) or not message:
            return message
        return {"jsonrpc": "2.0", "id": "made up", "method": "ping"}

    change.every(lambda message: b"[]" if message.get("id") == "made up" else message)


@mutant("batch/invalid-items", revision="2025-03-26")
def all_or_nothing(change: Change) -> None:
    @change.heard
    def _(message: Any) -> Any:
        return None if _is_batch(message) and not all(isinstance(each, dict) for each in message) else message


@mutant("batch/empty", revision="2025-03-26")
def silence_for_an_empty_array(change: Change) -> None:
    change.heard(lambda message: b'{"jsonrpc":"2.0","method":"notifications/x"}' if message == [] else message)


@mutant("ping/answered", revision="2024-11-05")
def a_word_for_a_ping(change: Change) -> None:
    change.answers("ping")(lambda request, answer: {**answer, "result": {"status": "ok"}})


@mutant("ping/prompt", revision="2025-06-18")
def no_ping_is_answered(change: Change) -> None:
    change.answers("ping")(lambda request, answer: None)


@mutant("ping/while-busy", revision="2025-11-25", server=working)
def pings_wait_for_calls(change: Change) -> None:
    busy: set[Any] = set()
    held: list[Any] = []

    @change.heard
    def _(message: Any) -> Any:
        if isinstance(message, dict) and message.get("method") == "tools/call":
            busy.add(message["id"])
        return message

    @change.answers("ping")
    def _(request: Any, answer: Any) -> Any:
        held.extend([answer] if busy else [])
        return None if busy else answer

    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        busy.discard(request["id"])
        waiting, held[:] = list(held), []
        return [answer, *waiting]


@mutant("ping/before-initialized", revision="2025-06-18", calls=False)
def no_ping_before_the_client_is_ready(change: Change) -> None:
    last: list[Any] = [None]

    @change.heard
    def _(message: Any) -> Any:
        before, last[0] = last[0], message.get("method") if isinstance(message, dict) else None
        return {**message, "method": "nobody"} if (before, last[0]) == ("initialize", "ping") else message


def _deaf_to_cancellations(change: Change) -> None:
    @change.heard
    def _(message: Any) -> Any:
        is_cancel = isinstance(message, dict) and message.get("method") == "notifications/cancelled"
        return None if is_cancel else message


@mutant("cancel/no-answer", revision="2025-06-18", server=working)
def an_answer_to_what_was_cancelled(change: Change) -> None:
    _deaf_to_cancellations(change)


@mutant("cancel/stops", server=working)
def work_goes_on(change: Change) -> None:
    _deaf_to_cancellations(change)


@mutant("cancel/ignored", revision="2025-11-25")
def an_error_for_a_strange_cancellation(change: Change) -> None:
    @change.heard
    def _(message: Any) -> Any:
        is_strange = isinstance(message, dict) and "accord-check-nobody" in str(message.get("params"))
        return {**message, "id": "made up"} if is_strange and "id" not in message else message

    change.every(lambda message: {**message, "id": None} if message.get("id") == "made up" else message)


@mutant("cancel/race", revision="2024-11-05")
def a_second_answer_in_a_race(change: Change) -> None:
    @change.every
    def _(message: Any) -> Any:
        return [message, message] if "accord-check-race" in str(message.get("id")) else message


@mutant("cancel/race")
def a_cancellation_stops_the_server(change: Change) -> None:
    _deaf_after(change, "accord-check-race-0")


def _deaf_after(change: Change, text: str) -> None:
    """From the message with this text on, nothing is heard any more on any connection."""
    gone: list[bool] = []

    @change.heard
    def _(message: Any) -> Any:
        if text in str(message):
            gone.append(True)
        return None if gone else message


@mutant("cancel/initialize", revision="2025-06-18")
def a_cancelled_handshake(change: Change) -> None:
    gone: list[bool] = []

    @change.heard
    def _(message: Any) -> Any:
        if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            gone.extend([True] if message["params"] == {"requestId": 1} else [])
        return None if gone else message


def _cancels_the_call(request: Any) -> list[Any]:
    return [{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request["id"]}}]


@mutant("cancel/own-requests", revision="2025-11-25")
def a_cancellation_of_our_request(change: Change) -> None:
    change.before("tools/call")(_cancels_the_call)


@mutant("cancel/own-requests", revision="2025-11-25")
def a_cancellation_of_a_task(change: Change) -> None:
    asked = {"jsonrpc": "2.0", "id": "t", "method": "ping", "params": {"task": {}}}
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "t"}}
    change.before("tools/call")(lambda request: [asked, cancelled])


@mutant("cancel/only-subscriptions")
def a_cancellation_of_a_call(change: Change) -> None:
    change.before("tools/call")(_cancels_the_call)


def _progress(change: Change, **fields: Any) -> None:
    @change.notifications("notifications/progress")
    def _(message: Any) -> Any:
        return {**message, "params": {**message["params"], **fields}}


@mutant("progress/known-token", revision="2025-06-18")
def a_token_that_nobody_gave(change: Change) -> None:
    _progress(change, progressToken=7)


@mutant("progress/ends")
def progress_after_the_answer(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        params = {"progressToken": request["params"]["_meta"]["progressToken"], "progress": 99}
        return [answer, {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}]


@mutant("progress/grows", revision="2024-11-05")
def progress_that_stands_still(change: Change) -> None:
    _progress(change, progress=1)


@mutant("progress/flood", revision="2025-11-25")
def fifteen_hundred_steps_at_once(change: Change) -> None:
    @change.before("tools/call")
    def _(request: Any) -> Any:
        token = request["params"]["_meta"]["progressToken"]
        steps = ({"progressToken": token, "progress": 10 + step} for step in range(1_500))
        return [{"jsonrpc": "2.0", "method": "notifications/progress", "params": params} for params in steps]


@mutant("progress/any-token", revision="2025-03-26")
def tokens_are_texts(change: Change) -> None:
    @change.heard
    def _(message: Any) -> Any:
        params = message.get("params") if isinstance(message, dict) else None
        token = params.get("_meta", {}).get("progressToken") if isinstance(params, dict) else None
        return {**message, "method": "nobody"} if isinstance(token, int) else message


@mutant("progress/own-tokens", revision="2025-11-25")
def a_token_that_is_a_fraction(change: Change) -> None:
    params = {"_meta": {"progressToken": 1.5}}
    change.before("tools/call")(lambda request: [{"jsonrpc": "2.0", "id": "p", "method": "ping", "params": params}])


@mutant("faults/survives", revision="2025-06-18")
def half_an_object_ends_it(change: Change) -> None:
    gone: list[bool] = []

    @change.heard
    def _(message: Any) -> Any:
        gone.extend([True] if message == b'{"jsonrpc":"2.0","id":' else [])
        return None if gone else message


@mutant("faults/survives")
def a_text_for_an_error_ends_it(change: Change) -> None:
    gone: list[bool] = []

    @change.heard
    def _(message: Any) -> Any:
        gone.extend([True] if isinstance(message, dict) and message.get("error") == "x" else [])
        return None if gone else message


@mutant("faults/wrong-params", revision="2025-11-25")
def silence_for_wrong_params(change: Change) -> None:
    @change.heard
    def _(message: Any) -> Any:
        params = message.get("params") if isinstance(message, dict) else None
        is_wrong = isinstance(params, dict) and params.get("ref") == 7
        return None if is_wrong and message["method"] == "completion/complete" else message


@mutant("faults/flood", revision="2024-11-05")
def one_of_a_thousand_is_lost(change: Change) -> None:
    change.heard(
        lambda message: None if isinstance(message, dict) and message.get("id") == "accord-check-flood-99" else message
    )

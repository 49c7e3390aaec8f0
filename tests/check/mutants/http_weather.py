"""Servers that do not stand rough weather over Streamable HTTP."""

from __future__ import annotations

import base64

from tests.check.mutants.change import Change, HTTPReply
from tests.check.mutants.flow import working
from tests.check.mutants.table import mutant

LAST = "2025-11-25"


@mutant("http/cut-requests", revision=LAST, over="http")
def it_ends_with_the_first_client_that_is_gone(change: Change) -> None:
    gone: list[bool] = []
    change.cut(lambda: gone.append(True))
    change.every(lambda message: None if gone else message)

    @change.reply
    def _(reply: HTTPReply) -> None:
        if gone:
            reply.status = 500


@mutant("http/slow-body", revision=LAST, over="http")
def the_first_piece_of_a_body_is_taken_for_the_whole(change: Change) -> None:
    change.takes_a_piece = True


@mutant("http/bad-values", over="http")
def a_name_beyond_ascii_is_read_as_utf_8(change: Change) -> None:
    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        raw = headers.get("mcp-name", "").encode("latin-1")
        if not raw.isascii():
            headers["mcp-name"] = f"=?base64?{base64.b64encode(raw).decode()}?="


@mutant("http/disconnect-is-no-cancel", revision=LAST, over="http", server=working)
def what_is_left_is_not_finished(change: Change) -> None:
    taken_up: list[str] = []

    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        taken_up.extend(each for each in (headers.get("last-event-id"),) if each)

    change.events(lambda event: b"" if taken_up and b'"done"' in event else event)


@mutant("http/chunked", revision=LAST, over="http")
def a_body_in_chunks_is_taken_to_be_empty(change: Change) -> None:
    chunked: list[bool] = []

    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        chunked[:] = [True] * ("transfer-encoding" in headers)

    change.every(lambda message: None if chunked else message)

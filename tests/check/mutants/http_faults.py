"""Servers that do not stand rough weather over Streamable HTTP."""

from __future__ import annotations

import base64
import re

from tests.check.mutants.byte_relay import Connection
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


@mutant("http/stream-ends", revision=LAST, over="http")
def its_streams_stay_open_after_the_answer(change: Change) -> None:
    change.stays_open = True


@mutant("http/big-body", revision=LAST, over="http")
def nothing_is_read_beyond_a_megabyte(change: Change) -> None:
    change.treats(lambda connection, data: None if len(connection.seen) > 1 << 20 else data)


@mutant("http/big-body", over="http")
def a_large_body_ends_it(change: Change) -> None:
    gone: list[bool] = []

    @change.treats
    def _(connection: Connection, data: bytes) -> bytes | None:
        gone.extend([True] if len(connection.seen) > 1 << 20 else [])
        return None if gone else data


@mutant("http/long-header", revision=LAST, over="http")
def a_head_has_a_buffer_of_64_kb(change: Change) -> None:
    change.treats(lambda connection, data: None if _head_is_long(connection.seen) else data)


def _head_is_long(seen: bytes) -> bool:
    return seen.startswith(b"POST") and len(seen.partition(b"\r\n\r\n")[0]) > 65_000


@mutant("http/nonsense", revision=LAST, over="http")
def whatever_comes_is_a_request(change: Change) -> None:
    @change.treats
    def _(connection: Connection, data: bytes) -> bytes | None:
        if re.match(rb"[A-Z]+ /\S* HTTP/1\.1\r\n", connection.seen):
            return data
        connection.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        return None


@mutant("http/nonsense", over="http")
def a_handshake_of_TLS_ends_it(change: Change) -> None:
    gone: list[bool] = []

    @change.treats
    def _(connection: Connection, data: bytes) -> bytes | None:
        gone.extend([True] if data.startswith(b"\x16") else [])
        return None if gone else data


@mutant("http/pipelined", revision=LAST, over="http")
def what_follows_a_request_at_once_is_thrown_away(change: Change) -> None:
    @change.treats
    def _(connection: Connection, data: bytes) -> bytes:
        head, _, body = connection.seen.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        more = len(body) - int(length[1]) if length else 0
        return data[:-more] if more > 0 else data


@mutant("http/half-open", revision=LAST, over="http")
def it_has_ten_threads(change: Change) -> None:
    change.treats(lambda connection, data: None if connection.number > 10 else data)


@mutant("http/header-names", over="http")
def names_of_headers_are_in_lower_case(change: Change) -> None:
    @change.treats
    def _(connection: Connection, data: bytes) -> bytes:
        return re.sub(rb"(?m)^(MCP-[A-Z-]+): ", rb"x-\1: ", data)

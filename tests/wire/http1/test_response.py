"""Responses as bytes: what frames their bodies, and what does not become one."""

from __future__ import annotations

import pytest

from accord.errors import LocalProtocolError
from accord.wire.http1.response import ResponseWriter


def writer(method: str = "GET", version: str = "1.1", *, keep_alive: bool = True) -> ResponseWriter:
    return ResponseWriter(method, version, keep_alive=keep_alive)


def test_a_body_of_known_length_is_sent_as_it_is() -> None:
    response = writer()
    assert response.head(200, [(b"Content-Length", b"4"), (b"x", b"y")]) == (
        b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nx: y\r\n\r\n"
    )
    assert response.body(b"ab", more=True) == b"ab"
    assert not response.over
    assert response.body(b"cd", more=False) == b"cd"
    assert (response.over, response.keep_alive) == (True, True)


@pytest.mark.parametrize("headers", [[], [(b"Transfer-Encoding", b"chunked")]])
def test_a_body_of_unknown_length_is_chunked(headers: list[tuple[bytes, bytes]]) -> None:
    response = writer()
    assert response.head(200, headers) == b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    assert response.body(b"x" * 16, more=True) == b"10\r\n" + b"x" * 16 + b"\r\n"
    assert response.body(b"", more=True) == b""
    assert response.body(b"end", more=False) == b"3\r\nend\r\n0\r\n\r\n"


def test_and_in_http_1_0_it_ends_with_the_connection() -> None:
    response = writer(version="1.0", keep_alive=False)
    assert response.head(200, []) == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"
    assert response.body(b"abc", more=False) == b"abc"


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_what_has_no_body_sends_none(method: str, status: int) -> None:
    response = writer(method)
    assert b"chunked" not in response.head(status, [])
    assert response.body(b"ignored", more=False) == b""
    assert response.over


def test_a_head_announces_the_body_that_a_get_would_have() -> None:
    response = writer("HEAD")
    assert b"content-length: 5\r\n" in response.head(200, [(b"content-length", b"5")])
    assert response.body(b"", more=False) == b""


@pytest.mark.parametrize("value", [b"close", b"x, Close"])
def test_an_application_may_close_the_connection(value: bytes) -> None:
    response = writer()
    head = response.head(200, [(b"connection", value), (b"content-length", b"0")])
    assert head.count(b"connection: ") == 1
    assert not response.keep_alive


def test_a_connection_that_ends_is_announced() -> None:
    assert writer(keep_alive=False).head(200, [(b"content-length", b"0")]).endswith(b"\r\nconnection: close\r\n\r\n")


def test_a_status_without_a_name_is_sent() -> None:
    assert writer().head(499, [(b"content-length", b"0")]).startswith(b"HTTP/1.1 499 \r\n")


@pytest.mark.parametrize(
    "header",
    [
        (b"x", b"a\r\nset-cookie: b"),
        (b"x", b"a\nb"),
        (b"x", b"a\0"),
        (b"x y", b"a"),
        (b"x:", b"a"),
        (b"", b"a"),
        (b"x\r\n", b"a"),
        (b"\xe9", b"a"),
    ],
)
def test_a_header_that_would_be_two_is_refused(header: tuple[bytes, bytes]) -> None:
    with pytest.raises(LocalProtocolError):
        writer().head(200, [(b"a", b"b"), header])


@pytest.mark.parametrize("status", [0, 100, 101, 199, 600])
def test_a_status_of_no_response_is_refused(status: int) -> None:
    with pytest.raises(LocalProtocolError):
        writer().head(status, [])


def test_a_body_is_as_long_as_declared() -> None:
    for length, data in ((b"1", b"ab"), (b"3", b"ab")):
        response = writer()
        response.head(200, [(b"content-length", length)])
        with pytest.raises(LocalProtocolError):
            response.body(data, more=False)
        assert not response.keep_alive


def test_head_then_body_then_nothing() -> None:
    response = writer()
    with pytest.raises(LocalProtocolError):
        response.body(b"", more=False)
    response.head(200, [(b"content-length", b"0")])
    with pytest.raises(LocalProtocolError):
        response.head(200, [])
    response.body(b"", more=False)
    with pytest.raises(LocalProtocolError):
        response.body(b"", more=False)

"""Addresses as people write them, and the sockets that they mean."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given, strategies as st

from accord.errors import DeclarationError
from accord.server.http.serving.address import Address, bind, bound_address, is_loopback, is_unspecified, parse_address

READ = {
    "127.0.0.1:8000": Address("127.0.0.1", 8000),
    ":8000": Address("127.0.0.1", 8000),
    "8000": Address("127.0.0.1", 8000),
    "[::1]:8000": Address("::1", 8000),
    "[::]:0": Address("::", 0),
    "0.0.0.0:80": Address("0.0.0.0", 80),
    "localhost:8000": Address("localhost", 8000),
    " box.example:65535 ": Address("box.example", 65535),
}

REFUSED = [
    "",
    ":",
    "localhost",
    "localhost:",
    "::1:8000",
    "[::1]",
    "http://localhost:8000",
    "a@b:8000",
    "a b:8000",
    ":-1",
    ":65536",
    ":99999",
    ":٣",
    "*:8000",
    "1:2:3",
    "localhost:8000/mcp",
]


@pytest.mark.parametrize(("text", "address"), READ.items())
def test_an_address_is_read(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_address_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        parse_address(text)
    assert repr(text) in str(caught.value)


@given(st.text(alphabet="0123456789abcf:.[]*@/ \n%\u0663") | st.text())
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        address = parse_address(text)
    except DeclarationError:
        return
    assert 0 <= address.port <= 65535
    assert parse_address(str(address)) == address


def test_a_free_port_is_the_same_for_each_address_of_a_name() -> None:
    sockets = bind(Address("localhost", 0))
    try:
        assert is_loopback(sockets)
        assert {each.getsockname()[1] for each in sockets} == {bound_address(Address("localhost", 0), sockets).port}
    finally:
        for each in sockets:
            each.close()


@pytest.mark.parametrize(("host", "loopback", "anything"), [("127.0.0.1", True, False), ("0.0.0.0", False, True)])
def test_it_is_known_who_can_reach_it(host: str, loopback: bool, anything: bool) -> None:
    (sock,) = bind(Address(host, 0))
    with sock:
        assert (is_loopback([sock]), is_unspecified([sock])) == (loopback, anything)


def test_a_port_in_use_is_an_error_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"127.0.0.1:{port} is in use by another program"):
            bind(Address("127.0.0.1", port))


def test_an_address_of_another_machine_is_an_error_in_one_sentence() -> None:
    with pytest.raises(OSError, match=r"203\.0\.113\.7 is not an address of this machine"):
        bind(Address("203.0.113.7", 0))

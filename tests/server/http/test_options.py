"""Options are checked when they are given, and say what they let in."""

from __future__ import annotations

from typing import Any

import pytest

from accord import HTTPOptions
from accord.errors import DeclarationError


def test_by_default_only_the_machine_itself_is_let_in() -> None:
    gate = HTTPOptions().gate()
    assert gate.refusal(b"127.0.0.1:8000", b"http://localhost:3000") is None
    assert gate.refusal(b"tools.example.com", None) is not None
    assert gate.refusal(b"localhost", b"https://app.example.com") is not None
    assert HTTPOptions().cors().answer(b"http://localhost:3000") == []


@pytest.mark.parametrize(
    "url", ["https://tools.example.com/mcp", "https://tools.example.com", "HTTPS://tools.example.com/"]
)
def test_the_public_address_is_answered_to_and_its_pages_are_let_in(url: str) -> None:
    gate = HTTPOptions(public_url=url).gate()
    assert gate.refusal(b"tools.example.com", b"https://tools.example.com") is None
    assert gate.refusal(b"127.0.0.1:8000", None) is None
    assert gate.refusal(b"tools.example.com", b"http://tools.example.com") is not None
    assert gate.refusal(b"tools.example.com:8443", None) is not None


def test_a_public_address_may_have_a_port_or_be_ipv6() -> None:
    assert HTTPOptions(public_url="http://box:8000/mcp").gate().refusal(b"box:8000", b"http://box:8000") is None
    assert HTTPOptions(public_url="http://[fe80::1]:8000").gate().refusal(b"[fe80::1]:8000", None) is None


def test_named_hosts_and_origins_come_besides_the_machines_own() -> None:
    options = HTTPOptions(hosts=["box:*"], origins=("https://app.example.com",))
    gate = options.gate()
    assert gate.refusal(b"box:8000", b"https://app.example.com") is None
    assert gate.refusal(b"localhost", b"http://localhost") is None
    assert dict(options.cors().answer(b"https://app.example.com"))[b"access-control-allow-origin"]
    assert gate.hosts.patterns == ("127.0.0.1:*", "localhost:*", "[::1]:*", "box:*")


NO_ADDRESSES = ["", "tools.example.com", "ftp://a.example", "https://", "https://a@b.example", "https://a.example?x"]
NO_ADDRESSES += ["https://*", "https://a.example:*", "https://a.example#x", "https://a.example:x", "https://a b"]
NO_ADDRESSES += ["https://a.example/b c", "https://a.example\n", "https://a.example/\n", "https://\u00e9.example"]


@pytest.mark.parametrize("url", [*NO_ADDRESSES, 7])
def test_what_is_no_public_address_is_refused(url: Any) -> None:
    with pytest.raises(DeclarationError, match="not a valid public_url"):
        HTTPOptions(public_url=url)


@pytest.mark.parametrize(
    "path", ["", "mcp", "/mcp/", "//mcp", "/a b", "/a?b", "/é", "/sse", "/messages", "/health", "/ready"]
)
def test_a_path_that_cannot_be_served_is_refused(path: str) -> None:
    with pytest.raises(DeclarationError, match="not a valid path"):
        HTTPOptions(path=path)


@pytest.mark.parametrize("path", ["/", "/mcp", "/weather/mcp", "/v1.0/~ann/my_mcp-2"])
def test_a_path_may_have_parts(path: str) -> None:
    assert HTTPOptions(path=path).path == path


@pytest.mark.parametrize(
    ("url", "path", "root"),
    [
        (None, "/mcp", ""),
        ("https://a.example", "/mcp", ""),
        ("https://a.example/", "/mcp", ""),
        ("https://a.example/mcp", "/mcp", ""),
        ("https://a.example/api/mcp", "/mcp", "/api"),
        ("https://a.example/api/v1/mcp/", "/mcp", "/api/v1"),
        ("https://a.example/weather", "/mcp", ""),
        ("https://a.example/xmcp", "/mcp", ""),
        ("https://a.example/api", "/", "/api"),
        ("https://a.example/", "/", ""),
    ],
)
def test_the_public_address_has_the_path_at_the_proxy(url: str | None, path: str, root: str) -> None:
    assert HTTPOptions(public_url=url, path=path).public_root() == root


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_client_waits_some_time_before_it_comes_back(seconds: float) -> None:
    with pytest.raises(DeclarationError, match="retry_seconds"):
        HTTPOptions(retry_seconds=seconds)


@pytest.mark.parametrize(
    "names", [{"hosts": "box"}, {"origins": "https://box"}, {"hosts": ["a b"]}, {"origins": ["box"]}]
)
def test_names_that_cannot_work_are_refused(names: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        HTTPOptions(**names)

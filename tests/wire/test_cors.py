"""What a browser is told: which pages may read, and what they may send."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from accord.errors import DeclarationError
from accord.wire.hosts import CORS

APP = b"https://app.example.com"


def asked(origin: bytes | None = APP, *names: str) -> dict[bytes, bytes]:
    """A preflight as a browser sends it."""
    headers = {b"access-control-request-method": b"POST", b"access-control-request-headers": ", ".join(names).encode()}
    return headers if origin is None else {b"origin": origin, **headers}


def cors() -> CORS:
    return CORS([APP.decode(), "http://localhost:*"])


def allowed(origin: bytes | None, rules: CORS) -> bytes | None:
    return dict(rules.answer(origin)).get(b"access-control-allow-origin")


@pytest.mark.parametrize("origin", [APP, b"http://localhost:3000", b"null", None])
def test_no_header_is_added_without_an_origin(origin: bytes | None) -> None:
    assert CORS().answer(origin) == []
    assert CORS().preflight(asked(origin)) is None


def test_a_page_of_a_named_origin_may_read_the_answer_and_its_session() -> None:
    headers = dict(cors().answer(APP))
    assert headers[b"access-control-allow-origin"] == APP
    assert b"Mcp-Session-Id" in headers[b"access-control-expose-headers"]
    assert headers[b"vary"] == b"Origin"


@pytest.mark.parametrize(
    "origin", [b"https://evil.example.com", b"null", b"", b"https://app.example.com.evil.com", None]
)
def test_other_pages_learn_only_that_the_response_depends_on_the_origin(origin: bytes | None) -> None:
    assert cors().answer(origin) == [(b"vary", b"Origin")]
    assert cors().preflight(asked(origin)) is None


def test_each_page_receives_its_own_origin_never_a_list() -> None:
    assert allowed(b"http://localhost:3000", cors()) == b"http://localhost:3000"
    assert allowed(b"http://localhost:5173", cors()) == b"http://localhost:5173"


@pytest.mark.parametrize("origin", [b"https://anything.example", b"null", b"a\r\nset-cookie: b"])
def test_a_star_answers_a_star_whatever_was_sent(origin: bytes) -> None:
    assert allowed(origin, CORS(["*"])) == b"*"


@pytest.mark.parametrize("origin", [APP, b"null"])
def test_cookies_never_count(origin: bytes) -> None:
    for headers in (CORS(["*"]).answer(origin), CORS(["*"]).preflight(asked(origin)), cors().answer(origin)):
        assert headers
        assert b"access-control-allow-credentials" not in dict(headers)


def test_a_preflight_allows_the_methods_and_headers_of_the_protocol() -> None:
    names = ["accept", "Authorization", "content-type", "Last-Event-ID", "MCP-Protocol-Version", "mcp-session-id"]
    names += ["mcp-method", "Mcp-Name", "Mcp-Param-Region", "mcp-param-x_y.z"]
    headers = dict(cors().preflight(asked(APP, *names)) or [])
    assert headers[b"access-control-allow-methods"] == b"GET, POST, DELETE"
    assert headers[b"access-control-allow-headers"].decode().split(", ") == [name.lower() for name in names]
    assert headers[b"access-control-allow-origin"] == APP
    assert headers[b"vary"] == b"Origin"


def test_a_preflight_allows_no_other_headers() -> None:
    headers = dict(cors().preflight(asked(APP, "x-forwarded-for", "cookie", "mcp-", "mcp-a b", "host", "*", "")) or [])
    assert headers[b"access-control-allow-headers"] == b""


def test_an_options_request_that_asks_for_no_method_is_no_preflight() -> None:
    assert cors().preflight({b"origin": APP}) is None


def test_a_preflight_may_ask_for_no_headers() -> None:
    headers = cors().preflight({b"origin": APP, b"access-control-request-method": b"GET"})
    assert dict(headers or [])[b"access-control-allow-headers"] == b""


@given(st.binary(max_size=100))
def test_no_header_of_an_answer_holds_what_ends_one(sent: bytes) -> None:
    for rules in (cors(), CORS(["*"])):
        wanted = {**asked(APP), b"access-control-request-headers": b"mcp-a" + sent}
        for _, value in [*rules.answer(sent), *(rules.preflight(wanted) or [])]:
            assert value.isascii()
            assert value.decode().isprintable()


def test_what_is_no_origin_is_refused_when_declared() -> None:
    with pytest.raises(DeclarationError, match="no origin"):
        CORS(["app.example.com"])

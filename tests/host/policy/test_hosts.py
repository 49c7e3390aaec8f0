"""Hosts of URLs: which are read, and which are unclear because parsers disagree about them."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings, strategies as st

from accord.host.policy.hosts import UnclearHost, check_host, parse_host, parse_pattern


def state(url: object, *patterns: str) -> str:
    return check_host(url, tuple(map(parse_pattern, patterns or ("example.com",))), "them").state


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://example.com/",
        "HTTPS://EXAMPLE.COM/x",
        "https://example.com.",
        "https://example.com:8443/x",
        "http://example.com?q=1",
        "https://example.com#top",
        "https://example.com/@evil.example",
        "https://example.com/?u=https://evil.example",
        "wss://example.com/é/ü",
        "https://example.com//evil.example/..",
    ],
)
def test_a_url_of_the_host_is_met(url: str) -> None:
    assert state(url) == "met"


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example",
        "https://example.com.evil.example",
        "https://evilexample.com",
        "https://www.example.com",
        "https://examp1e.com",
        "https://evil.example/example.com",
        "https://evil.example?example.com",
        "https://xn--exmple-cua.com",
        "https://exämple.com",
        "http://127.0.0.1",
        "http://[::1]/",
    ],
)
def test_a_url_of_another_host_is_unmet(url: str) -> None:
    assert state(url) == "unmet"


UNCLEAR = [
    "",
    "example.com",
    "//example.com",
    "/example.com",
    "https:example.com",
    "https:/example.com",
    "https:///example.com",
    "https://",
    "https://?",
    "https://:443",
    "https://example.com@evil.example",
    "https://user@example.com",
    "https://evil.example#@example.com",
    "https://evil.example?@example.com",
    "https://evil.example\\@example.com",
    "https://evil.example\\.example.com",
    "https:\\\\example.com",
    "https://example.com%00.evil.example",
    "https://example%2ecom",
    "https://%65xample.com",
    "https://example.com\t",
    " https://example.com",
    "https://exam\nple.com",
    "https://example.com/a b",
    "https://example.com\u3002evil.example",
    "https://\uff45xample.com",
    "https://ex\u00adample.com",
    "https://example.com\u2044evil",
    "https://example.com\u202e",
    "https://fa\u00df.example",
    "https://\u03c2.example",
    "https://a\u200db.example",
    "https://\u0130.example",
    "https://example..com",
    "https://.example.com",
    "https://example.com..",
    "https://-example.com",
    f"https://{'a' * 64}.com",
    f"https://{'a.' * 130}com",
    "https://example.com:",
    "https://example.com:0",
    "https://example.com:65536",
    "https://example.com:443:443",
    "https://example.com:x",
    "https://exa;mple.com",
    "https://exa*mple.com",
    "http://2130706433",
    "http://0x7f000001",
    "http://0x7f.1",
    "http://127.1",
    "http://0177.0.0.1",
    "http://127.0.0.1.5",
    "http://127.0.0.01",
    "http://256.0.0.1",
    "http://1.2.3.4.",
    "http://0",
    "http://[::ffff:127.0.0.1]",
    "http://[::127.0.0.1]",
    "http://[64:ff9b::7f00:1]",
    "http://[2002:7f00:1::]",
    "http://[fe80::1%25eth0]",
    "http://[::1",
    "http://::1",
    "http://[::1]x",
    "http://[v1.x]",
    "file:///etc/passwd",
    "ssh://example.com",
    "javascript://example.com/%0aalert(1)",
    "data:text/html,x",
    "git@example.com:x/y",
    "view-source:https://example.com",
    "https://example.com/" + "x" * 9_000,
    None,
    7,
    ["https://example.com"],
]


@pytest.mark.parametrize("url", UNCLEAR)
def test_a_url_that_parsers_read_differently_is_unclear(url: object) -> None:
    if url == "http://1.2.3.4.":  # an address, with a final dot
        assert state(url) == "unmet"
        return
    assert state(url) == "unclear"
    assert state(url, "*") == "unclear"


def test_patterns_of_hosts() -> None:
    assert state("https://a.b.example.com", "*.example.com") == "met"
    assert state("https://example.com", "*.example.com") == "unmet"
    assert state("https://notexample.com", "*.example.com") == "unmet"
    assert state("https://anything.example", "*") == "met"
    assert state("https://example.com", "example.com:443") == "met"
    assert state("http://example.com", "example.com:443") == "unmet"
    assert state("https://example.com:444", "example.com:443") == "unmet"
    assert state("https://example.com", "EXAMPLE.com.") == "met"
    assert state("https://xn--bcher-kva.example", "bücher.example") == "met"
    assert state("https://bücher.example", "xn--bcher-kva.example") == "met"
    assert state("http://[0:0::1]:80/", "[::1]") == "met"
    assert state("http://127.0.0.1", "127.0.0.1") == "met"


@pytest.mark.parametrize(
    "text",
    ["", "https://example.com", "example.com/", "*example.com", "a.*.com", "*.127.0.0.1", "127.1", "a b", "x:0", "*.*"],
)
def test_an_invalid_pattern_is_refused(text: str) -> None:
    with pytest.raises(UnclearHost):
        parse_pattern(text)


@settings(max_examples=2_000, deadline=None)
@given(st.text(st.sampled_from("ab.:/@\\?#[]%0129x-é ß\t"), max_size=16).map(lambda text: f"http://{text}"))
def test_a_url_that_is_read_has_the_host_that_others_find(url: str) -> None:
    try:
        host = parse_host(url)
    except UnclearHost:
        return
    parts = urlsplit(url)
    found = (parts.hostname or "").removesuffix(".")
    assert (f"[{found}]" if ":" in found else found.encode("idna").decode()).lower() == host.name
    assert (parts.port or 80) == host.port

"""URLs of OAuth: 60 that are refused, 60 addresses and how far inside a network they lie, and where metadata is."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from accord.auth.urls import (
    URL_CHARACTERS,
    Reach,
    canonical_resource,
    check_url,
    covers,
    origin_of,
    reach_of,
    resource_metadata_urls,
    server_metadata_urls,
)
from accord.errors import AuthorizationError
from accord.wire.hosts import is_loopback

HOSTILE = [
    # other schemes
    *("javascript:alert(1)", "JavaScript:alert(1)", "java\tscript:alert(1)", "javascript://login.example/%0aalert(1)"),
    *("data:text/html,<script>alert(1)</script>", "vbscript:msgbox(1)", "file:///etc/passwd", "FILE:///C:/Windows"),
    *("ftp://login.example/", "ws://login.example/", "ms-msdt:/id", "search-ms:query=x", "blob:https://login.example/1"),
    *("view-source:https://login.example", "about:blank", "mailto:a@login.example", "ssh://login.example", "x://a"),
    # no URL
    *("", " ", "/authorize", "//login.example/authorize", "login.example/authorize", "https:", "https:/", "https://"),
    *("https:///authorize", "https:login.example", "-https://login.example", "--renderer-cmd-prefix=calc"),
    # characters for a shell, a terminal, or a header
    *("https://login.example/ calc", " https://login.example/", "https://login.example/\n", "https://login.example/`id`"),
    *("https://login.example/\r\nHost: x", 'https://login.example/"&calc', "https://login.example/|calc"),
    *("https://login.example/\\..\\calc", "https://login.example/<x>", "https://login.example/^", "https://a/{x}"),
    *("https://login.example/\x1b[2J", "https://login.example/\x00", "https://login.example/\u202egpj", "https://é.example"),
    # the host
    *("https://user@login.example/", "https://user:word@login.example/", "https://login.example@169.254.169.254/"),
    *("https://login.example:0/", "https://login.example:65536/", "https://login.example:x/", "https://[::1/"),
    *("https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://127.1/", "https://0x7f.1/"),
    *("https://[fe80::1%25eth0]/", "https://login..example/", "https://-login.example/", "https://%6cogin.example/"),
    # http, fragments, length
    *("http://login.example/", "http://10.0.0.1/", "http://127.0.0.1.login.example/", "http://localhost.example/"),
    *("https://login.example/#x", "https://login.example/" + "x" * URL_CHARACTERS),
]  # fmt: skip

FINE = [
    "https://login.example",
    "https://login.example:8443/a/b?c=d&e=%20f",
    "HTTPS://LOGIN.example/",
    "https://login.example./",
    "https://xn--lgin-5qa.example/",
    "https://10.0.0.1/",
    "https://[2001:db8::1]:8443/",
    "http://127.0.0.1:33418/callback",
    "http://127.8.9.10/",
    "http://[::1]:80/",
    "http://localhost:1/",
    "http://LOCALHOST/",
]


def test_there_are_60_hostile_urls() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) >= 60


@pytest.mark.parametrize("url", HOSTILE)
def test_hostile_urls_are_refused(url: str) -> None:
    with pytest.raises(AuthorizationError) as caught:
        check_url(url, "authorization_endpoint")
    assert caught.value.step == "authorization_endpoint"
    assert caught.value.cure == "accord opens https URLs, and http on loopback"
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("url", FINE)
def test_usual_urls_are_accepted(url: str) -> None:
    assert check_url(url, "issuer").geturl().lower().rstrip("/") == url.lower().rstrip("/")


@given(st.text(max_size=60) | st.text(max_size=60).map("https://".__add__))
def test_what_is_accepted_has_a_host_and_only_characters_of_a_uri(url: str) -> None:
    try:
        parts = check_url(url, "issuer")
    except AuthorizationError:
        return
    assert parts.scheme in ("https", "http")
    assert parts.hostname
    assert url.isascii()
    assert url.isprintable()
    assert not set(url) & set(" \"'<>\\^`{|}") - {"'"}


PUBLIC, PRIVATE, LOOPBACK, SPECIAL = Reach.PUBLIC, Reach.PRIVATE, Reach.LOOPBACK, Reach.SPECIAL

ADDRESSES = {
    **dict.fromkeys(("8.8.8.8", "1.1.1.1", "93.184.216.34", "172.15.0.1", "172.32.0.1", "192.167.1.1", "11.0.0.0",
                     "100.63.255.255", "100.128.0.0", "169.253.0.1", "2606:4700::1111", "2a00:1450:4001::200e"),
                    PUBLIC),
    **dict.fromkeys(("10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1",
                     "100.127.255.255", "198.18.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.0.0.8",
                     "fc00::1", "fd12:3456::1", "2001:db8::1", "0.1.2.3"), PRIVATE),
    **dict.fromkeys(("127.0.0.1", "127.0.0.0", "127.1.2.3", "127.255.255.255", "::1", "0:0:0:0:0:0:0:1"), LOOPBACK),
    **dict.fromkeys(("0.0.0.0", "::", "169.254.169.254", "169.254.0.1", "224.0.0.1", "239.255.255.250", "240.0.0.1",
                     "255.255.255.255", "fe80::1", "fe80::1%eth0", "febf::1", "ff02::1", "ff0e::1", "fec0::1"),
                    SPECIAL),
    # IPv4 in IPv6: mapped, compatible, 6to4, Teredo, NAT64
    "::ffff:8.8.8.8": PUBLIC,
    "::ffff:10.0.0.1": PRIVATE,
    "::ffff:127.0.0.1": LOOPBACK,
    "::ffff:7f00:1": LOOPBACK,
    "::ffff:0.0.0.0": SPECIAL,
    "::ffff:169.254.169.254": SPECIAL,
    "::ffff:a9fe:a9fe": SPECIAL,
    "::127.0.0.1": SPECIAL,
    "::10.0.0.1": SPECIAL,
    "::169.254.169.254": SPECIAL,
    "::ffff:0:127.0.0.1": SPECIAL,
    "2002:7f00:1::": LOOPBACK,
    "2002:a9fe:a9fe::1": SPECIAL,
    "2002:808:808::1": PUBLIC,
    "2001:0:4136:e378:8000:63bf:80ff:fffe": LOOPBACK,
    "2001:0:4136:e378:8000:63bf:5601:5601": SPECIAL,
    "64:ff9b::8.8.8.8": PUBLIC,
    "64:ff9b::127.0.0.1": LOOPBACK,
    "64:ff9b::a9fe:a9fe": SPECIAL,
    "64:ff9b:1::10.0.0.1": SPECIAL,
    "64:ff9b:1::127.0.0.1": SPECIAL,
}  # fmt: skip


def test_there_are_60_addresses() -> None:
    assert len(ADDRESSES) >= 60


@pytest.mark.parametrize(("address", "reach"), ADDRESSES.items(), ids=str)
def test_how_far_inside_a_network_an_address_lies(address: str, reach: Reach) -> None:
    assert reach_of(address) == reach


@pytest.mark.parametrize("text", ["", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "1.2.3.4.5", "::g"])
def test_what_is_no_address_in_its_usual_form_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        reach_of(text)


@given(st.ip_addresses(v=4))
def test_a_mapped_address_lies_where_its_ipv4_address_does(address: object) -> None:
    for prefix in ("::ffff:", "64:ff9b::"):
        assert reach_of(f"{prefix}{address}") == reach_of(str(address))


@pytest.mark.parametrize(
    ("host", "expected"),
    [("localhost", True), ("LocalHost", True), ("app.localhost", True), ("localhost.", True),
     ("notlocalhost", False), ("127.3.2.1", True), ("::1", True), ("::ffff:127.0.0.1", False),
     ("localhost.example", False), ("0.0.0.0", False), ("10.0.0.1", False)],
)  # fmt: skip
def test_which_hosts_are_this_machine(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://MCP.example:443/a?b", "https://mcp.example"),
        ("HTTP://localhost:80", "http://localhost"),
        ("https://mcp.example:80/", "https://mcp.example:80"),
        ("https://[2001:DB8::1]:8443/x", "https://[2001:db8::1]:8443"),
    ],
)
def test_the_origin_of_a_url(url: str, origin: str) -> None:
    assert origin_of(url) == origin


SERVER = "https://mcp.example/a/b"


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("https://mcp.example/a/b", True),
        ("https://mcp.example/a/b/", True),
        ("https://mcp.example/a", True),
        ("https://mcp.example/a/", True),
        ("https://mcp.example", True),
        ("https://mcp.example/", True),
        ("https://MCP.example:443/a/b", True),
        ("https://mcp.example/a/bc", False),
        ("https://mcp.example/a/b/c", False),
        ("https://mcp.example/A/b", False),
        ("https://mcp.example/a/b?tenant=x", False),
        ("https://mcp.example:8443/a/b", False),
        ("https://mcp.example.evil.example/a/b", False),
        ("http://mcp.example/a/b", False),
        ("https://mcp.example//", False),
        ("https://mcp.example/a/%62", False),
        ("https://mcp.example/a/b/../b", False),
    ],
)
def test_a_resource_is_the_server_or_a_parent_of_it_by_segments(resource: str, expected: bool) -> None:
    assert covers(resource, SERVER) is expected


def test_a_parent_is_no_parent_by_dots() -> None:
    assert not covers("https://mcp.example/tenant-1", "https://mcp.example/tenant-1/../tenant-2/mcp")
    assert not covers("https://mcp.example/tenant-1", "https://mcp.example/tenant-1/%2e%2E/tenant-2/mcp")


def test_the_resource_of_a_server_that_publishes_none() -> None:
    assert canonical_resource("HTTPS://MCP.Example:443/A/?x#y") == "https://mcp.example/A"


def test_where_metadata_is_published() -> None:
    known = "https://mcp.example/.well-known/oauth-protected-resource"
    assert resource_metadata_urls("https://mcp.example/a/b/?x") == [f"{known}/a/b", known]
    assert resource_metadata_urls("https://mcp.example/") == [known]
    assert server_metadata_urls("https://login.example") == [
        "https://login.example/.well-known/oauth-authorization-server",
        "https://login.example/.well-known/openid-configuration",
    ]
    assert server_metadata_urls("https://login.example/tenant/") == [
        "https://login.example/.well-known/oauth-authorization-server/tenant",
        "https://login.example/.well-known/openid-configuration/tenant",
        "https://login.example/tenant/.well-known/openid-configuration",
    ]

"""The verdict of the gate on every form of `Host` and `Origin` that was ever used to get past one."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given, strategies as st

from accord.errors import DeclarationError
from accord.wire.hosts import LOOPBACK_HOSTS, LOOPBACK_ORIGINS, HostCheck, HostPatterns

IN, OUT = True, False

# What a server lets in that nobody configured.
HOSTS: list[tuple[bytes | None, bool]] = [
    (b"127.0.0.1", IN),
    (b"127.0.0.1:8000", IN),
    (b"127.0.0.1:65535", IN),
    (b"localhost", IN),
    (b"localhost:8000", IN),
    (b"LocalHost:8000", IN),  # names have no case
    (b"[::1]", IN),
    (b"[::1]:8000", IN),
    (b"[0:0:0:0:0:0:0:1]:8000", IN),  # the same address
    (b"[::0001]", IN),
    (None, OUT),
    (b"", OUT),
    (b" ", OUT),
    (b"evil.example.com", OUT),
    (b"evil.example.com:8000", OUT),
    (b"localhost.evil.example.com", OUT),
    (b"evil-localhost", OUT),
    (b"localhost-evil.com:8000", OUT),
    (b"127.0.0.1.evil.example.com", OUT),
    (b"127.0.0.1.nip.io", OUT),
    (b"localhost.", OUT),
    (b"localhost..", OUT),
    (b".localhost", OUT),
    (b"127.0.0.1.", OUT),
    (b"0.0.0.0:8000", OUT),  # reaches this machine, and is no name of it
    (b"[::]:8000", OUT),
    (b"127.0.0.2", OUT),
    (b"127.1", OUT),
    (b"2130706433", OUT),
    (b"0x7f000001", OUT),
    (b"0177.0.0.1", OUT),
    (b"127.0.0.01", OUT),
    (b"[::ffff:127.0.0.1]", OUT),
    (b"[::1%25lo]", OUT),
    (b"[::1%lo]:8000", OUT),
    (b"::1", OUT),
    (b"::1:8000", OUT),
    (b"[::1", OUT),
    (b"[::1]8000", OUT),
    (b"[[::1]]", OUT),
    (b"[1::2::3]", OUT),
    (b"[localhost]", OUT),
    (b"localhost:", OUT),
    (b"localhost:0", OUT),
    (b"localhost:65536", OUT),
    (b"localhost:999999999999", OUT),
    (b"localhost:08000", OUT),
    (b"localhost:+80", OUT),
    (b"localhost:-1", OUT),
    (b"localhost:*", OUT),
    (b"localhost:80:80", OUT),
    (b"localhost:80a", OUT),
    (b"*", OUT),
    (b"localhost@evil.example.com", OUT),
    (b"evil.example.com@localhost", OUT),
    (b"user:pass@localhost:8000", OUT),
    (b"localhost:8000@evil.example.com", OUT),
    (b"localhost, evil.example.com", OUT),
    (b"localhost,localhost", OUT),
    (b"localhost evil.example.com", OUT),
    (b" localhost", OUT),
    (b"localhost ", OUT),
    (b"localhost\n", OUT),
    (b"localhost\r\nX: y", OUT),
    (b"localhost\x00", OUT),
    (b"localhost\t:80", OUT),
    (b"localhost/", OUT),
    (b"localhost/../evil", OUT),
    (b"localhost?x", OUT),
    (b"localhost#evil", OUT),
    (b"localhost\\@evil.example.com", OUT),
    (b"http://localhost", OUT),
    (b"//localhost", OUT),
    (b"%6cocalhost", OUT),
    (b"localhost%00", OUT),
    ("lоcalhost".encode(), OUT),  # noqa: RUF001 - a Cyrillic o
    ("localhoſt".encode(), OUT),  # noqa: RUF001 - becomes an s in upper case
    ("１２７.0.0.1".encode(), OUT),  # noqa: RUF001 - digits of full width
    (b"localhost" + b"a" * 100_000, OUT),
]

ORIGINS: list[tuple[bytes | None, bool]] = [
    (None, IN),  # no browser, or no page of another origin
    (b"http://127.0.0.1", IN),
    (b"http://127.0.0.1:8000", IN),
    (b"http://localhost", IN),
    (b"http://localhost:3000", IN),
    (b"HTTP://LOCALHOST:3000", IN),
    (b"http://[::1]", IN),
    (b"http://[::1]:5173", IN),
    (b"http://[0:0:0:0:0:0:0:1]:5173", IN),
    (b"", OUT),
    (b"null", OUT),
    (b"undefined", OUT),
    (b"*", OUT),
    (b"localhost", OUT),
    (b"localhost:3000", OUT),
    (b"//localhost", OUT),
    (b"://localhost", OUT),
    (b"http:localhost", OUT),
    (b"http:/localhost", OUT),
    (b"http:///localhost", OUT),
    (b"https://localhost:3000", OUT),
    (b"ws://localhost:3000", OUT),
    (b"httpx://localhost:3000", OUT),
    (b"file://localhost", OUT),
    (b"file://", OUT),
    (b"javascript://localhost", OUT),
    (b"chrome-extension://localhost", OUT),
    (b"http://evil.example.com", OUT),
    (b"https://evil.example.com", OUT),
    (b"http://localhost.evil.example.com", OUT),
    (b"http://localhost:3000.evil.example.com", OUT),
    (b"http://evil-localhost:3000", OUT),
    (b"http://evillocalhost", OUT),
    (b"http://127.0.0.1.evil.example.com", OUT),
    (b"http://127.0.0.1:8000.evil.example.com", OUT),
    (b"http://localhost@evil.example.com", OUT),
    (b"http://localhost:3000@evil.example.com", OUT),
    (b"http://evil.example.com@localhost", OUT),
    (b"http://user:pass@localhost:3000", OUT),
    (b"http://localhost.:3000", OUT),
    (b"http://0.0.0.0:8000", OUT),
    (b"http://[::]:8000", OUT),
    (b"http://[::ffff:7f00:1]:8000", OUT),
    (b"http://2130706433", OUT),
    (b"http://localhost:", OUT),
    (b"http://localhost:0", OUT),
    (b"http://localhost:65536", OUT),
    (b"http://localhost:*", OUT),
    (b"http://localhost/", OUT),
    (b"http://localhost/path", OUT),
    (b"http://localhost?x", OUT),
    (b"http://localhost#x", OUT),
    (b"http://localhost\\.evil.example.com", OUT),
    (b"http://localhost http://evil.example.com", OUT),
    (b"http://evil.example.com http://localhost", OUT),
    (b"http://localhost, http://evil.example.com", OUT),
    (b"http://localhost,http://localhost", OUT),
    (b" http://localhost", OUT),
    (b"http://localhost ", OUT),
    (b"http://localhost\n", OUT),
    (b"http://localhost\x00.evil.example.com", OUT),
    (b"ht\ttp://localhost", OUT),
    ("http://lоcalhost".encode(), OUT),  # noqa: RUF001 - a Cyrillic o
    (b"http://localhost:3000" + b"0" * 100_000, OUT),
]


def lets_in(gate: HostCheck, host: bytes | None = b"localhost", origin: bytes | None = None) -> bool:
    refusal = gate.refusal(host, origin)
    assert refusal is None or len(refusal) < 1_500
    return refusal is None


@pytest.mark.parametrize(("host", "verdict"), HOSTS)
def test_a_host_is_let_in_or_not(host: bytes | None, verdict: bool) -> None:
    gate = HostCheck()
    assert [lets_in(gate, host), lets_in(gate, host)] == [verdict, verdict]  # the second time from memory


@pytest.mark.parametrize(("origin", "verdict"), ORIGINS)
def test_an_origin_is_let_in_or_not(origin: bytes | None, verdict: bool) -> None:
    gate = HostCheck()
    assert [lets_in(gate, origin=origin), lets_in(gate, origin=origin)] == [verdict, verdict]


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("example.com", "example.com example.com:80 example.com:443 EXAMPLE.com", "example.com:8443 www.example.com"),
        ("Example.COM:8443", "example.com:8443", "example.com example.com:443 example.com:84430 example.com:844"),
        ("example.com:443", "example.com example.com:443", "example.com:80"),
        ("box:*", "box box:1 box:65535", "box2 box:x other"),
        ("10.0.0.5:8000", "10.0.0.5:8000", "10.0.0.5 10.0.0.50:8000"),
        ("[fe80::A]:*", "[fe80::a] [FE80:0::000a]:80", "[fe80::b]"),
        ("my_box-1", "my_box-1", "my-box_1"),
        ("*", "anything.at.all:1 not/a@host", ""),
    ],
)
def test_a_pattern_of_hosts_means_what_it_says(pattern: str, inside: str, outside: str) -> None:
    allowed = HostPatterns("host", [pattern])
    assert all(allowed.allows(value.encode()) for value in inside.split())
    assert not any(allowed.allows(value.encode()) for value in outside.split())


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        (
            "https://app.example.com",
            "https://app.example.com https://app.example.com:443 HTTPS://App.Example.com",
            "http://app.example.com https://app.example.com:80 https://app.example.com:8443 https://example.com",
        ),
        ("http://a.example:80", "http://a.example http://a.example:80", "https://a.example http://a.example:443"),
        ("http://a.example", "http://a.example:80", "http://a.example:443"),
        ("https://a.example:8443", "https://a.example:8443", "https://a.example"),
        ("https://a.example:*", "https://a.example https://a.example:1", "http://a.example"),
        ("chrome-extension://abcdef", "chrome-extension://abcdef", "chrome-extension://abcdeg https://abcdef"),
        ("tauri://localhost", "tauri://localhost", "http://localhost tauri://localhost:80"),
        ("*", "null https://anything", ""),
    ],
)
def test_a_pattern_of_origins_means_what_it_says(pattern: str, inside: str, outside: str) -> None:
    allowed = HostPatterns("origin", [pattern])
    assert all(allowed.allows(value.encode()) for value in inside.split())
    assert not any(allowed.allows(value.encode()) for value in outside.split())


NO_HOSTS = ["", " ", "a b", "*.example.com", "https://example.com", "example.com/", "::1", ":*", "::1:*", "**"]
NO_HOSTS += ["box:0", "box:70000", "box:80:*", "box:*:*", "box:", "b\u00fccher.example"]


@pytest.mark.parametrize("pattern", NO_HOSTS)
def test_what_is_no_pattern_of_hosts_is_refused_when_declared(pattern: str) -> None:
    with pytest.raises(DeclarationError, match="write it as example"):
        HostPatterns("host", [pattern])


@pytest.mark.parametrize(
    "pattern",
    ["", "null", "example.com", "https://", "https://*.a.example", "https://a.example/", "https://u@a.example"],
)
def test_what_is_no_pattern_of_origins_is_refused_when_declared(pattern: str) -> None:
    with pytest.raises(DeclarationError, match="write it as https://app"):
        HostPatterns("origin", [pattern])


def test_one_text_in_the_place_of_a_list_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"hosts=\['box'\]"):
        HostCheck(hosts="box")
    with pytest.raises(DeclarationError, match=r"origins=\['http://box'\]"):
        HostCheck(origins="http://box")


def test_host_and_origin_must_both_be_let_in() -> None:
    gate = HostCheck()
    assert lets_in(gate, b"localhost:8000", b"http://localhost:8000")
    assert not lets_in(gate, b"localhost:8000", b"http://evil.example.com")
    assert not lets_in(gate, b"evil.example.com", b"http://localhost:8000")


def test_without_names_every_request_is_refused() -> None:
    assert not lets_in(HostCheck(hosts=[]), b"localhost")
    assert not lets_in(HostCheck(origins=[]), b"localhost", b"http://localhost")


def test_a_star_accepts_a_request_without_a_host() -> None:
    assert lets_in(HostCheck(hosts=["*"]), None)


@pytest.mark.parametrize(
    ("host", "origin", "says"),
    [
        (b"box:8000", None, ["'box:8000'", "HTTPOptions(hosts=['box:8000'])", "--allow-host", "--public-url"]),
        (b"a b", None, ["'a b'", "not a name and a port"]),
        (None, None, ["no Host header"]),
        (b"localhost", b"http://a.example", ["HTTPOptions(origins=['http://a.example'])", "--allow-origin"]),
        (b"localhost", b"null", ["'null'", "not a scheme"]),
        (b"\r\n\xff" + b"x" * 10_000, None, ["'\\r\\n\\xffxxx", "xxx...'"]),
    ],
)
def test_a_refusal_says_what_was_refused_and_how_to_allow_it(
    host: bytes | None, origin: bytes | None, says: list[str]
) -> None:
    refusal = HostCheck().refusal(host, origin)
    assert refusal is not None
    assert all(part in refusal for part in says)
    assert refusal.isascii()
    assert refusal.isprintable()


@pytest.mark.parametrize("header", ["host", "origin"])
def test_the_cure_of_a_refusal_works(header: str) -> None:
    host, origin = (b"box.example:8000", None) if header == "host" else (b"localhost", b"https://app.example")
    refusal = HostCheck().refusal(host, origin) or ""
    advice = refusal.partition("HTTPOptions(")[2].partition(")")[0]
    named: list[str] = [advice.partition("['")[2].partition("']")[0]]
    assert lets_in(
        HostCheck(hosts=[*LOOPBACK_HOSTS, *named]) if header == "host" else HostCheck(origins=named), host, origin
    )


def test_what_is_remembered_is_bounded_whatever_comes() -> None:
    gate = HostCheck(hosts=["box:*"], origins=["http://box:*"])
    for port in range(1, 3_000):
        assert lets_in(gate, b"box:%d" % port, b"http://box:%d" % port)
        assert not lets_in(gate, b"evil:%d" % port)
    assert len(gate.hosts._cache) <= 256
    assert len(gate.origins._cache) <= 256
    everything = HostCheck(hosts=["*"], origins=["*"])
    assert lets_in(everything, b"x" * 10_000, b"y" * 10_000)
    assert not everything.hosts._cache


marks = [":", "//", "://", "[", "]", ".", "@", "/", " ", ",", "\\", "?", "#", "%", "\n", "\x00", "-", "_", "*", "é"]
words = [
    "http",
    "https",
    "localhost",
    "LOCALHOST",
    "127.0.0.1",
    "[::1]",
    "evil.com",
    "80",
    "3000",
    "65536",
    "0",
    "null",
]
parts = st.sampled_from(marks + words)


@given(st.lists(parts, max_size=8).map("".join) | st.builds("http://{}:{}".format, parts, parts))
def test_what_is_let_in_is_local_to_another_reader_of_urls_too(value: str) -> None:
    if HostPatterns("origin", LOOPBACK_ORIGINS).allows(value.encode()):
        url = urlsplit(value)
        assert (url.scheme, url.hostname in ("127.0.0.1", "localhost", "::1")) == ("http", True)
        assert value.lower() == f"http://{url.netloc.lower()}"
        assert url.username is None
        assert url.port != 0


@given(st.sampled_from(["127.0.0.1", "localhost", "LOCALHOST", "[::1]"]), st.none() | st.integers(1, 65535))
def test_the_machines_own_pages_are_let_in_on_any_port(name: str, port: int | None) -> None:
    value = f"http://{name}" if port is None else f"http://{name}:{port}"
    assert lets_in(HostCheck(), value.removeprefix("http://").encode(), value.encode())


@given(st.binary(max_size=400))
def test_no_bytes_make_the_gate_fail(value: bytes) -> None:
    gate = HostCheck()
    assert gate.refusal(value, None) is not None or value.lower().startswith((b"localhost", b"127.0.0.1", b"[::1]"))
    assert gate.refusal(b"localhost", value) is not None or value.lower().startswith(b"http://")


def test_a_name_has_a_length() -> None:
    allowed = HostPatterns("host", LOOPBACK_HOSTS)
    assert allowed.is_well_formed(b"a" * 253 + b":65535")
    assert not allowed.is_well_formed(b"a" * 321)

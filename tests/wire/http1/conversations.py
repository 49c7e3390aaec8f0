"""Two hundred conversations: what a client sends, and what it means, a word for each event.

`POST /a` is a head, `+hello` a body (all of it), `.` the end of a request, `400` a refusal.
"""

from __future__ import annotations

import random
from typing import NamedTuple

HEAD_BYTES, FIELDS, BODY_BYTES = 600, 20, 300
"""The budget that these are for."""


class Conversation(NamedTuple):
    sent: bytes
    meaning: list[str]


def request(method: str, path: str, *fields: str, body: str = "", version: str = "1.1", host: str = "host: e") -> bytes:
    lines = [f"{method} {path} HTTP/{version}", *([host] if host else []), *fields, "", body]
    return "\r\n".join(lines).encode("latin-1")


def post(path: str, body: str, *fields: str) -> bytes:
    return request("POST", path, *fields, f"Content-Length: {len(body)}", body=body)


def chunked(path: str, *chunks: str, extension: str = "", trailers: str = "", fields: tuple[str, ...] = ()) -> bytes:
    framed = "".join(f"{len(chunk):X}{extension}\r\n{chunk}\r\n" for chunk in chunks)
    return request("POST", path, *fields, "Transfer-Encoding: chunked", body=f"{framed}0{extension}\r\n{trailers}\r\n")


def endless(text: str) -> bytes:
    return (text * (2 * HEAD_BYTES)).encode()[: 2 * HEAD_BYTES]


def served(head: str, body: str = "") -> list[str]:
    return [head, *([f"+{body}"] if body else []), "."]


GOOD = [
    Conversation(request("GET", "/"), served("GET /")),
    Conversation(request("GET", "/a?b=c&d"), served("GET /a?b=c&d")),
    Conversation(request("GET", "/%2e%2e/%00"), served("GET /%2e%2e/%00")),
    Conversation(request("DELETE", "/mcp", "Mcp-Session-Id: 1"), served("DELETE /mcp")),
    Conversation(request("HEAD", "/"), served("HEAD /")),
    Conversation(request("OPTIONS", "*"), served("OPTIONS *")),
    Conversation(request("GET", "http://e/x?y"), served("GET /x?y")),
    Conversation(request("GET", "HTTP://E"), served("GET /")),
    Conversation(request("GET", "http://e?q"), served("GET /?q")),
    Conversation(request("BREW", "/pot"), served("BREW /pot")),
    Conversation(b"\r\n" + request("GET", "/"), served("GET /")),
    Conversation(b"\r\n\r\n\r\n" + post("/", "x"), served("POST /", "x")),
    Conversation(
        request("GET", "/", "x-empty:", "x-spaces: \t a\t b \t", "x-\u00e9:".replace("\u00e9", "e") + "\u00e9"),
        served("GET /"),
    ),
    Conversation(request("GET", "/", "ACCEPT: a", "accept: b", "!#$%&'*+-.^_`|~09: c"), served("GET /")),
    Conversation(post("/a", "hello"), served("POST /a", "hello")),
    Conversation(post("/a", ""), served("POST /a")),
    Conversation(post("/a", "x" * BODY_BYTES), served("POST /a", "x" * BODY_BYTES)),
    Conversation(post("/a", "\r\n\r\nGET / HTTP/1.1\r\n\r\n"), served("POST /a", "\r\n\r\nGET / HTTP/1.1\r\n\r\n")),
    Conversation(request("GET", "/", "content-length: 2", body="hi"), served("GET /", "hi")),
    Conversation(request("POST", "/", "content-length: 002", body="hi"), served("POST /", "hi")),
    Conversation(post("/a", "hello", "expect: 100-continue"), served("POST /a", "hello")),
    Conversation(chunked("/c"), served("POST /c")),
    Conversation(chunked("/c", "a", "bc", "x" * 200), served("POST /c", "abc" + "x" * 200)),
    Conversation(chunked("/c", "\r\n0\r\n\r\n"), served("POST /c", "\r\n0\r\n\r\n")),
    Conversation(chunked("/c", "hi", extension=';a=b;c="d e"'), served("POST /c", "hi")),
    Conversation(chunked("/c", "hi", extension=" \t;a"), served("POST /c", "hi")),
    Conversation(chunked("/c", "hi", trailers="Authorization: Bearer x\r\nHost: evil\r\n"), served("POST /c", "hi")),
    Conversation(chunked("/c", trailers="Mcp-Method: tools/call\r\nMcp-Name: rm\r\n"), served("POST /c")),
    Conversation(chunked("/c", trailers="Content-Length: 9\r\n"), served("POST /c")),
    Conversation(chunked("/c", "hi", fields=("Trailer: x", "expect: 100-continue")), served("POST /c", "hi")),
    Conversation(
        request("POST", "/", "transfer-encoding: CHUNKED", body="00002\r\nhi\r\n00\r\n\r\n"), served("POST /", "hi")
    ),
]
"""After these, the connection goes on."""

LAST = [
    Conversation(request("GET", "/", "Connection: close"), served("GET /")),
    Conversation(request("GET", "/", "Connection: x, Close"), served("GET /")),
    Conversation(post("/a", "hi", "Connection: close"), served("POST /a", "hi")),
    Conversation(chunked("/a", "hi", fields=("connection: close",)), served("POST /a", "hi")),
    Conversation(request("GET", "/", version="1.0", host=""), served("GET /")),
    Conversation(request("GET", "/", "connection: keep-alive", version="1.0"), served("GET /")),
    Conversation(request("POST", "/", "content-length: 2", version="1.0", body="hi"), served("POST /", "hi")),
    Conversation(request("GET", "/", "connection: upgrade", "upgrade: websocket"), served("GET /")),
    Conversation(post("/a", "hi", "connection: Upgrade, HTTP2-Settings", "upgrade: h2c"), served("POST /a", "hi")),
    Conversation(chunked("/a", "hi", fields=("connection: upgrade", "upgrade: h2c")), served("POST /a", "hi")),
]
"""After these, nothing is read."""

FRAMING = "POST / HTTP/1.1\r\nhost: e\r\n"
BAD = [
    *(
        Conversation(sent, ["400"])
        for sent in (
            b"\x16\x03\x01\x02\x00\x01\x00",
            b"\0",
            b"{}\n",
            b"\r\n\r\n\0",
            b"\n\nGET / HTTP/1.1\r\n\r\n",
            b"\rGET / HTTP/1.1\r\n\r\n",
            b"SSH-2.0-OpenSSH_9.2\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET /\r\n\r\n",
            b"GET / HTTP/0.9\r\n\r\n",
            b"GET / HTTP/1.2\r\nhost: e\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET / http/1.1\r\nhost: e\r\n\r\n",
            b"GET / HTTP/1.1 \r\nhost: e\r\n\r\n",
            b"GET  / HTTP/1.1\r\nhost: e\r\n\r\n",
            b" GET / HTTP/1.1\r\nhost: e\r\n\r\n",
            b"GET\t/ HTTP/1.1\r\nhost: e\r\n\r\n",
            b"GET / x HTTP/1.1\r\nhost: e\r\n\r\n",
            b"GET /#a HTTP/1.1\r\nhost: e\r\n\r\n",
            b"GET /\xc3\xa9 HTTP/1.1\r\nhost: e\r\n\r\n",
            b"GET a HTTP/1.1\r\nhost: e\r\n\r\n",
            b"GET * HTTP/1.1\r\nhost: e\r\n\r\n",
            b"GET http://evil/ HTTP/1.1\r\nhost: e\r\n\r\n",
            b"GET http://e@evil/ HTTP/1.1\r\nhost: e\r\n\r\n",
            b"GET ftp://e/ HTTP/1.1\r\nhost: e\r\n\r\n",
            b"CONNECT e:80 HTTP/1.1\r\nhost: e\r\n\r\n",
            b"G(T / HTTP/1.1\r\nhost: e\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: e\r\nhost: e\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: e\r\nHost: evil\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost : e\r\n\r\n",
            b"GET / HTTP/1.1\r\n host: e\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: e\r\n folded\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: e\r\n\tfolded: x\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: e\r\nnothing\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: e\r\n: nameless\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: e\r\na b: c\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: e\r\n\xe9: c\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: e\r\nx: \0\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: e\r\nx: \x7f\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: e\r\nx: a\rb: c\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: e\r\nx: a\nb: c\r\n\r\n",
            b"GET / HTTP/1.1\nhost: e\n\n",
            b"GET / HTTP/1.1\r\nhost: e\r\n\n",
            *(
                f"{FRAMING}{lines}\r\n\r\n".encode() + b"0\r\n\r\n"
                for lines in (
                    "content-length: -1",
                    "content-length: +1",
                    "content-length: x",
                    "content-length:",
                    "content-length: 1 1",
                    "content-length: 0x1",
                    "content-length: 1, 1",
                    "content-length: \u00b2",
                    "content-length: 1\r\ncontent-length: 1",
                    "content-length: 1\r\nContent-Length: 2",
                    "content-length: 9999999999999999999",
                    "content-length: 5\r\ntransfer-encoding: chunked",
                    "transfer-encoding: chunked\r\ncontent-length: 5",
                    "transfer-encoding: gzip",
                    "transfer-encoding: gzip, chunked",
                    "transfer-encoding: chunked, chunked",
                    "transfer-encoding: chunked, identity",
                    "transfer-encoding: identity",
                    "transfer-encoding:",
                    "transfer-encoding: xchunked",
                    "transfer-encoding: \x0bchunked",
                    "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
                    "transfer-encoding: chunked\r\nTransfer-Encoding: identity",
                    "transfer-encoding : chunked",
                    "transfer-encoding\t: chunked",
                )
            ),
            b"POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        )
    ),
    *(
        Conversation(
            f"{FRAMING}transfer-encoding: chunked\r\n\r\n{body}".encode("latin-1"), ["POST /", *meaning, "400"]
        )
        for body, meaning in (
            ("x\r\n", []),
            ("\r\n", []),
            ("-1\r\n", []),
            ("+1\r\nx\r\n", []),
            ("0x1\r\nx\r\n", []),
            (" 1\r\nx\r\n", []),
            ("1 \r\nx\r\n", []),
            ("1_0\r\nx\r\n", []),
            ("11111111111111111\r\nx", []),
            ("1\nx\n0\n\n", []),
            ("1\rx", []),
            ("1;\n\r\nx\r\n", []),
            ("1;\x00\r\nx\r\n", []),
            ("1\r\nxy\r\n", ["+x"]),
            ("1\r\nx\n", ["+x"]),
            ("1\r\nx\r1", ["+x"]),
            ("1\r\nx0\r\n\r\n", ["+x"]),
            ("1\r\nx\r\n0\r\nno field\r\n\r\n", ["+x"]),
            ("0\r\n folded: x\r\n\r\n", []),
            ("0\r\nx: a\nb: c\r\n\r\n", []),
            ("0\r\nx : y\r\n\r\n", []),
        )
    ),
]

LARGE = [
    Conversation(endless("x"), ["431"]),
    Conversation(endless("\r\n"), ["431"]),
    Conversation(b"GET /" + endless("x"), ["431"]),
    Conversation(b"GET / HTTP/1.1\r\nx: " + endless("x"), ["431"]),
    Conversation(b"GET / HTTP/1.1\r\n" + endless("x: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n"), ["431"]),
    Conversation(b"GET / HTTP/1.1\r\n" + endless("a:\r\n"), ["431"]),
    Conversation(request("GET", "/", *["a: b"] * (FIELDS - 1)), served("GET /")),
    Conversation(request("GET", "/", *["a: b"] * FIELDS), ["431"]),
    Conversation(request("GET", "/", "x: " + "x" * (HEAD_BYTES - 32)), served("GET /")),
    Conversation(request("GET", "/", "x: " + "x" * (HEAD_BYTES - 31)), ["431"]),
    Conversation(chunked("/", *["x"] * 5, trailers="a: b\r\n" * (FIELDS - 2)), served("POST /", "xxxxx")),
    Conversation(chunked("/", *["x"] * 5, trailers="a: b\r\n" * (FIELDS - 1)), ["POST /", "+xxxxx", "431"]),
    Conversation(chunked("/", trailers="a: " + "b" * (HEAD_BYTES - 61) + "\r\n"), served("POST /")),
    Conversation(chunked("/", trailers="a: " + "b" * (HEAD_BYTES - 60) + "\r\n"), ["POST /", "431"]),
    Conversation(chunked("/", trailers="a: " + endless("b").decode()), ["POST /", "431"]),
    Conversation(chunked("/", "x", extension=";" + endless("b").decode()), ["POST /", "431"]),
    Conversation(chunked("/", *"xxxxxxxx", extension=";" + "b" * 80), ["POST /", "+xxxxxx", "431"]),
    Conversation(post("/a", "x" * (BODY_BYTES + 1)), ["POST /a", "+" + "x" * BODY_BYTES, "413"]),
    Conversation(chunked("/a", "x" * (BODY_BYTES + 1)), ["POST /a", "+" + "x" * BODY_BYTES, "413"]),
    Conversation(chunked("/a", *["x" * 100] * 9), ["POST /a", "+" + "x" * BODY_BYTES, "413"]),
    Conversation(post("/a", "cut short")[:-3], ["POST /a", "+cut sh"]),
    Conversation(chunked("/a", "cut short")[:-7], ["POST /a", "+cut short"]),
]


def _pipelines(count: int) -> list[Conversation]:
    """Several requests in a row: the last may close the connection, or be one that is refused."""
    chosen = random.Random(7)
    made = []
    for number in range(count):
        parts = chosen.choices(GOOD, k=2 + number % 4)
        last = chosen.choice(LAST + BAD)
        if number % 3:
            parts.append(last)
        if number % 3 and last in LAST:
            parts.append(Conversation(chosen.choice(GOOD + BAD).sent, []))
        made.append(
            Conversation(b"".join(part.sent for part in parts), [word for part in parts for word in part.meaning])
        )
    return made


_FEW = [*GOOD, *LAST, *BAD, *LARGE]
CONVERSATIONS = [*_FEW, *_pipelines(200 - len(_FEW))]

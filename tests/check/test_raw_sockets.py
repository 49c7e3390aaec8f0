"""What passed on a raw connection stands in the findings: the bytes both ways, and no secrets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from accord.check.engine.report import Finding
from accord.check.settings import CheckSettings
from accord.check.wires.socket import Socket, head

from tests.check.mutants.table import MUTANTS
from tests.check.mutants.test_mutants import check

REPLY = b"HTTP/1.1 200 OK\r\nMcp-Session-Id: of-the-server\r\nContent-Length: 2\r\n\r\n{}"
HEADERS = {"authorization": "Bearer of-the-person", "Mcp-Session-Id": "of-the-server", "x-key": "of-the-person"}


@asynccontextmanager
async def site() -> AsyncIterator[str]:
    """A URL where whatever comes is answered; after "bye" it is closed."""
    ended: list[asyncio.Event] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.Event())
        this = ended[-1]
        with suppress(OSError):
            while (data := await reader.read(1 << 16)) and b"bye" not in data:
                writer.write(REPLY)
            writer.close()
            await writer.wait_closed()
        this.set()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://me:the-password@127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp?key=of-the-query"
    for each in ended:
        await each.wait()


async def found(rule: str, name: str) -> Finding:
    """What is found of a mutant."""
    mutant = next(each for each in MUTANTS if (each.rule, each.name) == (rule, name))
    settings = CheckSettings(revisions=(mutant.revision,), only=(rule,), timeout=1, jobs=4)
    (finding,) = (await check(mutant, settings, "http")).findings
    return finding


async def test_both_sides_of_a_raw_exchange_are_evidence() -> None:
    finding = await found("http/nonsense", "whatever comes is a request")
    sent, came, *_ = finding.evidence
    assert sent == r"→ b'\r\n\r\n'"
    assert came == r"← b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'"


async def test_raw_messages_come_before_the_request_that_is_not_served() -> None:
    finding = await found("http/cut-requests", "it ends with the first client that is gone")
    assert finding.evidence[0].startswith(r"→ b'POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:")
    assert finding.evidence[1] == "# we close the connection"
    assert any(line.startswith("→ {") and '"ping"' in line for line in finding.evidence[2:])


async def test_an_empty_response_is_reported() -> None:
    finding = await found("http/half-open", "it has ten threads")
    sent, silence = finding.evidence
    assert sent.startswith(r"→ b'POST /mcp HTTP/1.1\r\n")
    assert silence == "# no more bytes in 1 s"


async def test_a_connection_that_is_silent_and_one_that_is_closed_are_distinguished() -> None:
    async with site() as url:
        socket = await Socket.open(url)
        await socket.write(b"POST", 1)
        assert await socket.read(5, until=b"{}") == REPLY
        assert await socket.read(0.05, until=b"{}") == b""
        assert not socket.closed
        await socket.write(b"bye", 1)
        assert await socket.read(5) == b""
        assert socket.closed
        assert socket.evidence()[2:] == (
            "# no more bytes in 0.05 s",
            "→ bye",
            "# the server closed the connection",
        )
        socket.abort()


@pytest.mark.parametrize("part", [1.0, 0.9, 0.8, 0.7])
async def test_a_possible_secret_is_in_no_evidence_even_of_half_a_request(part: float) -> None:
    async with site() as url:
        whole = head("POST", url, HEADERS)
        socket = await Socket.open(url)
        await socket.write(whole[: int(len(whole) * part)], 1)
        await socket.read(5, until=b"{}")
        socket.abort()
    text = "\n".join(socket.evidence())
    assert r"→ b'POST /mcp?... HTTP/1.1\r\nHost: 127.0.0.1:" in text
    assert r"authorization: ...\r\n" in text
    assert "of-the" not in text
    assert "password" not in text


async def test_of_many_pieces_the_first_and_the_last_are_evidence() -> None:
    async with site() as url:
        socket = await Socket.open(url)
        for number in range(30):
            await socket.write(b"%d" % number, 1)
        lines = socket.evidence()
        socket.abort()
        assert lines == ("→ 0", "# and 22 more", *(f"→ {number}" for number in range(23, 30)))

"""Every transport passes the public battery."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from accord.testing.transports import check_transport
from accord.transport import memory
from accord.transport.base import Transport
from accord.transport.pipes import PipeTransport
from accord.transport.recording import TranscriptTransport
from accord.transport.subprocess import SubprocessTransport
from accord.wire.transcript import RECEIVED, Transcript

RELAY = Path(__file__).parent / "relay.py"


async def over_memory() -> tuple[Transport, Transport]:
    return memory.pair()


async def over_pipes() -> tuple[Transport, Transport]:
    (read_a, write_b), (read_b, write_a) = os.pipe(), os.pipe()
    return PipeTransport(read_a, write_a), PipeTransport(read_b, write_b)


def socket_end(end: socket.socket) -> PipeTransport:
    return PipeTransport(end.dup().detach(), end.detach())


async def over_sockets() -> tuple[Transport, Transport]:
    here, there = socket.socketpair()
    return socket_end(here), socket_end(there)


class Relayed:
    """The far end of a child that relays: it listens first, and is there once the child has connected."""

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()

    def accept(self) -> PipeTransport:
        end, _ = self._listener.accept()
        self._listener.close()
        return socket_end(end)


@pytest.mark.parametrize("make_pair", [over_memory, over_pipes, over_sockets])
async def test_transports_in_one_process_pass(make_pair: object) -> None:
    assert callable(make_pair)
    await check_transport(make_pair)


async def test_a_recorded_transport_passes_and_records() -> None:
    transcripts: list[Transcript] = []

    async def make_pair() -> tuple[Transport, Transport]:
        here, there = memory.pair()
        transcripts.append(Transcript())
        return TranscriptTransport(here, transcripts[-1]), there

    await check_transport(make_pair)
    kinds = [entry.direction for entry in transcripts[0]]
    assert kinds.count(RECEIVED) == 5_000
    assert len(kinds) == 10_000


async def test_stdio_and_subprocess_pass_with_a_real_process_between(tmp_path: Path) -> None:
    count = 0

    async def make_pair() -> tuple[Transport, Transport]:
        nonlocal count
        count += 1
        path = tmp_path / f"s{count}"
        relayed = Relayed(path)
        child = SubprocessTransport([sys.executable, str(RELAY), str(path)])
        await child.open()
        return Opened(child), relayed.accept()

    await check_transport(make_pair)


class Opened:
    """A transport that had to be opened before the battery gets it."""

    def __init__(self, inner: SubprocessTransport) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def open(self) -> None:
        """It is."""

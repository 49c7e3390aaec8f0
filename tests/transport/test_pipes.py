from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from accord.limits import Limits
from accord.transport.pipes import PipeTransport
from accord.wire.lines import SkippedMessage


def to_nowhere() -> int:
    return os.open(os.devnull, os.O_WRONLY)


async def opened(read_fd: int, write_fd: int, limits: Limits | None = None) -> PipeTransport:
    transport = PipeTransport(read_fd, write_fd, limits=limits or Limits(close_seconds=0.2))
    await transport.open()
    return transport


async def test_others_who_share_a_pipe_or_socket_keep_it_blocking() -> None:
    read_fd, write_fd = os.pipe()
    here, there = socket.socketpair()
    shared = [os.dup(read_fd), os.dup(write_fd), os.dup(here.fileno())]
    by_pipe = await opened(read_fd, write_fd)
    by_socket = await opened(here.dup().detach(), here.detach())
    assert [os.get_blocking(fd) for fd in shared] == [True, True, True]
    await by_pipe.close()
    await by_socket.close()
    there.close()
    for fd in shared:
        assert os.get_blocking(fd)
        os.close(fd)


async def test_without_proc_the_flag_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    (read_fd, far), shared = os.pipe(), []
    shared.append(os.dup(read_fd))

    def refuse(*args: object) -> int:
        raise FileNotFoundError

    out = to_nowhere()
    monkeypatch.setattr(os, "open", refuse)
    transport = await opened(read_fd, out)
    assert not os.get_blocking(shared[0])
    os.write(far, b"{}\n")
    assert await transport.receive() == [b"{}"]
    await transport.close()
    assert os.get_blocking(shared[0])
    for fd in (*shared, far):
        os.close(fd)


async def test_files_and_devices_are_read_by_a_thread(tmp_path: Path) -> None:
    lines = b"".join(b'{"n":%d}\n' % n for n in range(200_000))
    (tmp_path / "in").write_bytes(lines)
    out = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    transport = await opened(os.open(tmp_path / "in", os.O_RDONLY), out, Limits())
    while messages := await transport.receive():
        for message in messages:
            assert isinstance(message, bytes)
            transport.send(message)
        await transport.drain()
    await transport.close()
    assert (tmp_path / "out").read_bytes() == lines


async def test_dev_null_is_an_input_at_its_end() -> None:
    transport = await opened(os.open(os.devnull, os.O_RDONLY), to_nowhere())
    assert await transport.receive() == []
    await transport.close()


async def test_a_terminal_is_read_and_stays_blocking() -> None:
    controller, terminal = os.openpty()
    transport = await opened(os.dup(terminal), to_nowhere())
    os.write(controller, b'{"typed":1}\n')
    assert await transport.receive() == [b'{"typed":1}']
    assert os.get_blocking(terminal)
    await transport.close()
    os.close(controller)
    os.close(terminal)


async def test_a_full_disk_is_a_peer_that_is_gone() -> None:
    read_fd, far = os.pipe()
    transport = await opened(read_fd, os.open("/dev/full", os.O_WRONLY))
    transport.send(b"{}")
    assert await transport.receive() == []
    await transport.close()
    os.close(far)


async def test_what_the_peer_still_says_is_received_when_it_stops_listening() -> None:
    (read_fd, far_write), (far_read, write_fd) = os.pipe(), os.pipe()
    transport = await opened(read_fd, write_fd)
    os.close(far_read)
    transport.send(b'"nobody reads this"')
    os.write(far_write, b'"last"\n')
    assert await transport.receive() == [b'"last"']
    assert await transport.receive() == []  # though its output is still open
    transport.send(b'"nor this"')
    await transport.drain()
    await transport.close()
    os.close(far_write)


async def test_closing_is_bounded_when_the_peer_never_reads() -> None:
    (read_fd, far_write), (far_read, write_fd) = os.pipe(), os.pipe()
    transport = await opened(read_fd, write_fd)
    transport.send(b"x" * (1 << 20))
    async with asyncio.timeout(100):
        await transport.close()
    os.close(far_write)
    os.close(far_read)


async def test_an_oversized_line_does_not_end_the_connection() -> None:
    read_fd, far = os.pipe()
    transport = await opened(read_fd, to_nowhere(), Limits(line_bytes=10))
    os.write(far, b"x" * 100 + b"\n{}\n")
    found = await transport.receive()
    assert [type(message) for message in found] == [SkippedMessage, SkippedMessage, bytes]
    await transport.close()
    os.close(far)


async def test_answers_of_one_step_leave_in_one_write() -> None:
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # one read per write
    transport = await opened(here.dup().detach(), here.detach())
    transport.send(b"1")
    transport.send(b"2")
    await asyncio.sleep(0)
    transport.send(b"3")
    transport.flush()
    assert there.recv(100) == b"1\n2\n"
    assert there.recv(100) == b"3\n"
    await transport.close()
    there.close()


async def test_a_message_that_is_sent_now_takes_queued_ones_along_and_schedules_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # one read per write
    transport = await opened(here.dup().detach(), here.detach())
    scheduled: list[object] = []
    with monkeypatch.context() as patch:
        patch.setattr(asyncio.get_running_loop(), "call_soon", lambda *args, **_: scheduled.append(args))
        transport.send_now(b"1")
    assert scheduled == []
    assert there.recv(100) == b"1\n"
    transport.send(b"2")
    transport.send_now(b"3")
    assert there.recv(100) == b"2\n3\n"
    await transport.close()
    there.close()


async def test_who_never_flushes_is_not_held_up() -> None:
    (read_fd, far_write), (far_read, write_fd) = os.pipe(), os.pipe()
    transport = await opened(read_fd, write_fd)
    os.write(far_write, b"1\n")
    await transport.receive()
    transport.send(b"2")
    await asyncio.sleep(0)
    assert os.read(far_read, 100) == b"2\n"
    await transport.close()
    os.close(far_write)
    os.close(far_read)


async def test_only_one_task_receives() -> None:
    read_fd, far = os.pipe()
    transport = await opened(read_fd, to_nowhere())
    first = asyncio.ensure_future(transport.receive())
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="already waiting"):
        await transport.receive()
    os.write(far, b"{}\n")
    assert await first == [b"{}"]
    await transport.close()
    os.close(far)


def test_a_thread_that_waits_for_input_does_not_keep_the_process() -> None:
    program = (
        "import asyncio, os\n"
        "from accord.transport.pipes import PipeTransport\n"
        "async def main():\n"
        "    await PipeTransport(os.openpty()[1], os.open(os.devnull, os.O_WRONLY)).open()\n"
        "asyncio.run(main())\n"
    )
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run([sys.executable, "-c", program], timeout=100, stderr=errors, check=False)
    assert done.returncode == 0

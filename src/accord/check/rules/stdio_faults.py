"""stdio with faults: partial reads, noise, slow readers, long lines, kill -9."""

from __future__ import annotations

import asyncio

import msgspec

from accord.check.engine.rule import STDIO, NotObserved, rule
from accord.check.probes.content import preview_json
from accord.check.probes.probe import Probe
from accord.check.probes.raw_http import harmless_request

_PLACES = ("basic/transports#stdio", "basic/transports/stdio")
_LONG = 5 << 20
_MANY = 300
_PAUSE = 0.02
_LONG_ID = "x" * 500
"""A long id, so that the responses are longer than a pipe buffer (64 KiB on Linux)."""
_NOISE = (b"\x00\xff\xfe noise", b"GET / HTTP/1.1", b"\xef\xbb\xbf{}", b"   ", b"[[[[[[", b'"', b"\x1b[31mred\x1b[0m")


@rule(
    "stdio/pieces",
    "must",
    case="a message in five parts, with pauses",
    at=_PLACES,
    over=STDIO,
    cause="Each read of stdin is taken for one message: buffer bytes until a newline.",
)
async def stdio_pieces(probe: Probe) -> None:
    """The server reads a message that arrives in parts, and several messages that arrive together."""
    message = harmless_request(probe)
    pending = probe.add_request(message)
    line = msgspec.json.encode(message) + b"\n"
    size = len(line) // 5 + 1
    with probe.process.exclusive_write():  # the server may ask something, and gets its answer then
        for start in range(0, len(line), size):
            probe.process.write(line[start : start + size])
            await asyncio.sleep(_PAUSE)
    await pending.wait()


@stdio_pieces.case("twenty messages in one write")
async def stdio_pieces_together(probe: Probe) -> None:
    messages = [harmless_request(probe) for _ in range(20)]
    pending = [probe.add_request(message) for message in messages]
    probe.process.write(b"".join(msgspec.json.encode(message) + b"\n" for message in messages))
    for each in pending:
        await each.wait()


@rule(
    "stdio/noise",
    "should",
    case="seven kinds of noise after the handshake",
    kind="own",
    shares=True,
    at=_PLACES,
    over=STDIO,
    cause="A parse error ends the read loop of stdin: catch it, and continue with the next line.",
)
async def stdio_noise(probe: Probe) -> None:
    """The server skips a line that is not a message, and answers the messages after it."""
    for noise in _NOISE:
        probe.send(noise)
    await probe.fence()


@stdio_noise.case("noise before the first message", kind="raw")
async def stdio_noise_first(probe: Probe) -> None:
    probe.send(_NOISE[0])
    await probe.negotiate()


@rule(
    "stdio/long-lines",
    "should",
    case="a message of 5 MB",
    kind="own",
    shares=True,
    at=_PLACES,
    over=STDIO,
    cause="The reader has a fixed buffer (64 KiB for StreamReader of asyncio), and fails beyond it.",
)
async def stdio_long_lines(probe: Probe) -> None:
    """The server reads a long line, or refuses it, and answers later requests."""
    message = harmless_request(probe)
    message.setdefault("params", {}).setdefault("_meta", {})["com.example/filler"] = "x" * _LONG
    probe.send(message)
    await probe.fence(seconds=probe.settings.timeout * 4)


@rule(
    "stdio/slow-reader",
    "must",
    case="more output than a pipe holds, read late",
    kind="own",
    shares=True,
    at=_PLACES,
    over=STDIO,
    cause="stdout is non-blocking, and output that does not fit into the pipe is discarded: wait until it is writable.",
)
async def stdio_slow_reader(probe: Probe) -> None:
    """The server loses no output when the client reads slowly."""
    wire = probe.process
    wire.pause()
    method = probe.harmless_method
    pending = [probe.begin(method, id=f"{number}-{_LONG_ID}") for number in range(_MANY)]
    await asyncio.sleep(0.2)
    wire.resume()
    for each in pending:
        await each.wait(probe.settings.timeout * 4)


@rule(
    "stdio/restart",
    "should",
    case="kill -9 with requests in flight, then another start",
    kind="own",
    at=("basic/lifecycle#initialization", "basic/transports/stdio#unexpected-termination"),
    over=STDIO,
    cause="A lock, a port or a file of the first process is still in use: a server must start after kill -9.",
)
async def stdio_restart(probe: Probe) -> None:
    """The server can be restarted after it was killed, with the same name and version."""
    for _ in range(5):
        probe.begin(probe.harmless_method)
    probe.process.kill()
    await probe.process.wait_for_exit(probe.settings.timeout)
    again = await probe.open_another()
    try:
        if again.server_info.get("name") != probe.server_info.get("name"):
            raise again.violation(
                f"the server is {preview_json(again.server_info)}, but was {preview_json(probe.server_info)}"
            )
    finally:
        await again.close()


async def _require_pages(probe: Probe) -> None:
    if not isinstance((await probe.result("tools/list")).get("nextCursor"), str):
        raise NotObserved("the list of tools has one page")


@rule(
    "stdio/cursors-survive",
    "should",
    case="the second page, from another process",
    kind="own",
    needs="tools",
    applies=_require_pages,
    at=("server/utilities/pagination#implementation-guidelines", "basic/transports/stdio#unexpected-termination"),
    over=STDIO,
    cause="Cursors are stored in memory, and unknown ones return the first page: encode the position in the cursor.",
)
async def stdio_cursors_survive(probe: Probe) -> None:
    """After a restart, a cursor is valid, or returns error -32602."""
    first = await probe.result("tools/list")
    cursor = first.get("nextCursor")
    if not isinstance(cursor, str):
        raise NotObserved("the list of tools has one page")
    again = await probe.open_another()
    try:
        answer = await again.request("tools/list", {"cursor": cursor})
    finally:
        await again.close()
    if answer.error is not None:
        if answer.code != -32602:
            raise again.violation(f"a cursor of the earlier process returned {preview_json(answer.error)}")
    elif answer.result.get("tools") == first.get("tools"):
        raise again.violation("a cursor of the earlier process returned the first page again")

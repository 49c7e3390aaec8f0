"""stdio: only messages on stdout, each on one line; the end of stdin ends the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.check.engine.rule import LINE_TRANSPORTS, STDIO, JudgedItems, NotObserved, Violation, rule
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import LogEntry, MessageLog, decode_json, is_json, message_objects
from accord.check.probes.probe import Probe
from accord.wire.lines import SkippedMessage
from accord.wire.transcript import RECEIVED

_PLACES = ("basic/transports#stdio", "basic/transports/stdio")
_SHUTDOWN = ("basic/lifecycle#shutdown", "basic/transports/stdio#shutdown")
_EXIT_SECONDS = 5.0
_STARTS = 4
"""A start may take this many times as long as the slowest observed one."""
_HALF = b'{"jsonrpc":"2.0","id":99,"meth'
_MOST_LINES = 200
"""Maximum number of lines of an indented message."""


@rule(
    "stdio/only-messages",
    "must",
    case="all lines of stdout",
    at=_PLACES,
    over=LINE_TRANSPORTS,
    cause="The server prints to stdout: a banner, a log, print() in a tool. Write everything except "
    "messages to stderr.",
)
def stdio_only_messages(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server writes only messages to stdout."""
    for log in logs:
        for group in _invalid_line_groups(log):
            bad = next((entry for entry in group if entry.message is None and not is_json(entry.raw)), None)
            if bad is not None and not _is_message(group):
                raise Violation(f"a line of stdout is not a message: {_text(bad)}", evidence=_evidence(log, group))
        yield from (entry for entry in log.entries if entry.direction == RECEIVED)


@rule(
    "stdio/one-line",
    "must",
    case="all lines of stdout",
    at=_PLACES,
    over=LINE_TRANSPORTS,
    cause="Messages are printed with indentation: write JSON without newlines.",
)
def stdio_one_line(logs: Sequence[MessageLog]) -> JudgedItems:
    """A message is one line, without embedded newlines."""
    for log in logs:
        for group in _invalid_line_groups(log):
            if _is_message(group):
                raise Violation(f"a message has {len(group)} lines", evidence=_evidence(log, group))
        yield from (entry for entry in log.entries if entry.direction == RECEIVED)


@rule(
    "stdio/utf-8",
    "must",
    case="all lines of stdout",
    at=_PLACES,
    since="2025-03-26",
    over=LINE_TRANSPORTS,
    cause="stdout uses the encoding of the system: set it to UTF-8, or write ASCII with escapes.",
)
def stdio_utf_8(logs: Sequence[MessageLog]) -> JudgedItems:
    """Messages are UTF-8."""
    for log in logs:
        for entry in log.entries:
            if entry.direction == RECEIVED and isinstance(entry.raw, bytes):
                yield
                if not _is_utf8(entry.raw):
                    raise Violation("a line of stdout is not UTF-8", evidence=log.evidence(about=[entry]))


async def _require_no_earlier_hang(probe: Probe) -> None:
    """Raise `NotObserved` after a process did not exit: each further case would wait as long."""
    if probe.factory.exit_delay:
        seconds = f"{probe.factory.exit_delay:g} s"
        raise NotObserved(f"it was running {seconds} after the end of stdin in another session")


@rule(
    "stdio/exits",
    "should",
    case="after the handshake, while idle",
    kind="own",
    applies=_require_no_earlier_hang,
    at=_SHUTDOWN,
    over=STDIO,
    cause="Only signals end the server: if the client is killed, the server stays. Exit at the end of stdin.",
)
async def stdio_exits(probe: Probe) -> None:
    """The server exits soon after the end of stdin."""
    await _require_exit(probe)


@stdio_exits.case("before the first message", kind="raw", applies=_require_no_earlier_hang)
async def stdio_exits_before_first_message(probe: Probe) -> None:
    await _require_exit(probe)


@stdio_exits.case("in the middle of a line", kind="own", applies=_require_no_earlier_hang)
async def stdio_exits_in_line(probe: Probe) -> None:
    probe.add_request(_HALF, misbehaved=True)
    probe.process.write(_HALF)
    await _require_exit(probe)


@stdio_exits.case("during a tool call", kind="own", needs="tools", calls=True)
async def stdio_exits_during_call(probe: Probe) -> None:
    for tool in await probe.callable_tools():
        probe.begin("tools/call", {"name": tool.get("name"), "arguments": {}})
    await _require_exit(probe)


async def _require_exit(probe: Probe) -> None:
    await _require_no_earlier_hang(probe)
    wire = probe.process
    wire.end_input()
    seconds = _exit_timeout(probe)
    if not await wire.wait_for_exit(seconds):
        probe.factory.exit_delay = seconds
        raise probe.violation(f"the server was running {seconds:g} s after the end of stdin")


@rule(
    "stdio/answers-first",
    "may",
    case="a request followed by the end of stdin",
    kind="own",
    at=_SHUTDOWN,
    over=STDIO,
    cause="The end of stdin cancels requests in flight: a script that pipes its requests gets no response.",
)
async def stdio_answers_first(probe: Probe) -> None:
    """The server answers the requests before the end of stdin, then exits."""
    pending = probe.begin(probe.harmless_method)
    probe.process.end_input()
    await pending.wait()


@rule(
    "stdio/terminates",
    "should",
    case="after the handshake",
    kind="own",
    at=_SHUTDOWN,
    over=STDIO,
    cause="SIGTERM is ignored, or reaches only the wrapper that started the server.",
)
async def stdio_terminates(probe: Probe) -> None:
    """The server exits on SIGTERM."""
    wire = probe.process
    wire.terminate()
    seconds = _exit_timeout(probe)
    if not await wire.wait_for_exit(seconds):
        raise probe.violation(f"the server was running {seconds:g} s after SIGTERM")


@rule(
    "stdio/crlf",
    "may",
    case="a request that ends with CR and LF",
    at=_PLACES,
    over=STDIO,
    cause="The line is split at LF, and the CR is parsed as a part of it.",
)
async def stdio_crlf(probe: Probe) -> None:
    """The server accepts a line that ends with CR and LF: CR is whitespace in JSON."""
    message = probe.build_request(probe.harmless_method)
    pending = probe.send(message, misbehaved=False, ending=b"\r")
    await pending.wait()


def _invalid_line_groups(log: MessageLog) -> Iterator[list[LogEntry]]:
    """Return lines that are not messages, grouped if they are adjacent."""
    group: list[LogEntry] = []
    for entry in log.entries:
        if entry.direction != RECEIVED:
            continue
        if not any(message_objects(entry.message)):
            group.append(entry)
        elif group:
            yield group
            group = []
    if group:
        yield group


def _is_message(group: Sequence[LogEntry]) -> bool:
    """Return whether these lines are one indented message."""
    lines = [entry.raw for entry in group[:_MOST_LINES] if isinstance(entry.raw, bytes)]
    return len(lines) > 1 and isinstance(decode_json(b"\n".join(lines)), dict)


def _evidence(log: MessageLog, group: Sequence[LogEntry]) -> tuple[str, ...]:
    return log.evidence(about=group[:5])


def _exit_timeout(probe: Probe) -> float:
    """Return the seconds within which it must exit: a process without output may still be starting."""
    starting = min(probe.answer_timeout, _STARTS * max(log.first_answer_seconds for log in probe.peer_logs))
    return max(_EXIT_SECONDS, 2 * probe.settings.timeout, starting)


def _text(entry: LogEntry) -> str:
    if isinstance(entry.raw, SkippedMessage):
        return entry.raw.reason
    return preview_json(entry.raw.decode(errors="replace"), 120)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True

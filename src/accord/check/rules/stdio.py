"""stdio: nothing but messages on stdout, each on one line; and the end of the input is the end of the server."""

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
"""A start may take this many times as long as the slowest one seen."""
_HALF = b'{"jsonrpc":"2.0","id":99,"meth'
_MOST_LINES = 200
"""A message that is printed with indentation may have so many lines."""


@rule(
    "stdio/only-messages",
    "must",
    case="every line of its output",
    at=_PLACES,
    over=LINE_TRANSPORTS,
    cause="Something prints to stdout: a banner, a log, print() in a tool. All but messages belongs on stderr.",
)
def stdio_only_messages(logs: Sequence[MessageLog]) -> JudgedItems:
    """Nothing but messages is written to stdout."""
    for log in logs:
        for group in _invalid_line_groups(log):
            bad = next((entry for entry in group if entry.message is None and not is_json(entry.raw)), None)
            if bad is not None and not _is_message(group):
                raise Violation(f"a line of stdout is no message: {_text(bad)}", evidence=_evidence(log, group))
        yield from (entry for entry in log.entries if entry.direction == RECEIVED)


@rule(
    "stdio/one-line",
    "must",
    case="every line of its output",
    at=_PLACES,
    over=LINE_TRANSPORTS,
    cause="Messages are printed with indentation: write JSON without newlines.",
)
def stdio_one_line(logs: Sequence[MessageLog]) -> JudgedItems:
    """A message stands on one line, without newlines in it."""
    for log in logs:
        for group in _invalid_line_groups(log):
            if _is_message(group):
                raise Violation(f"one message stands on {len(group)} lines", evidence=_evidence(log, group))
        yield from (entry for entry in log.entries if entry.direction == RECEIVED)


@rule(
    "stdio/utf-8",
    "must",
    case="every line of its output",
    at=_PLACES,
    since="2025-03-26",
    over=LINE_TRANSPORTS,
    cause="stdout has the encoding of the system: set it to UTF-8, or write ASCII with escapes.",
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
    """Raises `NotObserved` once a process was seen to stay: each further case would wait as long."""
    if probe.factory.exit_delay:
        seconds = f"{probe.factory.exit_delay:g} s"
        raise NotObserved(f"it ran on for {seconds} after its input had ended in another conversation")


@rule(
    "stdio/exits",
    "should",
    case="after the handshake, with nothing to do",
    kind="own",
    applies=_require_no_earlier_hang,
    at=_SHUTDOWN,
    over=STDIO,
    cause="Only signals end it: a client that is killed leaves it behind. Stop when reading stdin gives its end.",
)
async def stdio_exits(probe: Probe) -> None:
    """The server ends soon after its input has ended."""
    await _require_exit(probe)


@stdio_exits.case("before anything was said", kind="raw", applies=_require_no_earlier_hang)
async def stdio_exits_anything_said(probe: Probe) -> None:
    await _require_exit(probe)


@stdio_exits.case("in the middle of a line", kind="own", applies=_require_no_earlier_hang)
async def stdio_exits_middle_line(probe: Probe) -> None:
    probe.add_request(_HALF, misbehaved=True)
    probe.process.write(_HALF)
    await _require_exit(probe)


@stdio_exits.case("while a tool is at work", kind="own", needs="tools", calls=True)
async def stdio_exits_while_tool_work(probe: Probe) -> None:
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
        raise probe.violation(f"it still runs {seconds:g} s after its input has ended")


@rule(
    "stdio/answers-first",
    "may",
    case="a request, and then the end of the input",
    kind="own",
    at=_SHUTDOWN,
    over=STDIO,
    cause="The end of the input cancels what is in hand: a script that pipes its requests in gets no answer.",
)
async def stdio_answers_first(probe: Probe) -> None:
    """Requests that came before the end of the input are answered before the server exits."""
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
    cause="SIGTERM is ignored, or only the wrapper that started the server gets it.",
)
async def stdio_terminates(probe: Probe) -> None:
    """The server ends when it is told to (SIGTERM)."""
    wire = probe.process
    wire.terminate()
    seconds = _exit_timeout(probe)
    if not await wire.wait_for_exit(seconds):
        raise probe.violation(f"it still runs {seconds:g} s after SIGTERM")


@rule(
    "stdio/crlf",
    "may",
    case="a request that ends with CR and LF",
    at=_PLACES,
    over=STDIO,
    cause="The line is split at LF and compared or parsed with the CR as part of it.",
)
async def stdio_crlf(probe: Probe) -> None:
    """A line that ends with CR and LF is read: for JSON the CR is a blank."""
    message = probe.build_request(probe.harmless_method)
    pending = probe.send(message, misbehaved=False, ending=b"\r")
    await pending.wait()


def _invalid_line_groups(log: MessageLog) -> Iterator[list[LogEntry]]:
    """Lines that are no messages, those that follow each other together."""
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
    """Whether these lines are one message that was printed on several."""
    lines = [entry.raw for entry in group[:_MOST_LINES] if isinstance(entry.raw, bytes)]
    return len(lines) > 1 and isinstance(decode_json(b"\n".join(lines)), dict)


def _evidence(log: MessageLog, group: Sequence[LogEntry]) -> tuple[str, ...]:
    return log.evidence(about=group[:5])


def _exit_timeout(probe: Probe) -> float:
    """How long its end may take, in seconds: a process that has said nothing yet may still be starting."""
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

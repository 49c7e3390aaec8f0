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
def stdio_only_messages(records: Sequence[MessageLog]) -> JudgedItems:
    """Nothing but messages is written to stdout."""
    for record in records:
        for group in _invalid_line_groups(record):
            bad = next((said for said in group if said.message is None and not is_json(said.raw)), None)
            if bad is not None and not _is_message(group):
                raise Violation(f"a line of stdout is no message: {_text(bad)}", evidence=_evidence(record, group))
        yield from (said for said in record.entries if said.direction == RECEIVED)


@rule(
    "stdio/one-line",
    "must",
    case="every line of its output",
    at=_PLACES,
    over=LINE_TRANSPORTS,
    cause="Messages are printed with indentation: write JSON without newlines.",
)
def stdio_one_line(records: Sequence[MessageLog]) -> JudgedItems:
    """A message stands on one line, without newlines in it."""
    for record in records:
        for group in _invalid_line_groups(record):
            if _is_message(group):
                raise Violation(f"one message stands on {len(group)} lines", evidence=_evidence(record, group))
        yield from (said for said in record.entries if said.direction == RECEIVED)


@rule(
    "stdio/utf-8",
    "must",
    case="every line of its output",
    at=_PLACES,
    since="2025-03-26",
    over=LINE_TRANSPORTS,
    cause="stdout has the encoding of the system: set it to UTF-8, or write ASCII with escapes.",
)
def stdio_utf_8(records: Sequence[MessageLog]) -> JudgedItems:
    """Messages are UTF-8."""
    for record in records:
        for said in record.entries:
            if said.direction == RECEIVED and isinstance(said.raw, bytes):
                yield
                if not _is_utf8(said.raw):
                    raise Violation("a line of stdout is not UTF-8", evidence=record.evidence(about=[said]))


async def _require_no_earlier_hang(talk: Probe) -> None:
    """Raises `NotObserved` once a process was seen to stay: each further case would wait as long."""
    if talk.factory.exit_delay:
        seconds = f"{talk.factory.exit_delay:g} s"
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
async def stdio_exits(talk: Probe) -> None:
    """The server ends soon after its input has ended."""
    await _require_exit(talk)


@stdio_exits.case("before anything was said", kind="raw", applies=_require_no_earlier_hang)
async def stdio_exits_anything_said(talk: Probe) -> None:
    await _require_exit(talk)


@stdio_exits.case("in the middle of a line", kind="own", applies=_require_no_earlier_hang)
async def stdio_exits_middle_line(talk: Probe) -> None:
    talk.add_request(_HALF, misbehaved=True)
    talk.process.write(_HALF)
    await _require_exit(talk)


@stdio_exits.case("while a tool is at work", kind="own", needs="tools", calls=True)
async def stdio_exits_while_tool_work(talk: Probe) -> None:
    for tool in await talk.callable_tools():
        talk.begin("tools/call", {"name": tool.get("name"), "arguments": {}})
    await _require_exit(talk)


async def _require_exit(talk: Probe) -> None:
    await _require_no_earlier_hang(talk)
    wire = talk.process
    wire.end_input()
    seconds = _exit_timeout(talk)
    if not await wire.wait_for_exit(seconds):
        talk.factory.exit_delay = seconds
        raise talk.violation(f"it still runs {seconds:g} s after its input has ended")


@rule(
    "stdio/answers-first",
    "may",
    case="a request, and then the end of the input",
    kind="own",
    at=_SHUTDOWN,
    over=STDIO,
    cause="The end of the input cancels what is in hand: a script that pipes its requests in gets no answer.",
)
async def stdio_answers_first(talk: Probe) -> None:
    """Requests that came before the end of the input are answered before the server exits."""
    pending = talk.begin(talk.harmless_method)
    talk.process.end_input()
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
async def stdio_terminates(talk: Probe) -> None:
    """The server ends when it is told to (SIGTERM)."""
    wire = talk.process
    wire.terminate()
    seconds = _exit_timeout(talk)
    if not await wire.wait_for_exit(seconds):
        raise talk.violation(f"it still runs {seconds:g} s after SIGTERM")


@rule(
    "stdio/crlf",
    "may",
    case="a request that ends with CR and LF",
    at=_PLACES,
    over=STDIO,
    cause="The line is split at LF and compared or parsed with the CR as part of it.",
)
async def stdio_crlf(talk: Probe) -> None:
    """A line that ends with CR and LF is read: for JSON the CR is a blank."""
    message = talk.build_request(talk.harmless_method)
    pending = talk.send(message, misbehaved=False, ending=b"\r")
    await pending.wait()


def _invalid_line_groups(record: MessageLog) -> Iterator[list[LogEntry]]:
    """Lines that are no messages, those that follow each other together."""
    group: list[LogEntry] = []
    for said in record.entries:
        if said.direction != RECEIVED:
            continue
        if not any(message_objects(said.message)):
            group.append(said)
        elif group:
            yield group
            group = []
    if group:
        yield group


def _is_message(group: Sequence[LogEntry]) -> bool:
    """Whether these lines are one message that was printed on several."""
    lines = [said.raw for said in group[:_MOST_LINES] if isinstance(said.raw, bytes)]
    return len(lines) > 1 and isinstance(decode_json(b"\n".join(lines)), dict)


def _evidence(record: MessageLog, group: Sequence[LogEntry]) -> tuple[str, ...]:
    return record.evidence(about=group[:5])


def _exit_timeout(talk: Probe) -> float:
    """How long its end may take, in seconds: a process that has said nothing yet may still be starting."""
    starting = min(talk.answer_timeout, _STARTS * max(record.first_answer_seconds for record in talk.peer_logs))
    return max(_EXIT_SECONDS, 2 * talk.settings.timeout, starting)


def _text(said: LogEntry) -> str:
    if isinstance(said.raw, SkippedMessage):
        return said.raw.reason
    return preview_json(said.raw.decode(errors="replace"), 120)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True

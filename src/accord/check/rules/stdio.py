"""stdio: nothing but messages on stdout, each on one line; and the end of the input is the end of the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.check.record import Record, Said, decoded, is_json, objects
from accord.check.rule import LINES, STDIO, Broken, NotObserved, Rule
from accord.check.talk import Talk
from accord.check.values import shown
from accord.wire.lines import Unreadable
from accord.wire.transcript import RECEIVED

_PLACES = ("basic/transports#stdio", "basic/transports/stdio")
_SHUTDOWN = ("basic/lifecycle#shutdown", "basic/transports/stdio#shutdown")
_EXIT_SECONDS = 5.0
_STARTS = 4
"""A start may take this many times as long as the slowest one seen."""
_HALF = b'{"jsonrpc":"2.0","id":99,"meth'
_MOST_LINES = 200
"""A message that is printed with indentation may have so many lines."""

ONLY_MESSAGES = Rule(
    "stdio/only-messages",
    "must",
    "Nothing but messages is written to stdout.",
    at=_PLACES,
    over=LINES,
    cause="Something prints to stdout: a banner, a log, print() in a tool. All but messages belongs on stderr.",
)


@ONLY_MESSAGES.reading("every line of its output")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        for group in _no_messages(record):
            bad = next((said for said in group if said.message is None and not is_json(said.raw)), None)
            if bad is not None and not _is_message(group):
                raise Broken(f"a line of stdout is no message: {_text(bad)}", evidence=_evidence(record, group))
        judged += sum(said.direction == RECEIVED for said in record.entries)
    return judged


ONE_LINE = Rule(
    "stdio/one-line",
    "must",
    "A message stands on one line, without newlines in it.",
    at=_PLACES,
    over=LINES,
    cause="Messages are printed with indentation: write JSON without newlines.",
)


@ONE_LINE.reading("every line of its output")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        for group in _no_messages(record):
            if _is_message(group):
                raise Broken(f"one message stands on {len(group)} lines", evidence=_evidence(record, group))
        judged += sum(said.direction == RECEIVED for said in record.entries)
    return judged


UTF8 = Rule(
    "stdio/utf-8",
    "must",
    "Messages are UTF-8.",
    at=_PLACES,
    since="2025-03-26",
    over=LINES,
    cause="stdout has the encoding of the system: set it to UTF-8, or write ASCII with escapes.",
)


@UTF8.reading("every line of its output")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        for said in record.entries:
            if said.direction == RECEIVED and isinstance(said.raw, bytes):
                judged += 1
                if not _is_utf8(said.raw):
                    raise Broken("a line of stdout is not UTF-8", evidence=record.evidence(about=[said]))
    return judged


EXITS = Rule(
    "stdio/exits",
    "should",
    "The server ends soon after its input has ended.",
    at=_SHUTDOWN,
    over=STDIO,
    cause="Only signals end it: a client that is killed leaves it behind. Stop when reading stdin gives its end.",
)


async def _was_not_seen_to_stay(talk: Talk) -> None:
    """Raises `NotObserved` once a process was seen to stay: each further case would wait as long."""
    if talk.doors.outlived:
        seconds = f"{talk.doors.outlived:g} s"
        raise NotObserved(f"it ran on for {seconds} after its input had ended in another conversation")


@EXITS.case("after the handshake, with nothing to do", kind="own", applies=_was_not_seen_to_stay)
async def _(talk: Talk) -> None:
    await _exits(talk)


@EXITS.case("before anything was said", kind="raw", applies=_was_not_seen_to_stay)
async def _(talk: Talk) -> None:
    await _exits(talk)


@EXITS.case("in the middle of a line", kind="own", applies=_was_not_seen_to_stay)
async def _(talk: Talk) -> None:
    talk.expect(_HALF, misbehaved=True)
    talk.child.write(_HALF)
    await _exits(talk)


@EXITS.case("while a tool is at work", kind="own", needs="tools", calls=True)
async def _(talk: Talk) -> None:
    for tool in await talk.callable():
        talk.begin("tools/call", {"name": tool.get("name"), "arguments": {}})
    await _exits(talk)


async def _exits(talk: Talk) -> None:
    await _was_not_seen_to_stay(talk)
    wire = talk.child
    wire.end_input()
    seconds = _patience(talk)
    if not await wire.gone(seconds):
        talk.doors.outlived = seconds
        raise talk.broken(f"it still runs {seconds:g} s after its input has ended")


LAST_WORDS = Rule(
    "stdio/answers-first",
    "may",
    "Requests that came before the end of the input are answered before the server exits.",
    at=_SHUTDOWN,
    over=STDIO,
    cause="The end of the input cancels what is in hand: a script that pipes its requests in gets no answer.",
)


@LAST_WORDS.case("a request, and then the end of the input", kind="own")
async def _(talk: Talk) -> None:
    pending = talk.begin(talk.harmless)
    talk.child.end_input()
    await pending.answer()


TERMINATES = Rule(
    "stdio/terminates",
    "should",
    "The server ends when it is told to (SIGTERM).",
    at=_SHUTDOWN,
    over=STDIO,
    cause="SIGTERM is ignored, or only the wrapper that started the server gets it.",
)


@TERMINATES.case("after the handshake", kind="own")
async def _(talk: Talk) -> None:
    wire = talk.child
    wire.terminate()
    seconds = _patience(talk)
    if not await wire.gone(seconds):
        raise talk.broken(f"it still runs {seconds:g} s after SIGTERM")


CRLF = Rule(
    "stdio/crlf",
    "may",
    "A line that ends with CR and LF is read: for JSON the CR is a blank.",
    at=_PLACES,
    over=STDIO,
    cause="The line is split at LF and compared or parsed with the CR as part of it.",
)


@CRLF.case("a request that ends with CR and LF")
async def _(talk: Talk) -> None:
    message = talk.message(talk.harmless)
    pending = talk.send(message, misbehaved=False, ending=b"\r")
    await pending.answer()


def _no_messages(record: Record) -> Iterator[list[Said]]:
    """Lines that are no messages, those that follow each other together."""
    group: list[Said] = []
    for said in record.entries:
        if said.direction != RECEIVED:
            continue
        if not any(objects(said.message)):
            group.append(said)
        elif group:
            yield group
            group = []
    if group:
        yield group


def _is_message(group: Sequence[Said]) -> bool:
    """Whether these lines are one message that was printed on several."""
    lines = [said.raw for said in group[:_MOST_LINES] if isinstance(said.raw, bytes)]
    return len(lines) > 1 and isinstance(decoded(b"\n".join(lines)), dict)


def _evidence(record: Record, group: Sequence[Said]) -> tuple[str, ...]:
    return record.evidence(about=group[:5])


def _patience(talk: Talk) -> float:
    """How long its end may take, in seconds: a process that has said nothing yet may still be starting."""
    starting = min(talk.patience, _STARTS * max(record.silence for record in talk.beside))
    return max(_EXIT_SECONDS, 2 * talk.settings.timeout, starting)


def _text(said: Said) -> str:
    if isinstance(said.raw, Unreadable):
        return said.raw.reason
    return shown(said.raw.decode(errors="replace"), 120)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from accord.wire.lines import SkippedMessage
from accord.wire.transcript import RECEIVED, SENT, Transcript, TranscriptEntry, parse


def test_reads_like_a_conversation() -> None:
    transcript = Transcript(
        [TranscriptEntry(SENT, b'{"id":1}', 0.5), TranscriptEntry(RECEIVED, '{"text":"é"}'.encode(), 0.7)]
    )
    assert transcript.render() == '→ {"id":1}\n← {"text":"é"}\n'


@given(st.lists(st.tuples(st.sampled_from([SENT, RECEIVED]), st.binary() | st.text().map(str.encode))))
def test_what_was_rendered_parses_back(messages: list[tuple[str, bytes]]) -> None:
    entries = [TranscriptEntry(SENT if way == SENT else RECEIVED, message) for way, message in messages]
    assert list(parse(Transcript(entries).render())) == entries


@pytest.mark.parametrize("message", [b"\xff", b"\x1b[31m", "\u2028".encode(), "\u202e".encode(), b"b'x'", b"{}\r"])
def test_what_is_no_line_of_text_is_a_literal(message: bytes) -> None:
    line = TranscriptEntry(RECEIVED, message).render()
    assert line.startswith("← b")
    assert line.isprintable()
    assert next(iter(parse(line))).message == message


def test_long_messages_are_shortened_with_their_size() -> None:
    line = TranscriptEntry(SENT, b'"' + b"x" * 9_998 + b'"').render(width=10)
    assert line == '→ "xxxxxxxxx … (10,000 bytes)'
    with pytest.raises(ValueError, match="line 1 was shortened"):
        parse(line)


def test_remarks_and_blank_lines_are_passed_over() -> None:
    assert [entry.message for entry in parse("# a story\n\n→ {}\n")] == [b"{}"]


def test_an_unreadable_message_is_a_remark() -> None:
    transcript = Transcript([TranscriptEntry(RECEIVED, SkippedMessage("a line of more than 5 bytes was skipped", 9))])
    assert transcript.render() == "# ← a line of more than 5 bytes was skipped\n"


WRONG = [
    ("{}", "line 1 begins with"),
    ("\n→ b'", "line 2 is not a bytes literal"),
    ("→ b'a', 1", "line 1 is not a bytes literal"),
    (f"→ b'' + {'-' * 100_000}1", "line 1 is not a bytes literal"),
    (f"→ b'' + {'(' * 100_000}", "line 1 is not a bytes literal"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_a_line_that_is_wrong_is_named(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(text)


def test_the_oldest_go_when_it_is_full() -> None:
    transcript = Transcript(limit=1_000)
    for n in range(20):
        transcript.add(TranscriptEntry(SENT, b"%d" % n + b" " * 100))
    assert len(transcript) + transcript.dropped == 20
    assert 1 < len(transcript) < 6
    assert transcript.render().startswith(f"# {transcript.dropped} earlier messages were dropped\n")

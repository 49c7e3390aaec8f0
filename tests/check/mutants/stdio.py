"""Servers that are wrong over stdio."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.check.mutants.change import Change
from tests.check.mutants.table import faulty, mutant

faulty("stdio/exits", "ignores the end")
faulty("stdio/terminates", "ignores SIGTERM")
faulty("stdio/noise", "dies of noise")
faulty("stdio/pieces", "takes a read for a message")
faulty("stdio/long-lines", "has a small buffer")
faulty("stdio/slow-reader", "drops what is not read")
faulty("stdio/crlf", "keeps the CR")
faulty("stdio/restart", "keeps a lock")
faulty("stdio/cursors-survive", "forgets cursors")
faulty("stdio/answers-first", "forgets what is unanswered at the end")


@mutant("stdio/only-messages")
def it_prints_a_line_before_an_answer(change: Change) -> None:
    @change.before("tools/list")
    def _(request: Any) -> list[Any]:
        return [b"listing tools..."]


@mutant("stdio/one-line")
def its_messages_are_indented(change: Change) -> None:
    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        return msgspec.json.format(msgspec.json.encode(answer), indent=2).split(b"\n")


@mutant("stdio/utf-8")
def its_messages_are_latin_1(change: Change) -> None:
    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["tools"][0]["description"] = "déjà"
        return msgspec.json.encode(answer).decode().encode("latin-1")

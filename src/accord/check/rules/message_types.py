"""Every message is of the type that its revision says."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.message_log import MessageLog
from accord.check.message_validation import TypeMismatch, type_mismatches
from accord.check.rule import Rule, Violation
from accord.wire.transcript import RECEIVED

_MOST = 10
"""At most so many kinds of mistakes are reported."""

MESSAGES = Rule(
    "shapes/messages",
    "must",
    "Every message of the server has the fields that its type requires, each of the type that the revision says.",
    at="basic#messages",
    cause="A field is left out, is null instead of absent, or has the shape of another revision.",
)


@MESSAGES.reading("every message that was heard")
def read_messages(records: Sequence[MessageLog]) -> int:
    kinds: dict[str, Violation] = {}
    for record in records:
        for wrong in type_mismatches(record):
            if wrong.symptom not in kinds and len(kinds) < _MOST:
                kinds[wrong.symptom] = _violation(record, wrong)
    if kinds:
        first, *more = kinds.values()
        first.more = tuple(more)
        raise first
    return sum(said.direction == RECEIVED for record in records for said in record.entries)


def _violation(record: MessageLog, wrong: TypeMismatch) -> Violation:
    request = wrong.request
    about = [said for said in record.entries if said is wrong.entry or (request and said.message is request)]
    return Violation(
        f"{wrong.what}: at {wrong.where}: {wrong.why}",
        symptom=wrong.symptom,
        evidence=record.evidence(about=about),
        during=[about[0].case],
    )

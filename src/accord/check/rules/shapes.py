"""Every message is of the type that its revision says."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.record import Record
from accord.check.rule import Broken, Rule
from accord.check.shapes import Misshapen, misshapen
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
def _(records: Sequence[Record]) -> int:
    kinds: dict[str, Broken] = {}
    for record in records:
        for wrong in misshapen(record):
            if wrong.symptom not in kinds and len(kinds) < _MOST:
                kinds[wrong.symptom] = _broken(record, wrong)
    if kinds:
        first, *more = kinds.values()
        first.more = tuple(more)
        raise first
    return sum(said.direction == RECEIVED for record in records for said in record.entries)


def _broken(record: Record, wrong: Misshapen) -> Broken:
    request = wrong.asked
    about = [said for said in record.entries if said is wrong.said or (request and said.message is request)]
    return Broken(
        f"{wrong.what}: at {wrong.where}: {wrong.why}",
        symptom=wrong.symptom,
        evidence=record.evidence(about=about),
        during=[about[0].case],
    )

"""Every message is of the type that its revision says."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.record import Record
from accord.check.rule import Broken, Rule
from accord.check.shapes import Misshapen, misshapen
from accord.wire.transcript import RECEIVED

MESSAGES = Rule(
    "shapes/messages",
    "must",
    "Every message of the server has the fields that its type requires, each of the type that the revision says.",
    at="basic#messages",
    cause="A field is left out, is null instead of absent, or has the shape of another revision.",
)


@MESSAGES.reading("every message that was heard")
def _(records: Sequence[Record]) -> int:
    found = [(record, wrong) for record in records for wrong in misshapen(record)]
    if found:
        record, wrong = found[0]
        raise Broken(_told(wrong, found), symptom=wrong.symptom, evidence=_evidence(record, wrong))
    return sum(said.direction == RECEIVED for record in records for said in record.entries)


def _told(wrong: Misshapen, found: Sequence[tuple[Record, Misshapen]]) -> str:
    kinds = {each.symptom for _, each in found}
    more = f" (and {len(kinds) - 1} more kinds of mistakes)" if len(kinds) > 1 else ""
    return f"{wrong.what}: at {wrong.where}: {wrong.why}{more}"


def _evidence(record: Record, wrong: Misshapen) -> tuple[str, ...]:
    request = wrong.asked
    return record.evidence(
        about=[said for said in record.entries if said is wrong.said or (request and said.message is request)]
    )

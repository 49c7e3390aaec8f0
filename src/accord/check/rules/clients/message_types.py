"""The methods and the types of a client's messages: those of its revision."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.run import ClientMessage, ClientRun
from accord.check.message_log import LogEntry
from accord.check.message_validation import type_mismatches
from accord.check.rule import Rule, Violation
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.methods import table
from accord.messages.revision import RULES

METHODS = Rule(
    "client-envelope/methods",
    "must",
    "Of the methods that the protocol names, a client uses only those that its revision has.",
    at=("basic/lifecycle#operation", "basic/versioning"),
    role="client",
    cause="A method of another revision is sent, whatever was agreed.",
)

SHAPES = Rule(
    "client-envelope/shapes",
    "must",
    "Every message of the client has the fields that its type requires, each of the type that the revision says.",
    at="basic#messages",
    role="client",
    cause="A field is left out, is null instead of absent, or has the shape of another revision.",
)


@METHODS.reading("every method")
def read_methods(runs: Sequence[ClientRun]) -> int:
    named = [(run, each) for run in runs for each in run.messages() if isinstance(each.method, str)]
    for run, each in named:
        revision = _revision_of(run, each)
        if each.method not in table(revision, "client") and each.method in _ANYWHERE:
            raise Violation(f"{revision} has no {each.method} of a client", evidence=[each.entry.line()])
    return len(named)


@SHAPES.reading("every message that was heard")
def read_shapes(runs: Sequence[ClientRun]) -> int:
    judged = 0
    for run in runs:
        for conversation in run.conversations:
            for wrong in type_mismatches(conversation.log, "client"):
                if _is_of(run, wrong.entry):
                    text = f"{wrong.what}: at {wrong.where}: {wrong.why}"
                    raise Violation(text, symptom=wrong.symptom, evidence=run.evidence(wrong.entry))
        judged += sum(1 for _ in run.messages())
    return judged


_ANYWHERE = frozenset(name for revision in RULES for name in table(revision, "client"))
"""Every method that a client has in some revision."""


def _revision_of(run: ClientRun, message: ClientMessage) -> str:
    """The revision of a message: a newer one may be tried before the handshake, as its `_meta` says."""
    own = message.meta.get(PROTOCOL_VERSION)
    return own if isinstance(own, str) and own in RULES else run.revision


def _is_of(run: ClientRun, said: LogEntry) -> bool:
    """Whether a message is one of the run's revision, and no attempt at a newer one."""
    own = [each for each in run.messages() if each.entry is said]
    return all(_revision_of(run, each) == run.revision for each in own)

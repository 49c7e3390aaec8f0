"""What a tool promises in its annotations, held against what happens: it only reads, a second call changes nothing.

Seen is what a client can see: lists, and the contents of a few resources. What changes by itself does not count: each
is looked at twice before the call.
"""

from __future__ import annotations

from typing import Any

import msgspec

from accord.check.blocks import inside
from accord.check.generated.subjects import Subject
from accord.check.generated.troubles import is_error
from accord.check.lists import LISTINGS
from accord.check.talk import Talk
from accord.check.waiting import Answer

READ_ONLY = "generated/read-only"
IDEMPOTENT = "generated/idempotent"

_READ = 5
"""Resources whose contents are looked at."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a promise was kept: `text` says how it was not."""

    rule: str
    text: str = ""
    evidence: tuple[str, ...] = ()


async def promise(talk: Talk, subject: Subject, arguments: Any) -> Kept | None:
    """Hold a tool to what it promises; None if it promises nothing, or could not be called. Raises `Broken`."""
    hints = inside(subject.item if subject.kind == "tool" else {}, "annotations")
    if hints.get("readOnlyHint") is True:
        return await _held(talk, subject, arguments, READ_ONLY, "it says that it only reads")
    if hints.get("idempotentHint") is True and await _works(talk, subject, arguments):
        return await _held(talk, subject, arguments, IDEMPOTENT, "it says that a second call changes nothing more")
    return None


async def _held(talk: Talk, subject: Subject, arguments: Any, rule: str, says: str) -> Kept | None:
    before, again = await _seen(talk), await _seen(talk)
    since = len(talk.record.entries)
    if not await _works(talk, subject, arguments):
        return None
    after = await _seen(talk)
    changed = [what for what, content in before.items() if again.get(what) == content and after.get(what) != content]
    if not changed:
        return Kept(rule=rule)
    return Kept(
        rule=rule,
        text=f"{says}, and {', '.join(changed)} is not what it was before",
        evidence=talk.record.evidence(since),
    )


async def _works(talk: Talk, subject: Subject, arguments: Any) -> bool:
    answer = await talk.request(*subject.asks(arguments))
    return answer.error is None and not is_error(answer)


async def _seen(talk: Talk) -> dict[str, bytes]:
    """Everything that a client can look at, by what it is called."""
    seen: dict[str, bytes] = {}
    for listing in LISTINGS:
        if talk.has(listing.capability):
            pages = await talk.pages(listing.method, listing.key, optional=True)
            seen[listing.method] = msgspec.json.encode([page[listing.key] for page in pages])
    for resource in (await talk.resources())[:_READ]:
        uri = resource.get("uri")
        seen[f"the content of {uri}"] = _content(await talk.request("resources/read", {"uri": uri}))
    return seen


def _content(answer: Answer) -> bytes:
    return msgspec.json.encode(inside(answer.message, "result").get("contents"))

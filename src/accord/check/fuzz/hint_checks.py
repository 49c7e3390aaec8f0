"""What a tool promises in its annotations, held against what happens: it only reads, a second call changes nothing.

Seen is what a client can see: lists, and the contents of a few resources. What changes by itself does not count: each
is looked at twice before the call.
"""

from __future__ import annotations

from typing import Any

import msgspec

from accord.check.fuzz.fuzz_targets import FuzzTarget
from accord.check.fuzz.response_checks import is_error
from accord.check.probes.content import get_object
from accord.check.probes.lists import LIST_KINDS
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe

READ_ONLY = "generated/read-only"
IDEMPOTENT = "generated/idempotent"

_READ = 5
"""Resources whose contents are looked at."""


class HintResult(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a promise was kept: `text` says how it was not."""

    rule: str
    text: str = ""
    evidence: tuple[str, ...] = ()


async def check_hints(probe: Probe, subject: FuzzTarget, arguments: Any) -> HintResult | None:
    """Hold a tool to what it promises; None if it promises nothing, or could not be called. Raises `Violation`."""
    hints = get_object(subject.item if subject.kind == "tool" else {}, "annotations")
    if hints.get("readOnlyHint") is True:
        return await _check_hint(probe, subject, arguments, READ_ONLY, "it says that it only reads")
    if hints.get("idempotentHint") is True and await _succeeds(probe, subject, arguments):
        return await _check_hint(
            probe, subject, arguments, IDEMPOTENT, "it says that a second call changes nothing more"
        )
    return None


async def _check_hint(probe: Probe, subject: FuzzTarget, arguments: Any, rule: str, says: str) -> HintResult | None:
    before, again = await _visible_state(probe), await _visible_state(probe)
    since = len(probe.log.entries)
    if not await _succeeds(probe, subject, arguments):
        return None
    after = await _visible_state(probe)
    changed = [what for what, content in before.items() if again.get(what) == content and after.get(what) != content]
    if not changed:
        return HintResult(rule=rule)
    return HintResult(
        rule=rule,
        text=f"{says}, and {', '.join(changed)} is not what it was before",
        evidence=probe.log.evidence(since),
    )


async def _succeeds(probe: Probe, subject: FuzzTarget, arguments: Any) -> bool:
    answer = await probe.request(*subject.build_request(arguments))
    return answer.error is None and not is_error(answer)


async def _visible_state(probe: Probe) -> dict[str, bytes]:
    """Everything that a client can look at, by what it is called."""
    seen: dict[str, bytes] = {}
    for listing in LIST_KINDS:
        if probe.has_capability(listing.capability):
            pages = await probe.pages(listing.method, listing.key, optional=True)
            seen[listing.method] = msgspec.json.encode([page[listing.key] for page in pages])
    for resource in (await probe.resources())[:_READ]:
        uri = resource.get("uri")
        seen[f"the content of {uri}"] = _content(await probe.request("resources/read", {"uri": uri}))
    return seen


def _content(answer: Answer) -> bytes:
    return msgspec.json.encode(get_object(answer.message, "result").get("contents"))

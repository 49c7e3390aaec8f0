"""Compare the annotations of a tool, `readOnlyHint` and `idempotentHint`, with the effect of a call.

The observed state is what a client can see: lists, and the contents of a few resources. It is read twice before the
call, and what changes between these two reads is ignored.
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
"""The number of resources whose contents are compared."""


class HintResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one hint; `text` describes the violation and is empty without one."""

    rule: str
    text: str = ""
    evidence: tuple[str, ...] = ()


async def check_hints(probe: Probe, target: FuzzTarget, arguments: Any) -> HintResult | None:
    """Check the hints of a tool; return None if it has none, or the call fails. Raises `Violation`."""
    hints = get_object(target.item if target.kind == "tool" else {}, "annotations")
    if hints.get("readOnlyHint") is True:
        return await _check_hint(probe, target, arguments, READ_ONLY, "readOnlyHint is true")
    if hints.get("idempotentHint") is True and await _succeeds(probe, target, arguments):
        return await _check_hint(probe, target, arguments, IDEMPOTENT, "idempotentHint is true")
    return None


async def _check_hint(probe: Probe, target: FuzzTarget, arguments: Any, rule: str, hint: str) -> HintResult | None:
    before, again = await _visible_state(probe), await _visible_state(probe)
    since = len(probe.log.entries)
    if not await _succeeds(probe, target, arguments):
        return None
    after = await _visible_state(probe)
    changed = [what for what, content in before.items() if again.get(what) == content and after.get(what) != content]
    if not changed:
        return HintResult(rule=rule)
    return HintResult(
        rule=rule,
        text=f"{hint}, but the call changes {', '.join(changed)}",
        evidence=probe.log.evidence(since),
    )


async def _succeeds(probe: Probe, target: FuzzTarget, arguments: Any) -> bool:
    answer = await probe.request(*target.build_request(arguments))
    return answer.error is None and not is_error(answer)


async def _visible_state(probe: Probe) -> dict[str, bytes]:
    """Return the state that a client can read, by a description of each part."""
    state: dict[str, bytes] = {}
    for listing in LIST_KINDS:
        if probe.has_capability(listing.capability):
            pages = await probe.pages(listing.method, listing.key, optional=True)
            state[listing.method] = msgspec.json.encode([page[listing.key] for page in pages])
    for resource in (await probe.resources())[:_READ]:
        uri = resource.get("uri")
        state[f"the content of {uri}"] = _content(await probe.request("resources/read", {"uri": uri}))
    return state


def _content(answer: Answer) -> bytes:
    return msgspec.json.encode(get_object(answer.message, "result").get("contents"))

"""The questions that a client answers with a retry (`input_required`, 2026-07-28).

The state of the call is in the memory of the process that asked, so that the retry goes to it, by its `requestState`.
"""

from __future__ import annotations

from msgspec import Raw

from accord.dev.rewriting import members

_MOST = 1_000


class RetryOwners:
    """The generation of the process that waits for a retry, by `requestState`; the oldest is dropped after 1,000."""

    def __init__(self) -> None:
        self._owners: dict[str, int] = {}

    def note(self, generation: int, message: bytes) -> None:
        """Remember the question in a response of a process, if it has one."""
        if b'"input_required"' not in message:
            return
        result = members(message).get("result")
        state = result.get("requestState") if isinstance(result, dict) else None
        if isinstance(state, str):
            self._owners[state] = generation
            if len(self._owners) > _MOST:
                del self._owners[next(iter(self._owners))]

    def claim(self, message: bytes, params: Raw) -> int | None:
        """Return the process that waits for a request, once; None if it is no retry, or of nobody's state."""
        if b'"requestState"' not in message:
            return None
        return self._owners.pop(str(members(params).get("requestState")), None)

    def is_awaited_by(self, generation: int) -> bool:
        """Return whether a process waits for a retry."""
        return generation in self._owners.values()

    def release(self, generation: int) -> None:
        """Forget the questions of a process that is gone."""
        self._owners = {state: owner for state, owner in self._owners.items() if owner != generation}

"""Stop sequences for an API without them: text ends before the first one.

stop = StopSequences(["END"])
stop.feed("one EN")     "one "       the rest may be the beginning of a stop sequence
stop.feed("D two")      ""           stop.found == "END"
stop.flush()            ""           what is left, at the end of the answer
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.host.models.failures import ProviderFailure

_MOST_SEQUENCES = 16
_MOST_CHARACTERS = 256
"""Of one sequence. A server sets them, and each piece of text is compared with all."""


class StopSequences:
    """The stop sequences of one answer; empty ones are ignored. The one that is complete first ends the text.

    Raises `ProviderFailure` for more than 16, or one of more than 256 characters.
    """

    def __init__(self, sequences: Sequence[str]) -> None:
        self._sequences = [sequence for sequence in sequences if sequence]
        self._longest = max(map(len, self._sequences), default=0)
        if len(self._sequences) > _MOST_SEQUENCES or self._longest > _MOST_CHARACTERS:
            raise ProviderFailure(
                f"it has no stop sequences of its own, and accord compares at most {_MOST_SEQUENCES}, "
                f"of at most {_MOST_CHARACTERS} characters; nothing was sent"
            )
        self._first = {sequence[0] for sequence in self._sequences}
        self._held = ""
        self.found: str | None = None
        """The stop sequence that ended the text."""

    def feed(self, text: str) -> str:
        """Return the text that can be passed on."""
        if self.found is not None:
            return ""
        text = self._held + text
        ends = [(place + len(each), place, each) for each in self._sequences if (place := text.find(each)) >= 0]
        if ends:
            _, place, self.found = min(ends)
            self._held = ""
            return text[:place]
        place = self._partial(text)
        self._held = text[place:]
        return text[:place]

    def flush(self) -> str:
        """Return the text that was held back, at the end of the text."""
        held, self._held = self._held, ""
        return held

    def _partial(self, text: str) -> int:
        """Return the place of the longest end of the text that begins a stop sequence."""
        for place in range(max(0, len(text) - self._longest + 1), len(text)):
            if text[place] in self._first and any(each.startswith(text[place:]) for each in self._sequences):
                return place
        return len(text)

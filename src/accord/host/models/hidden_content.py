"""Parts of answers that providers want back in the next request, and that the types of sampling do not have.

Models that reason return signed or encrypted blocks with their uses of tools, and some refuse the results of the tools
without them. They are not part of a `CreateMessageResult`, because that goes to the server that requested sampling. A
model keeps them in memory instead, by the content of the answer: only a request that repeats the answer unchanged gets
them back. What is no longer known is left out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256

import msgspec

from accord.messages.base import JSONObject
from accord.messages.content import SamplingMessageContentBlock

_MOST_ANSWERS = 1_000
_MOST_BYTES = 8 << 20

Hidden = Mapping[int, Sequence[JSONObject]]
"""Hidden parts by the number of uses of tools that come before them."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[int, list[JSONObject]], strict=False).decode


class HiddenContent:
    """The hidden parts of the last answers of one model; the oldest are dropped."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._answers: OrderedDict[bytes, bytes] = OrderedDict()

    def remember(self, blocks: Sequence[SamplingMessageContentBlock], hidden: Hidden) -> None:
        """Keep the hidden parts of an answer with these blocks."""
        parts = _encode({str(place): items for place, items in hidden.items() if items})
        if parts == b"{}" or len(parts) > self._most_bytes:
            return
        digest = _digest(blocks)
        self._bytes += len(parts) - len(self._answers.pop(digest, b""))
        self._answers[digest] = parts
        while self._bytes > self._most_bytes or len(self._answers) > _MOST_ANSWERS:
            self._bytes -= len(self._answers.popitem(last=False)[1])

    def recall(self, blocks: Sequence[SamplingMessageContentBlock]) -> Hidden:
        """Return the hidden parts of the answer with these blocks; none if it is not known."""
        digest = _digest(blocks)
        parts = self._answers.get(digest)
        if parts is None:
            return {}
        self._answers.move_to_end(digest)
        return _decode(parts)


def _digest(blocks: Sequence[SamplingMessageContentBlock]) -> bytes:
    return sha256(_encode(blocks)).digest()

"""Lines that end with CRLF, in a head, between chunks and in trailers.

A line has no control characters, and so no lone CR or LF: "A recipient that receives [...] a bare CR [...] MUST
consider that element to be invalid" (RFC 9112, 2.2). A line is checked as it arrives, and each byte once.
"""

from __future__ import annotations

import re

CRLF = b"\r\n"

CONTROLS = bytes([*range(9), *range(10, 32), 127])
"""Characters that no line may have: control characters except the horizontal tab."""

_CONTROL = re.compile(b"[" + re.escape(CONTROLS) + b"]")


class UnacceptableRequest(Exception):
    """A request that the connection itself refuses: `status`, and a sentence. The connection ends after it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status: int = status
        self.text: str = text


def end_of_line(data: bytes, start: int, seen: int, stop: int) -> int:
    """Return the end of the line at `start`, or -1 if its CRLF is not before `stop`.

    The bytes before `seen` were already checked; a CR there is not the last byte. Raises `UnacceptableRequest` for a
    control character.
    """
    begin = max(start, seen)
    end = data.find(CRLF, begin, stop)
    if end < 0:
        checked = min(len(data), stop)
        checked -= data[checked - 1 : checked] == b"\r"  # its LF may be still to come
    else:
        checked = end
    if _CONTROL.search(data, begin, checked) is not None:
        raise UnacceptableRequest(400, "a line of a request must end with CR LF and have no control characters")
    return end

"""The server that the official conformance suite is run against: its names, its outputs, its questions.

`python -m tests.conformance.server` serves stdio.
"""

from __future__ import annotations

from tests.conformance import questions  # noqa: F401  declares what asks
from tests.conformance.offers import server

__all__ = ["server"]

if __name__ == "__main__":
    server.run()

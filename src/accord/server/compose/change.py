"""`ToolChange`: a tool as somebody else wants it shown. (The argument part follows.)"""

from __future__ import annotations

from accord.server.offer import Offer


class ToolChange:
    """Placeholder for the moment; see the part on composition."""

    name: str | None = None

    def apply(self, offer: Offer) -> Offer:
        """The changed tool."""
        return offer

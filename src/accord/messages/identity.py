"""Who a peer is: its name and version, and how it may be shown."""

from __future__ import annotations

from typing import Annotated, Literal

from accord.messages.base import Model, lives, since
from accord.messages.bounds import URI, Name


@lives(since="2025-11-25")
class Icon(Model):
    """An image to show for something (basic, Icons). Only `https:` and `data:` are safe to load."""

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class Implementation(Model):
    """The program that speaks: `clientInfo` and `serverInfo`. Says who, never what is allowed."""

    name: Name
    version: Name
    title: Annotated[str | None, since("2025-06-18")] = None
    description: Annotated[str | None, since("2025-11-25")] = None
    website_url: Annotated[URI | None, since("2025-11-25")] = None
    icons: Annotated[list[Icon] | None, since("2025-11-25")] = None

"""The identity of a peer: its name, version and icons."""

from __future__ import annotations

from typing import Annotated, Literal

from accord.messages.base import Model, lives, since
from accord.messages.bounds import URI, Name


@lives(since="2025-11-25")
class Icon(Model):
    """An image for display (basic, Icons). Only `https:` and `data:` are safe to load."""

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class Implementation(Model):
    """The name and version of a program: `clientInfo` and `serverInfo`. It grants no permissions."""

    name: Name
    version: Name
    title: Annotated[str | None, since("2025-06-18")] = None
    description: Annotated[str | None, since("2025-11-25")] = None
    website_url: Annotated[URI | None, since("2025-11-25")] = None
    icons: Annotated[list[Icon] | None, since("2025-11-25")] = None

"""Roots: the folders a client lets a server work in (client, Roots)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import field

from .base import Meta, Model, open_ended, seen_as, since
from .bounds import ITEMS, URI, Name
from .meta import RequestMeta


class Root(Model):
    """A folder, as a `file:` URI."""

    uri: URI
    name: Name | None = None
    meta: Annotated[Meta | None, since("2025-06-18")] = field(default=None, name="_meta")


@open_ended
class ListRootsParams(Model):
    """Params of `roots/list`. Not `Params`: inside `input_required` it needs no revision in `_meta`."""

    meta: Annotated[Meta | None, seen_as(RequestMeta, until="2026-07-28")] = field(default=None, name="_meta")


class ListRootsResult(Model):
    """Result of `roots/list`, or the answer to it in a retry."""

    roots: Annotated[list[Root], msgspec.Meta(max_length=ITEMS)]
    meta: Annotated[Meta | None, since("2024-11-05", until="2026-07-28")] = field(default=None, name="_meta")

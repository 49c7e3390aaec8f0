"""Roots (client, Roots): the folders that a client lets its servers use, as `file:` URIs.

They are given as paths, `file:` URIs or `Root` values, or as a function that returns such a list.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, TypeAlias
from urllib.parse import unquote

from msgspec import Raw

from accord.client.handlers import ClientContext, HandlerThreads, UserHandler
from accord.errors import LocalProtocolError
from accord.messages import codec
from accord.messages.capabilities import RootsCapability
from accord.messages.input_required import ListRootsParams, ListRootsResult, Root
from accord.messages.revision import Rules

RootLike: TypeAlias = str | os.PathLike[str] | Root
"""A folder: a path, a `file:` URI, or a `Root` with a name of its own."""

RootsLike: TypeAlias = RootLike | Iterable[RootLike] | Callable[..., Any]
"""Folders, or a function that returns them, sync or async, optionally with a `ClientContext`."""

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""The beginning of a URI; a single letter is a drive."""


class RootsHandler:
    """A handler of `roots/list`."""

    method: ClassVar[str] = "roots/list"

    def __init__(self, roots: RootsLike, *, threads: HandlerThreads) -> None:
        self._threads = threads
        self.set(roots)

    def set(self, roots: RootsLike) -> None:
        """Replace the roots. Raises `LocalProtocolError` for a root that is no folder of this machine."""
        self._handler = UserHandler("roots", roots, 1, self._threads) if callable(roots) else None
        self._fixed: list[Root] = [] if callable(roots) else roots_of(roots)

    @property
    def capability(self) -> RootsCapability:
        """Return the capability to declare."""
        return RootsCapability(list_changed=True)

    def read(self, raw: Any, rules: Rules) -> ListRootsParams:
        """Return the validated params of a request. Raises `InvalidParams`."""
        return codec.decode_params(ListRootsParams, raw)

    async def answer(self, params: ListRootsParams, context: ClientContext) -> ListRootsResult | Raw:
        """Return the roots. Raises the errors of the handler, and `LocalProtocolError` for a root that is no folder."""
        if self._handler is None:
            return ListRootsResult(roots=self._fixed)
        roots = await self._handler(context)
        return roots if isinstance(roots, Raw) else ListRootsResult(roots=roots_of(roots))


def roots_of(folders: RootLike | Iterable[RootLike]) -> list[Root]:
    """Return folders as roots of the protocol. Raises `LocalProtocolError`."""
    items = [folders] if isinstance(folders, str | os.PathLike | Root) else folders
    return [_root(folder) for folder in items]


def _root(folder: RootLike) -> Root:
    if isinstance(folder, Root):
        return Root(uri=_check_uri(folder.uri), name=folder.name, meta=folder.meta)
    if isinstance(folder, str) and _URI.match(folder):
        return Root(uri=_check_uri(folder))
    if not isinstance(folder, str | os.PathLike):
        raise LocalProtocolError(f"a root must be a path, a `file:` URI or a Root, not {folder!r}")
    return Root(uri=Path(os.path.abspath(folder)).as_uri())


def _check_uri(uri: str) -> str:
    """Return a URI: "This MUST be a `file://` URI"; "Clients MUST validate all root URIs to prevent path traversal"."""
    if not uri.lower().startswith("file://"):
        raise LocalProtocolError(
            f"the root {uri!r} is not a `file://` URI; give a path or a URI such as file:///home/me"
        )
    if ".." in re.split(r"[/\\]", unquote(uri)) or not uri.isprintable() or " " in uri:
        raise LocalProtocolError(f'the root {uri!r} has "..", a space or a control character in it; give a path')
    return uri

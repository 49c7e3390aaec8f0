"""Roots (client, Roots): the folders that a client lets its servers work in, as `file:` URIs.

They are given as paths, `file:` URIs or `Root` values, or as a function that gives such a list when it is asked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, TypeAlias
from urllib.parse import unquote

from accord.client.handlers import ClientContext, HandlerThreads, UserHandler
from accord.errors import LocalProtocolError
from accord.messages import codec
from accord.messages.capabilities import RootsCapability
from accord.messages.input_required import ListRootsParams, ListRootsResult, Root
from accord.messages.revision import Rules

RootLike: TypeAlias = str | os.PathLike[str] | Root
"""A folder: a path, a `file:` URI, or a `Root` with a name of its own."""

RootsLike: TypeAlias = RootLike | Iterable[RootLike] | Callable[..., Any]
"""Folders, or a function that gives them, plain or async, with a `ClientContext` if it takes one."""

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""How a URI begins; a single letter is a drive."""


class RootsHandler:
    """Answers `roots/list`."""

    method: ClassVar[str] = "roots/list"

    def __init__(self, places: RootsLike, *, threads: HandlerThreads) -> None:
        self._threads = threads
        self.set(places)

    def set(self, places: RootsLike) -> None:
        """Take other folders. Raises `LocalProtocolError` for what is no folder of this machine."""
        self._handler = UserHandler("roots", places, 1, self._threads) if callable(places) else None
        self._fixed: list[Root] = [] if callable(places) else roots_of(places)

    @property
    def capability(self) -> RootsCapability:
        """What is declared."""
        return RootsCapability(list_changed=True)

    def read(self, raw: Any, rules: Rules) -> ListRootsParams:
        """The params of a question. Raises `InvalidParams`."""
        return codec.decode_params(ListRootsParams, raw)

    async def answer(self, params: ListRootsParams, context: ClientContext) -> ListRootsResult:
        """The folders. Raises what the handler raises, `LocalProtocolError` for what is no folder."""
        if self._handler is None:
            return ListRootsResult(roots=self._fixed)
        return ListRootsResult(roots=roots_of(await self._handler(context)))


def roots_of(places: RootLike | Iterable[RootLike]) -> list[Root]:
    """Folders as the protocol has them. Raises `LocalProtocolError`."""
    several = [places] if isinstance(places, str | os.PathLike | Root) else places
    return [_root(place) for place in several]


def _root(place: RootLike) -> Root:
    if isinstance(place, Root):
        return Root(uri=_check_uri(place.uri), name=place.name, meta=place.meta)
    if isinstance(place, str) and _URI.match(place):
        return Root(uri=_check_uri(place))
    if not isinstance(place, str | os.PathLike):
        raise LocalProtocolError(f"a root must be a path, a `file:` URI or a Root, not {place!r}")
    return Root(uri=Path(os.path.abspath(place)).as_uri())


def _check_uri(uri: str) -> str:
    """ "This MUST be a `file://` URI", and "Clients MUST validate all root URIs to prevent path traversal"."""
    if not uri.lower().startswith("file://"):
        raise LocalProtocolError(
            f"the root {uri!r} is not a `file://` URI; give a path or a URI such as file:///home/me"
        )
    if ".." in re.split(r"[/\\]", unquote(uri)) or not uri.isprintable() or " " in uri:
        raise LocalProtocolError(f'the root {uri!r} has "..", a space or a control character in it; give a path')
    return uri

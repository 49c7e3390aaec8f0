"""A tree of files as a provider: what is listed, what a URI stands for, and what is told when it changes."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import quote

from accord.errors import DeclarationError, ResourceNotFound
from accord.messages.completion import Reference, ResourceTemplateReference
from accord.messages.content import Annotations, Resource
from accord.messages.resources import ResourceTemplate
from accord.server.compose.provider import Provided, Provider
from accord.server.core.context import Context
from accord.server.declare.media import File
from accord.server.declare.templates import Template
from accord.server.files.listing import TreeListing, difference
from accord.server.files.names import PathFilter
from accord.server.files.root import DirectoryEntry
from accord.server.files.tree import Tree
from accord.server.files.watcher import DirectoryWatcher

_BASE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^{}?#\s]*")


def open_directory(
    providers: Iterable[Provider],
    path: str | os.PathLike[str],
    choice: PathFilter,
    uri: str | None,
    name: str | None,
    max_bytes: int,
    most: int,
    mime_types: Mapping[str, str] | None,
    poll_seconds: float | None,
) -> Directory:
    """See `Server.add_directory`; `providers` are those of the server. Raises `DeclarationError`."""
    tree = Tree(path, choice, max_bytes=max_bytes, most=most, kinds=mime_types)
    base = Path(tree.root.path).as_uri() if uri is None else uri
    made = Directory(tree, base, name=name, poll_seconds=poll_seconds)
    if any(isinstance(each, Directory) and each.base == made.base for each in providers):
        raise DeclarationError(f"a folder is already served at {made.base!r}: use another uri=")
    return made


class Directory(Provider):
    """The files of a tree as resources below `base`: `docs://` and `guide/start.md` make `docs://guide/start.md`.

    `name` is what clients call it, the name of the folder by default. It is watched while a server runs, without
    `watchfiles` every `poll_seconds`; not at all if that is None. Raises `DeclarationError` for a base that is none.
    """

    def __init__(self, tree: Tree, base: str, *, name: str | None = None, poll_seconds: float | None = None) -> None:
        super().__init__()
        if not _BASE.fullmatch(base):
            raise DeclarationError(f"{base!r} cannot be the base of URIs; write `docs://` or `file:///srv/docs`")
        self.base: str = base if base.endswith(("/", ":")) else base + "/"
        """What the URI of every file begins with."""
        self.name: str = name or os.path.basename(tree.root.path) or "files"
        self._tree = tree
        self._template = Template(self.base + "{+path}")
        self._watcher = None if poll_seconds is None else DirectoryWatcher(self._scan, poll_seconds)
        self._last_listing: TreeListing | None = None
        self._made: tuple[TreeListing, Sequence[Resource]] | None = None
        self._lock = threading.Lock()
        self._running = 0

    def uri(self, path: str) -> str:
        """The URI of a file or folder by its path."""
        return self.base + quote(path, errors="replace")

    # --- what there is -----------------------------------------------------------------------------------------

    async def resources(self) -> Sequence[Resource]:
        """The files, folder by folder, in order."""
        return await asyncio.to_thread(self._listed)

    async def templates(self) -> Sequence[ResourceTemplate]:
        """The one that stands for every file and folder."""
        about = f"A file below {self.name}, by its path; of a folder, the names in it."
        return [ResourceTemplate(uri_template=self._template.text, name=self.name, description=about)]

    async def resource(self, uri: str) -> Provided | None:
        """A file or folder that may be there; it is found out when it is read."""
        path = (self._template.match(uri) or {}).get("path")
        if not isinstance(path, str) or not self._tree.has(path):
            return None
        about = Resource(uri=uri, name=path or self.name, mime_type=self._tree.kind(path))
        return Provided(about, partial(self._read, uri, path))

    async def complete(self, ref: Reference, argument: str, typed: str) -> Sequence[str] | None:
        """Paths that begin with what was typed."""
        if not isinstance(ref, ResourceTemplateReference) or (ref.uri, argument) != (self._template.text, "path"):
            return None
        return await asyncio.to_thread(self._tree.complete, typed)

    def _listed(self) -> Sequence[Resource]:
        found, made = self._tree.listing(), self._made
        if made is None or made[0] is not found:
            made = self._made = found, [self._listed_as(path, entry) for path, entry in found.files.items()]
        return made[1]

    def _listed_as(self, path: str, entry: DirectoryEntry) -> Resource:
        return Resource(
            uri=self.uri(path),
            name=path,
            mime_type=self._tree.kind(path),
            size=entry.size,
            annotations=changed_at(entry.changed),
        )

    def _read(self, uri: str, path: str, ctx: Context | None = None) -> File:
        def is_seen(inside: str) -> bool:
            return ctx is None or ctx.sees_resource(self.uri(inside))

        try:
            return self._tree.read(path, is_seen)
        except ResourceNotFound as error:
            raise ResourceNotFound(uri=uri) from error

    # --- what changes ------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Watched as long as a server runs, on however many event loops."""
        if self._watcher is None:
            yield
            return
        self._count(self._watcher, 1)
        try:
            yield
        finally:
            await asyncio.to_thread(self._count, self._watcher, -1)

    def _count(self, watch: DirectoryWatcher, more: int) -> None:
        with self._lock:
            self._running += more
            if self._running:
                watch.start()
            else:
                watch.stop()

    def _scan(self) -> Mapping[str, int]:
        """Tell what is different since the last look, or at first since a client was last shown the list. The folders
        to watch.
        """
        before = self._last_listing or (self._made and self._made[0])
        self._last_listing = found = self._tree.listing(anew=True)
        if before is not None:
            what = difference(before, found)
            if what.added or what.removed:
                self.changed("resources")
            for path in what.all:
                self.updated(self.uri(path))
        return self._tree.inodes(found.folders)


def changed_at(nanoseconds: int) -> Annotations | None:
    """When something changed, as ISO 8601; None for a time that no calendar has."""
    try:
        text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(nanoseconds // 1_000_000_000))
    except (OverflowError, ValueError, OSError):
        return None
    return Annotations(last_modified=text)

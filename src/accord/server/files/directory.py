"""A provider of the files in a tree: lists and reads them as resources, and notifies clients of changes."""

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
from accord.server.core.fair_semaphore import FairSemaphore
from accord.server.core.per_loop import PerLoop
from accord.server.declare.media import File
from accord.server.declare.templates import Template
from accord.server.files.listing import TreeListing, difference
from accord.server.files.names import PathFilter
from accord.server.files.root import DirectoryEntry
from accord.server.files.tree import Tree
from accord.server.files.watcher import DirectoryWatcher

_READS = 4
"""Files that are read at once on one event loop: a client can request many large files, and each is in memory until its
result is encoded.
"""

_BASE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^{}?#\s]*")


def open_directory(
    providers: Iterable[Provider],
    path: str | os.PathLike[str],
    path_filter: PathFilter,
    uri: str | None,
    name: str | None,
    max_bytes: int,
    most: int,
    mime_types: Mapping[str, str] | None,
    poll_seconds: float | None,
) -> Directory:
    """Return the directory for `Server.add_directory`; `providers` are those of the server. Raises
    `DeclarationError`.
    """
    tree = Tree(path, path_filter, max_bytes=max_bytes, most=most, kinds=mime_types)
    base = Path(tree.root.path).as_uri() if uri is None else uri
    directory = Directory(tree, base, name=name, poll_seconds=poll_seconds)
    if any(isinstance(each, Directory) and each.base == directory.base for each in providers):
        raise DeclarationError(f"a folder is already served at {directory.base!r}: use another uri=")
    return directory


class Directory(Provider):
    """The files of a tree as resources below `base`: `docs://` and `guide/start.md` make `docs://guide/start.md`.

    `name` is the name that clients see, by default that of the folder. While a server runs, the tree is watched,
    without `watchfiles` by polling every `poll_seconds`; None disables watching. Raises `DeclarationError` for an
    invalid base.
    """

    def __init__(self, tree: Tree, base: str, *, name: str | None = None, poll_seconds: float | None = None) -> None:
        super().__init__()
        if not _BASE.fullmatch(base):
            raise DeclarationError(f"{base!r} cannot be the base of URIs; write `docs://` or `file:///srv/docs`")
        self.base: str = base if base.endswith(("/", ":")) else base + "/"
        """The prefix of every file's URI."""
        self.name: str = name or os.path.basename(tree.root.path) or "files"
        self._tree = tree
        self._template = Template(self.base + "{+path}")
        self._watcher = None if poll_seconds is None else DirectoryWatcher(self._scan, poll_seconds)
        self._last_listing: TreeListing | None = None
        self._cached_resources: tuple[TreeListing, Sequence[Resource]] | None = None
        self._reads: PerLoop[FairSemaphore] = PerLoop()
        self._lock = threading.Lock()
        self._running = 0

    def uri(self, path: str) -> str:
        """Return the URI of a file or folder."""
        return self.base + quote(path, errors="replace")

    # --- resources ---------------------------------------------------------------------------------------------

    async def resources(self) -> Sequence[Resource]:
        """Return the files, folder by folder, in order."""
        return await asyncio.to_thread(self._list)

    async def templates(self) -> Sequence[ResourceTemplate]:
        """Return the template that matches every file and folder."""
        description = f"A file below {self.name}, by its path; of a folder, the names in it."
        return [ResourceTemplate(uri_template=self._template.text, name=self.name, description=description)]

    async def resource(self, uri: str) -> Provided | None:
        """Return a file or folder whose path is allowed; whether it exists is checked when it is read."""
        path = (self._template.match(uri) or {}).get("path")
        if not isinstance(path, str) or not self._tree.has(path):
            return None
        resource = Resource(uri=uri, name=path or self.name, mime_type=self._tree.kind(path))
        return Provided(resource, partial(self._read, uri, path))

    async def complete(self, ref: Reference, argument: str, typed: str) -> Sequence[str] | None:
        """Return the paths that begin with the typed text."""
        if not isinstance(ref, ResourceTemplateReference) or (ref.uri, argument) != (self._template.text, "path"):
            return None
        return await asyncio.to_thread(self._tree.complete, typed)

    def _list(self) -> Sequence[Resource]:
        listing, cached = self._tree.listing(), self._cached_resources
        if cached is None or cached[0] is not listing:
            cached = self._cached_resources = (
                listing,
                [self._resource(path, entry) for path, entry in listing.files.items()],
            )
        return cached[1]

    def _resource(self, path: str, entry: DirectoryEntry) -> Resource:
        return Resource(
            uri=self.uri(path),
            name=path,
            mime_type=self._tree.kind(path),
            size=entry.size,
            annotations=changed_at(entry.changed),
        )

    async def _read(self, uri: str, path: str, ctx: Context | None = None) -> File:
        def is_visible(inner_path: str) -> bool:
            return ctx is None or ctx.sees_resource(self.uri(inner_path))

        slots = self._reads.get(asyncio.get_running_loop()) or self._reads.add(FairSemaphore(_READS))
        async with slots.slot("" if ctx is None else ctx._call.peer.account):
            try:
                return await asyncio.to_thread(self._tree.read, path, is_visible)
            except ResourceNotFound as error:
                raise ResourceNotFound(uri=uri) from error

    # --- changes -----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Watch the tree while any server runs, on any number of event loops."""
        if self._watcher is None:
            yield
            return
        self._count(self._watcher, 1)
        try:
            yield
        finally:
            await asyncio.to_thread(self._count, self._watcher, -1)

    def _count(self, watcher: DirectoryWatcher, delta: int) -> None:
        with self._lock:
            self._running += delta
            if self._running:
                watcher.start()
            else:
                watcher.stop()

    def _scan(self) -> Mapping[str, int]:
        """Notify of changes since the last scan, or at first since a client last listed the files. Return the folders
        to watch.
        """
        previous = self._last_listing or (self._cached_resources and self._cached_resources[0])
        self._last_listing = listing = self._tree.listing(anew=True)
        if previous is not None:
            changes = difference(previous, listing)
            if changes.added or changes.removed:
                self.changed("resources")
            for path in changes.all:
                self.updated(self.uri(path))
        return self._tree.inodes(listing.folders)


def changed_at(nanoseconds: int) -> Annotations | None:
    """Return a modification time as ISO 8601 annotations, or None if it is outside the calendar's range."""
    try:
        text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(nanoseconds // 1_000_000_000))
    except (OverflowError, ValueError, OSError):
        return None
    return Annotations(last_modified=text)

"""A provider of the skills in a folder: their files as resources, and their entries."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from functools import partial

from accord.errors import DeclarationError
from accord.messages.content import Resource
from accord.messages.resources import ResourceTemplate
from accord.messages.skills import MAX_SKILL_BYTES, SKILL_FILE, Skill
from accord.server.compose.provider import Provided
from accord.server.core.context import Context
from accord.server.declare.media import File
from accord.server.files.directory import Directory, changed_at
from accord.server.files.listing import TreeListing
from accord.server.files.names import PathFilter, split
from accord.server.files.root import DirectoryEntry
from accord.server.files.tree import FOLDER, Tree
from accord.server.skills.catalogue import SkillCatalogue, SkillReader

log: logging.Logger = logging.getLogger("accord.server")

_MAX_FILES = 100_000


class SkillFolder(Directory):
    """The skills below a folder, as resources below `base`: `skill://` and `refunds/SKILL.md` make
    `skill://refunds/SKILL.md`. Files outside of skills are not served. A skill that becomes invalid while the server
    runs is left out, and logged as an error.
    """

    def __init__(self, path: str | os.PathLike[str], base: str, poll_seconds: float | None) -> None:
        tree = Tree(path, PathFilter(), max_bytes=MAX_SKILL_BYTES, most=_MAX_FILES)
        super().__init__(tree, base, poll_seconds=poll_seconds)
        self._reader = SkillReader(lambda path, most: tree.root.read(split(path) or (), most), self.uri)
        self._catalogue: SkillCatalogue | None = None
        self._reading = threading.Lock()

    def check(self) -> None:
        """Raise `DeclarationError` for invalid skills, and if there is none."""
        catalogue = self.catalogue()
        if catalogue.errors:
            raise DeclarationError("; ".join(catalogue.errors.values()))
        if not catalogue.skills:
            raise DeclarationError(f"{self._tree.root.path} has no folder with a {SKILL_FILE}")

    def catalogue(self) -> SkillCatalogue:
        """Return the skills as they are now, at most as old as the listing of the tree may be. It blocks."""
        with self._reading:
            listing = self._tree.listing()
            previous = self._catalogue
            if previous is None or not _is_same(previous, listing):
                self._catalogue = catalogue = self._reader.catalogue(listing)
                for folder, error in catalogue.errors.items():
                    if previous is not None and previous.errors.get(folder) != error:
                        log.error("accord: the skill %s is not served: %s", folder, error)
                return catalogue
            return previous

    def skill(self, catalogue: SkillCatalogue, uri: str) -> Skill | None:
        """Return the skill whose `SKILL.md` is at a URI."""
        path = self.path(uri)
        folder, _, name = (path or "").rpartition("/")
        return catalogue.skills.get(folder) if name == SKILL_FILE else None

    def path(self, uri: str) -> str | None:
        """Return the path of a URI in the tree; None for a URI that is not below `base`."""
        path = (self._template.match(uri) or {}).get("path")
        return path if isinstance(path, str) and split(path) is not None else None

    def children(self, catalogue: SkillCatalogue, uri: str) -> list[Resource] | None:
        """Return the files and folders in a folder; None if the URI is not that of a folder."""
        path = self.path(uri)
        children = catalogue.children(path) if path and not path.endswith("/") else None
        if children is None:
            return None
        return [self._described(catalogue, path, entry) for path, entry in children.items()]

    # --- resources ---------------------------------------------------------------------------------------------

    async def templates(self) -> Sequence[ResourceTemplate]:
        """Return none: clients find the files in the entries of the skills."""
        return ()

    async def resource(self, uri: str) -> Provided | None:
        """Return a file of a skill, or a folder."""
        path = self.path(uri)
        if not path:
            return None
        catalogue = await asyncio.to_thread(self.catalogue)
        entry = catalogue.listing.files.get(path)
        children = catalogue.children(path)
        if children is not None:
            return Provided(self._described(catalogue, path, None), partial(self._read_folder, children))
        if entry is None or catalogue.skill_of(path) is None:
            return None
        return Provided(self._described(catalogue, path, entry), partial(self._read, uri, path))

    async def _read_folder(self, children: Mapping[str, DirectoryEntry | None], ctx: Context | None = None) -> File:
        """Return the visible names in a folder, one per line, those of folders with a trailing `/`: of skills alone,
        since the folder on the disk may contain other files.
        """
        visible = {path: entry for path, entry in children.items() if ctx is None or ctx.sees_resource(self.uri(path))}
        names = sorted(path.rpartition("/")[2] + "/" * (entry is None) for path, entry in visible.items())
        return File(data="\n".join(names).encode(), format=FOLDER)

    def _list(self) -> Sequence[Resource]:
        catalogue, cached = self.catalogue(), self._cached_resources
        if cached is None or cached[0] is not catalogue.listing:
            cached = self._cached_resources = catalogue.listing, self._describe_all(catalogue)
        return cached[1]

    def _describe_all(self, catalogue: SkillCatalogue) -> list[Resource]:
        files = catalogue.listing.files
        return [self._described(catalogue, path, files[path]) for path in files if catalogue.skill_of(path) is not None]

    def _described(self, catalogue: SkillCatalogue, path: str, entry: DirectoryEntry | None) -> Resource:
        folder, _, name = path.rpartition("/")
        if entry is None:
            return Resource(uri=self.uri(path), name=name, mime_type=FOLDER)
        skill = catalogue.skills.get(folder) if name == SKILL_FILE else None
        return Resource(
            uri=self.uri(path),
            name=name if skill is None else skill.name,
            description=None if skill is None else skill.description,
            mime_type="text/markdown" if skill is not None else self._tree.kind(path),
            size=entry.size,
            annotations=changed_at(entry.changed),
        )


def _is_same(catalogue: SkillCatalogue, listing: TreeListing) -> bool:
    """Return whether a catalogue is that of a listing. What could not be read before is read again."""
    before = catalogue.listing
    if before is listing:
        return True
    return not catalogue.errors and (before.files, before.folders) == (listing.files, listing.folders)

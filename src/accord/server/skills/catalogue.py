"""The skills in a tree of files: their entries, and what is wrong with those that cannot be served.

These functions block, so they are called in threads.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from accord.messages.base import JSONObject
from accord.messages.skills import MAX_SKILL_BYTES, MAX_SKILL_FILES, SKILL_FILE, Skill, SkillFile
from accord.server.files.listing import TreeListing
from accord.server.files.root import DirectoryEntry, FileTooLarge
from accord.wire.frontmatter import FrontmatterError, read_frontmatter

_NAME = re.compile("[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_NAME = 64
_MAX_DESCRIPTION = 1024
_MAX_DIGESTS = 100_000

ReadFile = Callable[[str, int], bytes]
"""Returns the bytes of a file by its path. Raises `FileTooLarge` for more than so many bytes, and `OSError`."""


class SkillError(ValueError):
    """A skill that cannot be served, with its file and line."""


class SkillCatalogue(NamedTuple):
    """The skills of one listing of a tree."""

    listing: TreeListing
    skills: dict[str, Skill]
    """By the path of the folder."""
    errors: dict[str, str]
    """Why a folder with a `SKILL.md` is not served, by its path."""
    folders: dict[str, dict[str, DirectoryEntry | None]]

    def skill_of(self, path: str) -> Skill | None:
        """Return the outermost skill that a file or folder belongs to."""
        return next((self.skills[each] for each in _parents(path) if each in self.skills), None)

    def children(self, folder: str) -> Mapping[str, DirectoryEntry | None] | None:
        """Return what a folder of a skill, or above a skill, contains: files by path, and folders with None. None for
        anything else.
        """
        return self.folders.get(folder)

    def index_folders(self) -> None:
        """Find what the folders of skills, and those above skills, contain."""
        above = {each for skill in self.skills for each in _parents(skill)}
        for path in self.listing.folders:
            if path in above or self.skill_of(path) is not None:
                self.folders[path] = {}
        for path, entry in self.listing.files.items():
            if self.skill_of(path) is not None:
                self.folders[path.rpartition("/")[0]][path] = entry
        for path in self.folders:
            if (children := self.folders.get(path.rpartition("/")[0])) is not None:
                children[path] = None


def _parents(path: str) -> Iterator[str]:
    """Yield the folders above a path, the outermost first, and the path itself."""
    parts = path.split("/")
    yield from ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def _files_of_skills(listing: TreeListing) -> dict[str, dict[str, DirectoryEntry]]:
    """Return the files below each folder with a `SKILL.md`, those of skills in skills included."""
    found: dict[str, dict[str, DirectoryEntry]] = {
        folder: {} for folder, _, name in (path.rpartition("/") for path in listing.files) if name == SKILL_FILE
    }
    for path, entry in listing.files.items():
        for folder in _parents(path):
            if folder in found:
                found[folder][path] = entry
    return found


class SkillReader:
    """Reads the skills of a tree. Digests are computed again only for files whose size or time has changed."""

    def __init__(self, read: ReadFile, uri: Callable[[str], str]) -> None:
        self._read = read
        self._uri = uri
        self._digests: dict[tuple[str, int, int], SkillFile] = {}

    def catalogue(self, listing: TreeListing) -> SkillCatalogue:
        """Return the skills of a listing."""
        found = SkillCatalogue(listing, {}, {}, {})
        known, self._digests = self._digests, {}
        for folder, files in _files_of_skills(listing).items():
            try:
                found.skills[folder] = self._skill(folder, listing, files, known)
            except SkillError as exc:
                found.errors[folder] = str(exc)
        found.index_folders()
        return found

    def _skill(
        self,
        folder: str,
        listing: TreeListing,
        files: Mapping[str, DirectoryEntry],
        known: Mapping[tuple[str, int, int], SkillFile],
    ) -> Skill:
        """Return the entry of a skill. Raises `SkillError`."""
        main = f"{folder}/{SKILL_FILE}" if folder else SKILL_FILE
        if not folder:
            raise SkillError(f"{main}: a skill has a folder of its own: serve the folder above it")
        if listing.is_truncated:
            raise SkillError(f"{main}: the folder has too many files to list all files of its skills")
        frontmatter = checked_frontmatter(main, folder.rpartition("/")[2], self._content(main))
        size = sum(entry.size for entry in files.values())
        if len(files) > MAX_SKILL_FILES or size > MAX_SKILL_BYTES:
            raise SkillError(
                f"{main}: the skill has {len(files):,} files with {size:,} bytes; hosts accept {MAX_SKILL_FILES} files "
                f"with {MAX_SKILL_BYTES:,} bytes"
            )
        resources = [self._file(path, entry, known) for path, entry in files.items()]
        return Skill(uri=self._uri(main), frontmatter=frontmatter, resources=resources)

    def _content(self, path: str) -> bytes:
        try:
            return self._read(path, MAX_SKILL_BYTES)
        except (OSError, FileTooLarge) as exc:
            reason = getattr(exc, "strerror", None) or f"it has more than {MAX_SKILL_BYTES:,} bytes"
            raise SkillError(f"{path} cannot be read: {reason}") from exc

    def _file(self, path: str, entry: DirectoryEntry, known: Mapping[tuple[str, int, int], SkillFile]) -> SkillFile:
        key = (path, entry.size, entry.changed)
        found = self._digests.get(key) or known.get(key)
        if found is None:
            content = self._content(path)
            digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
            found = SkillFile(uri=self._uri(path), digest=digest, size=len(content))
        if len(self._digests) < _MAX_DIGESTS:
            self._digests[key] = found
        return found


def checked_frontmatter(path: str, folder_name: str, content: bytes) -> JSONObject:
    """Return the frontmatter of a `SKILL.md`. Raises `SkillError` with its path and line."""
    try:
        frontmatter = read_frontmatter(content)
    except FrontmatterError as exc:
        raise SkillError(f"{path}, {exc}") from exc
    name, description = frontmatter.get("name"), frontmatter.get("description")
    if not (isinstance(name, str) and len(name) <= _MAX_NAME and _NAME.fullmatch(name)):
        raise SkillError(
            f"{path}, line {_line_of(content, b'name')}: the name is {name!r:.100}; it needs 1 to {_MAX_NAME} "
            "lower-case letters, digits and single hyphens between them"
        )
    if name != folder_name:
        raise SkillError(
            f"{path}, line {_line_of(content, b'name')}: the name is {name!r}, and the folder {folder_name!r:.100}: "
            "both must be the same"
        )
    if not (isinstance(description, str) and len(description.strip()) > 0 and len(description) <= _MAX_DESCRIPTION):
        raise SkillError(
            f"{path}, line {_line_of(content, b'description')}: it needs a description of at most "
            f"{_MAX_DESCRIPTION:,} characters: what the skill does, and when to use it"
        )
    return frontmatter


def _line_of(content: bytes, key: bytes) -> int:
    """Return the line of a member of the frontmatter, or its first line."""
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.startswith(key + b":"):
            return number
    return 2

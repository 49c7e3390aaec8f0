"""Skills of a server: loaded when they are needed, and verified against their entries (extension Skills, SEP-2640).

"Hosts MUST NOT retrieve a skill's files ahead of need", and what was retrieved must be what the entry describes: then
the model receives what the user approved. A digest proves no more: a skill is text of the server, not to be trusted.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from accord.errors import RemoteProtocolError, SkillChanged
from accord.messages.content import ResourceContents
from accord.messages.skills import MAX_SKILL_BYTES, MAX_SKILL_FILES, SKILL_FILE, Skill, SkillFile
from accord.wire.frontmatter import FrontmatterError, read_frontmatter

ReadURI = Callable[[str], Awaitable[Sequence[ResourceContents]]]
"""Reads a resource, not from the cache."""


_NO_NAME = re.compile("(?:/|%2f)(?:[.]|%2e){0,2}(?:/|%2f|$)", re.IGNORECASE)
"""Matches a part of a path that is empty, `.` or `..`, however it is written."""

_LONGEST_CHARACTER = len("%F0%9F%98%80")
"""The most characters that a URI has for one of a path."""


class LoadedSkill(msgspec.Struct, frozen=True):
    """A skill whose `SKILL.md` was read and verified. `entry` is what the user approves: it names all files."""

    entry: Skill
    text: str
    """The whole `SKILL.md`, with its frontmatter."""


async def load_skill(name: str, entry: Skill, read: ReadURI) -> LoadedSkill:
    """Read and verify the `SKILL.md` of an entry. `name` is that of the server, for errors. Raises `SkillChanged`, and
    `RemoteProtocolError` for an invalid entry.
    """
    check_entry(name, entry)
    content = await _read_verified(name, entry, entry.uri, read)
    try:
        frontmatter: Any = await asyncio.to_thread(read_frontmatter, content)
    except FrontmatterError as exc:
        raise SkillChanged(f"{name}: {entry.uri}: {exc}", uri=entry.uri) from exc
    if not _is_same(frontmatter, entry.frontmatter):
        raise SkillChanged(f"{name}: {entry.uri} has other frontmatter than its entry", uri=entry.uri)
    try:
        return LoadedSkill(entry, content.decode())
    except UnicodeDecodeError as exc:
        raise SkillChanged(f"{name}: {entry.uri} is not UTF-8: {exc}", uri=entry.uri) from exc


async def read_skill_file(name: str, entry: Skill, path: str, read: ReadURI) -> bytes:
    """Read and verify a file of a skill; `path` is relative to its folder. Raises `SkillChanged`, also for a file that
    the entry does not list.
    """
    check_entry(name, entry)
    root = _root(entry)
    if isinstance(entry.resources, str):
        parts = path.split("/")
        if not all(parts) or ".." in parts or "." in parts:
            raise SkillChanged(f"{name}: {path!r:.200} is no file of the skill {entry.uri}", uri=entry.uri)
        return await _read_verified(name, entry, f"{root}/{quote(path)}", read)
    start, longest = len(root) + 1, _LONGEST_CHARACTER * len(path)
    for file in entry.resources:
        if len(file.uri) - start <= longest and unquote(file.uri[start:]) == path:
            return await _read_verified(name, entry, file.uri, read)
    raise SkillChanged(f"{name}: the entry of {entry.uri} does not list {path!r:.200}", uri=entry.uri)


def check_entry(name: str, entry: Skill) -> None:
    """Raise `RemoteProtocolError` for an entry that must not be loaded."""
    problem = _problem(entry)
    if problem:
        raise RemoteProtocolError(f"{name}: the skill {entry.uri!r:.200} is invalid: {problem}")


def _problem(entry: Skill) -> str:
    """Return what is wrong with an entry; empty for a valid one."""
    root = _root(entry)
    if entry.uri != f"{root}/{SKILL_FILE}":
        return f"its URI does not end with /{SKILL_FILE}"
    if not entry.name or unquote(root.rpartition("/")[2]) != entry.name:
        return f"its name {entry.name!r:.100} is not that of its folder"
    if isinstance(entry.resources, str):
        return ""
    size = sum(file.size for file in entry.resources)
    if len(entry.resources) > MAX_SKILL_FILES or size > MAX_SKILL_BYTES:
        count = f"it has {len(entry.resources):,} files"
        return f"{count}, and skills have no more than {MAX_SKILL_FILES} files or {MAX_SKILL_BYTES:,} bytes"
    uris = {file.uri for file in entry.resources}
    if len(uris) < len(entry.resources) or entry.uri not in uris:
        return f"its files are not each listed once, {SKILL_FILE} included"
    if outside := next((uri for uri in uris if not _is_within(root, uri)), None):
        return f"{outside!r:.200} is not in its folder"
    return ""


def _is_within(root: str, uri: str) -> bool:
    return uri.startswith(f"{root}/") and not _NO_NAME.search(uri, len(root))


def _root(entry: Skill) -> str:
    """Return the URI of the folder."""
    return entry.uri.removesuffix(f"/{SKILL_FILE}")


async def _read_verified(name: str, entry: Skill, uri: str, read: ReadURI) -> bytes:
    """Return the bytes of a file, verified if the entry has its digest."""
    files: Mapping[str, SkillFile] = (
        {} if isinstance(entry.resources, str) else {file.uri: file for file in entry.resources}
    )
    content = _content(name, entry, uri, await read(uri))
    file = files.get(uri)
    if file is None:
        return content
    found = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if len(content) != file.size or found != file.digest:
        raise SkillChanged(
            f"{name}: {uri} has {len(content):,} bytes with {found}; its entry says {file.size:,} bytes with "
            f"{file.digest:.100}",
            uri=entry.uri,
        )
    return content


def _content(name: str, entry: Skill, uri: str, contents: Sequence[ResourceContents]) -> bytes:
    if len(contents) != 1:
        raise SkillChanged(f"{name}: {uri} has {len(contents)} contents; a file has one", uri=entry.uri)
    (content,) = contents
    if content.text is not None:
        return content.text.encode(errors="surrogatepass")
    try:
        return base64.b64decode(content.blob or "", validate=True)
    except binascii.Error as exc:
        raise SkillChanged(f"{name}: {uri} is not valid Base64: {exc}", uri=entry.uri) from exc


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same; 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)

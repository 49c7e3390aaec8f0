"""The extension Skills (SEP-2640, 2026-07-28): entries of skills, their files, and the folders that hold these."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import msgspec

from accord.check.engine.rule import NotApplicable, NotObserved, RuleFamily, rule
from accord.check.probes.content import get_object, get_objects, preview_json
from accord.check.probes.probe import Probe
from accord.client.skills import check_entry, load_skill, read_skill_file
from accord.errors import INVALID_PARAMS, RemoteProtocolError, SkillChanged
from accord.messages.content import ResourceContents
from accord.messages.skills import SKILL_FILE, SKILLS, Skill

PAGE = "https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx"
_NAME = re.compile("[a-z0-9]+(?:-[a-z0-9]+)*")
_MOST = 5
"""Number of skills whose files are read, and of files of each."""

_skill_rule: RuleFamily = partial(rule, since="2026-07-28", needs=SKILLS.capability)


@_skill_rule(
    "skills/listed",
    "must",
    case="skills/list",
    at=f"{PAGE}#listing-skills",
    cause="The extension is declared, and its method is not there.",
)
async def skills_listed(probe: Probe) -> None:
    """A server with the extension lists its skills: each has a URI, its frontmatter and its files."""
    for page in await probe.pages("skills/list", "skills"):
        for entry in page["skills"]:
            try:
                msgspec.convert(entry, Skill)
            except msgspec.ValidationError as exc:
                raise probe.violation(f"an entry is invalid: {exc}: {preview_json(entry)}") from exc


@_skill_rule(
    "skills/name",
    "must",
    case="all entries",
    at=(f"{PAGE}#skill-format", f"{PAGE}#resource-mapping"),
    cause="The name is a title, or the folder was renamed.",
)
async def skills_name(probe: Probe) -> None:
    """The frontmatter has a name and a description; the name is that of the folder."""
    async for entry in _entries(probe):
        name, description = entry.frontmatter.get("name"), entry.frontmatter.get("description")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > 64:
            raise probe.violation(f"the skill {entry.uri!r} has the name {preview_json(name)}")
        if not isinstance(description, str) or not description.strip():
            raise probe.violation(f"the skill {entry.uri!r} has the description {preview_json(description)}")
        if not entry.uri.endswith(f"/{name}/{SKILL_FILE}"):
            raise probe.violation(f"the skill {entry.uri!r} has the name {name!r}, which is not that of its folder")


@_skill_rule(
    "skills/complete",
    "must",
    case="all entries",
    at=(f"{PAGE}#resources", f"{PAGE}#limits"),
    cause="`SKILL.md` itself, or files in folders, are left out; or the skill is beyond the limits.",
)
async def skills_complete(probe: Probe) -> None:
    """An entry lists each file once, with `SKILL.md`, and none outside of the folder; at most 512 with 16 MiB."""
    async for entry in _entries(probe):
        try:
            check_entry("", entry)
        except RemoteProtocolError as exc:
            raise probe.violation(str(exc).removeprefix(": ")) from exc


@_skill_rule(
    "skills/verified",
    "must",
    case="`SKILL.md` of each skill",
    at=(f"{PAGE}#frontmatter", f"{PAGE}#integrity-and-verification"),
    cause="The digest is of other bytes, such as after a conversion of line ends, or the entry is stale.",
)
async def skills_verified(probe: Probe) -> None:
    """`SKILL.md` has the digest, the size and the frontmatter of the entry."""
    async for entry in _valid_entries(probe):
        try:
            await load_skill("", entry, partial(_read, probe))
        except SkillChanged as exc:
            raise probe.violation(_reason(exc)) from exc


@_skill_rule(
    "skills/files",
    "must",
    case="other files of each skill",
    at=(f"{PAGE}#resources", f"{PAGE}#integrity-and-verification"),
    cause="A file is listed that cannot be read, or it is not sent as it is.",
)
async def skills_files(probe: Probe) -> None:
    """The files of a skill have the digests and sizes of the entry."""
    seen = False
    async for entry in _valid_entries(probe):
        for path in list(_paths(entry))[:_MOST]:
            seen = True
            try:
                await read_skill_file("", entry, path, partial(_read, probe))
            except SkillChanged as exc:
                raise probe.violation(_reason(exc)) from exc
    if not seen:
        raise NotObserved("no skill has another file with a digest")


@_skill_rule(
    "skills/get",
    "must",
    case="each listed skill",
    at=f"{PAGE}#getting-a-skill",
    cause="The two methods make their entries in different ways.",
)
async def skills_get(probe: Probe) -> None:
    """skills/get returns the entry that skills/list has."""
    async for entry in _entries(probe):
        result = await probe.result("skills/get", {"uri": entry.uri})
        listed = msgspec.to_builtins(entry)
        if get_object(result, "skill") != listed:
            raise probe.violation(f"skills/get of {entry.uri!r} returned {preview_json(result.get('skill'))}")


@_skill_rule(
    "skills/unknown",
    "should",
    case="a URI that no skill has",
    at=f"{PAGE}#getting-a-skill",
    cause="The error is a result, or has a code of its own.",
)
async def skills_unknown(probe: Probe) -> None:
    """skills/get of a URI without a skill returns -32602."""
    uri = f"skill://{probe.unknown_name}/{SKILL_FILE}"
    probe.require_error(await probe.request("skills/get", {"uri": uri}), INVALID_PARAMS, f"skills/get of {uri!r}")


@_skill_rule(
    "skills/directory",
    "must",
    case="the folder of each skill",
    at=f"{PAGE}#directory-resources",
    cause="`directoryRead` is declared, and the folder is not a resource, or its list leaves files out.",
)
async def skills_directory(probe: Probe) -> None:
    """A server that declares `directoryRead` lists the files in the folder of a skill."""
    if get_object(probe.capabilities, "extensions", SKILLS.name).get("directoryRead") is not True:
        raise NotApplicable("the server does not declare directoryRead")
    async for entry in _valid_entries(probe):
        root = entry.uri.removesuffix(f"/{SKILL_FILE}")
        result = await probe.result("resources/directory/read", {"uri": root})
        found = {str(each.get("uri")) for each in get_objects(result, "resources")}
        wanted = {f"{root}/{path}" for path in _paths(entry) if "/" not in path} | {entry.uri}
        missing = sorted(wanted - found)
        if missing and "nextCursor" not in result:
            raise probe.violation(f"the folder {root!r} does not have {missing[0]!r}")


# --- what is judged ------------------------------------------------------------------------------------------------


async def _entries(probe: Probe) -> AsyncIterator[Skill]:
    """Yield the entries that have the right types. Raises `NotObserved` if there is none."""
    pages = await probe.pages("skills/list", "skills")
    found = [skill for page in pages for each in page["skills"] if (skill := _skill(each)) is not None]
    if not found:
        raise NotObserved("the server lists no skill")
    for each in found[:_MOST]:
        yield each


async def _valid_entries(probe: Probe) -> AsyncIterator[Skill]:
    """Yield the entries whose files can be verified. Raises `NotObserved` if there is none."""
    seen = False
    async for entry in _entries(probe):
        try:
            check_entry("", entry)
        except RemoteProtocolError:
            continue
        if not isinstance(entry.resources, str):
            seen = True
            yield entry
    if not seen:
        raise NotObserved("no entry has valid digests")


def _skill(entry: Any) -> Skill | None:
    try:
        return msgspec.convert(entry, Skill)
    except msgspec.ValidationError:
        return None


def _paths(entry: Skill) -> Iterator[str]:
    """Yield the paths of the other files, as far as they need no percent-encoding."""
    root = entry.uri.removesuffix(SKILL_FILE)
    for file in () if isinstance(entry.resources, str) else entry.resources:
        if file.uri != entry.uri and "%" not in file.uri:
            yield file.uri.removeprefix(root)


async def _read(probe: Probe, uri: str) -> list[ResourceContents]:
    """Return the contents of a file. Raises `SkillChanged` for an error, since the entry lists it."""
    answer = await probe.request("resources/read", {"uri": uri})
    try:
        return msgspec.convert(get_objects(answer.result, "contents"), list[ResourceContents])
    except msgspec.ValidationError as exc:
        raise SkillChanged(f": {uri} cannot be read: {exc}", uri=uri) from exc


def _reason(error: SkillChanged) -> str:
    """Return what is wrong, without what a client has to do."""
    return str(error).removeprefix(": ").partition("; get the entry again")[0]

"""Agent Skills served as resources: the extension `io.modelcontextprotocol/skills` (SEP-2640; 2026-07-28).

A skill is a folder with a `SKILL.md`. Its entry has the frontmatter of that file, and the digest and size of each file.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from accord.messages.base import JSONObject, Life, Model
from accord.messages.bounds import URI, Name
from accord.messages.content import Resource
from accord.messages.extension import Extension
from accord.messages.meta import CacheableResult, ListResult, PaginatedParams, Params
from accord.messages.methods import Method

MAX_SKILL_FILES = 512
"""The files of a skill that every host accepts (Limits)."""
MAX_SKILL_BYTES = 16 << 20
"""The bytes of all files of a skill that every host accepts (Limits)."""
SKILL_FILE = "SKILL.md"


class SkillFile(Model):
    """A file of a skill: `digest` is `sha256:` and the SHA-256 of its bytes in hexadecimal, `size` their number."""

    uri: URI
    digest: Name
    size: Annotated[int, msgspec.Meta(ge=0)]


class Skill(Model):
    """The entry of a skill. `uri` is that of its `SKILL.md`, `frontmatter` the frontmatter of that file, `resources`
    all of its files, or "dynamic" where they are generated and have no digests.
    """

    uri: URI
    frontmatter: JSONObject
    resources: Annotated[list[SkillFile], msgspec.Meta(max_length=8 * MAX_SKILL_FILES)] | Literal["dynamic"]

    @property
    def name(self) -> str:
        """The name, a label: two skills may have the same."""
        return str(self.frontmatter.get("name", ""))

    @property
    def description(self) -> str:
        """The purpose of the skill, written for a model."""
        return str(self.frontmatter.get("description", ""))


class ListSkillsResult(ListResult):
    """Result of `skills/list`."""

    skills: list[Skill]


class GetSkillParams(Params):
    """Params of `skills/get`: the URI of a `SKILL.md`."""

    uri: URI


class GetSkillResult(CacheableResult):
    """Result of `skills/get`."""

    skill: Skill


class ReadDirectoryParams(PaginatedParams):
    """Params of `resources/directory/read`: the URI of a folder, without a `/` at its end."""

    uri: URI


class ReadDirectoryResult(ListResult):
    """Result of `resources/directory/read`: the files and folders in the folder."""

    resources: list[Resource]


_SINCE = Life("2026-07-28", None)

SKILLS: Extension = Extension(
    name="io.modelcontextprotocol/skills",
    settings={"directoryRead": True},
    methods=(
        Method("skills/list", "client", PaginatedParams, ListSkillsResult, life=_SINCE),
        Method("skills/get", "client", GetSkillParams, GetSkillResult, life=_SINCE),
        Method("resources/directory/read", "client", ReadDirectoryParams, ReadDirectoryResult, life=_SINCE),
    ),
    declared_by="server",
)
"""The extension as accord serves it."""

"""The methods of the extension Skills: `skills/list`, `skills/get`, `resources/directory/read` (SEP-2640)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from accord.errors import DeclarationError, InvalidParams
from accord.limits import Limits
from accord.messages.meta import PaginatedParams
from accord.messages.skills import (
    SKILLS,
    GetSkillParams,
    GetSkillResult,
    ListSkillsResult,
    ReadDirectoryParams,
    ReadDirectoryResult,
    Skill,
)
from accord.server.compose.provider import Provider
from accord.server.core.content import CacheHint
from accord.server.core.context import Context
from accord.server.core.extension_methods import ExtensionMethods
from accord.server.core.pages import cut
from accord.server.core.registry import Registry
from accord.server.skills.folder import SkillFolder

_AT_ONCE = 8


class SkillServer(Protocol):
    """A server, as far as its skills use it."""

    registry: Registry
    extension_methods: ExtensionMethods
    limits: Limits
    cache: CacheHint

    def add_provider(self, provider: Provider) -> None:
        """Serve what a provider has. As `Server.add_provider`."""


def serve_skills(
    server: SkillServer, path: str | os.PathLike[str], uri: str, poll_seconds: float | None
) -> SkillFolder:
    """Serve the skills of a folder, see `Server.add_skills`. Raises `DeclarationError`."""
    folder = SkillFolder(path, uri, poll_seconds)
    if any(isinstance(each, SkillFolder) and each.base == folder.base for each in server.registry.providers):
        raise DeclarationError(f"skills are already served at {folder.base!r}: use another uri=")
    folder.check()
    server.add_provider(folder)
    methods = server.extension_methods
    if SKILLS not in methods.extensions:
        methods.declare(SKILLS)
        handlers = SkillMethods(server)
        methods.add("skills/list", handlers.list, Context)
        methods.add("skills/get", handlers.get, Context)
        methods.add("resources/directory/read", handlers.read_directory, Context)
    return folder


class SkillMethods:
    """The handlers of the methods. A skill is there for who may see all of its files, which its entry lists."""

    def __init__(self, server: SkillServer) -> None:
        self._server = server

    @property
    def _folders(self) -> list[SkillFolder]:
        return [each for each in self._server.registry.providers if isinstance(each, SkillFolder)]

    async def list(self, params: PaginatedParams, ctx: Context) -> ListSkillsResult:
        """Return one page of the skills. Raises `InvalidParams` for an unknown cursor."""
        skills: dict[str, Skill] = {}
        for folder in self._folders:
            catalogue = await asyncio.to_thread(folder.catalogue)
            for checked, skill in enumerate(catalogue.skills.values(), 1):
                if _sees(ctx, skill):
                    skills[skill.uri] = skill
                if checked % _AT_ONCE == 0:
                    await asyncio.sleep(0)  # thousands of files may be asked about
        page, following = cut(list(skills), params.cursor, self._server.limits.page_size)
        return ListSkillsResult(skills=[skills[uri] for uri in page], next_cursor=following, **self._cache())

    async def get(self, params: GetSkillParams, ctx: Context) -> GetSkillResult:
        """Return one skill. Raises `InvalidParams` for an unknown one."""
        for folder in self._folders:
            skill = folder.skill(await asyncio.to_thread(folder.catalogue), params.uri)
            if skill is not None and _sees(ctx, skill):
                return GetSkillResult(skill=skill, **self._cache())
        raise InvalidParams(f"no skill is served at {params.uri!r:.200}")

    async def read_directory(self, params: ReadDirectoryParams, ctx: Context) -> ReadDirectoryResult:
        """Return one page of the files and folders in a folder. Raises `InvalidParams` for anything else."""
        for folder in self._folders:
            found = folder.children(await asyncio.to_thread(folder.catalogue), params.uri)
            if found is None or not ctx.sees_resource(params.uri):
                continue
            children = {each.uri: each for each in found if ctx.sees_resource(each.uri)}
            page, following = cut(list(children), params.cursor, self._server.limits.page_size)
            return ReadDirectoryResult(
                resources=[children[uri] for uri in page], next_cursor=following, **self._cache()
            )
        raise InvalidParams(f"{params.uri!r:.200} is not a folder of a skill")

    def _cache(self) -> Mapping[str, Any]:
        """Return the cache hints: what depends on who asks is for that client alone."""
        view, hint = self._server.registry.view, self._server.cache
        scope: Literal["public", "private"] = "private" if view.requires_scopes or view.has_rules else hint.scope
        return {"ttl_ms": hint.ttl_ms, "cache_scope": scope}


def _sees(ctx: Context, skill: Skill) -> bool:
    return isinstance(skill.resources, str) or all(ctx.sees_resource(each.uri) for each in skill.resources)

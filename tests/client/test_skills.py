"""Skills on a client: loaded when needed, verified, and refused where they are not what their entries say."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from accord import Client, LoadedSkill, Server, Skill, SkillFile
from accord.errors import NotSupported, RemoteProtocolError, SkillChanged
from accord.messages.skills import MAX_SKILL_BYTES, MAX_SKILL_FILES, SKILLS, GetSkillParams, GetSkillResult
from accord.sync import Client as BlockingClient

from tests.measure import costs_at_most

URI = "skill://refunds/SKILL.md"
FILES: dict[str, bytes] = {
    URI: b"---\nname: refunds\ndescription: Refund.\nversion: 1.0\n---\nText.\n",
    "skill://refunds/templates/a%20b.md": b"Dear NAME",
    "skill://refunds/logo.png": b"\x89PNG\xff",
}
FRONTMATTER: dict[str, Any] = {"name": "refunds", "description": "Refund.", "version": 1}


def entry(files: dict[str, bytes] = FILES, **changes: Any) -> Skill:
    listed = [
        SkillFile(uri=uri, digest=f"sha256:{hashlib.sha256(content).hexdigest()}", size=len(content))
        for uri, content in files.items()
    ]
    return Skill(**{"uri": URI, "frontmatter": FRONTMATTER, "resources": listed, **changes})


class SkillServer:
    """A server that serves one entry, and files that may differ from it; it notes what is read."""

    def __init__(self, skill: Skill) -> None:
        self.read: list[str] = []
        self.server = Server("shop", extensions=[SKILLS])
        self.skill = skill
        self.server.method("skills/get")(self._get)
        self.files = dict(FILES)
        for uri in FILES:
            self.server.resource(uri, name=uri)(lambda uri=uri: self._content(uri))

    def _get(self, params: GetSkillParams) -> GetSkillResult:
        return GetSkillResult(skill=self.skill, ttl_ms=0, cache_scope="private")

    def _content(self, uri: str) -> str | bytes:
        self.read.append(uri)
        content = self.files[uri]
        return content if uri.endswith(".png") else content.decode()


async def test_a_skill_is_read_when_it_is_loaded_and_not_before() -> None:
    here = SkillServer(entry())
    async with Client(here.server) as client:
        skill = await client.get_skill(URI)
        assert (skill.name, skill.description, here.read) == ("refunds", "Refund.", [])
        loaded = await client.load_skill(skill)
        assert loaded == LoadedSkill(entry=entry(), text=FILES[URI].decode())
        assert await client.load_skill(URI) == loaded
        assert here.read == [URI, URI]
        assert await client.read_skill_file(loaded, "templates/a b.md") == b"Dear NAME"
        assert await client.read_skill_file(skill, "logo.png") == b"\x89PNG\xff"


def test_the_blocking_client_has_skills_too() -> None:
    with BlockingClient(SkillServer(entry()).server) as client:
        loaded = client.load_skill(URI)
        assert client.read_skill_file(loaded, "templates/a b.md") == b"Dear NAME"


@pytest.mark.parametrize(
    ("uri", "content"),
    [
        (URI, FILES[URI].replace(b"Text", b"Evil")),
        (URI, FILES[URI] + b"more"),
        ("skill://refunds/templates/a%20b.md", b"Dear EMAN"),
    ],
)
async def test_content_with_another_digest_or_size_is_not_used(uri: str, content: bytes) -> None:
    here = SkillServer(entry())
    here.files[uri] = content
    async with Client(here.server) as client:
        path = "SKILL.md" if uri == URI else "templates/a b.md"
        with pytest.raises(SkillChanged, match=r"its entry says .*get_skill\('skill://refunds/SKILL.md'\)") as caught:
            await client.read_skill_file(entry(), path)
        if uri == URI:
            with pytest.raises(SkillChanged):
                await client.load_skill(URI)
    assert caught.value.uri == URI


@pytest.mark.parametrize(
    ("frontmatter", "same"),
    [
        ({"version": 1.0}, True),
        ({"version": True}, False),
        ({"version": "1.0"}, False),
        ({"description": "Other."}, False),
        ({"allowed-tools": "Bash"}, False),
    ],
)
async def test_frontmatter_must_be_that_of_the_entry(frontmatter: dict[str, Any], same: bool) -> None:
    here = SkillServer(entry(frontmatter={**FRONTMATTER, **frontmatter}))
    async with Client(here.server) as client:
        if same:
            await client.load_skill(URI)
            return
        with pytest.raises(SkillChanged, match="has other frontmatter than its entry"):
            await client.load_skill(URI)


@pytest.mark.parametrize("path", ["none.md", "../refunds/SKILL.md", "", "templates", "templates/a%20b.md", "/SKILL.md"])
async def test_a_file_that_is_not_listed_is_not_read(path: str) -> None:
    here = SkillServer(entry())
    async with Client(here.server) as client:
        with pytest.raises(SkillChanged, match="does not list"):
            await client.read_skill_file(entry(), path)
    assert here.read == []


FILE = SkillFile(uri=URI, digest="sha256:0", size=1)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"uri": "skill://refunds"}, "its URI does not end with /SKILL.md"),
        ({"uri": "skill://other/SKILL.md"}, "its name 'refunds' is not that of its folder"),
        ({"frontmatter": {}}, "its name '' is not that of its folder"),
        ({"resources": []}, "its files are not each listed once"),
        ({"resources": [FILE, FILE]}, "its files are not each listed once"),
        ({"resources": [FILE, SkillFile(uri="skill://other/x", digest="", size=1)]}, "is not in its folder"),
        ({"resources": [FILE, SkillFile(uri="skill://refunds/../x", digest="", size=1)]}, "is not in its folder"),
        ({"resources": [FILE, SkillFile(uri="skill://refunds/%2e%2e/x", digest="", size=1)]}, "is not in its folder"),
        ({"resources": [FILE, SkillFile(uri="skill://refunds/a%2F%2E./x", digest="", size=1)]}, "is not in its folder"),
        ({"resources": [FILE, SkillFile(uri="skill://refunds/a%2f", digest="", size=1)]}, "is not in its folder"),
        ({"resources": [FILE, SkillFile(uri="skill://refunds/.", digest="", size=1)]}, "is not in its folder"),
        ({"resources": [SkillFile(uri=URI, digest="", size=MAX_SKILL_BYTES + 1)]}, "more than 512 files or 16,777,216"),
        (
            {
                "resources": [
                    SkillFile(uri=URI, digest="", size=10**4299),
                    SkillFile(uri="skill://refunds/x", digest="", size=9 * 10**4299),
                ]
            },
            "more than 512 files or 16,777,216",
        ),
        (
            {
                "resources": [
                    FILE,
                    *(SkillFile(uri=f"skill://refunds/{n}", digest="", size=0) for n in range(MAX_SKILL_FILES)),
                ]
            },
            "it has 513 files",
        ),
    ],
)
async def test_an_invalid_entry_is_not_loaded(changes: dict[str, Any], problem: str) -> None:
    here = SkillServer(entry())
    async with Client(here.server) as client:
        for work in (client.load_skill(entry(**changes)), client.read_skill_file(entry(**changes), "SKILL.md")):
            with pytest.raises(RemoteProtocolError, match=problem):
                await work
    assert here.read == []


async def test_an_entry_with_many_long_uris_is_refused_fast() -> None:
    files = [FILE, *(SkillFile(uri=f"skill://refunds/{n}{'%41' * 2700}", digest="", size=0) for n in range(4095))]
    long, whole = entry(resources=files), entry(resources=files[:MAX_SKILL_FILES])
    here = SkillServer(entry())
    async with Client(here.server) as client:
        with costs_at_most(5), pytest.raises(RemoteProtocolError, match="it has 4,096 files"):
            await client.load_skill(long)
        with costs_at_most(8), pytest.raises(SkillChanged, match="does not list"):
            await client.read_skill_file(whole, "none.md")


async def test_deep_frontmatter_is_refused() -> None:
    value: Any = 1
    for _ in range(400):
        value = {"a": value}
    deep = FILES[URI].replace(b"1.0", b"{a: " * 400 + b"1" + b"}" * 400)
    here = SkillServer(entry({**FILES, URI: deep}, frontmatter={**FRONTMATTER, "version": value}))
    here.files[URI] = deep
    async with Client(here.server) as client:
        with pytest.raises(SkillChanged, match="nested deeper than"):
            await client.load_skill(entry({**FILES, URI: deep}, frontmatter={**FRONTMATTER, "version": value}))


async def test_a_dynamic_skill_is_read_without_digests() -> None:
    here = SkillServer(entry(resources="dynamic"))
    here.files["skill://refunds/templates/a%20b.md"] = b"of today"
    async with Client(here.server) as client:
        loaded = await client.load_skill(URI)
        assert await client.read_skill_file(loaded, "templates/a b.md") == b"of today"
        for path in ("../x", "a//b", "./x", ""):
            with pytest.raises(SkillChanged, match="is no file of the skill"):
                await client.read_skill_file(loaded, path)
        here.files[URI] = FILES[URI].replace(b"Refund.", b"Other.")
        with pytest.raises(SkillChanged, match="has other frontmatter"):
            await client.load_skill(URI)


async def test_a_server_without_skills_is_an_error() -> None:
    async with Client(Server("plain")) as client:
        with pytest.raises(NotSupported, match="skills/list needs"):
            await client.list_skills()

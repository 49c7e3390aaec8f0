"""Skills of a folder: their entries, their files as resources, what is refused, and who sees them."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accord import Client, DeclarationError, InvalidParams, Principal, ResourceNotFound, Server
from accord.limits import Limits
from accord.messages.skills import (
    MAX_SKILL_BYTES,
    MAX_SKILL_FILES,
    ReadDirectoryParams,
    ReadDirectoryResult,
    Skill,
)
from accord.middleware import RequireScopes
from accord.server.files.listing import TreeListing
from accord.server.files.root import DirectoryEntry
from accord.server.skills.catalogue import SkillReader

from tests.measure import assert_linear

REFUNDS = "---\nname: refunds\ndescription: Refund an order.\nlicense: MIT\n---\n# Refunds\n"


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def skill(name: str) -> str:
    return f"---\nname: {name}\ndescription: What it does.\n---\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(
        tmp_path / "skills",
        {
            "README.md": "no skill",
            "refunds/SKILL.md": REFUNDS,
            "refunds/templates/mail.md": "Dear NAME",
            "refunds/logo.png": b"\x89PNG\xff",
            "refunds/inner/SKILL.md": skill("inner"),
            "acme/billing/notes.txt": "no skill either",
            "acme/billing/invoices/SKILL.md": skill("invoices"),
        },
    )


@pytest.fixture
def server(folder: Path) -> Server:
    server = Server("shop")
    server.add_skills(folder)
    return server


def uris(skills: list[Skill]) -> list[str]:
    return sorted(each.uri for each in skills)


async def directory(client: Client, uri: str) -> list[tuple[str, str | None]]:
    params = ReadDirectoryParams(uri=uri)
    found = await client.request("resources/directory/read", params, result=ReadDirectoryResult)
    return [(each.uri, each.mime_type) for each in found.resources]


async def test_an_entry_has_the_frontmatter_and_all_files(server: Server, folder: Path) -> None:
    async with Client(server) as client:
        assert client.server_capabilities is not None
        assert client.server_capabilities.extensions == {"io.modelcontextprotocol/skills": {"directoryRead": True}}
        skills = await client.list_skills()
        assert uris(skills) == [
            "skill://acme/billing/invoices/SKILL.md",
            "skill://refunds/SKILL.md",
            "skill://refunds/inner/SKILL.md",
        ]
        entry = await client.get_skill("skill://refunds/SKILL.md")
        assert entry in skills
    assert entry.frontmatter == {"name": "refunds", "description": "Refund an order.", "license": "MIT"}
    assert {each.uri: (each.digest, each.size) for each in entry.resources if not isinstance(each, str)} == {
        f"skill://{path.relative_to(folder).as_posix()}": (
            f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}",
            path.stat().st_size,
        )
        for path in (folder / "refunds").rglob("*")
        if path.is_file()
    }


async def test_files_of_skills_are_resources_and_others_are_not(server: Server) -> None:
    async with Client(server) as client:
        listed = {each.uri: each for each in await client.list_resources()}
        assert "skill://README.md" not in listed
        assert "skill://acme/billing/notes.txt" not in listed
        main = listed["skill://refunds/SKILL.md"]
        assert (main.name, main.description, main.mime_type) == ("refunds", "Refund an order.", "text/markdown")
        assert (await client.read_resource("skill://refunds/logo.png")).contents[0].blob is not None
        for uri in ("skill://README.md", "skill://acme/billing/notes.txt", "skill://refunds/../README.md"):
            with pytest.raises(ResourceNotFound):
                await client.read_resource(uri)


async def test_a_read_of_a_folder_names_no_files_outside_of_skills(server: Server) -> None:
    async with Client(server) as client:
        texts = [
            (await client.read_resource(uri)).contents[0].text
            for uri in ("skill://acme", "skill://acme/billing", "skill://refunds", "skill://refunds/templates")
        ]
    assert texts == ["billing/", "invoices/", "SKILL.md\ninner/\nlogo.png\ntemplates/", "mail.md"]


async def test_folders_are_read_one_level_at_a_time(server: Server) -> None:
    async with Client(server) as client:
        assert await directory(client, "skill://refunds") == [
            ("skill://refunds/SKILL.md", "text/markdown"),
            ("skill://refunds/logo.png", "image/png"),
            ("skill://refunds/inner", "inode/directory"),
            ("skill://refunds/templates", "inode/directory"),
        ]
        assert await directory(client, "skill://acme/billing") == [
            ("skill://acme/billing/invoices", "inode/directory"),
        ]
        for uri in ("skill://refunds/SKILL.md", "skill://refunds/", "skill://none", "skill://", "file:///etc"):
            with pytest.raises(InvalidParams, match="is not a folder of a skill"):
                await directory(client, uri)


@pytest.mark.parametrize(
    "uri",
    ["skill://none/SKILL.md", "skill://refunds", "skill://refunds/logo.png", "skill://README.md", "x", "skill://"],
)
async def test_an_unknown_skill_is_an_error(server: Server, uri: str) -> None:
    async with Client(server) as client:
        with pytest.raises(InvalidParams, match="no skill is served"):
            await client.get_skill(uri)


async def test_long_lists_have_pages(tmp_path: Path) -> None:
    write(tmp_path, {f"s{number}/SKILL.md": skill(f"s{number}") for number in range(25)})
    server = Server("many", limits=Limits(page_size=10))
    server.add_skills(tmp_path)
    async with Client(server) as client:
        assert len(await client.list_skills()) == 25


def too_many(path: Path) -> dict[str, str | bytes]:
    return {"refunds/SKILL.md": REFUNDS, **{f"refunds/{number}": "" for number in range(MAX_SKILL_FILES)}}


def too_large(path: Path) -> dict[str, str | bytes]:
    return {"refunds/SKILL.md": REFUNDS, "refunds/data": b"x" * MAX_SKILL_BYTES}


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "no folder with a SKILL.md"),
        ({"README.md": ""}, "no folder with a SKILL.md"),
        ({"SKILL.md": REFUNDS}, "SKILL.md: a skill has a folder of its own"),
        ({"refund/SKILL.md": REFUNDS}, "refund/SKILL.md, line 2: the name is 'refunds', and the folder 'refund'"),
        ({"a/SKILL.md": "text"}, "a/SKILL.md, line 1: the file does not begin with frontmatter"),
        ({"a/SKILL.md": "---\nname: a\ndescription: [\n---\n"}, "a/SKILL.md, line [34]: the frontmatter is not valid"),
        ({"a/SKILL.md": "---\nname: a\n---\n"}, "a/SKILL.md, line 2: it needs a description"),
        ({"A/SKILL.md": skill("A")}, "A/SKILL.md, line 2: the name is 'A'; it needs 1 to 64 lower-case letters"),
        ({"a--b/SKILL.md": skill("a--b")}, "the name is 'a--b'; it needs"),
        (
            {"a/SKILL.md": f"---\nname: a\ndescription: {'x' * 1025}\n---\n"},
            "line 3: it needs a description of at most",
        ),
        ({"a/SKILL.md": "---\nname: 5\ndescription: x\n---\n"}, "the name is 5"),
        (too_many, "the skill has 513 files"),
        (too_large, "files with 16,777,2.. bytes; hosts accept 512 files with 16,777,216 bytes"),
    ],
)
def test_a_skill_that_hosts_would_refuse_is_an_error(
    files: dict[str, str | bytes] | Callable[[Path], dict[str, str | bytes]], problem: str, tmp_path: Path
) -> None:
    write(tmp_path, files(tmp_path) if callable(files) else files)
    with pytest.raises(DeclarationError, match=problem):
        Server("shop").add_skills(tmp_path)


def test_a_folder_is_served_once_at_a_uri(server: Server, folder: Path) -> None:
    with pytest.raises(DeclarationError, match="skills are already served at 'skill://'"):
        server.add_skills(folder)
    server.add_skills(folder, uri="skill://more")


async def test_two_folders_are_one_list(server: Server, folder: Path) -> None:
    server.add_skills(folder / "acme", uri="skill://more")
    async with Client(server) as client:
        assert "skill://more/billing/invoices/SKILL.md" in uris(await client.list_skills())
        assert await client.get_skill("skill://more/billing/invoices/SKILL.md")


async def test_a_changed_file_changes_its_digest(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.server.files.tree._FRESH", 0)
    async with Client(server) as client:
        before = await client.get_skill("skill://refunds/SKILL.md")
        write(folder, {"refunds/templates/mail.md": "Dear Ada"})
        os.utime(folder / "refunds/templates/mail.md", ns=(1, 1))
        async with asyncio.timeout(30):
            while (after := await client.get_skill("skill://refunds/SKILL.md")) == before:
                await asyncio.sleep(0.01)
    changed = {*after.resources} - {*before.resources}
    assert [each.uri for each in changed if not isinstance(each, str)] == ["skill://refunds/templates/mail.md"]


def test_unchanged_skills_are_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.server.files.tree._FRESH", 0)
    monkeypatch.setattr("accord.server.files.tree._SHARE", 0)
    skills = Server("shop").add_skills(folder)
    first = skills.catalogue()
    assert skills.catalogue() is first
    write(folder, {"refunds/templates/mail.md": "Dear Ada!"})
    assert skills.catalogue() is not first


async def test_the_list_of_unchanged_files_is_made_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.server.files.tree._FRESH", 0)
    monkeypatch.setattr("accord.server.files.tree._SHARE", 0)
    skills = Server("shop").add_skills(folder)
    first = await skills.resources()
    assert await skills.resources() is first
    write(folder, {"refunds/templates/new.md": "Hello"})
    assert "skill://refunds/templates/new.md" in [each.uri for each in await skills.resources()]


def test_many_skills_with_many_files_take_time_in_proportion() -> None:
    def read(count: int) -> None:
        paths = [f"s{number}/{name}" for number in range(count) for name in ("SKILL.md", *map(str, range(20)))]
        files = {path: DirectoryEntry(path.partition("/")[2], False, 1, 1) for path in paths}
        listing = TreeListing(files, ["", *(f"s{number}" for number in range(count))], False, 0, 0)
        reader = SkillReader(lambda path, most: skill(path.partition("/")[0]).encode(), lambda path: f"skill://{path}")
        catalogue = reader.catalogue(listing)
        for number in range(count):
            assert len(catalogue.children(f"s{number}") or ()) == 21

    assert_linear(read, 20)


async def test_a_skill_that_becomes_invalid_is_left_out_and_logged(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("accord.server.files.tree._FRESH", 0)
    async with Client(server) as client:
        assert len(await client.list_skills()) == 3
        write(folder, {"refunds/SKILL.md": "---\nname: other\ndescription: x\n---\n"})
        with caplog.at_level(logging.ERROR, "accord.server"):
            async with asyncio.timeout(30):
                while len(found := await client.list_skills(fresh=True)) == 3:
                    await asyncio.sleep(0.01)
        assert uris(found) == ["skill://acme/billing/invoices/SKILL.md", "skill://refunds/inner/SKILL.md"]
        with pytest.raises(ResourceNotFound):
            await client.read_resource("skill://refunds/logo.png", fresh=True)
    (line,) = [each for each in caplog.messages if "is not served" in each]
    assert "refunds/SKILL.md, line 2: the name is 'other'" in line


async def test_who_may_not_see_a_skill_learns_nothing_of_it(folder: Path) -> None:
    server = Server("shop", middleware=[RequireScopes({"skill://refunds/**": {"money"}})])
    server.add_skills(folder)
    everything, nothing = Principal(id="a", scopes=frozenset({"money"})), Principal(id="b")
    async with Client(server, principal=everything) as client:
        assert len(await client.list_skills()) == 3
    async with Client(server, principal=nothing) as client:
        assert uris(await client.list_skills()) == ["skill://acme/billing/invoices/SKILL.md"]
        assert (await client.list_skills())[0] == await client.get_skill("skill://acme/billing/invoices/SKILL.md")
        with pytest.raises(InvalidParams, match="no skill is served"):
            await client.get_skill("skill://refunds/SKILL.md")
        for uri in ("skill://refunds", "skill://refunds/templates", "skill://refund%73"):
            with pytest.raises(InvalidParams, match="is not a folder of a skill"):
                await directory(client, uri)
            with pytest.raises(ResourceNotFound):
                await client.read_resource(uri)


async def test_who_may_not_see_a_file_sees_no_entry_that_lists_it(folder: Path) -> None:
    server = Server("shop", middleware=[RequireScopes({"skill://refunds/templates/*": {"money"}})])
    server.add_skills(folder)
    async with Client(server, principal=Principal(id="b")) as client:
        assert "skill://refunds/SKILL.md" not in uris(await client.list_skills())
        with pytest.raises(InvalidParams, match="no skill is served"):
            await client.get_skill("skill://refunds/SKILL.md")
        with pytest.raises(InvalidParams, match="is not a folder of a skill"):
            await directory(client, "skill://refunds/templates")


async def test_a_client_of_another_revision_reads_the_files(server: Server) -> None:
    async with Client(server, revisions=["2025-11-25"]) as client:
        assert "skill://refunds/SKILL.md" in [each.uri for each in await client.list_resources()]
        assert (await client.read_resource("skill://refunds/SKILL.md")).contents[0].text == REFUNDS


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    secret = write(tmp_path, {"secret": "x"}) / "secret"
    folder = write(tmp_path / "skills", {"refunds/SKILL.md": REFUNDS})
    (folder / "refunds" / "link").symlink_to(secret)
    found: Any = Server("shop").add_skills(folder).catalogue().skills["refunds"].resources
    assert [each.uri for each in found] == ["skill://refunds/SKILL.md"]

"""A folder as a client meets it: listed, read, completed, subscribed to, in every revision."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from accord import Client, Limits, ListChanged, Principal, ResourceNotFound, ResourceUpdated, Server
from accord.messages.revision import HANDSHAKE, REVISIONS
from accord.server.files.tree import Tree

from tests.server.raw import RawPeer, raw_peer
from tests.waiting import until

ROOT = Path(__file__).parent.parent.parent.parent
EXAMPLE = ROOT / "examples" / "files.py"

HOSTILE = [
    "docs://../secret",
    "docs://..%2fsecret",
    "docs://%2e%2e/secret",
    "docs://%2E%2E%2Fsecret",
    "docs://guide/..%2f..%2fsecret",
    "docs://..%5csecret",
    "docs://..\\secret",
    "docs:///etc/passwd",
    "docs:////etc/passwd",
    "docs://%2fetc%2fpasswd",
    "docs://file:///etc/passwd",
    "docs://C:/windows/win.ini",
    "docs://C%3a%5cwindows",
    "docs://%00",
    "docs://readme.md%00.png",
    "docs://link",
    "docs://folder/secret",
    "docs://.hidden",
    "docs://proc/self/environ",
    "docs://~/secret",
    "docs://" + "../" * 50 + "etc/passwd",
    "docs://" + "a/" * 100_000,
    "docs://caf%e9",
]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("SECRET")
    (tmp_path / "docs" / "guide").mkdir(parents=True)
    (tmp_path / "docs" / "readme.md").write_text("# Hello")
    (tmp_path / "docs" / "guide" / "steps.md").write_text("One, two.")
    (tmp_path / "docs" / ".hidden").write_text("SECRET")
    (tmp_path / "docs" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "docs" / "folder").symlink_to(tmp_path)
    (tmp_path / "docs" / "proc").symlink_to("/proc")
    return tmp_path / "docs"


def server(docs: Path, limits: Limits | None = None, **options: Any) -> Server:
    made = Server("files", limits=limits or Limits())
    made.add_directory(docs, **{"uri": "docs://", **options})
    return made


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_folder_is_served_in_every_revision(docs: Path, revision: str) -> None:
    async with Client(server(docs), revisions=[revision]) as client:
        assert [each.uri for each in await client.list_resources()] == ["docs://guide/steps.md", "docs://readme.md"]
        assert [each.uri_template for each in await client.list_resource_templates()] == ["docs://{+path}"]
        [file] = (await client.read_resource("docs://readme.md")).contents
        assert (file.uri, file.text, file.mime_type) == ("docs://readme.md", "# Hello", "text/markdown")
        [folder] = (await client.read_resource("docs://")).contents
        assert (folder.text, folder.mime_type) == ("guide/\nreadme.md", "inode/directory")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_nothing_hostile_is_more_than_not_found(docs: Path, revision: str) -> None:
    async with raw_peer(server(docs), revision) as peer:
        for uri in HOSTILE:
            answer = await peer.ask("resources/read", {"uri": uri})
            assert "SECRET" not in str(answer)
            too_long = len(uri) > 8_192  # refused where it is decoded, before anything is looked for
            code = -32602 if too_long or revision == "2026-07-28" else -32002
            assert answer["error"]["code"] == code, (uri[:100], answer)
        assert "result" in await peer.ask("resources/read", {"uri": "docs://readme.md"})


async def test_contents_have_the_requested_uri(docs: Path) -> None:
    async with Client(server(docs)) as client:
        [file] = (await client.read_resource("docs://guide%2Fsteps.md")).contents
        assert (file.uri, file.text) == ("docs://guide%2Fsteps.md", "One, two.")


async def test_long_lists_come_in_pages(docs: Path) -> None:
    for number in range(25):
        (docs / f"{number:02}.txt").write_text("x")
    async with raw_peer(server(docs, Limits(page_size=10)), "2025-11-25") as peer:
        sizes, cursor = [], None
        while True:
            result = (await peer.ask("resources/list", {"cursor": cursor} if cursor else {}))["result"]
            sizes.append(len(result["resources"]))
            if (cursor := result.get("nextCursor")) is None:
                break
    assert sizes == [10, 10, 7]


async def test_the_base_is_the_file_uri_of_the_folder_by_default(docs: Path) -> None:
    async with Client(server(docs, uri=None)) as client:
        first = (await client.list_resources())[0]
        assert first.uri == (docs / "guide" / "steps.md").as_uri()
        assert (await client.read_resource(first.uri)).contents[0].text == "One, two."


async def test_paths_are_completed(docs: Path) -> None:
    async with Client(server(docs)) as client:
        found = await client.complete(template="docs://{+path}", argument="path", value="g")
        assert found.values == ["guide/"]


async def test_a_folder_that_is_gone_harms_nothing_else(docs: Path) -> None:
    made = server(docs, poll_seconds=0.05)
    made.tool(alive)
    (docs.parent / "docs").rename(docs.parent / "moved")
    async with Client(made) as client:
        assert await client.list_resources() == []
        with pytest.raises(ResourceNotFound):
            await client.read_resource("docs://readme.md")
        assert (await client.call_tool("alive")).text == "here"
        (docs.parent / "moved").rename(docs)
        assert (await client.read_resource("docs://readme.md")).contents[0].text == "# Hello"


def alive() -> str:
    return "here"


async def test_a_mounted_folder_has_its_prefix(docs: Path) -> None:
    outer = Server("outer")
    outer.mount(server(docs), prefix="acme")
    async with Client(outer, strict=True) as client:
        assert [each.uri for each in await client.list_resources()][1] == "docs://acme/readme.md"
        [file] = (await client.read_resource("docs://acme/readme.md")).contents
        assert (file.uri, file.text) == ("docs://acme/readme.md", "# Hello")
        async with client.subscribe(resources=True) as changes:
            (docs / "new").write_text("x")
            assert isinstance(await anext(changes), ListChanged)


async def test_changes_are_notified_to_subscribers(docs: Path) -> None:
    made = server(docs, poll_seconds=0.05)
    async with Client(made) as client, client.subscribe("docs://guide/", resources=True) as changes:
        await client.list_resources()
        (docs / "guide" / "more.md").write_text("Three.")
        heard = {type(await anext(changes)), type(await anext(changes))}
        assert heard == {ListChanged, ResourceUpdated}
        assert "docs://guide/more.md" in [each.uri for each in await client.list_resources()]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_changes_are_notified_after_a_handshake(docs: Path, revision: str) -> None:
    async with raw_peer(server(docs, poll_seconds=0.05), revision) as peer:
        await peer.ask("resources/subscribe", {"uri": "docs://readme.md"})
        await peer.ask("resources/list")
        (docs / "readme.md").write_text("# Changed")
        updated = ("notifications/resources/updated", "docs://readme.md")
        assert await told(peer) == updated
        (docs / "new.md").write_text("new")
        while (then := await told(peer)) == updated:  # a file may be seen while it is written, and after
            pass
        assert then == ("notifications/resources/list_changed", None)


async def told(peer: RawPeer) -> tuple[str, str | None]:
    message = await peer.hear()
    return message["method"], (message.get("params") or {}).get("uri")


async def test_a_client_that_connects_later_is_notified_too(docs: Path) -> None:
    """The watch ends with the last client, and begins again with the next."""
    made = server(docs, poll_seconds=0.05)
    for number in range(3):
        async with Client(made) as client, client.subscribe(resources=True) as changes:
            await client.list_resources()
            (docs / f"{number}").write_text("x")
            assert isinstance(await asyncio.wait_for(anext(changes), 100), ListChanged)


def test_a_watched_server_ends_with_its_client() -> None:
    """No thread keeps the process: input ends, and so does it."""
    done = subprocess.run([sys.executable, EXAMPLE], input=b"", capture_output=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr.decode()


async def test_the_example_does_what_it_says() -> None:
    async with Client(str(EXAMPLE)) as client:
        assert [each.uri for each in await client.list_resources()] == [
            "handbook://first-steps.md",
            "handbook://rules/office.md",
        ]
        assert "badge" in ((await client.read_resource("handbook://first-steps.md")).contents[0].text or "")
        [badge] = (await client.call_tool("badge", {"name": "<Ada>"})).content
        assert badge.mime_type == "image/svg+xml"  # type: ignore[union-attr]
        [tone] = (await client.call_tool("tone")).content
        assert tone.mime_type == "audio/wav"  # type: ignore[union-attr]
        _, rota = (await client.call_tool("rota", {"people": ["Ada", "Max"]})).content
        assert rota.resource.text == "1,Ada\n2,Max"  # type: ignore[union-attr]


async def test_few_files_are_read_at_once_and_clients_take_turns(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, finished, running, most = threading.Lock(), threading.Event(), 0, 0
    read = Tree.read

    def count(tree: Tree, path: str, *rest: Any) -> Any:
        nonlocal running, most
        with lock:
            running, most = running + 1, max(most, running + 1)
        try:
            finished.wait(30)
            return read(tree, path, *rest)
        finally:
            with lock:
                running -= 1

    monkeypatch.setattr(Tree, "read", count)
    shared, order = server(docs), list[str]()

    async def note(client: Client, name: str) -> None:
        await client.read_resource("docs://readme.md", fresh=True)
        order.append(name)

    async with Client(shared, principal=Principal("ann")) as ann, Client(shared, principal=Principal("bob")) as bob:
        reads = [asyncio.create_task(note(ann, "ann")) for _ in range(50)]
        await until(lambda: running == 4)
        reads.append(asyncio.create_task(note(bob, "bob")))
        await asyncio.sleep(0)
        finished.set()
        await asyncio.gather(*reads)
    assert most == 4
    assert order.index("bob") < 20

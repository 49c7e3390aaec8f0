"""A tree of files as a provider of resources, and what it tells while it is watched."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from accord import DeclarationError, InternalError, ResourceNotFound, ResourceTemplateReference, Server
from accord.messages.completion import PromptReference
from accord.server.declare.media import File
from accord.server.files import watcher
from accord.server.files.directory import Directory, changed_at
from accord.server.files.media_types import BYTES
from accord.server.files.names import PathFilter
from accord.server.files.root import DirectoryEntry, ServedRoot
from accord.server.files.tree import Tree

from tests.waiting import until

Event = tuple[str, str]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "guide").mkdir(parents=True)
    (tmp_path / "docs" / "readme.md").write_text("# Hello")
    (tmp_path / "docs" / "guide" / "first steps.md").write_text("One, two.")
    (tmp_path / "docs" / "guide" / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    os.utime(tmp_path / "docs" / "readme.md", (0, 1_700_000_000))
    return tmp_path / "docs"


def directory(
    path: Path, base: str = "docs://", *, choice: PathFilter | None = None, poll: float | None = None, **bounds: Any
) -> Directory:
    return Directory(
        Tree(path, choice or PathFilter(), **{"max_bytes": 100, "most": 100, **bounds}), base, poll_seconds=poll
    )


async def read(made: Directory, uri: str) -> File:
    found = await made.resource(uri)
    if found is None:
        raise ResourceNotFound(uri=uri)
    file = await found.handler()
    assert isinstance(file, File)
    return file


# --- what there is -------------------------------------------------------------------------------------------------


async def test_files_are_listed_with_what_is_known_of_them(docs: Path) -> None:
    first, second, third = await directory(docs).resources()
    assert [each.uri for each in (first, second, third)] == [
        "docs://guide/first%20steps.md",
        "docs://guide/logo.png",
        "docs://readme.md",
    ]
    assert (third.name, third.mime_type, third.size) == ("readme.md", "text/markdown", 7)
    assert third.annotations is not None
    assert third.annotations.last_modified == "2023-11-14T22:13:20Z"


async def test_what_is_listed_can_be_read(docs: Path) -> None:
    made = directory(docs)
    for listed in await made.resources():
        file = await read(made, listed.uri)
        assert len(file.data) == listed.size
        assert file.mime_type == listed.mime_type


async def test_the_template_covers_every_file(docs: Path) -> None:
    [template] = await directory(docs).templates()
    assert (template.uri_template, template.name) == ("docs://{+path}", "docs")


@pytest.mark.parametrize("uri", ["docs://", "docs://guide", "docs://guide/"])
async def test_a_folder_is_the_names_in_it(docs: Path, uri: str) -> None:
    file = await read(directory(docs), uri)
    assert file.mime_type == "inode/directory"
    assert file.data.decode().splitlines() == (
        ["guide/", "readme.md"] if uri == "docs://" else ["first steps.md", "logo.png"]
    )


@pytest.mark.parametrize(
    "uri",
    ["docs://nothing", "docs://../docs/readme.md", "docs://guide%2f..%2freadme.md", "docs://.env", "docs:///etc/passwd",
     "docs://readme.md/", "docs://readme.md/a", "other://readme.md", "docs://a%00", "docs://link"],
)  # fmt: skip
async def test_anything_else_is_not_found(docs: Path, uri: str) -> None:
    (docs / ".env").write_text("SECRET=1")
    (docs / "link").symlink_to("readme.md")
    with pytest.raises(ResourceNotFound) as raised:
        await read(directory(docs), uri)
    assert raised.value.uri == uri


async def test_a_file_that_was_not_chosen_is_not_found(docs: Path) -> None:
    made = directory(docs, choice=PathFilter(["*.md"], ["first*"]))
    assert [each.name for each in await made.resources()] == ["readme.md"]
    for uri in ("docs://guide/logo.png", "docs://guide/first%20steps.md"):
        with pytest.raises(ResourceNotFound):
            await read(made, uri)


async def test_a_file_that_is_too_large_is_listed_and_says_so_when_it_is_read(docs: Path) -> None:
    (docs / "large").write_bytes(b"x" * 101)
    made = directory(docs)
    assert 101 in [each.size for each in await made.resources()]
    with pytest.raises(InternalError, match="'large' has more than the 100 bytes"):
        await read(made, "docs://large")


def test_a_time_that_no_calendar_has_is_left_out() -> None:
    assert changed_at(10**30) is None
    assert changed_at(-1) is not None


async def test_types_by_suffix_go_before_those_that_are_known(docs: Path) -> None:
    made = directory(docs, kinds={".md": "text/x-own"})
    assert (await made.resources())[0].mime_type == "text/x-own"
    assert (await read(made, "docs://readme.md")).mime_type == "text/x-own"


async def test_a_file_without_a_suffix_is_what_it_holds(docs: Path) -> None:
    for name, data, kind in (("text", b"x", "text/plain"), ("image", b"GIF89a", "image/gif"), ("b", b"\xff\0", BYTES)):
        (docs / name).write_bytes(data)
        assert (await read(directory(docs), f"docs://{name}")).mime_type == kind


@pytest.mark.parametrize(
    "path", ["../docs/readme.md", "/etc/passwd", ".env", ".git/config", "link", "guide/../readme.md"]
)
def test_a_tree_refuses_by_itself(docs: Path, path: str) -> None:
    (docs / "link").symlink_to("readme.md")
    (docs / ".env").write_text("SECRET=1")
    with pytest.raises(ResourceNotFound):
        Tree(docs, PathFilter(), max_bytes=100, most=100).read(path)


def test_a_system_without_descriptors_left_is_an_error_and_no_file_is_missing(docs: Path) -> None:
    tree = Tree(docs, PathFilter(), max_bytes=100, most=100)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        with pytest.raises(InternalError, match=r"'readme.md' cannot be read: Too many open files"):
            tree.read("readme.md")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert tree.read("readme.md").data == b"# Hello"


async def test_paths_are_proposed_folder_by_folder(docs: Path) -> None:
    made = directory(docs)
    template = ResourceTemplateReference(uri="docs://{+path}")
    assert await made.complete(template, "path", "") == ["guide/", "readme.md"]
    assert await made.complete(template, "path", "gu") == ["guide/"]
    assert await made.complete(template, "path", "guide/l") == ["guide/logo.png"]
    for typed in ("../", "nothing/", "/", "guide/../", "readme.md/"):
        assert await made.complete(template, "path", typed) == []
    assert await made.complete(template, "other", "") is None
    assert await made.complete(ResourceTemplateReference(uri="x://{+path}"), "path", "") is None
    assert await made.complete(PromptReference(name="docs"), "path", "") is None


async def test_a_list_that_is_cut_says_so_once(docs: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = directory(docs, most=2)
    with caplog.at_level(logging.WARNING, "accord.server"):
        assert len(await made.resources()) == 2
        made._tree.listing(anew=True)
    assert len(caplog.records) == 1
    assert f"{docs} has more than 2 files or folders: so many are listed" in caplog.text
    assert (await read(made, "docs://readme.md")).data == b"# Hello"


async def test_a_list_is_good_for_a_moment(docs: Path) -> None:
    made = directory(docs)
    assert await made.resources() is await made.resources()


@pytest.mark.parametrize("base", ["docs", "docs://{x}", "docs://a?b", "docs://#", "docs://a b", ""])
def test_a_base_that_can_begin_no_uri_is_refused(docs: Path, base: str) -> None:
    with pytest.raises(DeclarationError, match="cannot be the base of URIs"):
        directory(docs, base)


def test_a_folder_that_takes_long_is_not_looked_through_for_everyone_anew(docs: Path) -> None:
    looks, go = [], threading.Event()

    class Slow(ServedRoot):
        def entries(self, parts: tuple[str, ...]) -> Iterator[DirectoryEntry]:
            looks.append(parts)
            assert go.wait(100)
            return super().entries(parts)

    tree = Tree(docs, PathFilter(), max_bytes=100, most=10)
    tree.root = Slow(docs)
    with ThreadPoolExecutor(10) as threads:
        found = [threads.submit(tree.complete, "") for _ in range(10)]
        threading.Timer(0.3, go.set).start()
        assert len({tuple(each.result()) for each in found}) == 1
    assert looks == [()]


def test_a_base_gets_the_slash_that_it_lacks(docs: Path) -> None:
    assert directory(docs, "file:///srv").uri("a b") == "file:///srv/a%20b"
    assert directory(docs, "docs:").uri("a") == "docs:a"


def test_what_is_no_folder_is_refused(docs: Path) -> None:
    for path in (docs / "nothing", docs / "readme.md"):
        with pytest.raises(DeclarationError, match=r"the folder .* does not exist"):
            directory(path)
    with pytest.raises(DeclarationError, match="max_bytes"):
        directory(docs, max_bytes=1 << 30)


def test_two_folders_cannot_have_the_same_uris(docs: Path) -> None:
    server = Server("docs")
    server.add_directory(docs, uri="docs://")
    with pytest.raises(DeclarationError, match="another uri="):
        server.add_directory(docs / "guide", uri="docs://")
    server.add_directory(docs / "guide", uri="guide://")
    assert len(server.registry.providers) == 2


def test_a_suffix_without_its_dot_is_refused(docs: Path) -> None:
    with pytest.raises(DeclarationError, match=r"mime_types=\{'\.log': "):
        Server("docs").add_directory(docs, mime_types={"log": "text/plain"})


# --- what changes --------------------------------------------------------------------------------------------------


class Heard:
    """What a directory told, from whatever thread."""

    def __init__(self, made: Directory) -> None:
        self._events: set[Event] = set()
        self._heard = threading.Condition()
        made.attach(self._hear)

    def _hear(self, what: str, uri: str) -> None:
        with self._heard:
            self._events.add((what, uri))
            self._heard.notify_all()

    async def until(self, *events: Event) -> set[Event]:
        """Everything that was told once these were."""

        def wait() -> set[Event]:
            with self._heard:
                assert self._heard.wait_for(lambda: set(events) <= self._events, 10), self._events
                found, self._events = self._events, set()
                return found

        return await asyncio.to_thread(wait)


@pytest.fixture(params=["watchfiles", "poll"])
def seconds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """Seconds between looks: many where the system tells, few where nobody does."""
    if request.param == "poll":
        monkeypatch.setattr(watcher, "_notifier", lambda: None)
        return 0.05
    return 3600


LIST: Event = ("resources", "")


async def test_added_changed_and_removed_items_are_notified(docs: Path, seconds: float) -> None:
    made = directory(docs, poll=seconds)
    heard = Heard(made)
    await made.resources()
    async with made.lifespan():
        (docs / "new.md").write_text("new")
        assert LIST in await heard.until(("", "docs://new.md"), LIST)
        (docs / "readme.md").write_text("# Changed")
        assert LIST not in await heard.until(("", "docs://readme.md"))
        (docs / "guide" / "logo.png").unlink()
        await heard.until(LIST, ("", "docs://guide/logo.png"))
        assert [each.name for each in await made.resources()] == ["guide/first steps.md", "new.md", "readme.md"]


async def test_folders_that_come_are_watched_too(docs: Path, seconds: float) -> None:
    made = directory(docs, poll=seconds)
    heard = Heard(made)
    await made.resources()
    async with made.lifespan():
        (docs / "a" / "b").mkdir(parents=True)
        (docs / "a" / "b" / "c").write_text("c")
        await heard.until(LIST, ("", "docs://a/b/c"))
        (docs / "a" / "b" / "d").write_text("d")
        await heard.until(LIST, ("", "docs://a/b/d"))
        (docs / "a").rename(docs / "z")
        await heard.until(("", "docs://a/b/c"), ("", "docs://z/b/c"))


async def test_a_folder_that_takes_the_place_of_another_is_watched(docs: Path, seconds: float) -> None:
    for place in (docs, docs.parent):
        (place / "other").mkdir()
    made = directory(docs, poll=seconds)
    heard = Heard(made)
    await made.resources()
    async with made.lifespan():
        for number in range(2):  # the second is seen by who watches already
            (docs / f"{number}").write_text("1")
            await heard.until(LIST, ("", f"docs://{number}"))
        (docs / "other").rename(docs.parent / "old")
        (docs.parent / "other").rename(docs / "other")
        (docs / "second").write_text("1")
        await heard.until(LIST, ("", "docs://second"))
        (docs / "other" / "third").write_text("1")
        await heard.until(LIST, ("", "docs://other/third"))


async def test_a_root_that_goes_and_comes_back_is_watched_again(docs: Path) -> None:
    made = directory(docs, poll=0.05)
    heard = Heard(made)
    await made.resources()
    async with made.lifespan():
        (docs.parent / "docs").rename(docs.parent / "elsewhere")
        await heard.until(LIST, ("", "docs://readme.md"))
        assert await made.resources() == []
        (docs.parent / "elsewhere").rename(docs)
        await heard.until(LIST, ("", "docs://readme.md"))


async def test_what_was_left_out_is_not_reported(docs: Path, seconds: float) -> None:
    (docs / "outside").symlink_to(docs.parent)
    made = directory(docs, choice=PathFilter(exclude=["*.tmp"]), poll=seconds)
    heard = Heard(made)
    await made.resources()
    async with made.lifespan():
        (docs / "a.tmp").write_text("1")
        (docs / ".hidden").write_text("1")
        (docs.parent / "beside").write_text("1")
        (docs / "last").write_text("1")
        assert await heard.until(("", "docs://last")) == {LIST, ("", "docs://last")}


def watchers() -> list[str]:
    """Threads that look, and what the system watches for this process."""
    threads = [thread.name for thread in threading.enumerate() if thread.name == "accord files"]
    return threads + [target for target in descriptors() if "inotify" in target]


async def nothing_is_watched() -> None:
    """In a moment: the system closes what it watched in a thread of its own."""
    await until(lambda: not watchers())


def descriptors() -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:  # that of listdir itself
            continue
    return found


async def test_nothing_is_watched_before_or_after_a_server_runs(docs: Path, seconds: float) -> None:
    made = directory(docs, poll=seconds)
    await made.resources()
    await nothing_is_watched()
    for _ in range(3):
        async with made.lifespan():
            heard = Heard(made)
            (docs / f"new{time.monotonic_ns()}").write_text("1")
            await heard.until(LIST)
            assert watchers()
        await nothing_is_watched()


async def test_the_system_watches_only_while_a_server_runs(docs: Path) -> None:
    made = directory(docs, poll=3600)
    heard = Heard(made)
    await made.resources()
    async with made.lifespan():
        for number in range(2):  # the first may have been seen before the watch began, the second was not
            (docs / f"{number}").write_text("1")
            await heard.until(LIST, ("", f"docs://{number}"))
        assert any("inotify" in target for target in descriptors())
    await nothing_is_watched()


def test_a_watch_that_nobody_stops_keeps_no_process_alive(docs: Path) -> None:
    imported = "from accord.server.files.watcher import DirectoryWatcher"
    program = f"{imported}; DirectoryWatcher(lambda: {{{str(docs)!r}: 1}}, 3600).start()"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20)


async def test_servers_on_several_loops_share_one_watch(docs: Path, seconds: float) -> None:
    made = directory(docs, poll=seconds)
    async with made.lifespan():
        await asyncio.to_thread(lambda: asyncio.run(_enter_and_leave(made)))
        assert watchers().count("accord files") == 1
    await nothing_is_watched()


async def _enter_and_leave(made: Directory) -> None:
    async with made.lifespan():
        assert watchers().count("accord files") == 1


async def test_where_the_system_watches_no_more_it_is_looked_every_so_often(
    docs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*options: Any) -> Any:
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr(watcher, "_notifier", lambda: refuse)
    made = directory(docs, poll=0.05)
    heard = Heard(made)
    await made.resources()
    async with made.lifespan():
        for number in range(2):  # the first may have been seen before the system refused
            (docs / f"{number}").write_text("1")
            await heard.until(LIST, ("", f"docs://{number}"))
    assert "files are looked at every 0.05 s: OS file watch limit reached" in caplog.text


async def test_a_look_that_fails_is_not_the_last(docs: Path, caplog: pytest.LogCaptureFixture) -> None:
    looked = threading.Semaphore(0)

    def look() -> dict[str, int]:
        looked.release()
        raise RuntimeError("the disk is on fire")

    watch = watcher.DirectoryWatcher(look, 0.01)
    watch.start()
    try:
        for _ in range(3):
            assert await asyncio.to_thread(looked.acquire, True, 5)
    finally:
        watch.stop()
    assert caplog.text.count("RuntimeError: the disk is on fire") == 1


async def test_without_watchfiles_it_is_looked_every_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles._rust_notify", None)
    await looks(watcher.DirectoryWatcher(dict, 0.01))


async def test_a_folder_that_goes_before_it_is_watched_is_looked_for_again(docs: Path) -> None:
    await looks(watcher.DirectoryWatcher(lambda: {str(docs / "gone"): 1}, 0.01))


async def looks(watch: watcher.DirectoryWatcher) -> None:
    """It looks more than once though nobody says that anything has changed."""
    looked, look = threading.Semaphore(0), watch._scan

    def noted() -> Mapping[str, int]:
        looked.release()
        return look()

    watch._scan = noted
    watch.start()
    try:
        for _ in range(4):
            assert await asyncio.to_thread(looked.acquire, True, 5)
    finally:
        watch.stop()

"""accord's client with servers that people really use, from npm and PyPI: opened, used for what they do, closed."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accord import EmbeddedResource, ImageContent, InvalidParams, RequestTimeout, ResourceLink, TextContent

from tests.interop.conftest import Visit, Visiting
from tests.interop.peers import PEERS, npm_server, python_server
from tests.measure import slowness

LONG = "trigger-long-running-operation"


# --- npm: everything ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everything(visiting: Visiting) -> Iterator[Visit]:
    with visiting(npm_server("everything"), strict=True) as visit:
        yield visit


def test_everything_is_opened_by_the_handshake(everything: Visit) -> None:
    client = everything.client
    assert client.revision == "2025-11-25"
    assert client.server_info is not None
    assert client.server_info.title == "Everything Reference Server"
    assert (client.instructions or "").startswith("# Everything Server")
    everything.run(client.ping())


def test_everything_lists_what_it_offers(everything: Visit) -> None:
    client = everything.client
    assert {"echo", "get-sum", "get-tiny-image", LONG} <= {tool.name for tool in everything.run(client.list_tools())}
    uris = [resource.uri for resource in everything.run(client.list_resources())]
    assert "demo://resource/static/document/features.md" in uris
    templates = [template.uri_template for template in everything.run(client.list_resource_templates())]
    assert templates == [f"demo://resource/dynamic/{kind}/{{resourceId}}" for kind in ("text", "blob")]
    prompts = [prompt.name for prompt in everything.run(client.list_prompts())]
    assert prompts == ["simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"]


def test_everything_answers_with_text_and_structured_content(everything: Visit) -> None:
    assert everything.call("echo", message="hé 🎉").data == "Echo: hé 🎉"
    assert everything.call("get-sum", a=2, b=3.5).data == "The sum of 2 and 3.5 is 5.5."
    weather = everything.call("get-structured-content", location="Chicago")
    assert weather.data == {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}


def test_everything_shows_an_image_between_texts(everything: Visit) -> None:
    before, image, after = everything.call("get-tiny-image").content
    assert isinstance(before, TextContent)
    assert isinstance(after, TextContent)
    assert isinstance(image, ImageContent)
    assert image.mime_type == "image/png"
    assert base64.b64decode(image.data).startswith(b"\x89PNG")


def test_everything_links_to_its_resources_and_annotates_its_text(everything: Visit) -> None:
    _, *links = everything.call("get-resource-links", count=2).content
    assert [link.uri for link in links if isinstance(link, ResourceLink)] == [
        "demo://resource/dynamic/blob/1",
        "demo://resource/dynamic/text/2",
    ]
    (annotated,) = everything.call("get-annotated-message", messageType="success").content
    assert isinstance(annotated, TextContent)
    assert annotated.annotations is not None
    assert (annotated.annotations.audience, annotated.annotations.priority) == (["user"], 0.7)


def test_everything_embeds_a_resource_in_its_answer(everything: Visit) -> None:
    _, block, _ = everything.call("get-resource-reference", resourceType="Blob", resourceId=2).content
    assert isinstance(block, EmbeddedResource)
    assert block.resource.uri == "demo://resource/dynamic/blob/2"
    assert base64.b64decode(block.resource.blob or "").startswith(b"Resource 2: ")


def test_everything_gives_its_resources_and_prompts(everything: Visit) -> None:
    client = everything.client
    (words,) = everything.run(client.read_resource("demo://resource/dynamic/text/7")).contents
    assert (words.text or "").startswith("Resource 7: This is a plaintext resource")
    (blob,) = everything.run(client.read_resource("demo://resource/dynamic/blob/7")).contents
    assert base64.b64decode(blob.blob or "").startswith(b"Resource 7: This is a base64 blob")
    prompt = everything.run(client.get_prompt("args-prompt", {"city": "Oslo", "state": "Norway"}))
    assert [message.content for message in prompt.messages] == [TextContent(text="What's weather in Oslo, Norway?")]


def test_everything_refuses_what_it_does_not_have(everything: Visit) -> None:
    unknown = everything.call("nothing")
    assert unknown.is_error
    assert unknown.text == "MCP error -32602: Tool nothing not found"
    with pytest.raises(InvalidParams, match="demo://nothing not found"):
        everything.run(everything.client.read_resource("demo://nothing"))


def test_everything_is_awaited_while_it_reports_progress(everything: Visit) -> None:
    slow = slowness()
    steps: list[tuple[float, float | None, str | None]] = []
    call = everything.client.call_tool(
        LONG, {"duration": 3 * slow, "steps": 10}, timeout=2.5 * slow, on_progress=lambda *step: steps.append(step)
    )
    assert "completed" in everything.run(call).text
    assert steps == [(step, 10, None) for step in range(1, 11)]


def test_everything_is_reported_when_nobody_waits_any_more(everything: Visit) -> None:
    client, long = everything.client, {"duration": 1, "steps": 1}
    told = client.stats.cancels_sent

    async def give_up() -> None:
        with pytest.raises(RequestTimeout, match=r"no answer or progress for 0\.1 s"):
            await client.call_tool(LONG, long, timeout=0.1)
        task = asyncio.create_task(client.call_tool(LONG, long))
        await client.ping()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()

    everything.run(give_up())
    assert client.stats.cancels_sent == told + 2
    assert everything.call("echo", message="still here").data == "Echo: still here"


def test_everything_gets_no_more_of_our_environment_than_it_needs(everything: Visit) -> None:
    words = everything.call("get-env").text
    assert os.environ["PATH"] in words
    assert "ACCORD_TEST_RUN" in os.environ
    assert "ACCORD_TEST_RUN" not in words


def test_a_server_behind_npx_ends_with_it(visiting: Visiting) -> None:
    entry = {
        "command": "npx",
        "args": ["-y", "@modelcontextprotocol/server-everything"],
        "env": {"npm_config_offline": "true"},
        "cwd": str(PEERS / "npm"),
    }
    npm_server("everything")  # or PeerMissing: npx would tell it less well
    with visiting(entry) as visit:
        assert visit.call("echo", message="hi").data == "Echo: hi"


# --- npm: filesystem and memory ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files").resolve()


@pytest.fixture(scope="module")
def filesystem(visiting: Visiting, folder: Path) -> Iterator[Visit]:
    with visiting([*npm_server("filesystem"), str(folder)], strict=True) as visit:
        yield visit


def test_filesystem_is_opened_by_the_handshake(filesystem: Visit) -> None:
    assert filesystem.client.revision == "2025-11-25"
    assert filesystem.client.server_info is not None
    assert filesystem.client.server_info.name == "secure-filesystem-server"
    assert {"read_text_file", "write_file"} <= {tool.name for tool in filesystem.run(filesystem.client.list_tools())}


def test_filesystem_writes_reads_and_lists_files(filesystem: Visit, folder: Path) -> None:
    file, words = folder / "note.txt", "hé\n\u2028wörld\n"
    filesystem.call("write_file", path=str(file), content=words)
    assert file.read_text(encoding="utf-8") == words
    assert filesystem.call("read_text_file", path=str(file)).data == {"content": words}
    (folder / "inner").mkdir()
    assert {*filesystem.call("list_directory", path=str(folder)).text.splitlines()} == {
        "[FILE] note.txt",
        "[DIR] inner",
    }


def test_filesystem_carries_a_megabyte_both_ways(filesystem: Visit, folder: Path) -> None:
    words, file = "0123456789abcdef" * 65_536, str(folder / "inner.big")
    filesystem.call("write_file", path=file, content=words)
    assert filesystem.call("read_text_file", path=file).text == words


def test_filesystem_refuses_a_path_outside(filesystem: Visit) -> None:
    refused = filesystem.call("read_text_file", path="/etc/hostname")
    assert refused.is_error
    assert refused.text.startswith("Access denied - path outside allowed directories")


@pytest.fixture(scope="module")
def memory(visiting: Visiting, folder: Path) -> Iterator[Visit]:
    (command,) = npm_server("memory")
    entry = {"command": command, "env": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}}
    with visiting(entry, strict=True) as visit:
        yield visit


def test_memory_remembers_its_entities(memory: Visit) -> None:
    assert memory.client.revision == "2025-11-25"
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}
    engine = {"name": "Engine", "entityType": "machine", "observations": []}
    link = {"from": "Ada", "to": "Engine", "relationType": "programs"}
    assert memory.call("create_entities", entities=[ada, engine]).data == {"entities": [ada, engine]}
    assert memory.call("create_relations", relations=[link]).data == {"relations": [link]}
    assert memory.call("read_graph").data == {"entities": [ada, engine], "relations": [link]}
    assert [node["name"] for node in memory.call("search_nodes", query="first").data["entities"]] == ["Ada"]


def test_memory_answers_bad_arguments_with_a_failed_call(memory: Visit) -> None:
    refused = memory.call("create_entities", entities="none")
    assert refused.is_error
    assert "-32602" in refused.text


# --- PyPI: time and git ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clock(visiting: Visiting) -> Iterator[Visit]:
    with visiting(python_server("mcp-server-time"), strict=True) as visit:
        yield visit


def test_time_is_opened_in_the_newest_revision(clock: Visit) -> None:
    assert clock.client.revision == "2026-07-28"
    assert [tool.name for tool in clock.run(clock.client.list_tools())] == ["get_current_time", "convert_time"]


def test_time_converts_between_zones(clock: Visit) -> None:
    answer: Any = clock.call("convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo")
    assert answer.data["time_difference"] == "+9.0h"
    assert answer.data["target"]["datetime"].endswith("T21:00:00+09:00")


def test_time_refuses_what_it_does_not_know(clock: Visit) -> None:
    nowhere = clock.call("get_current_time", timezone="Nowhere/None")
    assert nowhere.is_error
    assert "Invalid timezone" in nowhere.text
    with pytest.raises(InvalidParams, match="Unknown tool: nothing"):
        clock.call("nothing")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("repository").resolve()
    for arguments in (
        ["init", "--quiet", "--initial-branch=main"],
        ["config", "user.name", "Ada"],
        ["config", "user.email", "ada@example.org"],
    ):
        subprocess.run(["git", *arguments], cwd=repository, check=True)
    (repository / "a.txt").write_text("one\n")
    return repository


@pytest.fixture(scope="module")
def git(visiting: Visiting, repository: Path) -> Iterator[Visit]:
    with visiting([*python_server("mcp-server-git"), "--repository", str(repository)], strict=True) as visit:
        yield visit


def test_git_is_opened_in_the_newest_revision(git: Visit) -> None:
    assert git.client.revision == "2026-07-28"
    assert {"git_status", "git_commit", "git_log"} <= {tool.name for tool in git.run(git.client.list_tools())}


def test_git_stages_commits_and_shows_the_history(git: Visit, repository: Path) -> None:
    where = {"repo_path": str(repository)}
    assert "Untracked files:" in git.call("git_status", **where).text
    assert git.call("git_add", **where, files=["a.txt"]).text == "Files staged successfully"
    assert "+one" in git.call("git_diff_staged", **where).text
    assert "committed successfully" in git.call("git_commit", **where, message="Begin").text
    told = subprocess.run(
        ["git", "log", "--format=%an: %s"], cwd=repository, capture_output=True, text=True, check=True
    )
    assert told.stdout == "Ada: Begin\n"
    assert "Message: Begin" in git.call("git_log", **where).text


def test_git_refuses_another_repository(git: Visit) -> None:
    refused = git.call("git_status", repo_path="/")
    assert refused.is_error
    assert "outside the allowed repository" in refused.text

"""Images, sound and files as what tools, prompts and resources return."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from accord import (
    Annotations,
    Client,
    Context,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    Server,
    TextContent,
)
from accord.messages.revision import REVISIONS
from accord.server.declare.media import MOST, Audio, File, Image, Media

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
JPEG = b"\xff\xd8\xff\xe0" + b"\0" * 8
WAV = b"RIFF\x24\0\0\0WAVEfmt "


def decoded(data: str) -> bytes:
    return base64.b64decode(data)


# --- what it is ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("media", "kind"),
    [
        (Image(data=PNG), "image/png"),
        (Image(data=JPEG), "image/jpeg"),
        (Image(data=JPEG, format="png"), "image/png"),
        (Image(data=b"GIF89a.."), "image/gif"),
        (Image(data=b"RIFF\0\0\0\0WEBP"), "image/webp"),
        (Image(data=b"whatever"), "image/png"),
        (Image(data=b"x", format="jpg"), "image/jpeg"),
        (Image(data=b"x", format=".SVG"), "image/svg+xml"),
        (Image(data=b"x", format="jxl"), "image/jxl"),
        (Image(data=b"x", format="image/x-own"), "image/x-own"),
        (Audio(data=WAV), "audio/wav"),
        (Audio(data=b"ID3\4"), "audio/mpeg"),
        (Audio(data=b"OggS"), "audio/ogg"),
        (Audio(data=b"fLaC"), "audio/flac"),
        (Audio(data=b"\0\0\0\x20ftypM4A "), "audio/mp4"),
        (Audio(data=b"whatever"), "audio/wav"),
        (Audio(data=PNG), "audio/wav"),
        (Audio(data=b"x", format="mp3"), "audio/mpeg"),
        (Audio(data=b"x", format="webm"), "audio/webm"),
        (File(data=b"%PDF-1.7"), "application/pdf"),
        (File(data=b"a,b"), "text/plain"),
        (File(data=b"a,b", format="csv"), "text/csv"),
        (File(data=b"a", format="plain"), "text/plain"),
        (File(data=b"\xff\0"), "application/octet-stream"),
        (File(data=b"caf\xe9"), "application/octet-stream"),
        (File(data=b"x", format="x-own"), "application/x-own"),
    ],
)
def test_the_format_or_the_data_say_what_it_is(media: Media, kind: str) -> None:
    assert media.mime_type == kind


@pytest.mark.parametrize(
    ("make", "name", "data", "kind"),
    [
        (Image, "a.png", PNG, "image/png"),
        (Image, "a.jpg", PNG, "image/png"),
        (Image, "a.svg", b"<svg/>", "image/svg+xml"),
        (Image, "A.JPG", b"?", "image/jpeg"),
        (Image, "a", b"?", "application/octet-stream"),
        (Audio, "a.mp3", b"?", "audio/mpeg"),
        (Audio, "a.wav", b"?", "audio/wav"),
        (File, "a.md", b"# A", "text/markdown"),
        (File, "a.tar.gz", b"\x1f\x8b", "application/gzip"),
        (File, "a.json", b"{}", "application/json"),
        (File, "a.unknown", b"text", "text/plain"),
    ],
)
def test_the_data_go_before_the_suffix_of_a_path(
    tmp_path: Path, make: type[Media], name: str, data: bytes, kind: str
) -> None:
    (tmp_path / name).write_bytes(data)
    made = make(path=tmp_path / name)
    assert made.mime_type == kind
    assert made.data == data
    assert made.path == tmp_path / name


def test_the_names_of_other_libraries() -> None:
    about = Annotations(priority=1)
    image = Image(data=PNG, format="png", annotations=about).to_image_content()
    assert (decoded(image.data), image.mime_type, image.annotations) == (PNG, "image/png", about)
    assert Image(data=PNG).to_image_content("image/x-mine").mime_type == "image/x-mine"
    assert Image(data=PNG).to_data_uri() == "data:image/png;base64," + base64.b64encode(PNG).decode()
    assert decoded(Audio(data=WAV).to_audio_content().data) == WAV
    assert File(data=b"a", format="txt", name="notes").to_resource_content().resource.uri == "file:///notes.txt"


def test_a_file_has_a_uri(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("x")
    assert File(path=tmp_path / "a b.txt").uri == (tmp_path / "a b.txt").as_uri()
    assert File(path=tmp_path / "a b.txt", name="c.txt").uri == "file:///c.txt"
    assert File(data=b"x", format="text/csv", name="rows").uri == "file:///rows.csv"
    assert File(data=b"x", name="../../etc/passwd").uri == "file:///passwd"
    assert File(data=b"x").uri == "file:///resource"


# --- what cannot be ------------------------------------------------------------------------------------------------


def test_neither_or_both_of_path_and_data_are_refused() -> None:
    for given in ({}, {"path": "a", "data": b""}):
        with pytest.raises(ValueError, match="Image takes either path"):
            Image(**given)  # type: ignore[arg-type]
    assert Image(data=b"").data == b""


@pytest.mark.parametrize(
    "format", ["png\r\n", "a/b\r\nX: y", "../../etc", "image/", " ", "", ".", "png\u202e", "é", "a;\n"]
)
def test_a_format_that_is_none_is_refused(format: str) -> None:
    with pytest.raises(ValueError, match="is not a format"):
        Image(data=b"", format=format)


@pytest.mark.parametrize("format", ["text/html; charset=utf-8", "application/vnd.api+json", "c++", ".tar.gz"])
def test_a_format_may_be_any_suffix_or_media_type(format: str) -> None:
    assert "/" in File(data=b"", format=format).mime_type


@pytest.mark.parametrize("name", ["..", ".", "a/..", "a/", "", "/"])
def test_a_name_that_is_a_step_is_none(name: str) -> None:
    assert File(data=b"", name=name).uri == "file:///resource"


@pytest.mark.parametrize("data", ["text", 5, [1, 2]])
def test_data_that_are_no_bytes_are_refused(data: Any) -> None:
    with pytest.raises(TypeError, match=r"Image\(data=...\) takes bytes"):
        Image(data=data)


def test_what_is_too_large_is_refused(tmp_path: Path) -> None:
    with open(tmp_path / "large", "wb") as file:
        file.truncate(MOST + 1)
    for given in ({"path": tmp_path / "large"}, {"data": bytes(MOST + 1)}):
        with pytest.raises(ValueError, match="File holds more than 32 MiB"):
            File(**given)  # type: ignore[arg-type]


@pytest.mark.timeout(30)
def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "nothing", "/dev/zero"):
        with pytest.raises(OSError, match=r"no regular file|directory") as raised:
            Image(path=path)
        assert str(path) in str(raised.value)


# --- returned ------------------------------------------------------------------------------------------------------


def server() -> Server:
    made = Server("media")

    @made.tool
    def image() -> Image:
        return Image(data=PNG)

    @made.tool
    async def sound() -> Audio:
        return Audio(data=WAV)

    @made.tool
    def several() -> list[str | Image | File]:
        return ["look:", Image(data=PNG), File(data=b"a,b", format="csv", name="rows")]

    @made.tool
    def undeclared():  # type: ignore[no-untyped-def]
        return (Image(data=PNG), {"and": "text"})

    @made.tool
    def perhaps(found: bool) -> Image | None:
        return Image(data=PNG) if found else None

    @made.tool
    def temporary() -> File:
        with TemporaryDirectory() as folder:
            (Path(folder) / "report.txt").write_text("gone soon")
            return File(path=Path(folder) / "report.txt", name="report.txt")

    @made.tool
    def missing() -> Image:
        return Image(path="/nowhere/plot.png")

    @made.prompt
    def describe() -> list[Any]:
        return ["What is this?", Image(data=PNG), {"role": "assistant", "content": Image(data=JPEG)}]

    @made.resource("media://logo")
    def logo() -> Image:
        return Image(data=PNG)

    @made.resource("media://notes", mime_type="text/markdown")
    def notes() -> File:
        return File(data=b"# Notes")

    @made.tool
    async def inside(ctx: Context) -> str:
        [found] = await ctx.read_resource("media://notes")
        return found.text or ""

    return made


async def test_media_have_no_output_schema() -> None:
    async with Client(server()) as client:
        assert [tool.name for tool in await client.list_tools() if tool.output_schema is not None] == []


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_tool_returns_media_in_every_revision(revision: str) -> None:
    async with Client(server(), revisions=[revision]) as client:
        [image] = (await client.call_tool("image")).content
        assert isinstance(image, ImageContent)
        assert (decoded(image.data), image.mime_type) == (PNG, "image/png")
        [sound] = (await client.call_tool("sound")).content
        held = sound.resource.blob if isinstance(sound, EmbeddedResource) else sound.data  # type: ignore[union-attr]
        assert decoded(held or "") == WAV


async def test_media_stand_in_lists_beside_text() -> None:
    async with Client(server()) as client:
        text, image, file = (await client.call_tool("several")).content
        assert text == TextContent(text="look:")
        assert isinstance(image, ImageContent)
        assert isinstance(file, EmbeddedResource)
        assert file.resource == ResourceContents(uri="file:///rows.csv", mime_type="text/csv", text="a,b")
        image, text = (await client.call_tool("undeclared")).content
        assert isinstance(image, ImageContent)
        assert text == TextContent(text='{"and":"text"}')
        assert (await client.call_tool("perhaps", {"found": False})).content == []
        assert len((await client.call_tool("perhaps", {"found": True})).content) == 1


@pytest.mark.parametrize("revision", REVISIONS)
async def test_media_stand_in_a_list_of_anything(revision: str) -> None:
    app = Server("x")

    @app.tool
    def chart() -> list[object]:
        return ["a chart", Image(data=PNG), {"points": 3}]

    async with Client(app, revisions=[revision]) as client:
        (tool,) = await client.list_tools()
        result = await client.call_tool("chart")
    assert [block.type for block in result.content] == ["text", "image", "text"]
    if tool.output_schema is not None:  # which the result then has to have
        assert result.data == ["a chart", msgspec.to_builtins(result.content[1]), {"points": 3}]


async def test_a_temporary_file_is_read_while_it_is_there() -> None:
    async with Client(server()) as client:
        [file] = (await client.call_tool("temporary")).content
        assert isinstance(file, EmbeddedResource)
        assert file.resource.text == "gone soon"


async def test_a_path_that_cannot_be_read_is_the_error_of_its_call() -> None:
    async with Client(server()) as client:
        failed = await client.call_tool("missing")
        assert failed.is_error
        assert failed.text == "FileNotFoundError: [Errno 2] No such file or directory: '[path]'"
        assert len((await client.call_tool("image")).content) == 1


async def test_a_prompt_holds_media() -> None:
    async with Client(server()) as client:
        text, image, answer = (await client.get_prompt("describe")).messages
        assert text.content == TextContent(text="What is this?")
        assert (image.role, image.content) == ("user", Image(data=PNG).to_image_content())
        assert (answer.role, answer.content) == ("assistant", Image(data=JPEG).to_image_content())


async def test_a_resource_holds_media() -> None:
    async with Client(server()) as client:
        [logo] = (await client.read_resource("media://logo")).contents
        assert (decoded(logo.blob or ""), logo.mime_type, logo.uri) == (PNG, "image/png", "media://logo")
        [notes] = (await client.read_resource("media://notes")).contents
        assert (notes.text, notes.mime_type) == ("# Notes", "text/markdown")
        assert (await client.call_tool("inside")).text == "# Notes"

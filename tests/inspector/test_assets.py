"""The files of the page: small, with the headers that bound what they may do, and without what those headers forbid."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
from pathlib import Path

import pytest

from accord.inspector.app import Inspector
from accord.inspector.assets import STATIC, assets

from tests.inspector.test_access import HOST, response

PAGE_BYTES = 90_000
"""The most that a page load takes, compressed."""
WHEEL_BYTES = 300_000
"""The most that the inspector adds to the wheel."""

OWN = [path for path in sorted(STATIC.rglob("*.js")) if "vendor" not in path.parts]
FORBIDDEN = (
    r"\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|document\.write|\beval\(|new Function|unsafe(?:HTML|SVG|CSS)"
    r"|\bstyle=[\"$']"
)


def imported(path: str) -> set[str]:
    """Return a script and all scripts that it imports when it is loaded."""
    found, new = {path}, [path]
    while new:
        script = STATIC / new.pop()
        for name in re.findall(r"""(?:from|^import)\s*["'](\.[^"']+)["']""", script.read_text("utf-8"), re.MULTILINE):
            other = (script.parent / name).resolve().relative_to(STATIC).as_posix()
            if other not in found:
                found.add(other)
                new.append(other)
    return found


@pytest.mark.parametrize("screen", sorted(path.name for path in (STATIC / "screens").glob("*.js")))
def test_the_page_is_small(screen: str) -> None:
    files = {"index.html", "style.css", "icon.svg"} | imported("main.js") | imported(f"screens/{screen}")
    assert sum(len(assets()[path].compressed) for path in files) <= PAGE_BYTES


def test_the_inspector_adds_little_to_the_wheel() -> None:
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in STATIC.parent.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(STATIC.parents[2]))
    assert wheel.tell() <= WHEEL_BYTES


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_a_script_writes_no_markup_and_no_styles_into_the_page(path: Path) -> None:
    """The content security policy forbids them too; here the reason is named."""
    text = re.sub(r"/\*.*?\*/|//.*", "", path.read_text("utf-8"), flags=re.DOTALL)
    assert re.findall(FORBIDDEN, text) == []


def test_every_section_of_the_style_sheet_stands_alone() -> None:
    """A brace that a merge lost would put all further rules into a media query, where they have no effect."""
    depth = 0
    for number, line in enumerate((STATIC / "style.css").read_text("utf-8").splitlines(), 1):
        assert depth == 0 or not line.startswith("/*"), f"line {number} is inside a block"
        depth += line.count("{") - line.count("}")
    assert depth == 0


async def test_a_file_is_sent_compressed_and_again_only_if_it_changed() -> None:
    app = Inspector()
    status, headers, body = await response(app, "/main.js", "GET", {"host": HOST, "accept-encoding": "gzip"})
    assert (status, headers[b"content-encoding"]) == (200, b"gzip")
    assert gzip.decompress(body) == (STATIC / "main.js").read_bytes()
    status, _, body = await response(app, "/main.js", "GET", {"host": HOST, "if-none-match": headers[b"etag"].decode()})
    assert (status, body) == (304, b"")


async def test_the_page_may_load_only_its_own_files() -> None:
    _, headers, _ = await response(Inspector(), "/", "GET", {"host": HOST})
    policy = dict(each.strip().partition(" ")[::2] for each in headers[b"content-security-policy"].decode().split(";"))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self' blob:",
        "media-src": "blob:",
        "frame-src": "http://localhost:6274",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "lit-html",
    }
    assert headers[b"referrer-policy"] == b"no-referrer"
    assert headers[b"x-content-type-options"] == b"nosniff"

"""lit-html is what npm published: `scripts/vendor` writes the files and their digests, and nobody edits them."""

from __future__ import annotations

import gzip
import hashlib
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.parent
VENDOR = ROOT / "src" / "accord" / "inspector" / "static" / "vendor"
DIGESTS = Path(__file__).parent / "lit-html.sha256"


def recorded() -> dict[str, str]:
    """The SHA-256 digest of each vendored file."""
    lines = [line for line in DIGESTS.read_text("ascii").splitlines() if not line.startswith("#")]
    return {name: digest for digest, name in (line.split() for line in lines)}


def files() -> dict[str, bytes]:
    """All that lies in the folder."""
    folder = VENDOR / "lit-html"
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_files_have_the_recorded_digests_and_no_other_file_is_there() -> None:
    assert {name: hashlib.sha256(content).hexdigest() for name, content in files().items()} == recorded()
    assert [path.name for path in VENDOR.iterdir()] == ["lit-html"]


def test_the_release_is_recorded() -> None:
    assert re.match(r"# lit-html 3\.3\.\d+: written by scripts/vendor\n", DIGESTS.read_text("ascii"))


def test_the_files_are_small() -> None:
    scripts = b"".join(content for name, content in sorted(files().items()) if name.endswith(".js"))
    assert len(scripts) < 17_000
    assert len(gzip.compress(scripts)) < 6_500


def test_every_import_is_relative_and_leads_to_a_vendored_file() -> None:
    folder = VENDOR / "lit-html"
    imports = [
        (folder / name, target)
        for name, content in files().items()
        if name.endswith(".js")
        for target in re.findall(r'(?:from|import)\s*"([^"]*)"', content.decode())
    ]
    assert len(imports) > 10
    assert all(target.startswith((".", "..")) for _, target in imports)
    assert all((path.parent / target).resolve().is_file() for path, target in imports)


def test_no_directive_that_renders_markup_or_style_attributes_is_vendored() -> None:
    assert not {name for name in files() if re.search("unsafe|style-map|static|template-content", name)}


def test_the_license_is_part_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert files()["LICENSE"].startswith(b"BSD 3-Clause License")
    assert "src/accord/inspector/static/vendor/lit-html/LICENSE" in project["license-files"]
    assert project["license"] == "MIT AND BSD-3-Clause"

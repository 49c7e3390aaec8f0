"""The scenarios of the extension Skills (SEP-2640) of the official suite: examples/skilled.py, and client.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.conformance.suite import play_alone, play_server_alone, serving
from tests.interop.peers import ROOT

REVISION = "2026-07-28"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving((sys.executable, str(ROOT / "examples" / "skilled.py"), "127.0.0.1:0")) as url:
        yield url


@pytest.mark.parametrize("name", ["enumeration", "manifest", "directory"])
def test_the_server_passes(name: str, url: str) -> None:
    played = play_server_alone(url, f"sep-2640-skills-{name}", REVISION)
    assert not [*played.faults()]
    assert not played.count("SKIPPED")


@pytest.mark.parametrize("name", ["no-prefetch", "verify-digest", "verify-size", "verify-frontmatter"])
def test_the_client_passes(name: str) -> None:
    played = play_alone(f"sep-2640-client-{name}", REVISION)
    assert not [*played.faults()]
    assert not played.count("SKIPPED")

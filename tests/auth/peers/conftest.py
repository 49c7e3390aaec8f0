"""Fixtures of the tests with other people's authorization servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.auth.peers.oidc import Place, serving_protected


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """oidc-provider, and a server of accord that accepts its tokens, for all tests of a module."""
    with serving_protected() as found:
        yield found


@pytest.fixture(scope="module")
def proxy() -> Iterator[Place]:
    """oidc-provider, and a server of accord with an `OAuthProxy` before it."""
    with serving_protected("proxy") as found:
        yield found

"""Fixtures of the tests with other people's authorization servers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from tests.auth.peers.oidc import serving_oidc


@pytest.fixture
def oidc() -> Callable[..., AbstractAsyncContextManager[str]]:
    """`async with oidc(resource=...) as issuer`: oidc-provider, as its users run it."""
    return serving_oidc

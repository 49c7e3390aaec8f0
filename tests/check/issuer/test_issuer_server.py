"""The server of the issuer: its metadata leads to its keys, on this machine only."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from typing import Any

import pytest

from accord.check.issuer.issuer_server import issuer_url, serve_issuer
from accord.errors import ConnectError, TargetError


def fetched(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as response:
        return json.load(response)


@pytest.mark.parametrize("path", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"])
async def test_the_metadata_leads_to_the_keys(path: str) -> None:
    async with serve_issuer(":0") as forge:
        metadata = await asyncio.to_thread(fetched, f"{forge.issuer}{path}")
        keys = await asyncio.to_thread(fetched, metadata["jwks_uri"])
        assert metadata["issuer"] == forge.issuer
        assert keys == forge.public_keys


@pytest.mark.parametrize("address", ["0.0.0.0:9400", "shop.example:9400", "nothing"])
async def test_another_address_than_loopback_is_refused(address: str) -> None:
    with pytest.raises(TargetError, match="--as-issuer: "):
        issuer_url(address)


async def test_a_port_that_is_taken_is_named() -> None:
    async with serve_issuer(":0") as forge:
        with pytest.raises(ConnectError, match=forge.issuer.rpartition(":")[2]):
            async with serve_issuer(forge.issuer.removeprefix("http://")):
                pass

"""Processes that share a store of logins renew a login once, also where the issuer revokes it after a second use."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from accord import Client, CredentialStore

from tests.auth.place import place

PROCESSES, CALLS = 8, 20

PROGRAM = f"""
import asyncio, sys
from accord import Client, CredentialStore, OAuth

async def main(url, file):
    auth = OAuth(store=CredentialStore(file), interactive=False)
    async with Client(url, auth=auth) as client:
        await client.call_tool("who")
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        results = await asyncio.gather(*(client.call_tool("who") for _ in range({CALLS})))
        print(*(result.text for result in results), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_processes_refresh_an_expired_token_once_and_no_call_fails(tmp_path: Path) -> None:
    file = tmp_path / "credentials.db"
    async with place() as at:
        async with Client(at.url, auth=at.login(CredentialStore(file))) as client:
            await client.call_tool("who")
        processes = [await _start(at.url, file) for _ in range(PROCESSES)]
        try:
            assert {await _line(process) for process in processes} == {b"ready\n"}
            before = at.issuer.counts["token"]
            at.issuer.expire_access_tokens()
            outcomes = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
        finally:
            for process in processes:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        assert [out.decode().split() for out, _ in outcomes] == [["alice"] * CALLS] * PROCESSES
        assert at.issuer.counts["token"] == before + 1
        assert at.issuer.counts["authorization"] == 1
        assert not any(token.authorization.revoked for token in at.issuer._tokens.tokens.values())


async def _start(url: str, file: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        url,
        str(file),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


async def _line(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    return await process.stdout.readline()

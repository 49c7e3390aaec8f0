"""A server that floods its host, or lists what is no tool: the others go on, nothing hangs, and no process remains."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from accord.errors import AccordError
from accord.host.host import Host
from accord.host.prompts import Prompt
from accord.testing import ScriptedModel

from tests.host.test_server_isolation import ALLOW, good, is_alive
from tests.waiting import until

SERVER = Path(__file__).with_name("flooding_server.py")
MODES = ["noise", "line", "stderr", "pages", "notifications", "sampling", "progress", "large", "names"]
USABLE = {"stderr", "large", "names"}
"""What these do harms nobody: they can be called."""


@pytest.mark.parametrize("mode", MODES)
async def test_a_flood_holds_up_nobody(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.host.hosted_server._LIST_SECONDS", 5.0)
    monkeypatch.setattr("accord.host.host._START_SECONDS", 2.0)
    pids, prompts = tmp_path / "pids", list[str]()

    async def approve(prompt: Prompt) -> bool:
        prompts.append(prompt.text())
        return True

    entry = {"command": sys.executable, "args": ["-I", str(SERVER), mode, str(pids)]}
    servers: dict[str, Any] = {"bad": entry, "good": good()}
    audit, models = tmp_path / "audit.jsonl", [ScriptedModel(lambda params: "yes")]
    one = Host(servers, approve=approve, state=":memory:", policy=ALLOW, audit=audit, models=models)
    async with asyncio.timeout(150):
        async with one as host:
            await host.start("good")  # the start of the host may be over before
            assert (await host.call_tool("good_work")).data == 1
            if mode in USABLE:
                assert (await host.call_tool("bad_tool")).text == "done"
            elif mode == "progress":
                with pytest.raises(AccordError, match="bad"):
                    await host.call_tool("bad_tool", total_timeout=1)
            elif mode == "pages":
                await until(lambda: "too long" in host.servers["bad"].reason, lambda: host.servers)
            assert (await host.call_tool("good_work")).data == 1
    await until(lambda: not any(map(is_alive, pids.read_text().split())))
    assert not [text for text in prompts if set(text) & set("\x1b\r\u202e")]
    assert sum(map(len, prompts)) < 2_000_000
    assert len(models[0].requests) <= 20

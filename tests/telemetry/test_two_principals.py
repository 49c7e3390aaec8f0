"""Requests of two principals at once: what is recorded of one has nothing of the other, and no secret of either."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest

from accord import Context, Server
from accord.server.auth.api_keys import APIKeys

from tests.server.http.http_clients import Modern, Stateful, encode, quick, site, text
from tests.telemetry.recorder import Recorder

KEYS = {"k-ann-0123456789abcdef": "ann", "k-bob-0123456789abcdef": "bob"}
CALLS = 5


class Desk:
    """A server whose calls of two principals are in flight together."""

    def __init__(self, recorder: Recorder) -> None:
        self.arrived = 0
        self.together = asyncio.Event()
        self.server = server = Server(
            "desk", "1", auth=APIKeys(KEYS), telemetry=recorder.telemetry, limits=quick(logs_per_second=1_000)
        )
        server.resource("mine://{owner}/{number}")(lambda owner, number: owner)

        @server.tool
        async def work(ctx: Context, owner: str, number: int, fail: bool = False) -> str:
            self.arrived += 1
            if self.arrived == 2 * CALLS:
                self.together.set()
            await self.together.wait()
            ctx.log("info", f"{number} works for {owner}")
            assert ctx.principal is not None
            if fail:
                raise ValueError(f"no luck for {owner} with password=hunter2-{owner}-secret")
            return f"{owner} {number} {ctx.principal.id}"


def recorded(span: Any) -> str:
    """Return everything that is recorded of a span."""
    events = [(event.name, dict(event.attributes or {})) for event in span.events]
    links = [dict(link.attributes or {}) for link in span.links]
    return str((span.name, dict(span.attributes or {}), events, links, span.status.description))


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_what_is_recorded_of_one_principal_has_nothing_of_another(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    recorder = Recorder(record={"arguments", "results"})
    desk = Desk(recorder)
    async with site(desk.server) as here:

        async def calls(key: str, owner: str) -> list[str]:
            headers = {"authorization": f"Bearer {key}"}
            if revision == "2026-07-28":
                client: Any = Modern(here.raw, {}, **headers)
            else:
                client = await Stateful(here.raw, revision, {}, **headers).open()
            wanted = [
                client.calling("work", {"owner": owner, "number": number, "fail": number == 0}, id=number)
                for number in range(CALLS)
            ]
            for number, call in enumerate(wanted):
                call["params"]["_meta"]["traceparent"] = traceparent(owner, number)
            if revision == "2026-07-28":
                begun = [await client.begin(call) for call in wanted]
            else:
                begun = [await client.begin("POST", encode(call)) for call in wanted]
            said = [text(await (await each.start()).result()) for each in begun]
            if revision != "2026-07-28":
                await (await client.delete()).end()
            return said

        ann, bob = await asyncio.gather(*(calls(key, owner) for key, owner in KEYS.items()))
    assert ann[1:] == [f"ann {number} ann" for number in range(1, CALLS)]
    assert bob[1:] == [f"bob {number} bob" for number in range(1, CALLS)]
    spans = [span for span in recorder.spans if span.name == "tools/call work"]
    assert len(spans) == 2 * CALLS
    for span in spans:
        owner = "ann" if f"{span.context.trace_id:032x}".startswith("a" * 8) else "bob"
        other = "bob" if owner == "ann" else "ann"
        assert not re.search(rf"\b{other}\b|hunter2-{other}", recorded(span)), recorded(span)
    everything = "".join(map(recorded, recorder.spans)) + caplog.text
    for secret in (*KEYS, "hunter2-ann-secret", "hunter2-bob-secret"):
        assert secret not in everything
    labels = [dict(point.attributes) for point in recorder.points("mcp.server.operation.duration")]
    assert labels
    assert not re.search(r"\b(ann|bob)\b|hunter2", str(labels)), labels


def traceparent(owner: str, number: int) -> str:
    first = "a" if owner == "ann" else "b"
    return f"00-{first * 31}{number:x}-{first * 15}{number:x}-01"

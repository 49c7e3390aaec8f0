"""A server over HTTP with OpenTelemetry; the tool `spans` gives what it has recorded so far."""

from __future__ import annotations

import sys
from typing import Any

from accord import Context, Server

from tests.telemetry.recorder import Recorder

recorder = Recorder()
server = Server("shop", telemetry=recorder.telemetry)


@server.tool
async def price(item: str) -> str:
    """Say what something costs."""
    return f"{item}: 3"


@server.tool
async def order(item: str, ctx: Context) -> str:
    """Order something, once that is agreed to."""
    answer = await ctx.elicit(f"order {item}?", bool)
    return str(getattr(answer, "data", None))


@server.tool
async def spans() -> list[dict[str, Any]]:
    """What was recorded."""
    return [
        {
            "name": span.name,
            "kind": span.kind.name,
            "trace": f"{span.context.trace_id:032x}",
            "id": f"{span.context.span_id:016x}",
            "parent": f"{span.parent.span_id:016x}" if span.parent else None,
            **(span.attributes or {}),
        }
        for span in recorder.spans
    ]


if __name__ == "__main__":
    server.run(http=sys.argv[-1])

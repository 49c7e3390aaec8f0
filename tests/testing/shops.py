"""A server to record and to compare: the same each time, but for what `changed` changes."""

from __future__ import annotations

from accord import Context, Server


def shop(*, changed: bool = False, chatty: bool = False) -> Server:
    """A server with a tool of each kind: plain, reporting, logging, asking."""
    server = Server("shop", version="1.0.0", instructions="Be quick." if changed else "Be brief.")

    @server.tool
    async def price(item: str, count: int = 2 if changed else 1) -> float:
        """What it costs."""
        return count * (2.5 if changed else 2.0)

    @server.tool
    async def bake(breads: int, ctx: Context) -> str:
        """Bake, and say how far it is."""
        for bread in range(breads):
            ctx.report_progress(bread + 1, breads)
        ctx.info("done")
        if chatty:
            ctx.info("really")
        return f"{breads} breads"

    @server.tool
    async def order(ctx: Context) -> str:
        """Ask what it shall be, and how many."""
        answer = await ctx.elicit("What shall it be?", str)
        count = await ctx.elicit("How many?", int)
        return f"{count.data} {answer.data}"

    @server.tool
    async def turn() -> None:
        """Turn the sign."""
        server.resource_updated("shop://sign")

    @server.resource("shop://sign")
    def sign() -> str:
        return "open"

    if not changed:

        @server.prompt
        def praise(item: str) -> str:
            return f"Praise the {item}."

    return server

"""The same servers as programs written with accord.

    python servers.py calls | many | both | large [PORT]

With a port they serve HTTP, otherwise stdio.
"""

import sys

from accord import Context, HTTPLimits, Limits, Server

LINE = "The quick brown fox jumps over the lazy dog, and the lazy dog does not mind.\n"

# all clients come from this machine
server = Server("bench", limits=Limits(http=HTTPLimits(sessions_per_address=10_000)))


def declare_calls() -> None:
    @server.tool
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    @server.tool
    def echo_sync(text: str) -> str:
        """Say it again, from a thread."""
        return text

    @server.tool
    async def count(text: str, ctx: Context) -> str:
        """Say it again, and before that how far it is."""
        ctx.report_progress(1, 2)
        return text


def declare_large() -> None:
    @server.tool
    async def large(size: int) -> str:
        """Return a long text."""
        return LINE * (size // len(LINE))


def declare_both() -> None:
    declare_calls()
    declare_many()


def declare_many() -> None:
    for number in range(1_000):
        declare_one(number)


def declare_one(number: int) -> None:
    @server.tool(name=f"tool_{number}", description=f"Find things of kind {number}.")
    async def find(query: str, limit: int, exact: bool, score: float = 0.5, place: str | None = None) -> str:
        """Find things.

        Args:
            query: The query.
            limit: The limit.
            exact: The exact.
            score: The score.
            place: The place.
        """
        return query


if __name__ == "__main__":
    declare = {"calls": declare_calls, "many": declare_many, "both": declare_both, "large": declare_large}
    declare[sys.argv[1]]()
    if len(sys.argv) > 2:
        server.run(http=f"127.0.0.1:{sys.argv[2]}")
    else:
        server.run()

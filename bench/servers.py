"""The same servers as programs written with accord.

python servers.py calls | many | large
"""

import sys

from accord import Server

LINE = "The quick brown fox jumps over the lazy dog, and the lazy dog does not mind.\n"

server = Server("bench")


def declare_calls() -> None:
    @server.tool
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    @server.tool
    def echo_sync(text: str) -> str:
        """Say it again, from a thread."""
        return text


def declare_large() -> None:
    @server.tool
    async def large(size: int) -> str:
        """Much text."""
        return LINE * (size // len(LINE))


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
    {"calls": declare_calls, "large": declare_large, "many": declare_many}[sys.argv[1]]()
    server.run()

"""A server that spills a trace for one character, and gives ids: it is served over every transport."""

from accord import Server, ToolError

server = Server("spilling", "1")


@server.tool
def spill(note: str, times: int = 1) -> str:
    """Says what went wrong in full."""
    if "'" in note:
        raise ToolError('Traceback (most recent call last):\n  File "/srv/app.py", line 3, in spill\nKeyError')
    return note[: max(0, times)]


@server.tool
def order() -> dict[str, int]:
    """Gives an id."""
    return {"orderId": 17}


@server.tool
def ship(order_id: int) -> str:
    """Takes it."""
    return f"{order_id} is on its way"


@server.prompt
def greet(name: str) -> str:
    """A greeting."""
    return f"Greet {name}"

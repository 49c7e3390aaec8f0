"""A program written for FastMCP, with its import rewritten by `accord migrate --write switched.py`.

accord call examples/switched.py forecast city=Oslo
"""

from accord.compat.fastmcp import Context, FastMCP
from accord.compat.types import ToolAnnotations

mcp = FastMCP("Weather", instructions="Ask for one city at a time.")

DEGREES = {"Oslo": 3, "Singapore": 31}


@mcp.tool(annotations=ToolAnnotations(readOnlyHint=True))
async def forecast(city: str, ctx: Context) -> dict[str, int]:
    """Return the weather forecast."""
    await ctx.report_progress(progress=1, total=2, message=f"measuring {city}")
    return {"celsius": DEGREES.get(city, 15)}


@mcp.resource("weather://{city}")
def report(city: str) -> str:
    """Return the weather as text."""
    return f"{city}: {DEGREES.get(city, 15)} °C"


@mcp.prompt
def compare(first: str, second: str) -> str:
    """Compare the weather of two cities."""
    return f"Compare the weather of {first} and {second}."


if __name__ == "__main__":
    mcp.run()

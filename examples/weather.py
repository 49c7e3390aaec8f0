"""A weather server: tools, resources and a prompt in one file.

    accord list examples/weather.py
    accord call examples/weather.py forecast city=Oslo days=2
    python examples/weather.py            # serves over stdio, for any MCP client

The weather is made up, so it works without a network.
"""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass
from typing import Annotated, Literal

from accord import Context, Server, ToolError

server = Server(
    "weather",
    version="1.0.0",
    instructions="Made-up weather for a few cities. Ask for a forecast; compare cities with `warmest`.",
)

CITIES = {"Oslo": 6.0, "Lisbon": 17.5, "Nairobi": 19.0, "Reykjavik": 4.5, "Singapore": 27.5}


@dataclass
class Day:
    """The weather of one day."""

    day: int
    sky: Literal["clear", "cloudy", "rain"]
    high: Annotated[float, "in degrees Celsius"]


# An async tool. Its parameters and its return type become the schemas that clients receive and that accord validates.
@server.tool
async def forecast(city: str, days: int = 3) -> list[Day]:
    """Return the weather of the coming days.

    Args:
        city: One of the cities that this server knows.
        days: How many days to look ahead.
    """
    return [weather(city, day) for day in range(1, days + 1)]


# A plain function is a tool as well; it runs in a thread, so it may block.
@server.tool
def convert(degrees: float, to: Literal["F", "C"]) -> float:
    """Convert a temperature from the other scale."""
    return round(degrees * 9 / 5 + 32 if to == "F" else (degrees - 32) * 5 / 9, 1)


# A long-running tool reports progress. accord fills in `ctx`; clients do not see it.
@server.tool
async def warmest(cities: list[str], ctx: Context) -> str:
    """Return the warmest of some cities, measured one after the other."""
    highs: dict[str, float] = {}
    for number, city in enumerate(cities, 1):
        await asyncio.sleep(0.15)  # a measurement
        highs[city] = weather(city, 1).high
        await ctx.report_progress(number, len(cities), f"measured {city}")
    return max(highs, key=highs.__getitem__)


# Expected errors go to the model, which can react to the text of a ToolError.
def weather(city: str, day: int) -> Day:
    if city not in CITIES:
        raise ToolError(f"no weather for {city!r}; known are {', '.join(CITIES)}")
    chance = zlib.crc32(f"{city} {day}".encode())
    return Day(day, ("clear", "cloudy", "rain")[chance % 3], CITIES[city] + chance % 50 / 10)


@server.resource("weather://cities", mime_type="text/plain")
def cities() -> str:
    """Return the cities that this server knows."""
    return "\n".join(CITIES)


# A template: one function for a whole family of resources.
@server.resource("weather://{city}/now", mime_type="application/json")
async def now(city: str) -> Day:
    """Return the current weather in a city."""
    return weather(city, 0)


@server.prompt
def plan(city: str, mood: str = "curious") -> str:
    """Plan a day that suits the weather."""
    return f"I am in {city} and feel {mood}. Look at the forecast and plan my day, hour by hour."


if __name__ == "__main__":
    server.run()

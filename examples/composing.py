"""A server composed of others: a weather server with a prefix, rows of a database, and a hidden administration tool.

accord list examples/composing.py
accord call examples/composing.py forecast city=Oslo
accord call examples/composing.py notes_saved
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Any

from accord import ArgumentChange, Provided, Provider, Server, Tool, ToolAnnotations, ToolChange
from accord.messages.content import Resource

# --- another team's server -----------------------------------------------------------------------------------------

weather = Server("weather")


@weather.tool
async def get_forecast(q: str, units: str = "imperial", days: int = 3) -> str:
    """Return the weather forecast.

    Args:
        q: Name of a place.
        units: "imperial" or "metric".
        days: Number of days.
    """
    return f"{q}: sun for {days} days, {'20 °C' if units == 'metric' else '68 °F'}"


@weather.tool(tags={"admin"})
async def reload_stations() -> str:
    """Reload the list of stations."""
    return "reloaded"


# --- tools and resources known at run time ---------------------------------------------------------------------------


class Notes(Provider):
    """Notes in a database: each is a resource, and each saved query is a tool."""

    def __init__(self, file: str = ":memory:") -> None:
        super().__init__()
        self._db = sqlite3.connect(file, check_same_thread=False)
        with self._db:
            self._db.execute("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT)")
            self._db.execute("CREATE TABLE IF NOT EXISTS queries (name TEXT PRIMARY KEY, about TEXT, sql TEXT)")
            self._db.execute("INSERT OR IGNORE INTO notes VALUES (1, 'Buy milk'), (2, 'Call Ann')")
            self._db.execute("INSERT OR IGNORE INTO queries VALUES ('saved', 'All notes.', 'SELECT text FROM notes')")

    async def tools(self) -> Sequence[Provided]:
        """Return the saved queries as tools."""
        rows = self._db.execute("SELECT name, about, sql FROM queries")
        return [Provided(_query(name, about), partial(self._run, sql)) for name, about, sql in rows]

    async def _run(self, sql: str, arguments: dict[str, Any]) -> str:
        return "; ".join(text for (text,) in self._db.execute(sql))

    async def resources(self) -> Sequence[Resource]:
        """Return the listed notes."""
        return [Resource(uri=f"note://{id}", name=text) for id, text in self._db.execute("SELECT id, text FROM notes")]

    async def resource(self, uri: str) -> Provided | None:
        """Return one note, or None."""
        row = self._db.execute("SELECT text FROM notes WHERE id = ?", [uri.removeprefix("note://")]).fetchone()
        return None if row is None else Provided(Resource(uri=uri, name=row[0]), lambda: row[0])

    def save(self, text: str) -> None:
        """Save a note and notify the subscribers."""
        with self._db:
            self._db.execute("INSERT INTO notes (text) VALUES (?)", [text])
        self.changed("resources")


def _query(name: str, about: str) -> Tool:
    schema = {"type": "object", "additionalProperties": False}
    return Tool(name=name, description=about, input_schema=schema, annotations=ToolAnnotations(read_only_hint=True))


notes = Server("notes")
notes.add_provider(store := Notes())


@notes.tool
async def add(text: str) -> str:
    """Save a note.

    Args:
        text: The text of the note.
    """
    store.save(text)
    return "noted"


@notes.tool(version="2.0", scopes={"notes:delete"})
async def clear() -> str:
    """Delete all notes."""
    return "cleared"


# --- one server ----------------------------------------------------------------------------------------------------

server = Server("desk", version="1.0.0")
server.mount(weather, "weather")
server.mount(notes, "notes")
server.change_tool(
    "weather_get_forecast",
    ToolChange(
        name="forecast",
        description="How the weather will be in a city.",
        arguments={
            "q": ArgumentChange(name="city", description="Name of a city."),
            "units": ArgumentChange(fixed="metric"),
        },
    ),
)
server.disable(tags={"admin"})
server.search_tools(budget=4000, always=["forecast"])


if __name__ == "__main__":
    server.run()

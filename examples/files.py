"""A handbook: a folder of files as resources, and tools that return an image, audio and a file.

    accord list examples/files.py
    accord read examples/files.py handbook://first-steps.md
    accord call examples/files.py badge name=Ada

The handbook is this folder's `handbook/`; files that are added while the server runs are available at once.
"""

from __future__ import annotations

import io
import math
import wave
from pathlib import Path
from xml.sax.saxutils import escape

from accord import Audio, File, Image, Server

server = Server("handbook", version="1.0.0")

# Every file below the folder is a resource, listed and readable as `handbook://{+path}`. Hidden files are left out,
# links are not followed, and paths cannot leave the folder. Subscribers are notified of changes.
HANDBOOK = Path(__file__).parent / "handbook"
server.add_directory(HANDBOOK, uri="handbook://", exclude=["drafts"])


# The type is detected from the data, as for PNG and WAV. SVG is text, so it needs `format`.
@server.tool
def badge(name: str) -> Image:
    """Draw a badge with a name on it."""
    text = f'<text x="20" y="40">{escape(name)}</text>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="200" height="60">{text}</svg>'
    return Image(data=svg.encode(), format="svg")


@server.tool
def tone(hertz: int = 440) -> Audio:
    """Return a tone of a tenth of a second."""
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8000)
        file.writeframes(bytes(128 + round(100 * math.sin(2 * math.pi * hertz * at / 8000)) for at in range(800)))
    return Audio(data=sound.getvalue())


# A list returns several content blocks.
@server.tool
def rota(people: list[str]) -> list[str | File]:
    """Return the rota of the weeks as a file."""
    rows = "\n".join(f"{week},{person}" for week, person in enumerate(people, 1))
    return ["The rota:", File(data=rows.encode(), format="csv", name="rota")]


if __name__ == "__main__":
    server.run()

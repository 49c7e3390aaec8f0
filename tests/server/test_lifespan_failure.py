"""A lifespan that fails is told in the same way over stdio and HTTP: the author's traceback, one line, exit code 1."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from contextlib import asynccontextmanager
from accord import Server

def connect():
    raise ConnectionError("no database")

@asynccontextmanager
async def lifespan(server):
    connect()
    yield

server = Server("shop", lifespan=lifespan)

if __name__ == "__main__":
    import sys
    server.run(**({"http": "127.0.0.1:0"} if sys.argv[1:] == ["http"] else {}))
"""

WAYS = {
    "program over stdio": ["{file}"],
    "program over HTTP": ["{file}", "http"],
    "command over stdio": ["-m", "accord", "run", "{file}"],
    "command over HTTP": ["-m", "accord", "run", "{file}", "--http", "127.0.0.1:0"],
}


@pytest.mark.parametrize("way", WAYS)
def test_it_is_the_authors_traceback_and_one_line_and_the_exit_code_is_1(way: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, *(part.format(file=file) for part in WAYS[way])],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 1, done.stderr
    assert "the lifespan of 'shop' failed to start" in lines[-1]
    assert "no database" in done.stderr
    assert 'raise ConnectionError("no database")' in done.stderr
    assert "connect()" in done.stderr
    assert str(Path("accord", "server")) not in done.stderr
    assert len(lines) <= 12, done.stderr

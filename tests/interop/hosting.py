"""accord's application under other people's ASGI servers and frameworks, each in a process of its own.

The programs are those of docs/deploy.md, and so are the commands; the server in them is `HOSTED`, with tools that show
what a test wants to see.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from tests.interop.peers import ROOT, peer_python
from tests.interop.serving import free_port
from tests.server.http.raw import Answer, Socket

SECONDS = 100
"""For a server to begin, and to end."""

Host = Literal["uvicorn", "granian", "hypercorn"]

GUNICORN: Literal["gunicorn"] = "gunicorn"
"""It manages processes, two of them, in which uvicorn serves."""

HOSTED = Path(__file__).parent / "servers" / "hosted.py"
PROGRAM = re.compile(r"^```python\n# (?P<name>\w+\.py)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Place(NamedTuple):
    """What is hosted: the target as the server's command names it, and where accord is in it."""

    target: str = "weather:server.app"
    root: str = ""
    options: tuple[str, ...] = ()
    """Of the command."""


class Hosted:
    """A server that serves."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, root: str, log: list[bytes]) -> None:
        self.process: subprocess.Popen[bytes] = process
        self.port: int = port
        self.root: str = root
        self._log = log

    @property
    def log(self) -> str:
        """What it has written so far."""
        return b"".join(self._log).decode()

    @property
    def raw(self) -> Under:
        """A client of the application, wherever that is mounted."""
        return Under(self.port, self.root)

    def get(self, path: str) -> int:
        """The status of a GET, whatever the application is mounted under."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=SECONDS) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as exc:
            return exc.code


class Under(Socket):
    """A client that says paths as the application knows them; such as it was told are complete."""

    def __init__(self, port: int, root: str) -> None:
        super().__init__(port)
        self.root: str = root

    async def begin(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        whole = path if self.root and path.startswith(self.root) else self.root + path
        return await super().begin(method, whole, headers, body)


def programs(folder: Path) -> None:
    """Write the programs of docs/deploy.md, and the server that they import."""
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    for program in PROGRAM.finditer(page):
        (folder / program["name"]).write_text(program["text"], encoding="utf-8")
    (folder / "weather.py").write_text(HOSTED.read_text(encoding="utf-8"), encoding="utf-8")


@contextmanager
def hosted(
    host: Host | Literal["gunicorn"], place: Place, folder: Path, *, ready: bool = True, **limits: float
) -> Iterator[Hosted]:
    """A server at a port of its own, in a folder with the programs; at the end it must go when it is told to."""
    port = free_port()  # granian takes no port 0
    process = subprocess.Popen(
        [*_command(host, place.target, port), *place.options],
        cwd=folder,
        env={**os.environ, **{f"LIMIT_{name}": repr(value) for name, value in limits.items()}},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # granian has workers: they are ended with it
    )
    log: list[bytes] = []
    reading = threading.Thread(target=lambda: log.extend(process.stdout or ()), daemon=True)
    reading.start()
    serving = Hosted(process, port, place.root, log)
    try:
        _wait(serving, ready)
        yield serving
        process.terminate()
        process.wait(SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(SECONDS)
        reading.join(SECONDS)
        if process.stdout is not None:
            process.stdout.close()


def _command(host: Host | Literal["gunicorn"], target: str, port: int) -> list[str]:
    scripts = peer_python("asgi").parent
    if host == GUNICORN:
        workers = ["--workers", "2", "--worker-class", "uvicorn_worker.UvicornWorker"]
        return [str(scripts / host), target, *workers, "--bind", f"127.0.0.1:{port}", "--no-control-socket"]
    if host == "hypercorn":
        return [str(scripts / host), target, "--bind", f"127.0.0.1:{port}"]
    interface = ["--interface", "asgi"] if host == "granian" else []
    return [str(scripts / host), *interface, target, "--host", "127.0.0.1", "--port", str(port)]


def _wait(serving: Hosted, ready: bool) -> None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and serving.process.poll() is None:
        with suppress(OSError):
            if not ready or serving.get(serving.root + "/ready") == 200:
                return
        time.sleep(0.05)
    raise AssertionError(f"it did not serve:\n{serving.log}")

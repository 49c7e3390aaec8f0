"""`accord inspect` as a process of its own, for tests."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.parent

SECONDS = 60.0
"""How long the process may take to start or to end, on a busy machine."""

LINK = re.compile(r"http://127\.0\.0\.1:\d+/#\S+")


@dataclass
class InspectProcess:
    """A running `accord inspect`."""

    process: asyncio.subprocess.Process
    link: str
    """The link that it printed, with the token in its fragment."""
    home: Path
    """Its home directory: it has no configuration of the user."""
    errors: Path
    """What it writes to stderr."""

    @property
    def base(self) -> str:
        """Return the address of the page, without the token."""
        return self.link.partition("/#")[0]

    @property
    def token(self) -> str:
        """Return the token that the link carries."""
        return self.link.rpartition("=")[2]

    @classmethod
    async def start(cls, home: Path, *arguments: str, folder: Path = ROOT) -> InspectProcess:
        """Start `accord inspect ARGUMENTS` on a free port, and wait for its link."""
        errors = home / "stderr.txt"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        with errors.open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "accord", "inspect", *arguments, "--no-open", "--port", "0"),
                cwd=folder,
                env={**kept, "HOME": str(home)},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
            )
        try:
            link = await asyncio.wait_for(cls._read_link(process), SECONDS)
        except BaseException as error:
            process.kill()
            await process.wait()
            error.add_note(f"stderr of accord inspect:\n{errors.read_text('utf-8', 'replace')}")
            raise
        return cls(process, link, home, errors)

    @staticmethod
    async def _read_link(process: asyncio.subprocess.Process) -> str:
        assert process.stdout is not None
        lines = []
        while line := (await process.stdout.readline()).decode("utf-8", "replace"):
            lines.append(line)
            if found := LINK.search(line):
                return found[0]
        raise AssertionError(f"accord inspect printed no link: {''.join(lines)!r}")

    async def stop(self) -> None:
        """Interrupt the process as a terminal does, and wait for its end."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGINT)
        assert self.process.stdin is not None
        self.process.stdin.close()
        await asyncio.wait_for(self.process.communicate(), SECONDS)

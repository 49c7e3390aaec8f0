"""Other people's example programs, out of the source distributions that PyPI has of their libraries.

`scripts/peers` runs this file; it fetches them with pip and unpacks their examples under .cache/programs/. Nothing of
them is kept in this repository. Only the standard library is used, since this also runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = ROOT / ".cache" / "programs"
PEERS = ROOT / ".cache" / "peers"

Origin = Literal["fastmcp", "mcp2", "mcp1", "servers"]
"""A library, or the reference servers; its environment among the peers has the same name (tests/interop/peers.py)."""


class Source(NamedTuple):
    """One source distribution, pinned by its digest."""

    project: str
    version: str
    sha256: str

    @property
    def stem(self) -> str:
        """The name of the file, and of the folder in it."""
        return f"{self.project}-{self.version}"


SOURCES: dict[Origin, Source] = {
    "fastmcp": Source("fastmcp", "4.1.2", "1b70a8467ac4dd6416c7c101cd54562f089b55e6636a196b4a20bdac3ccb0284"),
    "mcp2": Source("mcp", "2.3.0", "8b147a50441cf059dc88c684e0aeed3687f0aa0f39c6cde7b90330effd2b34d8"),
    "mcp1": Source("mcp", "1.30.0", "445414625fce5c295faa505bb11bacece661ab6f4028d57c935db57820b7a3e4"),
}

FOLDERS = ("examples", "docs_src")
"""What is unpacked of each."""


def folder(origin: Origin) -> Path:
    """Where the programs of a library are. Raises `FileNotFoundError` where they were not fetched; the reference
    servers are where they are installed, among the peers.
    """
    if origin == "servers":
        place = next(PEERS.glob("servers/lib/python*/site-packages"), None)
        if place is None:
            raise FileNotFoundError(f"the reference servers are not there ({PEERS / 'servers'}): run scripts/peers")
        return place
    found = PROGRAMS / SOURCES[origin].stem
    if not found.exists():
        raise FileNotFoundError(f"the example programs of {origin} are not there ({found}): run scripts/peers")
    return found


def fetch(source: Source) -> None:
    """Download and unpack one, unless that is done. Raises `RuntimeError` for one that is not what it was."""
    if (PROGRAMS / source.stem).exists():
        return
    with tempfile.TemporaryDirectory() as scratch:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps"]
        pinned = [f"--no-binary={source.project}", f"{source.project}=={source.version}", "-d", scratch]
        subprocess.run([*pip, *pinned], stdin=subprocess.DEVNULL, stdout=sys.stderr, check=True)
        archive = Path(scratch) / f"{source.stem}.tar.gz"
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != source.sha256:
            raise RuntimeError(f"{archive.name} has the digest {found}, not {source.sha256}")
        unpack(archive, source)


def unpack(archive: Path, source: Source) -> None:
    """Put the folders of an archive in their place: whole, or not at all."""
    fresh = PROGRAMS / f".{source.stem}"
    shutil.rmtree(fresh, ignore_errors=True)
    wanted = tuple(f"{source.stem}/{name}/" for name in FOLDERS)
    with tarfile.open(archive) as tar:
        tar.extractall(fresh, [one for one in tar if one.name.startswith(wanted)], filter="data")
    (fresh / source.stem).rename(PROGRAMS / source.stem)
    fresh.rmdir()


def fetch_all() -> int:
    """Fetch every one, side by side; returns an exit code."""
    with ThreadPoolExecutor(len(SOURCES)) as pool:
        running = [(source.stem, pool.submit(fetch, source)) for source in SOURCES.values()]
    for stem, done in running:
        print(f"{PROGRAMS.relative_to(ROOT)}/{stem}: {done.exception() or 'ready'}", file=sys.stderr)
    return 1 if any(done.exception() for _, done in running) else 0


if __name__ == "__main__":
    sys.exit(fetch_all())

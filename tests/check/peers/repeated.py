"""Checks published servers again and again, and says whether the verdicts are the same each time.

    python -m tests.check.peers.repeated FOLDER [RUNS [NAME...]]

installs them under FOLDER (PyPI and npm), makes the default check of each, and writes a line of JSON for each run to
FOLDER/runs.jsonl: the worst verdict on each rule in each revision. Then it prints the table of
docs/known-issues-in-servers.md. Runs go round, so that a survey that is ended
early has as many of each server. No tool is called.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from accord.check.engine.report import Report, worst_verdict
from accord.check.server import check_server
from accord.check.settings import CheckSettings

RUNS = 10


class Published(NamedTuple):
    """A server that somebody has published."""

    package: str
    version: str
    program: str
    sdk: str = ""
    """From PyPI: the requirement of its SDK. From npm: nothing."""
    arguments: tuple[str, ...] = ()
    """`{folder}` in them is an empty folder."""

    @property
    def name(self) -> str:
        return f"{self.package} {self.version}"


SERVERS: tuple[Published, ...] = (
    Published("mcp-server-sqlite", "2025.4.25", "mcp-server-sqlite", "mcp<2", ("--db-path", "{folder}/a.db")),
    Published("mcp-server-calculator", "0.2.1", "mcp-server-calculator", "mcp<2"),
    Published("mcp-text-editor", "1.0.2", "mcp-text-editor", "mcp<2"),
    Published("mcp-server-duckdb", "1.1.0", "mcp-server-duckdb", "mcp<2", ("--db-path", "{folder}/a.duckdb")),
    Published("mcp-server-fetch", "2026.10.24", "mcp-server-fetch", "mcp>=2"),
    Published("duckduckgo-mcp-server", "0.7.0", "duckduckgo-mcp-server", "mcp>=2"),
    Published("@modelcontextprotocol/server-sequential-thinking", "2026.8.31", "mcp-server-sequential-thinking"),
    Published("@upstash/context7-mcp", "4.1.1", "context7-mcp"),
    Published("@antv/mcp-server-chart", "0.9.10", "mcp-server-chart"),
    Published("mcp-hello-world", "1.1.2", "mcp-hello-world"),
    Published("@playwright/mcp", "0.0.83", "playwright-mcp"),
    Published("chrome-devtools-mcp", "1.11.0", "chrome-devtools-mcp"),
)


def install(folder: Path) -> None:
    """What is not installed yet: an environment for each SDK, and one tree from npm."""
    for sdk in sorted({server.sdk for server in SERVERS if server.sdk}):
        home = python_home(folder, sdk)
        if not home.exists():
            venv.create(home, with_pip=True)
            wanted = [f"{each.package}=={each.version}" for each in SERVERS if each.sdk == sdk]
            subprocess.run([str(home / "bin" / "pip"), "install", "-q", sdk, *wanted], check=True)
    tree = folder / "npm"
    if not tree.exists():
        tree.mkdir(parents=True)
        (tree / "package.json").write_text('{"private": true}')
        wanted = [f"{each.package}@{each.version}" for each in SERVERS if not each.sdk]
        options = ["--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(["npm", "install", *options, *wanted], cwd=tree, check=True)


def python_home(folder: Path, sdk: str) -> Path:
    return folder / ("python-old" if "<" in sdk else "python-new")


def command(server: Published, folder: Path, work: Path) -> dict[str, Any]:
    """As an entry of a configuration; `work` is where it may write."""
    programs = python_home(folder, server.sdk) / "bin" if server.sdk else folder / "npm" / "node_modules" / ".bin"
    arguments = [each.format(folder=work) for each in server.arguments]
    return {"command": str(programs / server.program), "args": arguments, "cwd": str(work)}


def verdicts(report: Report) -> dict[str, str]:
    """By rule and revision: the worst verdict."""
    found: dict[str, list[Any]] = {}
    for each in report.outcomes:
        found.setdefault(f"{each.rule} {each.revision}", []).append(each.verdict)
    return {place: worst_verdict(each) for place, each in found.items()}


def one_run(server: Published, folder: Path, number: int) -> dict[str, Any]:
    """Check it once."""
    work = folder / "work" / f"{server.program}-{number}"
    work.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    report = asyncio.run(check_server(command(server, folder, work), CheckSettings()))
    return {
        "server": server.name,
        "run": number,
        "seconds": round(time.monotonic() - began, 1),
        "score": report.score,
        "musts": report.musts_broken,
        "revisions": [visit.revision for visit in report.visits],
        "errors": [visit.error for visit in report.visits if visit.error],
        "untested": [each.revision for each in report.untested],
        "unconfirmed": [each for visit in report.visits for each in visit.unconfirmed],
        "findings": [[each.verdict, each.rule, each.sdk, each.text] for each in report.findings],
        "verdicts": verdicts(report),
    }


def table(runs: list[dict[str, Any]]) -> Iterator[str]:
    """A row for each server: its scores, and the rules whose verdict was not the same each time."""
    yield "| Server | Runs | Revisions | Score | MUSTs broken | Not the same each time |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name in dict.fromkeys(each["server"] for each in runs):
        mine = [each for each in runs if each["server"] == name]
        places = {place for each in mine for place in each["verdicts"]}
        unsteady = sorted(place for place in places if len({each["verdicts"].get(place) for each in mine}) > 1)
        revisions = ", ".join(dict.fromkeys(revision for each in mine for revision in each["revisions"]))
        cells = [name, len(mine), revisions, _span(mine, "score"), _span(mine, "musts"), ", ".join(unsteady) or "none"]
        yield f"| {' | '.join(map(str, cells))} |"


def _span(runs: list[dict[str, Any]], field: str) -> str:
    found = sorted({each[field] for each in runs})
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def main(folder: str, runs: str = str(RUNS), *names: str) -> None:
    home = Path(folder).resolve()
    install(home)
    log = home / "runs.jsonl"
    for number in range(int(runs)):
        for server in SERVERS:
            if not names or any(name in server.name for name in names):
                with log.open("a") as file:
                    file.write(f"{json.dumps(one_run(server, home, number))}\n")
    print("\n".join(table([json.loads(line) for line in log.read_text().splitlines()])))


if __name__ == "__main__":
    main(*sys.argv[1:])

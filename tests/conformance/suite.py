"""The official conformance suite as a program that is run: what it wants of a revision, and what it says of us.

    python -m tests.conformance.suite          # all of it, and the scores

Stricter than the suite: a warning counts, so does a scenario in which nothing was looked at, and how a client ends.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from tests.interop.peers import ROOT, conformance_suite

Leg: TypeAlias = Literal["server", "client"]

REVISIONS = ("2025-11-25", "2026-07-28")
"""Those that the suite has requirements of."""

CLIENT_REVISIONS = ("2025-03-26", *REVISIONS)
"""Those of clients: for 2025-03-26 the suite has scenarios, the authorization of servers without resource metadata."""

SERVER = (sys.executable, str(ROOT / "examples" / "everything.py"), "127.0.0.1:0")
CLIENT = (sys.executable, str(ROOT / "tests" / "conformance" / "client.py"))

OTHERS = ("tasks-",)
"""How the scenarios begin that are about what accord does not have: the tasks extension."""

AUTHORIZATION_SCENARIOS = ("authorization-server-metadata-endpoint", "authorization-code-grant")

STATUSES = ("SUCCESS", "FAILURE", "WARNING", "SKIPPED")

AT_ONCE = 4
"""Clients that run at the same time."""

SECONDS = 60
"""For one scenario of a client."""

_READ_YAML = "console.log(JSON.stringify(require('yaml').parse(require('fs').readFileSync(process.argv[1], 'utf8'))))"
_URL = re.compile(r"http://[^\s/]+/mcp")


class Played(NamedTuple):
    """What the suite found in one scenario."""

    scenario: str
    checks: list[dict[str, Any]]
    wrong: str = ""
    """How it ended, if not well."""

    def count(self, status: str) -> int:
        """How many of its checks came out so."""
        return sum(check["status"] == status for check in self.checks)

    def faults(self) -> Iterator[str]:
        """Why it has not passed, a sentence each."""
        if not any(each["status"] == "SUCCESS" and each["id"] != "wire-schema-valid" for each in self.checks):
            yield f"{self.scenario}: nothing was looked at"
        for each in self.checks:
            if each["status"] in ("FAILURE", "WARNING"):
                said = each.get("errorMessage") or each["description"]
                yield f"{self.scenario}: {each['status']} {each['id']}: {said}"
        if self.wrong:
            yield f"{self.scenario}: {self.wrong}"


class Report(NamedTuple):
    """What the suite found in all scenarios of one leg in one revision."""

    leg: Leg
    revision: str
    played: list[Played]
    wrong: str = ""
    """How all of them together ended, if not well."""

    def faults(self) -> list[str]:
        """Why it is not whole."""
        return [*(fault for played in self.played for fault in played.faults()), *filter(None, [self.wrong])]

    def score(self) -> str:
        """One line, counted as the suite does, with what it leaves out."""
        passed = sum(not any(played.faults()) for played in self.played)
        good, bad, warned, left = (sum(each.count(status) for each in self.played) for status in STATUSES)
        checks = f"{good}/{good + bad} checks, {warned} warnings, {left} skipped"
        return f"{self.leg} {self.revision}: {passed}/{len(self.played)} scenarios, {checks}"


def wanted(leg: Leg, revision: str) -> list[str]:
    """The scenarios on the suite's own list: those that it scores, and those that it does not, but for `OTHERS`."""
    node, program = conformance_suite()
    if revision not in REVISIONS:
        return listed(leg, revision)
    folder = Path(program).parent.parent
    command = [node, "-e", _READ_YAML, str(folder / "requirements" / f"{revision}.yaml")]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, timeout=SECONDS, check=True)
    required = json.loads(done.stdout)
    unscored = [each["scenario"] for each in required["not_scored"] if each["leg"] == leg]
    return [name for name in [*required[leg], *unscored] if not name.startswith(OTHERS)]


def listed(leg: Leg, revision: str) -> list[str]:
    """The scenarios of a revision that the suite has no requirements of, but for `OTHERS`."""
    command = [*conformance_suite(), "list", f"--{leg}", "--spec-version", revision]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", timeout=SECONDS, check=True)
    return [name for name in re.findall(r"^ +- (\S+) \[", done.stdout, re.MULTILINE) if not name.startswith(OTHERS)]


# --- servers ---------------------------------------------------------------------------------------------------------


@contextmanager
def serving(command: Sequence[str] = SERVER) -> Iterator[str]:
    """The URL of a server that runs meanwhile, which its first line says. It has to end well when it is told to."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8") as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = _URL.search(line)
            assert found is not None, f"the server did not say its URL but: {line or 'nothing'}"
            yield found[0]
            process.terminate()
            _, said = process.communicate(timeout=SECONDS)
            assert (process.returncode, "Traceback" in said) == (0, False), f"{process.returncode}: {said}"
        finally:
            process.kill()


def play_server(url: str, revision: str) -> Report:
    """Hold the server at a URL against all that a revision requires."""
    with tempfile.TemporaryDirectory() as folder:
        options = ("--url", url, "--requirements", revision, "-o", folder)
        verdict = run("server", *options, seconds=5 * SECONDS)
        found = dict(_checks(Path(folder)))
    played = [Played(name, found.get(name, [])) for name in wanted("server", revision)]
    return Report("server", revision, played, verdict)


def play_server_alone(url: str, scenario: str, revision: str) -> Played:
    """One scenario for the server at a URL, also of an extension."""
    with tempfile.TemporaryDirectory() as folder:
        options = ("--url", url, "--scenario", scenario, "--spec-version", revision, "--force", "-o", folder)
        verdict = run("server", *options, seconds=SECONDS)
        return Played(scenario, dict(_checks(Path(folder))).get(scenario, []), verdict)


# --- clients ---------------------------------------------------------------------------------------------------------


_TURNS = """#!/bin/sh
exec 3<>"$0.turns"
read -r turn <&3
"$@" 3>&-
code=$?
echo >&3
echo "$MCP_CONFORMANCE_SCENARIO $code" >>"$0.codes"
exit $code
"""
"""Runs a client when it is its turn, which is a line of a pipe, and notes its exit code."""


def play_client(revision: str) -> Report:
    """Hold our client against all that a revision requires.

    One process of the suite plays all scenarios that it requires, since it takes longer to start than a scenario. It
    starts all clients at the same time, and does not say how each ended: they take turns. A scenario that was not
    played so, or whose client did not end well, is played alone.
    """
    together = play_together(revision) if revision in REVISIONS else {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        played = pool.map(lambda name: together.get(name) or play_alone(name, revision), wanted("client", revision))
        return Report("client", revision, list(played))


def play_together(revision: str, command: Sequence[str] = CLIENT) -> dict[str, Played]:
    """Play all that a revision requires of clients; the scenarios whose client ended well, by their names."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "client")
        program.write_text(_TURNS, encoding="utf-8")
        os.mkfifo(f"{program}.turns")
        turns = os.open(f"{program}.turns", os.O_RDWR)
        os.write(turns, b"\n" * AT_ONCE)
        codes = Path(f"{program}.codes")
        codes.touch()
        options = ("--requirements", revision, "--timeout", str(5000 * SECONDS), "-o", f"{folder}/found")
        run("client", "--command", shlex.join(["sh", str(program), *command]), *options, seconds=5 * SECONDS)
        os.close(turns)
        ended = codes.read_text(encoding="utf-8").splitlines()
        return {name: Played(name, checks) for name, checks in _checks(Path(folder, "found")) if f"{name} 0" in ended}


def play_alone(scenario: str, revision: str, command: Sequence[str] = CLIENT, seconds: float = SECONDS) -> Played:
    """One scenario for a client; the suite puts the URL of its server behind the command.

    Played alone, it fails also where the client does not end well.
    """
    with tempfile.TemporaryDirectory() as folder:
        options = ("--scenario", scenario, "--spec-version", revision, "--force", "-o", folder)  # extensions, too
        verdict = run("client", "--command", shlex.join(command), *options, seconds=seconds)
        found = dict(_checks(Path(folder)))
        said = "".join(file.read_text(encoding="utf-8")[-2000:] for file in Path(folder).rglob("stderr.txt"))
    return Played(scenario, found.get(scenario, []), verdict and f"{verdict}; its client said: {said or 'nothing'}")


# --- authorization servers -------------------------------------------------------------------------------------------


def play_authorization_server(
    issuer: str, client_id: str, resource: str, port: int, visit: Callable[[str], object]
) -> list[Played]:
    """Hold an authorization server against both scenarios for those. `visit` opens a URL as the browser of a user does,
    up to the callback at `port`.
    """
    options = ("--url", issuer, "--client-id", client_id, "--resource", resource, "-p", str(port))
    found, verdict = _play_authorization(options, issuer, visit)
    if not found:  # it once ended well before any check
        found, verdict = _play_authorization(options, issuer, visit)
    return [Played(name, found.get(name, []), verdict) for name in AUTHORIZATION_SCENARIOS]


def _play_authorization(
    options: Sequence[str], issuer: str, visit: Callable[[str], object]
) -> tuple[dict[str, list[dict[str, Any]]], str]:
    """Return what was found, by scenario, and how the suite ended, with what it wrote, if not well."""
    said: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        command = [*conformance_suite(), "authorization", *options, "-o", folder]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
        ) as suite:
            try:
                assert suite.stdout is not None
                for line in suite.stdout:
                    said.append(line)
                    if line.startswith(f"{issuer}/authorize?"):
                        visit(line.strip())
                code = suite.wait(SECONDS)
            finally:
                suite.kill()
        found = dict(_checks(Path(folder), "authorization-server-"))
    return found, "" if found and code == 0 else f"the suite's exit code is {code}: {''.join(said)[-2000:]}"


# --- the suite -------------------------------------------------------------------------------------------------------


def run(*arguments: str, seconds: float) -> str:
    """Run the suite; how it ended, if not well. A client that never ends would hold it for ever: both are killed."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    compiled = {**os.environ, "NODE_COMPILE_CACHE": str(ROOT / ".cache" / "node")}  # a fifth of the time of a start
    with subprocess.Popen([*conformance_suite(), *arguments], env=compiled, start_new_session=True, **quiet) as suite:
        try:
            code = suite.wait(seconds)
            return f"the suite's exit code is {code}" if code else ""
        except subprocess.TimeoutExpired:
            return f"not over after {seconds:g} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(suite.pid, signal.SIGKILL)


def _checks(folder: Path, prefix: str = "server-") -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """What was found, by scenario: the suite writes [PREFIX]SCENARIO-TIME/checks.json."""
    for file in folder.rglob("checks.json"):
        name = str(file.parent.relative_to(folder)).removeprefix(prefix)
        yield re.split(r"-\d{4}-\d\d-\d\dT", name)[0], json.loads(file.read_text(encoding="utf-8"))


def main() -> int:
    """All of it; prints what is wrong, and the scores."""
    with serving() as url:
        reports = [play_server(url, revision) for revision in REVISIONS]
    reports += [play_client(revision) for revision in CLIENT_REVISIONS]
    for report in reports:
        print(*report.faults(), report.score(), sep="\n")
    return 1 if any(report.faults() for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())

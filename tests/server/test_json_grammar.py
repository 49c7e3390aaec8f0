"""JSON texts, good and bad, as the argument inside a `tools/call`: accepted, or one error; never silence."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

from tests.server.json_grammar import MESSAGES, VALUES, accepted_or_one_error, judge
from tests.server.test_stdio_process import INIT, lines

PROGRAM = """
from typing import Any
from accord import Server
server = Server("test", "1")
@server.tool
async def take(value: Any) -> str:
    return "taken"
server.run()
"""


async def test_in_memory_each_text_is_accepted_or_one_error() -> None:
    await accepted_or_one_error([*VALUES, *MESSAGES])


def test_over_stdio_each_text_without_a_newline_is_accepted_or_one_error() -> None:
    chosen = [case for case in (*VALUES, *MESSAGES) if b"\n" not in case.text]
    script = [lines(INIT)]
    for number, case in enumerate(chosen):
        script += [case.message(), b"\n", lines({"jsonrpc": "2.0", "id": number, "method": "ping"})]
    program = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(program, input=b"".join(script), capture_output=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()][1:]
    for number, case in enumerate(chosen):
        at = next(at for at, answer in enumerate(answers) if answer.get("id") == number)
        judge(case, answers[:at])
        del answers[: at + 1]
    assert answers == []


def test_each_text_has_a_name_of_its_own() -> None:
    names = Counter(case.name for case in (*VALUES, *MESSAGES))
    assert [name for name, count in names.items() if count > 1] == []

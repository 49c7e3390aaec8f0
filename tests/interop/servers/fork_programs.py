"""Runs a program many times, each in a process forked from this one, which has imported what the program imports.

    python fork_programs.py PROGRAM.py CONTROL

imports the program as a module, then reads what to run from the socket with the descriptor CONTROL: a byte with the
descriptors of the input, the output and the errors, then a line of JSON with the `arguments` of the program, its
`environment` and its `folder`. It answers with the exit code, a line.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import socket
import sys
from pathlib import Path
from typing import Any


def forked(control: socket.socket) -> dict[str, Any] | None:
    """What to run, in the process that is to run it; None at the end of the input."""
    lines = control.makefile("rw", encoding="utf-8")
    while True:
        _, streams, _, _ = socket.recv_fds(control, 1, 3)
        if not streams:
            return None
        wanted: dict[str, Any] = json.loads(lines.readline())
        pid = os.fork()
        if pid == 0:
            lines.close()
            control.close()
            return {**wanted, "streams": streams}
        for stream in streams:
            os.close(stream)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), file=lines, flush=True)


def prepare(wanted: dict[str, Any]) -> None:
    """Be a process as if newly started."""
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["folder"])
    for number, stream in enumerate(wanted["streams"]):
        os.dup2(stream, number)
        os.close(stream)


if __name__ == "__main__":
    program = Path(sys.argv[1])
    sys.path[0] = str(program.parent)
    importlib.import_module(program.stem)
    gc.freeze()  # or each process would look at, and so copy, all that was imported
    if wanted := forked(socket.socket(fileno=int(sys.argv[2]))):
        prepare(wanted)
        sys.argv = [str(program), *wanted["arguments"]]
        runpy.run_path(str(program), run_name="__main__")

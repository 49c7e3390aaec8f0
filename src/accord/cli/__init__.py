"""The `accord` command: it parses and prints, nothing else. One module per command, loaded when it is invoked."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line in `sys.argv`; never returns."""
    arguments = sys.argv[1:]
    if len(arguments) == 2 and arguments[0] == "run" and not arguments[1].startswith("-"):
        # Every client starts a FILE.py this way: its server does not wait for a parser to load (45 ms).
        from accord.cli.server_file import main as run

        sys.exit(run(arguments[1]))
    from accord.cli.commands import accord

    accord.main(prog_name="accord")

"""The `accord` command. It only parses and prints. One module per command, loaded when it is invoked."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line in `sys.argv`; this function never returns."""
    arguments = sys.argv[1:]
    if len(arguments) == 2 and arguments[0] == "run" and not arguments[1].startswith("-"):
        # Clients start a FILE.py this way; loading a command-line parser would delay its server by 45 ms.
        from accord.cli.server_file import main as run

        sys.exit(run(arguments[1]))
    from accord.cli.commands import accord

    accord.main(prog_name="accord")

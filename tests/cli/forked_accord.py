"""The command `accord` with all that its commands import, for `ForkedPrograms`."""

import pkgutil
import runpy
import sys
from importlib import import_module
from pathlib import Path

import accord.cli

for module in pkgutil.iter_modules(accord.cli.__path__, "accord.cli."):
    import_module(module.name)

if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())  # as `python -m` has it
    runpy.run_module("accord", run_name="__main__", alter_sys=True)

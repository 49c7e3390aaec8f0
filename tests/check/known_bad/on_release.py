"""Run a program on an older release of the official Python SDK: `on_release.py FOLDER PROGRAM [ARGUMENT]...`.

The folder has the release, and `older` beside it has what old releases need and new ones do not bear.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    release, program = Path(sys.argv[1]), sys.argv[2]
    helpers = Path(__file__).resolve().parent.parent.parent / "interop" / "servers"
    sys.path[:1] = [str(Path(program).parent), str(helpers), str(release), str(release.parent / "older")]
    sys.argv[:] = sys.argv[2:]
    runpy.run_path(program, run_name="__main__")

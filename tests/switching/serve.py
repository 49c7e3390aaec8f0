"""Runs one program's server over stdio: `python serve.py FILE EXPRESSION`.

The expression finds the server among the program's names: `mcp`, `create_server()`. It runs in the environment of the
program's own library as well as in ours, and so imports neither.
"""

import importlib.util
import sys
from pathlib import Path

file, expression = Path(sys.argv[1]), sys.argv[2]
sys.argv = [str(file)]
sys.path.insert(0, str(file.parent))
spec = importlib.util.spec_from_file_location(file.stem.replace("-", "_"), file)
assert spec is not None
assert spec.loader is not None
program = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = program
spec.loader.exec_module(program)
eval(expression, vars(program)).run()

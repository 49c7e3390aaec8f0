"""Each story of live reload is told over stdio and over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.dev.programs import TRANSPORTS, Program


@pytest.fixture(params=TRANSPORTS)
def program(request: Any, tmp_path: Path) -> Program:
    return Program(tmp_path, request.param)

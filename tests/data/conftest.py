"""Comparing the facts with their sources is a test only where the sources are: see the head of `tests/data`."""

from __future__ import annotations

import os

from tests.data import SOURCES

HERE = (SOURCES / "spec" / "schema").exists() or "ACCORD_SOURCES" in os.environ

collect_ignore = [] if HERE else ["test_sources.py"]

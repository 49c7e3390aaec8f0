"""The server that the suite's scenarios are played with: what examples/everything.py serves."""

from __future__ import annotations

from examples.everything import SCHEMA as SCHEMA, server as server

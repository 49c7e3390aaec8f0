"""A peer server on FastMCP with the skills of a folder, and a tool with a page; the folder is its argument."""

from __future__ import annotations

import sys
from pathlib import Path

from fastmcp import FastMCP
from fastmcp.apps import AppConfig, ResourceCSP
from fastmcp.server.providers.skills import SkillsDirectoryProvider
from fastmcp.skills.extension import SkillsExtension

skills = SkillsDirectoryProvider(roots=Path(sys.argv[1]), experimental_skills=True)
server = FastMCP("skilled", version="4.1.2", providers=[skills])
server.add_extension(SkillsExtension(providers=[skills]))

URI = "ui://skilled/clock.html"
CSP = ResourceCSP(connect_domains=["https://api.example.com"])


@server.resource(URI, app=AppConfig(csp=CSP, prefers_border=True))
def clock_page() -> str:
    return "<!doctype html><title>Clock</title><script>send('ui/initialize')</script>"


@server.tool(app=AppConfig(resource_uri=URI, visibility=["app"]))
def clock() -> str:
    """Return the time."""
    return "noon"


if __name__ == "__main__":
    server.run(show_banner=False)

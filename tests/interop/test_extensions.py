"""Extensions of FastMCP's servers as accord's client reads them: its skills (SEP-2640), and its pages (MCP Apps)."""

from __future__ import annotations

from pathlib import Path

from accord import APPS, CSP, Client

from tests.interop.peers import peer_server

SKILLS = Path(__file__).parents[2] / "examples" / "skills"


def command() -> list[str]:
    return [*peer_server("fastmcp", "skills"), str(SKILLS)]


async def test_skills_of_fastmcp_are_listed_loaded_and_verified() -> None:
    async with Client(command()) as client:
        skills = {each.name: each for each in await client.list_skills()}
        assert skills.keys() == {each.parent.name for each in SKILLS.rglob("SKILL.md")}
        skill = skills["refunds"]
        assert await client.get_skill(skill.uri) == skill
        loaded = await client.load_skill(skill)
        assert loaded.text.encode() == (SKILLS / "refunds" / "SKILL.md").read_bytes()
        email = await client.read_skill_file(loaded, "templates/email.md")
        assert email == (SKILLS / "refunds" / "templates" / "email.md").read_bytes()


async def test_a_page_of_fastmcp_is_read_with_its_metadata() -> None:
    async with Client(command(), extensions=[APPS]) as client:
        (tool,) = [each for each in await client.list_tools() if each.name == "clock"]
        assert tool.ui is not None
        assert tool.ui.visibility == ("app",)
        page = await client.read_ui(tool)
        assert page.html.startswith("<!doctype html><title>Clock</title>")
        assert (page.csp, page.border, page.ignored) == (CSP(connect=("https://api.example.com",)), True, ())

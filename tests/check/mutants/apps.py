"""Servers whose pages, and the tools that show them, are wrong (extension MCP Apps)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accord import CSP, Server

from tests.check.mutants.change import Change
from tests.check.mutants.table import mutant

PAGE = "<!doctype html><title>Day</title><script data-accord></script>"


def with_app() -> Server:
    """A right one with a page."""
    server = Server("paged", "1.0.0")
    csp = CSP(connect=["https://api.example.com"])
    page = server.add_ui("ui://right/day", PAGE, csp=csp, permissions=["camera"], domain="a.example.com", border=True)

    @server.tool(ui=page, visibility=["model", "app"])
    def day(city: str) -> dict[str, str]:
        """The weather."""
        return {"sky": "clear"}

    @server.tool(ui=page, visibility=["app"])
    def again(city: str) -> dict[str, str]:
        """The weather now."""
        return {"sky": "clear"}

    return server


def of_tool(change: Change, **edits: Any) -> None:
    """Change `_meta.ui` of the first tool."""

    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["tools"][0]["_meta"]["ui"] |= edits
        return answer


def of_page(change: Change, edit: Callable[[Any], Any]) -> None:
    """Change the contents of the page."""

    @change.answers("resources/read")
    def _(request: Any, answer: Any) -> Any:
        for contents in answer.get("result", {}).get("contents", ()):
            edit(contents)
        return answer


def of_metadata(change: Change, **edits: Any) -> None:
    of_page(change, lambda contents: contents["_meta"]["ui"].update(edits))


@mutant("apps/uri", server=with_app)
def a_page_with_an_http_url(change: Change) -> None:
    of_tool(change, resourceUri="https://example.com/day")


@mutant("apps/visibility", server=with_app)
def a_visibility_that_is_a_text(change: Change) -> None:
    of_tool(change, visibility="app")


@mutant("apps/visibility", server=with_app, revision="2025-06-18")
def a_visibility_for_users(change: Change) -> None:
    of_tool(change, visibility=["user"])


@mutant("apps/metadata-place", server=with_app)
def a_policy_on_the_tool(change: Change) -> None:
    of_tool(change, csp={"connectDomains": ["https://api.example.com"]})


@mutant("apps/text", server=with_app)
def structured_content_alone(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        if "content" in answer.get("result", {}):
            answer["result"]["content"] = []
        return answer


@mutant("apps/readable", server=with_app)
def a_page_that_does_not_exist(change: Change) -> None:
    of_tool(change, resourceUri="ui://right/night")


@mutant("apps/mime-type", server=with_app, revision="2025-11-25")
def a_page_that_is_only_html(change: Change) -> None:
    of_page(change, lambda contents: contents.update(mimeType="text/html"))


@mutant("apps/document", server=with_app)
def a_page_that_is_a_fragment(change: Change) -> None:
    of_page(change, lambda contents: contents.update(text=contents["text"].removeprefix("<!doctype html>")))


@mutant("apps/handshake", server=with_app)
def a_page_without_a_handshake(change: Change) -> None:
    of_page(change, lambda contents: contents.update(text="<!doctype html><p>clear"))


@mutant("apps/metadata", server=with_app)
def a_permission_that_is_true(change: Change) -> None:
    of_metadata(change, permissions={"camera": True})


@mutant("apps/metadata", server=with_app)
def a_border_that_is_a_text(change: Change) -> None:
    of_metadata(change, prefersBorder="yes")


@mutant("apps/metadata", server=with_app)
def sources_that_are_a_text(change: Change) -> None:
    of_metadata(change, csp={"connectDomains": "https://api.example.com"})


@mutant("apps/sources", server=with_app)
def a_source_with_a_directive(change: Change) -> None:
    of_metadata(change, csp={"connectDomains": ["https://api.example.com; script-src *"]})


@mutant("apps/sources", server=with_app)
def a_source_on_the_machine_of_the_user(change: Change) -> None:
    of_metadata(change, csp={"resourceDomains": ["http://localhost:3000"]})


@mutant("apps/loads", server=with_app)
def a_script_beside_the_page(change: Change) -> None:
    of_page(change, lambda contents: contents.update(text=f"{contents['text']}<img src=day.png>"))


@mutant("apps/loads", server=with_app)
def a_request_to_another_origin(change: Change) -> None:
    script = "<script>fetch('https://other.example.com')</script>"
    of_page(change, lambda contents: contents.update(text=f"{contents['text']}{script}"))

"""The steps of the protocol, and servers that are healthy."""

from __future__ import annotations

import pytest

from accord import Server
from accord.testing import served_over_http

from tests.host.doctor.conftest import Diagnose, WriteProgram, answering, failure, initialized, states, step, text

ORDER = "entry program process-start stderr protocol-revision lists schemas".replace("-", " ")

SHOP = """
from accord import Server

server = Server("shop")

@server.tool
def order(item: str) -> str:
    return item

server.run()
"""


def server() -> Server:
    made = Server("shop", version="2.1")

    @made.tool
    def order(item: str, count: int = 1) -> str:
        return item * count

    @made.resource("shop://hours")
    def hours() -> str:
        return "9 to 5"

    return made


async def test_an_old_revision_is_a_warning(doctor: Diagnose, program: WriteProgram) -> None:
    diagnosis = await doctor(program(answering(initialized("2024-11-05") + '\nreturn {"tools": []}')))
    found = step(diagnosis, "protocol revision")
    assert found.state == "warning"
    assert "revision 2024-11-05" in text(found)
    assert diagnosis.failed is None


async def test_an_unknown_revision_fails_with_the_supported_ones(doctor: Diagnose, program: WriteProgram) -> None:
    diagnosis = await doctor(program(answering(initialized("2024-10-07"))))
    failed = failure(diagnosis, "protocol revision")
    assert "'2024-10-07'" in text(failed)
    assert "2026-07-28" in failed.remedy


async def test_a_program_that_knows_no_method_fails(doctor: Diagnose, program: WriteProgram) -> None:
    diagnosis = await doctor(program(answering('return {"code": -32601, "message": "what\\u200b is that"}')))
    failed = failure(diagnosis, "protocol revision")
    assert "what\\u200b is that" in text(failed)
    assert "is it an MCP server?" in failed.remedy


async def test_a_list_that_fails_is_named(doctor: Diagnose, program: WriteProgram) -> None:
    body = (
        initialized(capabilities="{'tools': {}, 'prompts': {}}")
        + """
if method == "tools/list":
    return {"tools": []}
return {"code": -32603, "message": "database is locked"}"""
    )
    failed = failure(await doctor(program(answering(body))), "lists")
    assert failed.evidence[0] == "tools: 0"
    assert failed.evidence[1].startswith("prompts: ")
    assert "database is locked" in failed.evidence[1]


async def test_a_server_that_dies_at_a_list_fails_there(doctor: Diagnose, program: WriteProgram) -> None:
    body = initialized() + "\nprint('out of memory', file=sys.stderr)\nsys.exit(9)"
    failed = failure(await doctor(program(answering(body))), "lists")
    assert "exited with code 9" in text(failed)
    assert "out of memory" in text(failed)


async def test_a_server_that_declares_nothing_is_a_warning(doctor: Diagnose, program: WriteProgram) -> None:
    diagnosis = await doctor(program(answering(initialized(capabilities="{}"))))
    assert states(diagnosis)["lists"] == "warning"
    assert diagnosis.failed is None


async def test_an_invalid_schema_is_named_with_its_tool(doctor: Diagnose, program: WriteProgram) -> None:
    body = (
        initialized()
        + """
return {"tools": [
    {"name": "good", "inputSchema": {"type": "object"}},
    {"name": "bad", "inputSchema": {"type": "object", "properties": {"n": {"type": "integr"}}}},
    {"name": "flat", "inputSchema": {"type": "string"}},
]}"""
    )
    failed = failure(await doctor(program(answering(body))), "schemas")
    assert "'bad' inputSchema: " in failed.evidence[0]
    assert failed.evidence[1] == '\'flat\' inputSchema: its "type" must be "object"'
    assert "good" not in text(failed)


async def test_tools_beyond_the_limit_are_counted(doctor: Diagnose, program: WriteProgram) -> None:
    body = (
        initialized()
        + """
return {"tools": [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(1_003)]}"""
    )
    found = step(await doctor(program(answering(body))), "schemas")
    assert found.state == "warning"
    assert found.evidence[1] == "not checked: 3"


async def test_a_healthy_program_passes_each_step(doctor: Diagnose, program: WriteProgram) -> None:
    diagnosis = await doctor(program(SHOP))
    assert " ".join(states(diagnosis)) == ORDER
    assert set(states(diagnosis).values()) == {"passed"}
    assert step(diagnosis, "lists").evidence[0] == "tools: 1"


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_a_healthy_server_over_http_passes_each_step(doctor: Diagnose, path: str) -> None:
    with served_over_http(server()) as url:
        diagnosis = await doctor(url.removesuffix("/mcp") + path)
        others = {name: state for name, state in states(diagnosis).items() if state != "passed"}
        assert others == {}
        assert "shop 2.1" in text(step(diagnosis, "protocol revision"))
        assert step(diagnosis, "schemas").evidence == ["tools with valid schemas: 1"]

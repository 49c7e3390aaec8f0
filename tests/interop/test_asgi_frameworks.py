"""accord's application in other people's: Starlette, FastAPI, Litestar and Django, as docs/deploy.md shows, run by
uvicorn.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import asgi_stories as stories
from tests.interop.hosting import Hosted, Place, hosted, programs
from tests.server.http.http_clients import Modern
from tests.server.http.raw import BASIC

SETTINGS = """
SECRET_KEY = "of the tests"
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
ROOT_URLCONF = "settings"
from django.http import HttpResponse
from django.urls import path
urlpatterns = [path("page", lambda request: HttpResponse("a page"))]
"""

PLACES = {
    "starlette": Place("with_starlette:app", "/tools"),
    "fastapi": Place("with_fastapi:app", "/tools"),
    "django": Place("with_django:app", "/tools"),
    "middleware": Place("with_middleware:app", "/tools"),
    "litestar": Place("with_litestar:app", "/tools"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mounted")
    programs(made)
    (made / "settings.py").write_text(SETTINGS)
    return made


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest, folder: Path) -> Iterator[Hosted]:
    with hosted("uvicorn", PLACES[request.param], folder) as serving:
        yield serving
    for line in ("Traceback", "ERROR", "Warning"):  # nothing that a test did was an error of the server
        assert line not in serving.log, serving.log


async def test_everything_works_under_a_path(place: Hosted) -> None:
    await stories.all_of_it(place.raw)


async def test_going_away_cancels_a_call(place: Hosted) -> None:
    await stories.going_away_cancels(place.raw, "mounted")


async def test_the_path_of_the_mount_is_an_endpoint(place: Hosted) -> None:
    answer = await place.raw.send("GET", "/", BASIC)
    assert (answer.status, b"Mcp-Session-Id" in await answer.body()) == (400, True)


async def test_a_missing_endpoint_is_an_error_with_its_whole_path(place: Hosted) -> None:
    answer = await place.raw.send("GET", "/mpc", BASIC)
    assert answer.status == 404
    assert b"/tools/mcp" in await answer.body()


async def test_starlette_serves_the_endpoint_at_exactly_one_path(folder: Path) -> None:
    with hosted("uvicorn", PLACES["starlette"]._replace(root="/tools"), folder) as serving:
        exact = serving.raw
        exact.root = ""
        assert await stories.said(Modern(exact), "echo", text="exact") == "exact"


def test_django_goes_on_serving_its_pages(folder: Path) -> None:
    with hosted("uvicorn", PLACES["django"], folder) as serving:
        assert serving.get("/page") == 200
        assert serving.get("/toolshed") == 404


async def test_compressing_middleware_compresses_json_and_leaves_events_alone(folder: Path) -> None:
    with hosted("uvicorn", PLACES["middleware"], folder) as serving:
        client = Modern(serving.raw, **{"accept-encoding": "gzip"})
        large = await client.call("large", {"size": 100_000})
        assert (large.headers["content-encoding"], large.headers["x-stamp"]) == ("gzip", "seen")
        assert b"x" * 100_000 in gzip.decompress(await large.body())
        held = await client.call("held", progressToken="p")
        assert "content-encoding" not in held.headers
        assert (await held.message())["params"]["progress"] == 1
        assert await stories.said(Modern(serving.raw), "go_on") == ""
        await held.end()

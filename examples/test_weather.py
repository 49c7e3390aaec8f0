"""Tests of weather.py, as its author would write them.

    pytest examples/test_weather.py                     # the plugin comes with accord
    pytest examples/test_weather.py --accord-update     # writes the surface and the transcript again

The plugin starts the server, nothing is mocked, and an `async def` test needs no other plugin.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import accord
from accord.sync import Client
from accord.testing.plugin import Check, ClientTo


# The server under test: a file, as here, a `Server`, a command, or a URL.
@pytest.fixture
def accord_server() -> Path:
    return Path(__file__).with_name("weather.py")


# A sync test has the blocking client.
def test_a_forecast_has_as_many_days_as_asked_for(accord_client: Client) -> None:
    days = accord_client.call_tool("forecast", {"city": "Oslo", "days": 2}).data
    assert [day["day"] for day in days] == [1, 2]


def test_an_unknown_city_is_told_to_the_model(accord_client: Client) -> None:
    result = accord_client.call_tool("forecast", {"city": "Atlantis"})
    assert result.is_error
    assert "known are Oslo" in result.text


# An `async def` test has the async client.
async def test_progress_is_reported_for_each_city(accord_client: accord.Client) -> None:
    reported: list[float] = []
    cities = {"cities": ["Oslo", "Lisbon"]}
    result = await accord_client.call_tool(
        "warmest", cities, on_progress=lambda done, total, text: reported.append(done)
    )
    assert (result.data, reported) == ("Lisbon", [1, 2])


# Clients of other servers, or with other options: the plugin closes them after the test.
@pytest.mark.parametrize("revision", accord.REVISIONS)
def test_every_revision_is_served(accord_client_to: ClientTo, revision: str) -> None:
    with accord_client_to(revisions=[revision]) as client:
        assert client.call_tool("convert", {"degrees": 20, "to": "F"}).text == "68.0"


# The surface of the server, for clients and models, is in a file beside this one: reviews see each change.
def test_the_surface_is_as_it_was(accord_surface: Check) -> None:
    accord_surface("weather.surface.json")


# The recorded messages are sent again, and the server must respond in the same way.
def test_a_conversation_goes_as_it_went(accord_replay: Check) -> None:
    accord_replay("weather.transcript")

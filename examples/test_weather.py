"""Tests of weather.py, as its author would write them.

    pytest examples/test_weather.py                     # the plugin comes with accord
    pytest examples/test_weather.py --accord-update     # writes down what the server offers and answers now

No server is started by hand, nothing is mocked, and an `async def` test needs no other plugin.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import accord
from accord.sync import Client
from accord.testing.plugin import Check, ClientTo


# Which server the tests are for: a file, as here, a `Server`, a command, or a URL.
@pytest.fixture
def accord_server() -> Path:
    return Path(__file__).with_name("weather.py")


# A plain test has a client that blocks.
def test_a_forecast_has_as_many_days_as_asked_for(accord_client: Client) -> None:
    days = accord_client.call_tool("forecast", {"city": "Oslo", "days": 2}).data
    assert [day["day"] for day in days] == [1, 2]


def test_an_unknown_city_is_told_to_the_model(accord_client: Client) -> None:
    result = accord_client.call_tool("forecast", {"city": "Atlantis"})
    assert result.is_error
    assert "known are Oslo" in result.text


# An `async def` test has the other one.
async def test_progress_is_reported_for_each_city(accord_client: accord.Client) -> None:
    told: list[float] = []
    cities = {"cities": ["Oslo", "Lisbon"]}
    result = await accord_client.call_tool("warmest", cities, on_progress=lambda done, total, text: told.append(done))
    assert (result.data, told) == ("Lisbon", [1, 2])


# Clients of other servers, or with other options: entered in the test, and closed with it in any case.
@pytest.mark.parametrize("revision", accord.REVISIONS)
def test_every_revision_is_served(accord_client_to: ClientTo, revision: str) -> None:
    with accord_client_to(revisions=[revision]) as client:
        assert client.call_tool("convert", {"degrees": 20, "to": "F"}).text == "68.0"


# What clients and models see of the server stands in a file beside this one: a change of it is seen in the review.
def test_the_surface_is_as_it_was(accord_surface: Check) -> None:
    accord_surface("weather.surface.json")


# A conversation that was recorded is held again, and the server has to say the same.
def test_a_conversation_goes_as_it_went(accord_replay: Check) -> None:
    accord_replay("weather.transcript")

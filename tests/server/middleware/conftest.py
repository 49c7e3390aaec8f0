"""The clock that tests of questions move."""

from tests.server.asking.conftest import clock as clock

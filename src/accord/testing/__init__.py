"""What tests of servers, of clients and of transports need. The pytest plugin is `accord.testing.plugin`.

Names are loaded when they are first asked for: the plugin is part of every run of pytest.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accord.testing.http import served_over_http as served_over_http
    from accord.testing.recorded_server import RecordedServer as RecordedServer
    from accord.testing.recording import Recording as Recording
    from accord.testing.replayer import replay as replay
    from accord.testing.rules import RuleWarning as RuleWarning, check_rules as check_rules
    from accord.testing.surfaces import assert_surface as assert_surface, surface as surface
    from accord.testing.transports import check_transport as check_transport

_HOMES = {
    "RecordedServer": "recorded_server",
    "Recording": "recording",
    "RuleWarning": "rules",
    "assert_surface": "surfaces",
    "check_rules": "rules",
    "check_transport": "transports",
    "replay": "replayer",
    "served_over_http": "http",
    "surface": "surfaces",
}

__all__ = [
    "RecordedServer",
    "Recording",
    "RuleWarning",
    "assert_surface",
    "check_rules",
    "check_transport",
    "replay",
    "served_over_http",
    "surface",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'accord.testing' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"accord.testing.{home}"), name)
    return value

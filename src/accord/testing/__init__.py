"""Test tools for servers, clients and transports. The pytest plugin is `accord.testing.plugin`.

Names are loaded on first use, because every run of pytest loads the plugin.
"""

from accord.lazy_names import homes_of, lazy_names

_HOMES = homes_of(
    {
        "accord.testing.auth_server.server": "AuthServer",
        "accord.testing.http": "served_over_http",
        "accord.testing.recorded_server": "RecordedServer",
        "accord.testing.recording": "Recording",
        "accord.testing.replayer": "replay",
        "accord.testing.rules": "RuleWarning check_rules",
        "accord.testing.scripted_model": "ScriptedModel",
        "accord.testing.surfaces": "assert_surface surface",
        "accord.testing.transports": "check_transport",
    }
)
"""Every public name, and the module that defines it."""

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]: the stub lists them
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

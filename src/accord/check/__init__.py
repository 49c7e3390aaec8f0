"""`accord check` as a library: check whether a server, a client or an authorization server conforms.

    from accord.check import CheckSettings, check_server

    report = await check_server("weather.py", CheckSettings(revisions=("2025-11-25",)))
    print(report.score, [finding.text for finding in report.findings])

Names are loaded on first use: the check of a server does not load the checks of clients.
"""

from accord.lazy_names import homes_of, lazy_names

_HOMES = homes_of(
    {
        "accord.check.authorization_servers.check": "check_authorization_server",
        "accord.check.authorization_servers.probe": "LoginSettings",
        "accord.check.clients.client": "check_client",
        "accord.check.engine.fleet": "Fleet check_fleet",
        "accord.check.engine.outcomes": "Watcher",
        "accord.check.engine.report": "Finding Outcome Place Report Visit",
        "accord.check.engine.rule": "NotApplicable NotObserved Rule Violation",
        "accord.check.rules": "authorization_server_rules client_rules server_rules",
        "accord.check.server": "check_server",
        "accord.check.settings": "CheckSettings",
    }
)
"""Every public name, and the module that defines it."""

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]: the stub lists them
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

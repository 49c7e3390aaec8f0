"""`accord check` as a library: is this server, or this client, right?

    from accord.check import CheckSettings, check_server

    report = await check_server("weather.py", CheckSettings(revisions=("2025-11-25",)))
    print(report.score, [finding.text for finding in report.findings])

Names are loaded when they are first asked for: to check a server does not load what checks clients.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accord.check.clients.client import check_client as check_client
    from accord.check.engine.fleet import Fleet as Fleet, check_fleet as check_fleet
    from accord.check.engine.outcomes import Watcher as Watcher
    from accord.check.engine.report import (
        Finding as Finding,
        Outcome as Outcome,
        Place as Place,
        Report as Report,
        Visit as Visit,
    )
    from accord.check.engine.rule import (
        NotApplicable as NotApplicable,
        NotObserved as NotObserved,
        Rule as Rule,
        Violation as Violation,
    )
    from accord.check.rules import client_rules as client_rules, server_rules as server_rules
    from accord.check.server import check_server as check_server
    from accord.check.settings import CheckSettings as CheckSettings

_HOMES = {
    "Violation": "engine.rule",
    "CheckSettings": "settings",
    "Finding": "engine.report",
    "Fleet": "engine.fleet",
    "NotApplicable": "engine.rule",
    "NotObserved": "engine.rule",
    "Outcome": "engine.report",
    "Place": "engine.report",
    "Report": "engine.report",
    "Rule": "engine.rule",
    "Visit": "engine.report",
    "Watcher": "engine.outcomes",
    "check_client": "clients.client",
    "check_fleet": "engine.fleet",
    "check_server": "server",
    "client_rules": "rules",
    "server_rules": "rules",
}
"""Every public name, and the module that it lives in."""

__all__ = [
    "CheckSettings",
    "Finding",
    "Fleet",
    "NotApplicable",
    "NotObserved",
    "Outcome",
    "Place",
    "Report",
    "Rule",
    "Violation",
    "Visit",
    "Watcher",
    "check_client",
    "check_fleet",
    "check_server",
    "client_rules",
    "server_rules",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'accord.check' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"accord.check.{home}"), name)
    return value

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

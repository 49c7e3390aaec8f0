from accord.check.authorization_servers.check import check_authorization_server as check_authorization_server
from accord.check.authorization_servers.probe import LoginSettings as LoginSettings
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
from accord.check.rules import (
    authorization_server_rules as authorization_server_rules,
    client_rules as client_rules,
    server_rules as server_rules,
)
from accord.check.server import check_server as check_server
from accord.check.settings import CheckSettings as CheckSettings

__all__ = [
    "CheckSettings",
    "Finding",
    "Fleet",
    "LoginSettings",
    "NotApplicable",
    "NotObserved",
    "Outcome",
    "Place",
    "Report",
    "Rule",
    "Violation",
    "Visit",
    "Watcher",
    "authorization_server_rules",
    "check_authorization_server",
    "check_client",
    "check_fleet",
    "check_server",
    "client_rules",
    "server_rules",
]

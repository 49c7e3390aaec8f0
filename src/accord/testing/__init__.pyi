from accord.testing.auth_server.server import AuthServer as AuthServer
from accord.testing.http import served_over_http as served_over_http
from accord.testing.recorded_server import RecordedServer as RecordedServer
from accord.testing.recording import Recording as Recording
from accord.testing.replayer import replay as replay
from accord.testing.rules import RuleWarning as RuleWarning, check_rules as check_rules
from accord.testing.scripted_model import ScriptedModel as ScriptedModel
from accord.testing.surfaces import assert_surface as assert_surface, surface as surface
from accord.testing.transports import check_transport as check_transport

__all__ = [
    "AuthServer",
    "RecordedServer",
    "Recording",
    "RuleWarning",
    "ScriptedModel",
    "assert_surface",
    "check_rules",
    "check_transport",
    "replay",
    "served_over_http",
    "surface",
]

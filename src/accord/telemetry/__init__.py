"""Telemetry of requests and sessions: OpenTelemetry, or an implementation by the program."""

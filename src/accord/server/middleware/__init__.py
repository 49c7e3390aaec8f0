"""Middleware: functions around the handlers of a server."""

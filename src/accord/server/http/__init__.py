"""A server over HTTP: one ASGI application for every revision."""

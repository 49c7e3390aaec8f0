"""The HTTP server: one ASGI application for every revision."""

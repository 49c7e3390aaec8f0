"""Composition of servers: mounting, providers, tool changes, search and access control."""

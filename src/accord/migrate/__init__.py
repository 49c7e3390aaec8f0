"""Rewrite programs written for another MCP library to accord, and report the manual steps that remain."""

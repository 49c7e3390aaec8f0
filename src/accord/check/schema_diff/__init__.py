"""Comparing what a server offers with what it offered: the schemas of tools, place by place."""

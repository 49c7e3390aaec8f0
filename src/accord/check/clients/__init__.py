"""Checking clients: a scripted server that behaves correctly, or makes mistakes on purpose, and records
of the client.
"""

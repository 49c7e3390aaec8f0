"""Checking authorization servers: a client registers, and logs in as far as a user is not needed."""

"""Declarations: decorators, signatures, docstrings, URI templates, and the types of results."""

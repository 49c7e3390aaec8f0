"""Wires: raw bytes in both directions, valid or invalid."""

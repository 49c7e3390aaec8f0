"""Benchmarks of accord, as ratios to a minimal Python program that does the same job: `python -m bench`."""

"""How fast accord is, as ratios to the least Python that does the same job: `python -m bench`."""

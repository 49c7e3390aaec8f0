"""accord: the Model Context Protocol toolkit for Python."""

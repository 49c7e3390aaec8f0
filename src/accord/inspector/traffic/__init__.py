"""The traffic of the inspector: the index of a session file, filters, spans, latencies and comparisons."""

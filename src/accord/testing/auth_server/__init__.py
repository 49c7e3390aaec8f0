"""An authorization server for tests (`AuthServer`), with faults by name."""

"""A process that serves HTTP: addresses and sockets, connections with timeouts and limits, signals, and shutdown."""

"""A process that serves HTTP: addresses and sockets, connections with deadlines and bounds, signals, and the end."""

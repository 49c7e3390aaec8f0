"""A process that serves HTTP: addresses and sockets, uvicorn with deadlines and bounds, signals, and the end."""

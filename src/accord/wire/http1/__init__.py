"""One HTTP/1.1 server connection as a state machine without I/O: heads, bodies, chunks, trailers, responses."""

"""The client's side of HTTP: both forms of Streamable HTTP, and HTTP+SSE."""

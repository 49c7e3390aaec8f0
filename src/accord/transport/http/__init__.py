"""The client's side of HTTP: Streamable HTTP in both its forms, and HTTP+SSE."""

"""HTTP as an ASGI server delivers it: requests, responses, streams. Authentication is elsewhere."""

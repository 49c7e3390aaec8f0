"""Import of an HTTP API, described by an OpenAPI document, as tools and resources of a server."""

"""An HTTP API that is described by an OpenAPI document, as tools and resources of a server."""

"""Authentication and authorization of HTTP requests: API keys, tokens of authorization servers, scopes."""

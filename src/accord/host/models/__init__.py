"""Language models of a host, behind the HTTP APIs of their providers."""

"""The diagnosis of a connection: `accord doctor`."""

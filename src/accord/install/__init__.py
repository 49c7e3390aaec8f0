"""`accord install`: add a server to the configuration file of another host, show it first, and undo it."""

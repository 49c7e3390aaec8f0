"""A tree of files as resources: read inside its root whatever happens there, listed, completed and watched."""

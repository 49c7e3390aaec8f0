"""Files as resources: a folder that is listed, read, completed and watched, without access outside it."""

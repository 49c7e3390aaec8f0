"""Agent Skills of a folder, served as resources."""

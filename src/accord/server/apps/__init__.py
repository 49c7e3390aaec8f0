"""Pages of a server inside a conversation (extension MCP Apps)."""

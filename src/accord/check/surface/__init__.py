"""The surface of a server (its tools, prompts and resources), and what changed between two of them."""

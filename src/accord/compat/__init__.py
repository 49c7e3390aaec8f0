"""Other libraries' names, for programs written with them: `accord.compat.fastmcp`, `accord.compat.mcpserver`.

What means the same here is here under the same name. What does not is a `Different` that says what to write instead.
"""

"""Names of other libraries, for programs written with them: `accord.compat.fastmcp`, `accord.compat.mcpserver`.

A name that means the same in accord is offered under the same name. Any other raises `Different`, which says what to
write instead.
"""

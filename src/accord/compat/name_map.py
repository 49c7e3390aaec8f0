"""The table of other libraries' modules and the compat modules that have their names.

`accord migrate` and the tests that run other libraries' programs use the same table. A name that is in no compat
module is left unchanged; `REPLACEMENTS` says what to write for the most frequent ones.
"""

from __future__ import annotations

FASTMCP = "accord.compat.fastmcp"
MCP = "accord.compat.mcpserver"
TYPES = "accord.compat.types"

COMPAT_MODULES = (FASTMCP, MCP, TYPES)
"""The compat modules."""

MODULES: dict[str, str] = {
    "fastmcp": FASTMCP,
    "fastmcp.client": FASTMCP,
    "fastmcp.client.client": FASTMCP,
    "fastmcp.client.transports": FASTMCP,
    "fastmcp.dependencies": FASTMCP,
    "fastmcp.exceptions": FASTMCP,
    "fastmcp.prompts": FASTMCP,
    "fastmcp.prompts.prompt": FASTMCP,
    "fastmcp.resources": FASTMCP,
    "fastmcp.server": FASTMCP,
    "fastmcp.server.context": FASTMCP,
    "fastmcp.server.dependencies": FASTMCP,
    "fastmcp.server.elicitation": FASTMCP,
    "fastmcp.server.http": FASTMCP,
    "fastmcp.server.lifespan": FASTMCP,
    "fastmcp.resources.resource": FASTMCP,
    "fastmcp.server.providers": FASTMCP,
    "fastmcp.server.server": FASTMCP,
    "fastmcp.server.transforms": FASTMCP,
    "fastmcp.server.transforms.search": FASTMCP,
    "fastmcp.tools": FASTMCP,
    "fastmcp.tools.tool": FASTMCP,
    "fastmcp.utilities.logging": FASTMCP,
    "fastmcp.utilities.types": FASTMCP,
    "mcp": MCP,
    "mcp.server": MCP,
    "mcp.server.context": MCP,
    "mcp.server.elicitation": MCP,
    "mcp.server.fastmcp": MCP,
    "mcp.server.fastmcp.exceptions": MCP,
    "mcp.server.fastmcp.prompts": MCP,
    "mcp.server.fastmcp.prompts.base": MCP,
    "mcp.server.fastmcp.server": MCP,
    "mcp.server.fastmcp.tools": MCP,
    "mcp.server.fastmcp.utilities.logging": MCP,
    "mcp.server.fastmcp.utilities.types": MCP,
    "mcp.server.mcpserver": MCP,
    "mcp.server.mcpserver.context": MCP,
    "mcp.server.mcpserver.exceptions": MCP,
    "mcp.server.mcpserver.prompts": MCP,
    "mcp.server.mcpserver.prompts.base": MCP,
    "mcp.server.mcpserver.resources": MCP,
    "mcp.server.mcpserver.server": MCP,
    "mcp.server.mcpserver.utilities.types": MCP,
    "mcp.server.session": MCP,
    "mcp.client": MCP,
    "mcp.shared.exceptions": MCP,
    "mcp.server.transport_security": MCP,
    "mcp.shared.memory": MCP,
    "mcp.shared.path_security": MCP,
    "mcp.types": TYPES,
    "mcp_types": TYPES,
}
"""Modules of fastmcp 4, mcp 2 and mcp 1, and the compat module with their names."""

FOREIGN_PACKAGES = ("fastmcp", "fastmcp_tasks", "mcp", "mcp_types")
"""The packages of these modules; `accord migrate` reports any other import from them as left unchanged."""

REPLACEMENTS: dict[str, str] = {
    "BM25SearchTransform": "server.search_tools(budget=...) lists a search tool in the place of a long list",
    "ClientSession": "accord.Client(command_or_url): it opens the connection and the session",
    "ClientSessionGroup": "one accord.Client for each server",
    "CodeMode": "nothing here runs a model's code",
    "FastMCPApp": "Server(extensions=[...]) and @server.method: see docs/extensions.md",
    "FileSystemProvider": "server.add_module(module) for each module, or server.add_directory(path) for resources",
    "InputRequiredResult": "await ctx.elicit(...): it asks in the same way in every revision",
    "Apps": "@server.method and Server(extensions=[...]): see docs/extensions.md",
    "EventStore": "HTTPOptions(events=...): a store that is there, or one of your own",
    "ErrorHandlingMiddleware": "accord.MaskErrors(): see docs/middleware.md",
    "Extension": "Server(extensions=[accord.Extension(...)]): see docs/extensions.md",
    "Middleware": "async def middleware(request: accord.Request, call_next), see docs/switching.md#middleware",
    "MiddlewareContext": "accord.Request: what a middleware is given, see docs/switching.md#middleware",
    "LoggingMiddleware": "accord.Timing(): a line in the log for each request, see docs/middleware.md",
    "OAuth": "accord.Client(..., http=HTTPSettings(...)): see docs/client.md",
    "RateLimitingMiddleware": "accord.RateLimit(...): see docs/middleware.md",
    "RegexSearchTransform": "server.search_tools(budget=...) lists a search tool in the place of a long list",
    "Server": "accord.Server: server.add_tool(Tool(...), handler) takes schemas by hand",
    "PromptResult": "return the messages: a list of Message(...), or accord.GetPromptResult(...)",
    "ResourceContent": "return the text or the bytes, or accord.ResourceContents(uri=..., text=...)",
    "ResourceResult": "return the text or the bytes, or accord.ResourceContents(uri=..., text=...)",
    "ResponseCachingMiddleware": "accord.Caching(...): see docs/middleware.md",
    "ResponseLimitingMiddleware": "accord.SizeLimit(...): see docs/middleware.md",
    "RetryMiddleware": "accord.Retry(...): see docs/middleware.md",
    "SkillsDirectoryProvider": "server.add_directory(path)",
    "PythonStdioTransport": 'the command as a list: Client(["python", "server.py"])',
    "SSETransport": "the URL itself: Client(url)",
    "StdioTransport": 'the command as a list: Client(["python", "server.py"])',
    "StreamableHttpTransport": "the URL itself: Client(url)",
    "StdioServerParameters": 'accord.Client(["python", "server.py"]): a command as a list',
    "TasksExtension": "nothing yet: accord has no tasks",
    "VersionFilter": "server.disable(...) of the versions that are not shown, on a server of their own",
    "TimingMiddleware": "accord.Timing(): see docs/middleware.md",
    "ToolTransform": "server.change_tool(name, ToolChange(...))",
    "create_proxy": "server.mount(other) for a server of the same process",
    "get_context": "a parameter of the function: ctx: Context",
    "get_http_headers": "ctx.headers",
    "get_http_request": "ctx.headers",
    "get_access_token": "ctx.principal: who asks, as Server(auth=...) found out",
    "sse_client": 'accord.Client("http://host:8000/sse")',
    "stdio_client": 'accord.Client(["python", "server.py"])',
    "stdio_server": "server.run()",
    "streamable_http_client": 'accord.Client("http://host:8000/mcp")',
    "streamablehttp_client": 'accord.Client("http://host:8000/mcp")',
}
"""What to write for names that no compat module has."""

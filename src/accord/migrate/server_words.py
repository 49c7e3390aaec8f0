"""`FastMCP(...)` and `MCPServer(...)` in accord's words: how a server is made, what is declared on it, how it runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from accord.compat.names import INSTEAD
from accord.compat.server import LACKS
from accord.migrate.arguments import constant, keywords_of, renamed, without
from accord.migrate.edits import Edit, Left, Source
from accord.server.server import Server

SERVERS = ("FastMCP", "MCPServer")
"""What a server is called."""

_MADE_WITH = {
    *("name", "instructions", "version", "title", "description", "website_url", "icons", "lifespan"),
}
_MEANS_NOTHING = {"json_response", "debug", "log_level", "dependencies"}
_DECLARED_WITH = {
    "tool": {"name", "title", "description", "annotations", "icons", "meta", "tags", "timeout", "version"},
    "prompt": {"name", "title", "description", "icons", "meta", "tags", "version"},
    "resource": {"name", "title", "description", "mime_type", "annotations", "icons", "meta", "tags"},
}
_SAME = {"name", "instructions", "remove_tool", "run_stdio_async"}
_OPTIONS = {
    "mask_error_details": "write middleware=[MaskErrors()]",
    "middleware": INSTEAD["Middleware"],
    "stateless_http": "write run(http=..., options=HTTPOptions(stateless=True)), or asgi(HTTPOptions(stateless=True))",
}
_USES = {
    "add_middleware": INSTEAD["Middleware"],
    "completion": '@prompt.complete("argument") for each argument, in the place of one function for all',
    "add_transform": "server.change_tool(name, ToolChange(...)), or server.search_tools()",
    "http_app": "server.app",
    "streamable_http_app": "server.app",
}
"""What to write for options and attributes that are asked for most."""
_WILD = re.compile(r"{\w+\*}")
_HTTP = ("http", "streamable-http")


def server_words(source: Source, servers: Mapping[str, str]) -> Iterator[Edit | Left]:
    """What to change for servers of these class names, and what keeps them from it."""
    made = [call for call in _calls(source) if isinstance(call.func, ast.Name) and call.func.id in servers]
    for call in made:
        yield from _making(call, source)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in servers:
            yield Left(node.lineno, f"{source.of(node)}: accord's Server has no type parameters")
    held = set(variables(source, made))
    yield from _used(source, held)
    yield from _returning(source, held)


def variables(source: Source, made: Collection[ast.Call]) -> Iterator[str]:
    """The names that hold what such a call makes."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign) and node.value in made:
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and node.value in made and isinstance(node.target, ast.Name):
            yield node.target.id


def _making(call: ast.Call, source: Source) -> Iterator[Edit | Left]:
    keywords = keywords_of(call)
    if keywords is None or len(call.args) > 1:
        yield Left(call.lineno, f"{source.of(call.func)}(...): name its options one by one")
        return
    for name, keyword in keywords.items():
        if name not in _MADE_WITH | _MEANS_NOTHING:
            why = _OPTIONS.get(name, "accord's Server has no such option, or means something else")
            yield Left(keyword.lineno, f"{source.of(call.func)}({name}=...): {why}")
    gone = [keyword for name, keyword in keywords.items() if name in _MEANS_NOTHING]
    if call.args or "name" in keywords:
        yield from without(call, gone, source)
    elif len(gone) == len(keywords):
        yield Edit(source.span(call.func)[1], source.span(call)[1], f'("{source.of(call.func)}")')
    else:
        first = source.span(call.keywords[0])[0]
        yield Edit(first, first, f'"{source.of(call.func)}", ')
        yield from without(call, gone, source)


def _used(source: Source, held: Collection[str]) -> Iterator[Edit | Left]:
    """Every attribute of a server: called in the same words, or in others."""
    calls = {call.func: call for call in _calls(source)}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in held:
            call = calls.get(node)
            if node.attr in _DECLARED_WITH:
                yield from _declaring(node, call, source)
            elif call is not None and node.attr in ("run", "run_async"):
                yield from _running(call, source)
            elif call is not None and node.attr == "mount":
                yield from _mounting(call, source)
            elif call is not None and node.attr == "add_tool" and len(call.args) == 1 and not call.keywords:
                yield Edit(*source.span(node), f"{node.value.id}.tool")
            elif node.attr not in _SAME:
                yield Left(node.lineno, f"{source.of(node)}: {_instead(node.attr)}")


def _instead(name: str) -> str:
    """What to write for an attribute of a server."""
    if name in _USES or name in LACKS:
        return _USES.get(name) or LACKS[name]
    known = hasattr(Server, name)
    return "accord's Server has that too: check its arguments" if known else "accord's Server has nothing of that name"


def _declaring(node: ast.Attribute, call: ast.Call | None, source: Source) -> Iterator[Left]:
    if call is None:
        return
    keywords = keywords_of(call)
    unknown = None if keywords is None else [name for name in keywords if name not in _DECLARED_WITH[node.attr]]
    annotations = None if keywords is None else keywords.get("annotations")
    if unknown or unknown is None:
        yield Left(call.lineno, f"{source.of(node)}({', '.join(unknown or ['**'])}=...): not in accord's words")
    elif annotations is not None and isinstance(annotations.value, ast.Dict):
        yield Left(call.lineno, f"{source.of(node)}(annotations={{...}}): write ToolAnnotations(...)")
    elif node.attr == "resource" and _WILD.search(str(constant(call.args[0] if call.args else None))):
        yield Left(call.lineno, f"{source.of(call.args[0])}: write {{+path}} for what may hold slashes")


def _returning(source: Source, held: Collection[str]) -> Iterator[Left]:
    """Tools that return an ordinary class, which accord cannot read."""
    ordinary = {
        node.name
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef) and not (node.bases or node.keywords or node.decorator_list)
    }
    for node in ast.walk(source.tree):
        match node:
            case ast.FunctionDef(returns=ast.Name(id=name)) | ast.AsyncFunctionDef(returns=ast.Name(id=name)):
                if name in ordinary and any(_is_tool(each, held) for each in node.decorator_list):
                    yield Left(node.lineno, f"{node.name}() returns {name}: make that a dataclass or a model")


def _is_tool(decorator: ast.expr, held: Collection[str]) -> bool:
    match decorator.func if isinstance(decorator, ast.Call) else decorator:
        case ast.Attribute(value=ast.Name(id=name), attr="tool"):
            return name in held
    return False


def _running(call: ast.Call, source: Source) -> Iterator[Edit | Left]:
    keywords = keywords_of(call) or {}
    given = {name: constant(keyword.value) for name, keyword in keywords.items()}
    transport = given.pop("transport", None) or (constant(call.args[0]) if call.args else "stdio")
    start, end = source.span(call.func)[1], source.span(call)[1]
    if transport == "stdio" and not given:
        if call.args or call.keywords:
            yield Edit(start, end, "()")
    elif transport in _HTTP and set(given) <= {"host", "port", "show_banner"} and None not in given.values():
        host, port = str(given.get("host", "127.0.0.1")), str(given.get("port", 8000))
        host = "" if host == "127.0.0.1" else f"[{host}]" if ":" in host else host
        yield Edit(start, end, f'(http="{host}:{port}")')
    else:
        yield Left(call.lineno, f'{source.of(call)}: write run(http="host:port", options=HTTPOptions(...))')


def _mounting(call: ast.Call, source: Source) -> Iterator[Edit | Left]:
    keywords = keywords_of(call)
    if keywords is None or len(call.args) > 1 or not set(keywords) <= {"server", "namespace", "prefix"}:
        yield Left(call.lineno, f"{source.of(call)}: write mount(other, prefix=...)")
    else:
        yield from renamed(call, {"server": "other", "namespace": "prefix"}, source)


def _calls(source: Source) -> Iterator[ast.Call]:
    return (node for node in ast.walk(source.tree) if isinstance(node, ast.Call))

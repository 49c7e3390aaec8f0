"""Edits of `FastMCP(...)` and `MCPServer(...)` to accord's API: the constructor, the decorators and `run()`.

Edits of protocol types: `TextContent(type="text", text=...)` becomes `TextContent(text=...)`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from accord.compat.name_map import REPLACEMENTS
from accord.compat.server import UNSUPPORTED
from accord.migrate.edits import Edit, ManualStep, SourceText, constant, keywords_of, remove_arguments, rename_keywords
from accord.server.server import Server

SERVERS = ("FastMCP", "MCPServer")
"""The names of the server classes."""

_CONSTRUCTOR_OPTIONS = {
    *("name", "instructions", "version", "title", "description", "website_url", "icons", "lifespan"),
}
_IGNORED_OPTIONS = {"json_response", "debug", "log_level", "dependencies"}
_DECORATOR_OPTIONS = {
    "tool": {"name", "title", "description", "annotations", "icons", "meta", "tags", "timeout", "version"},
    "prompt": {"name", "title", "description", "icons", "meta", "tags", "version"},
    "resource": {"name", "title", "description", "mime_type", "annotations", "icons", "meta", "tags"},
}
_SAME = {"name", "instructions", "remove_tool", "run_stdio_async"}
_OPTION_ADVICE = {
    "mask_error_details": "write middleware=[MaskErrors()]",
    "middleware": REPLACEMENTS["Middleware"],
    "stateless_http": "write run(http=..., options=HTTPOptions(stateless=True)), or asgi(HTTPOptions(stateless=True))",
}
_ATTRIBUTE_ADVICE = {
    "add_middleware": REPLACEMENTS["Middleware"],
    "completion": '@prompt.complete("argument") for each argument, instead of one function for all',
    "add_transform": "server.change_tool(name, ToolChange(...)), or server.search_tools()",
    "http_app": "server.app",
    "streamable_http_app": "server.app",
}
"""What to write for the most frequent options and attributes."""
_WILD = re.compile(r"{\w+\*}")
_HTTP = ("http", "streamable-http")


def server_edits(source: SourceText, servers: Mapping[str, str]) -> Iterator[Edit | ManualStep]:
    """Yield the edits for servers of these class names, and the manual steps that prevent them."""
    constructors = [call for call in _calls(source) if isinstance(call.func, ast.Name) and call.func.id in servers]
    for call in constructors:
        yield from _constructor_edits(call, source)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in servers:
            yield ManualStep(node.lineno, f"{source.text_of(node)}: accord's Server has no type parameters")
    server_names = set(variables(source, constructors))
    yield from _attribute_edits(source, server_names)
    yield from _return_type_steps(source, server_names)


def variables(source: SourceText, constructors: Collection[ast.Call]) -> Iterator[str]:
    """Yield the names of the variables that a constructor call is assigned to."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign) and node.value in constructors:
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and node.value in constructors and isinstance(node.target, ast.Name):
            yield node.target.id


def _constructor_edits(call: ast.Call, source: SourceText) -> Iterator[Edit | ManualStep]:
    keywords = _keywords_or_step(call, source, positional=1, kind="options")
    if isinstance(keywords, ManualStep):
        yield keywords
        return
    for name, keyword in keywords.items():
        if name not in _CONSTRUCTOR_OPTIONS | _IGNORED_OPTIONS:
            advice = _OPTION_ADVICE.get(name, "accord's Server has no such option, or one with another meaning")
            yield ManualStep(keyword.lineno, f"{source.text_of(call.func)}({name}=...): {advice}")
    ignored = [keyword for name, keyword in keywords.items() if name in _IGNORED_OPTIONS]
    if call.args or "name" in keywords:
        yield from remove_arguments(call, ignored, source)
    elif len(ignored) == len(keywords):
        yield Edit(source.span(call.func)[1], source.span(call)[1], f'("{source.text_of(call.func)}")')
    else:
        first = source.span(call.keywords[0])[0]
        yield Edit(first, first, f'"{source.text_of(call.func)}", ')
        yield from remove_arguments(call, ignored, source)


def _keywords_or_step(
    call: ast.Call, source: SourceText, *, positional: int, kind: str
) -> dict[str, ast.keyword] | ManualStep:
    """Return the keywords of a constructor call, or a step if it unpacks arguments or has too many positional ones."""
    keywords = keywords_of(call)
    if keywords is None or len(call.args) > positional:
        return ManualStep(call.lineno, f"{source.text_of(call.func)}(...): name its {kind} one by one")
    return keywords


def _attribute_edits(source: SourceText, server_names: Collection[str]) -> Iterator[Edit | ManualStep]:
    """Yield the changes for each attribute of a server."""
    calls = {call.func: call for call in _calls(source)}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in server_names:
            call = calls.get(node)
            if node.attr in _DECORATOR_OPTIONS:
                yield from _decorator_steps(node, call, source)
            elif call is not None and node.attr in ("run", "run_async"):
                yield from _run_edits(call, source)
            elif call is not None and node.attr == "mount":
                yield from _mount_edits(call, source)
            elif call is not None and node.attr == "add_tool" and len(call.args) == 1 and not call.keywords:
                yield Edit(*source.span(node), f"{node.value.id}.tool")
            elif node.attr not in _SAME:
                yield ManualStep(node.lineno, f"{source.text_of(node)}: {_attribute_advice(node.attr)}")


def _attribute_advice(name: str) -> str:
    """Return the advice for an attribute of a server."""
    if name in _ATTRIBUTE_ADVICE or name in UNSUPPORTED:
        return _ATTRIBUTE_ADVICE.get(name) or UNSUPPORTED[name]
    exists = hasattr(Server, name)
    return "accord's Server has it as well: check its arguments" if exists else "accord's Server has no such attribute"


def _decorator_steps(node: ast.Attribute, call: ast.Call | None, source: SourceText) -> Iterator[ManualStep]:
    if call is None:
        return
    keywords = keywords_of(call)
    unknown = None if keywords is None else [name for name in keywords if name not in _DECORATOR_OPTIONS[node.attr]]
    annotations = None if keywords is None else keywords.get("annotations")
    if unknown or unknown is None:
        yield ManualStep(
            call.lineno, f"{source.text_of(node)}({', '.join(unknown or ['**'])}=...): accord has no such option"
        )
    elif annotations is not None and isinstance(annotations.value, ast.Dict):
        yield ManualStep(call.lineno, f"{source.text_of(node)}(annotations={{...}}): write ToolAnnotations(...)")
    elif node.attr == "resource" and _WILD.search(str(constant(call.args[0] if call.args else None))):
        yield ManualStep(call.lineno, f"{source.text_of(call.args[0])}: write {{+path}} for a value with slashes")


def _return_type_steps(source: SourceText, server_names: Collection[str]) -> Iterator[ManualStep]:
    """Yield a step for each tool that returns an ordinary class, which accord's schemas do not support."""
    ordinary = {
        node.name
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef) and not (node.bases or node.keywords or node.decorator_list)
    }
    for node in ast.walk(source.tree):
        match node:
            case ast.FunctionDef(returns=ast.Name(id=name)) | ast.AsyncFunctionDef(returns=ast.Name(id=name)):
                if name in ordinary and any(_is_tool(decorator, server_names) for decorator in node.decorator_list):
                    yield ManualStep(node.lineno, f"{node.name}() returns {name}: make it a dataclass or a model")


def _is_tool(decorator: ast.expr, server_names: Collection[str]) -> bool:
    match decorator.func if isinstance(decorator, ast.Call) else decorator:
        case ast.Attribute(value=ast.Name(id=name), attr="tool"):
            return name in server_names
    return False


def _run_edits(call: ast.Call, source: SourceText) -> Iterator[Edit | ManualStep]:
    keywords = keywords_of(call) or {}
    values = {name: constant(keyword.value) for name, keyword in keywords.items()}
    transport = values.pop("transport", None) or (constant(call.args[0]) if call.args else "stdio")
    start, end = source.span(call.func)[1], source.span(call)[1]
    if transport == "stdio" and not values:
        if call.args or call.keywords:
            yield Edit(start, end, "()")
    elif transport in _HTTP and set(values) <= {"host", "port", "show_banner"} and None not in values.values():
        host, port = str(values.get("host", "127.0.0.1")), str(values.get("port", 8000))
        host = "" if host == "127.0.0.1" else f"[{host}]" if ":" in host else host
        yield Edit(start, end, f'(http="{host}:{port}")')
    else:
        yield ManualStep(call.lineno, f'{source.text_of(call)}: write run(http="host:port", options=HTTPOptions(...))')


def _mount_edits(call: ast.Call, source: SourceText) -> Iterator[Edit | ManualStep]:
    keywords = keywords_of(call)
    if keywords is None or len(call.args) > 1 or not set(keywords) <= {"server", "namespace", "prefix"}:
        yield ManualStep(call.lineno, f"{source.text_of(call)}: write mount(other, prefix=...)")
    else:
        yield from rename_keywords(call, {"server": "other", "namespace": "prefix"}, source)


def _calls(source: SourceText) -> Iterator[ast.Call]:
    return (node for node in ast.walk(source.tree) if isinstance(node, ast.Call))


SAME = ("Audio", "Depends", "File", "Image", "ToolError")
"""Names with the same meaning in accord."""

TYPES = {
    name: name
    for name in (
        *SAME,
        *("Annotations", "AudioContent", "CallToolResult", "Completion", "EmbeddedResource", "Icon", "ImageContent"),
        *("ModelHint", "ModelPreferences", "PromptMessage", "ResourceLink", "SamplingMessage", "TextContent"),
        *("Tool", "ToolAnnotations"),
    )
} | {"TextResourceContents": "ResourceContents", "BlobResourceContents": "ResourceContents"}
"""Type names of other libraries, and their names in accord."""


def type_edits(source: SourceText, local: str, name: str) -> Iterator[Edit | ManualStep]:
    """Yield the edits for a type under its local name, and the manual steps that prevent them."""
    if name in SAME:
        return
    constructors = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == local:
            constructors.add(node.func)
            yield from _type_constructor_edits(node, source)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == local:
            yield ManualStep(node.lineno, f"{source.text_of(node)}: accord's types have fields only")
    if name == "ResourceContents":
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Name) and node.id == local and node not in constructors:
                yield ManualStep(node.lineno, f"{local}: accord has one type for texts and blobs, see .text and .blob")


def _type_constructor_edits(call: ast.Call, source: SourceText) -> Iterator[Edit | ManualStep]:
    keywords = _keywords_or_step(call, source, positional=0, kind="fields")
    if isinstance(keywords, ManualStep):
        yield keywords
        return
    yield from rename_keywords(call, {name: to_snake_case(name) for name in keywords}, source)
    yield from remove_arguments(call, [keyword for name, keyword in keywords.items() if name == "type"], source)


def to_snake_case(name: str) -> str:
    """Return the Python name of a field: `isError` as `is_error`, `_meta` as `meta`."""
    return re.sub(r"(?<=[a-z])([A-Z])", lambda match: f"_{match[1].lower()}", name).lstrip("_")

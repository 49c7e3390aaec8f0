"""Offering what was not written for it: modules, objects, folders, HTTP APIs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accord.server.compose.composition_mixin import CompositionMixin
from accord.server.declare.declaration_mixin import DeclarationMixin

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Unpack

    from accord.server.declare.imported import Imported
    from accord.server.declare.modules import FunctionOptions
    from accord.server.files.directory import Directory
    from accord.server.openapi.document import Source
    from accord.server.openapi.importer import OpenAPIOptions


class ImportMixin(DeclarationMixin, CompositionMixin):
    """The part of `Server` that takes in what there is."""

    # --- modules and objects -----------------------------------------------------------------------------------

    def add_module(self, module: ModuleType, **options: Unpack[FunctionOptions]) -> Imported:
        """Offer the public functions of a module as tools: those of `__all__`, else those it defines itself. What
        cannot be a tool is left out, and told; in `include` it raises `DeclarationError`, as a taken name does.
        """
        from accord.server.declare.modules import add_functions, module_functions

        return add_functions(self.registry, module_functions(module, options.get("include")), **options)

    def add_object(self, thing: object, **options: Unpack[FunctionOptions]) -> Imported:
        """Offer the public methods of an object as tools, those of its bases included; of a class, its static and
        class methods. As `add_module`.
        """
        from accord.server.declare.modules import add_functions, object_methods

        return add_functions(self.registry, object_methods(thing), **options)

    # --- files -------------------------------------------------------------------------------------------------

    def add_directory(
        self,
        path: str | os.PathLike[str],
        *,
        uri: str | None = None,
        name: str | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        hidden: bool = False,
        max_bytes: int = 8 << 20,
        most: int = 10_000,
        mime_types: Mapping[str, str] | None = None,
        watch: bool = True,
        poll_seconds: float = 2,
    ) -> Directory:
        """Serve the files below a folder as resources below `uri` (`docs://`; its own `file:` URI by default).

        `include` and `exclude` are patterns (`*.md`, `guide/**`). At most `most` files are listed, and `max_bytes` read
        of each; `mime_types` go by suffix. While the server runs, clients are told what changes if `watch`, which
        takes `watchfiles` or a look every `poll_seconds`. Links are not followed. Raises `DeclarationError`.
        """
        from accord.server.files.directory import open_directory
        from accord.server.files.names import PathFilter

        chosen = PathFilter(include, exclude, hidden=hidden)
        poll = poll_seconds if watch else None
        made = open_directory(self.registry.providers, path, chosen, uri, name, max_bytes, most, mime_types, poll)
        self.add_provider(made)
        return made

    # --- HTTP APIs ---------------------------------------------------------------------------------------------

    def add_openapi(self, document: Source, **options: Unpack[OpenAPIOptions]) -> Imported:
        """Offer an HTTP API by its OpenAPI document (3.0 or 3.1): a dict, JSON, or the path of a file.

        Every operation becomes a tool, unless `routes` say otherwise. What cannot be offered is left out, and told.
        Raises `DeclarationError`, and then nothing is added, for what is wrong with all of it.
        """
        from accord.server.openapi.importer import add_openapi

        return add_openapi(self, document, options)

    def add_fastapi(self, app: Any, *, lifespan: bool = True, **options: Unpack[OpenAPIOptions]) -> Imported:
        """Offer a FastAPI application, or any ASGI application with an `openapi()`, called in this process.

        Its lifespan begins before its first request and ends with this server, unless somebody else runs it
        (`lifespan=False`). Otherwise as `add_openapi`.
        """
        from accord.server.openapi.importer import add_application

        return add_application(self, app, lifespan, options)

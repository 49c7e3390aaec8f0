"""The inspector: a web page that shows the traffic of servers and sends them any request.

    from accord.inspector import Inspector

Names are loaded on first use.
"""

from accord.lazy_names import homes_of, lazy_names

_HOMES = homes_of({"accord.inspector.app": "Inspector"})
"""Every public name, and the module that defines it."""

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]: the stub lists them
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

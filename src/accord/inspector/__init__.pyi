from accord.inspector.app import Inspector as Inspector

__all__ = ["Inspector"]

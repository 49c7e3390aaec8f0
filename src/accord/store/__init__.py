"""Storage that survives a broken connection, and with SQLite the process: sessions, and the events of their streams."""

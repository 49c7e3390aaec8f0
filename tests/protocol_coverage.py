COVERAGE: dict[str, str] = {}

"""HTTP as an ASGI server hands it over: requests, answers, streams. Who speaks is not known here."""

"""Is this client right? A scripted server that behaves, and misbehaves on purpose, and judges what the client did."""

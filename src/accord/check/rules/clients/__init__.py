"""Rules about clients: each judges what a client does in scenarios of a scripted server."""

"""The checker as the issuer of a server's tokens: its keys, its metadata, and the tokens that it signs or forges."""

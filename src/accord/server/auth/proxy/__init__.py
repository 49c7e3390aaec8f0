"""`OAuthProxy`: an authorization server for providers that register no clients."""

"""The authorization debugger: the login of a client, one step at a time, with the evidence of each step."""

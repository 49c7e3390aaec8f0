"""The policy of a host: rules that allow, ask about or deny a call."""

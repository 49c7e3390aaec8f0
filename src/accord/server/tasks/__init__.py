"""Tasks: tool calls that go on after their request, in both protocols that have them."""

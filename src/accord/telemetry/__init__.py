"""What is told of requests and sessions to who watches them: OpenTelemetry, or whatever a program plugs in."""

"""OAuth, without I/O: functions return requests, and receive responses, a clock and randomness."""

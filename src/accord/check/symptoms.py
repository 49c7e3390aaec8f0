"""Symptoms that several rules share: what fails for one cause is one finding, told by the rule of this name."""

from __future__ import annotations

ENDLESS = "pagination/ends"
"""A list has no end, whoever asks for it."""

NOTIFICATION_ANSWERED = "errors/notification-answered"
"""What has no id is answered all the same."""

UNACKNOWLEDGED = "subscriptions/acknowledged"
"""A subscription does not begin as it should, whatever was to come of it."""

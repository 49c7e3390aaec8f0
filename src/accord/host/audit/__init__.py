"""The audit log of a host: who proposed, approved and made which call, in a file that shows later changes."""

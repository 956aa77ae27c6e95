"""Heads, streams and adapters for any target; what it makes is read by `heads`."""

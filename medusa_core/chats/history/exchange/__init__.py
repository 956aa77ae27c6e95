"""Conversations in files: ours as JSON, for people, and those of other programs."""

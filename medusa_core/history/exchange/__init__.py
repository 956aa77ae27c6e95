"""Conversations in files: ours as JSON, for people as Markdown and HTML, and those of others."""

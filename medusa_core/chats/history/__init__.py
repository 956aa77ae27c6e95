"""Conversations on disk: a tree of messages that only grows, search, trash."""

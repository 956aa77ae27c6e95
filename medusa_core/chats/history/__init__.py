"""Conversations in SQLite: append-only trees of messages, search, trash."""

"""Layers that have no room: read from memory or disk as they are needed."""

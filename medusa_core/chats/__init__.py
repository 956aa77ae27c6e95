"""Conversations, settings and presets, independent of the engine."""

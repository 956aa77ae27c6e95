"""Conversations, their settings and presets; how they are answered is `engine`."""

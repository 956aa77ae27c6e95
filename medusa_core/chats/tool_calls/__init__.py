"""Parsing of tool calls in a model's format, streamed or complete."""

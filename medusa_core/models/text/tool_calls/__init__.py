"""Formats of tool calls: learned from chat templates, written, and enforced by grammars."""

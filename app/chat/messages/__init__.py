"""Prompts and answers as they are shown; Markdown itself is `markdown`."""

"""Widgets of prompts and answers; `markdown` renders their text."""

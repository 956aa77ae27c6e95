"""Tokens to text, conversations to tokens, and what models mark as thoughts."""

"""Choices for the whole program, each declared once; a conversation's are in `chat_settings`."""

"""Checks what works on this computer, and says what to do where something doesn't. No Qt."""

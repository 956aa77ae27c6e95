"""Texts in the user's language, those of the engine included."""

"""Finds texts in the user's language, the engine's too; they are in `resources/translations`."""

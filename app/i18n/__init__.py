"""Texts and numbers in the user's language; `resources/translations` has the catalogs."""

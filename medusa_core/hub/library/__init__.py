"""Installed models and heads: listing, matching, verifying, importing and removing."""

"""Containers of weights and of settings, as they lie on disk."""

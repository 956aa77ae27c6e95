"""Adapters: read, merged into weights, written."""

"""Drafters: one file each, exporting `SPEC`."""

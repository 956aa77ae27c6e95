"""Acceptance rules: one file each, exporting `SPEC`."""

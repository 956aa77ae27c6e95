"""Architectures: one file each, exporting `SPEC`."""

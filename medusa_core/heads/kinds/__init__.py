"""Kinds of heads: one file each, exporting `SPEC`."""

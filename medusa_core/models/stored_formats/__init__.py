"""Formats of weights that are published quantized: one file each, exporting `SPEC`."""

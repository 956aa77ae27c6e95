"""Formats in which published weights are quantized already: one file each, exporting `SPEC`."""

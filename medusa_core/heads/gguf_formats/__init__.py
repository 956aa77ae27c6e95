"""Architectures of heads in GGUF files: one file each, exporting `SPEC`."""
